"""Class labels as JSON values, with the type they had."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_KINDS = "biufU"


def labels_to_json(labels: NDArray[Any]) -> dict[str, Any]:
    """Write labels as values that JSON can hold.

    Parameters
    ----------
    labels : ndarray
        Flat; booleans, numbers or strings, or objects that are such.

    Returns
    -------
    dict
        ``{"dtype": ..., "values": [...]}``.

    Raises
    ------
    ValueError
        If a label is of another kind, or not finite.
    """
    if labels.ndim != 1:
        raise ValueError(f"Labels must be a flat list, got an array of shape {labels.shape}.")
    values = [value.item() if isinstance(value, np.generic) else value for value in labels.tolist()]
    known = labels.dtype.kind in _KINDS + "OT"
    if not known or not all(isinstance(value, bool | int | float | str) for value in values):
        raise ValueError(
            f"Labels of type {labels.dtype} cannot be written to a model file; "
            "use numbers, strings or booleans."
        )
    if any(isinstance(value, float) and not np.isfinite(value) for value in values):
        raise ValueError("A label that is NaN or infinite cannot be written to a model file.")
    name = {"O": "object", "T": "string"}.get(labels.dtype.kind, labels.dtype.str)
    return {"dtype": name, "values": values}


def labels_from_json(entry: Any) -> NDArray[Any]:
    """Read labels back.

    Parameters
    ----------
    entry : dict
        What `labels_to_json` gave.

    Returns
    -------
    ndarray
        Same values, same type.

    Raises
    ------
    ValueError
        If the entry is not of that form.
    """
    if not isinstance(entry, dict) or set(entry) != {"dtype", "values"}:
        raise ValueError("labels need a dtype and values")
    name, values = entry["dtype"], entry["values"]
    if not isinstance(name, str) or not isinstance(values, list):
        raise ValueError("labels need a dtype and values")
    if not all(isinstance(value, bool | int | float | str) for value in values):
        raise ValueError("labels must be numbers, strings or booleans")
    if name == "object":
        labels = np.empty(len(values), dtype=object)
        labels[:] = values
        return labels
    dtype: Any = np.dtypes.StringDType() if name == "string" else np.dtype(name)
    if dtype.kind not in _KINDS + "T":
        raise ValueError(f"labels cannot be of type {name}")
    labels = np.array(values, dtype=dtype)
    if labels.tolist() != values:
        raise ValueError(f"the labels are not of type {name}")
    return labels
