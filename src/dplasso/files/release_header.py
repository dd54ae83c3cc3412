"""The public part that model files and checkpoints share: parameters, statement, columns, labels.

Values that JSON can hold stand in the archive's header, labels in an array of their own.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.files.archive import parse_array
from dplasso.files.labels import labels_from_array, labels_to_array

_ENVELOPE = {"magic", "version", "written_by"}
_LABELS = "classes"


class ReleaseHeader(NamedTuple):
    """What every file of a release says of itself.

    `release`: the kind of what was drawn.
    `params`: the estimator's parameters: plain values, numpy scalars, labels; `classes` equal to
    the attribute `classes`, or None.
    `privacy`: the statement as `PrivacyStatement.to_dict` gives it.
    `n_features`: number of columns D.
    `classes`: the labels.
    `feature_names`, shape (D,): names of the columns, if they had any.
    """

    release: str
    params: dict[str, Any]
    privacy: dict[str, Any]
    n_features: int
    classes: NDArray[Any]
    feature_names: NDArray[np.object_] | None


def write_release(
    release: ReleaseHeader, noun: str
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what `dplasso.files.archive.write_archive` is to write for a release.

    `noun`: what the file is called, for messages.

    Returns `header`: entries of the header.
    `arrays`: members of the archive.

    Raises ValueError if a label or parameter is of a kind that the file cannot hold, or the
    parameter `classes` names other labels than the release has.
    """
    labels, kind = labels_to_array(release.classes)
    params = params_to_json(release.params, noun)
    if params.get("classes") is not None:
        if params["classes"] != {"labels": labels.tolist()}:
            raise ValueError(
                f"classes={release.params['classes']!r} was changed after fitting: the model knows "
                f"the labels {labels.tolist()}."
            )
        params["classes"] = {"labels": _LABELS}
    names = release.feature_names
    header = {
        "release": release.release,
        "params": params,
        "privacy": release.privacy,
        "n_features": release.n_features,
        "classes": kind,
        "feature_names": None if names is None else [str(name) for name in names],
    }
    return header, {_LABELS: labels}


def read_release(
    header: Mapping[str, Any],
    members: Mapping[str, bytes],
    *,
    arrays: Mapping[str, Collection[str]],
    besides: Collection[str] = (),
    entries: Collection[str] = (),
) -> ReleaseHeader:
    """Read a release back, and check that the file holds nothing unknown.

    `header`: as `dplasso.files.archive.read_archive` hands it over.
    `arrays`: the members of each kind of release.
    `besides`: further members that are all there or all missing.
    `entries`: what else the header holds.

    Raises ValueError if an entry or member is missing, unknown or not of its form.
    """
    if set(header) != {*_ENVELOPE, *ReleaseHeader._fields, *entries}:
        raise ValueError("its header has missing or unknown entries")
    release = header["release"]
    if release not in arrays:
        raise ValueError(f"its release is of the unknown kind {release!r}")
    expected = {"header", _LABELS, *arrays[release]}
    if set(members) not in (expected, expected | set(besides)):
        raise ValueError(f"it holds {', '.join(sorted(members))}")
    classes = labels_from_array(parse_array(members[_LABELS]), header["classes"])
    names = header["feature_names"]
    if names is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("its feature names are not names")
        names = np.array(names, dtype=object)
    params = {name: _from_json(value, classes) for name, value in header["params"].items()}
    return ReleaseHeader(release, params, header["privacy"], header["n_features"], classes, names)


def params_to_json(params: Mapping[str, Any], noun: str) -> dict[str, Any]:
    """Return an estimator's parameters as values that JSON can hold and that can be compared.

    `params`: plain values, numpy scalars, or labels: a list, an array, a range, a pandas Index or
    Series.
    `noun`: what the file is called, for the message.

    Returns: plain values as they are; infinities and labels marked.

    Raises ValueError if a parameter is of another kind.
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
    if isinstance(value, Sequence) or hasattr(value, "__array__"):
        return {"labels": labels_to_array(value)[0].tolist()}
    raise ValueError(
        f"A {noun} file cannot hold the parameter {name}={value!r} of type {type(value).__name__}."
    )


def _from_json(value: Any, classes: NDArray[Any]) -> Any:
    if isinstance(value, dict) and set(value) == {"float"}:
        return float(value["float"])
    if isinstance(value, dict) and set(value) == {"numbers"}:
        return tuple(float(one) for one in value["numbers"])
    if value == {"labels": _LABELS}:
        return classes
    if isinstance(value, dict | list):
        raise ValueError("a parameter is of no known kind")
    return value
