"""The one codec of what a fit released: header and arrays of model files and checkpoints.

Values that JSON can hold stand in the archive's header; labels and the release in arrays of their
own (docs/model-file.md).
"""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.files.archive import (
    ArchiveKind,
    labels_from_array,
    labels_to_array,
    parse_array,
    write_archive,
)
from dplasso.phases.released import Released, parse_member
from dplasso.phases.releases import KINDS
from dplasso.privacy.statement import PrivacyStatement

_ENTRIES = {
    *("magic", "version", "written_by", "params", "privacy", "n_features"),
    *("classes", "feature_names"),
}
_LABELS = "classes"


@dataclass(frozen=True)
class ReleasedFile:
    """What every file of a fit holds.

    `params`: the estimator's parameters at the fit.
    `released`: what the phases released, in order.
    `statement`: what the fit guarantees.
    `classes`, shape (K,): the labels; none for a regression.
    `n_features`: number of columns D.
    `feature_names`, shape (D,): names of the columns, if they had any.
    """

    params: dict[str, Any]
    released: Released
    statement: PrivacyStatement
    classes: NDArray[Any]
    n_features: int
    feature_names: NDArray[np.object_] | None = None

    def __post_init__(self) -> None:
        n_features, classes, names = self.n_features, self.classes, self.feature_names
        if type(n_features) is not int or not 1 <= n_features < 2**63:
            raise ValueError(f"the number of columns cannot be {n_features!r}")
        if classes.ndim != 1 or classes.size == 1 or len(set(classes.tolist())) < classes.size:
            raise ValueError("a model has two or more different labels, or none for a regression")
        if names is not None and names.shape != (n_features,):
            raise ValueError(f"the names do not fit {n_features} columns")


def write_released(
    held: ReleasedFile,
    path: str | os.PathLike[str],
    kind: ArchiveKind,
    *,
    params: Mapping[str, Any],
    entries: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]] | None = None,
    temporary: str | None = None,
) -> None:
    """Write a release, with these parameters, further entries and arrays, as an archive.

    Raises ValueError if a label or parameter is of a kind that the file cannot hold, or the
    parameter `classes` names other labels than the release has.
    """
    labels, label_type = labels_to_array(held.classes)
    written = params_to_json(params, kind.noun)
    if written.get("classes") is not None:
        if written["classes"] != {"labels": labels.tolist()}:
            raise ValueError(
                f"classes={params['classes']!r} was changed after fitting: the model knows "
                f"the labels {labels.tolist()}."
            )
        written["classes"] = {"labels": _LABELS}
    names = held.feature_names
    header = {
        "params": written,
        "privacy": held.statement.to_dict(),
        "n_features": held.n_features,
        "classes": label_type,
        "feature_names": None if names is None else [str(name) for name in names],
        **entries,
    }
    members = {_LABELS: labels, **held.released.arrays(), **(arrays or {})}
    write_archive(path, kind, header, members, temporary=temporary)


def parse_released(
    header: Mapping[str, Any],
    members: Mapping[str, bytes],
    *,
    entries: Collection[str] = (),
    besides: Collection[str] = (),
) -> dict[str, Any]:
    """Return the attributes of `ReleasedFile` from a file; ValueError if it holds anything else.

    `entries`: what else the header holds.
    `besides`: further members that the file may hold.
    """
    if set(header) != {*_ENTRIES, *entries}:
        raise ValueError("its header has missing or unknown entries")
    releases = set(members) - {"header", _LABELS, *besides}
    if _LABELS not in members or "shares" not in releases:
        raise ValueError(f"it holds {', '.join(sorted(members))}")
    classes = labels_from_array(parse_array(members[_LABELS]), header["classes"])
    names = header["feature_names"]
    if names is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("its feature names are not names")
        names = np.array(names, dtype=object)
    params = {name: _from_json(name, value, classes) for name, value in header["params"].items()}
    statement = PrivacyStatement.from_dict(header["privacy"])
    return {
        "params": params,
        "released": Released.from_arrays({name: _array(members, name) for name in releases}),
        "statement": statement,
        "classes": classes,
        "n_features": header["n_features"],
        "feature_names": names,
    }


def _array(members: Mapping[str, bytes], name: str) -> NDArray[Any]:
    """Return an array of a release; ValueError if its type is another than its kind says."""
    array = parse_array(members[name])
    kind = "<f8"
    if name != "shares":
        _, release, field = parse_member(name)
        kind = KINDS[release].types()[field]
    if array.dtype.str != kind:
        raise ValueError(f"its part {name!r} is not an array of type {kind}")
    return array


def params_to_json(params: Mapping[str, Any], noun: str) -> dict[str, Any]:
    """Return an estimator's parameters as values that JSON can hold and that can be compared.

    Infinities and labels, in whatever sequence, are marked. Raises ValueError, in which the file is
    called `noun`, if a parameter is of another kind.
    """
    return {name: _to_json(name, value, noun) for name, value in params.items()}


def _to_json(name: str, value: Any, noun: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, tuple) and all(isinstance(one, float) for one in value):
        return {"numbers": list(value)}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"mapping": {key: _to_json(name, one, noun) for key, one in value.items()}}
    if isinstance(value, Sequence) or hasattr(value, "__array__"):
        return {"labels": labels_to_array(value)[0].tolist()}
    raise ValueError(
        f"A {noun} file cannot hold the parameter {name}={value!r} of type {type(value).__name__}."
    )


def _from_json(name: str, value: Any, classes: NDArray[Any]) -> Any:
    if name == "classes" and value is not None:
        if value != {"labels": _LABELS}:
            raise ValueError("its parameter classes does not refer to its labels")
        return classes
    if isinstance(value, dict) and set(value) == {"float"}:
        return float(value["float"])
    if isinstance(value, dict) and set(value) == {"numbers"}:
        return tuple(float(one) for one in value["numbers"])
    if isinstance(value, dict) and set(value) == {"mapping"} and isinstance(value["mapping"], dict):
        return {key: _from_json(name, one, classes) for key, one in value["mapping"].items()}
    if isinstance(value, dict | list):
        raise ValueError("a parameter is of no known kind")
    return value
