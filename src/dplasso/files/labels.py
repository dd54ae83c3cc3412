"""Class labels as plain arrays, of fixed size and without pickle."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_KINDS = "biufU"
# Types of labels that ``.npy`` cannot hold; their values go by a plain type.
LabelsType = Literal["plain", "object", "string"]
_TYPES: dict[str, np.dtype[Any]] = {"object": np.dtype(object), "string": np.dtypes.StringDType()}


def labels_to_array(labels: Any) -> tuple[NDArray[Any], LabelsType]:
    """Return labels as an array that ``.npy`` holds without pickle, and what their type was.

    Strings get the shortest type that holds them, since a longer one tells of other labels.
    """
    given = np.asarray(labels)
    if given.ndim != 1:
        raise ValueError(f"Labels must be a flat list, got an array of shape {given.shape}.")
    kinds: dict[str, LabelsType] = {"O": "object", "T": "string"}
    kind = kinds.get(given.dtype.kind, "plain")
    values, array = given.tolist(), given
    known = all(isinstance(value, bool | int | float | str) for value in values)
    if known and (kind != "plain" or given.dtype.kind == "U"):
        array = np.array(values, dtype=None if values else np.str_)
    if array.dtype.kind not in _KINDS or array.tolist() != values:
        raise ValueError(
            f"Labels of type {given.dtype} cannot be written to a model file; use numbers, strings "
            "or booleans, all of one kind."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("A label that is NaN or infinite cannot be written to a model file.")
    return array, kind


def labels_from_array(array: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Return what `labels_to_array` was given, but for the length of strings; or ValueError."""
    if array.ndim != 1 or array.dtype.kind not in _KINDS:
        raise ValueError(f"labels cannot be an array of type {array.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("a label is not finite")
    if kind not in ("plain", *_TYPES) or (kind == "string" and array.dtype.kind != "U"):
        raise ValueError(f"labels cannot be of type {kind!r}")
    return array if kind == "plain" else array.astype(_TYPES[kind])
