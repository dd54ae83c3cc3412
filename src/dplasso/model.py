"""The model file: what a fit released, in a documented, versioned file without pickle.

The transcript of vertices *is* the model; the weights follow from it. The format is described in
``docs/model-file.md``.
"""

import hashlib
import io
import json
import os
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dplasso.atomic import atomic_write, check_writable
from dplasso.errors import ModelFileError
from dplasso.frank_wolfe.transcript import History, Transcript
from dplasso.label_json import labels_from_json, labels_to_json
from dplasso.privacy.statement import PrivacyStatement

if TYPE_CHECKING:
    from dplasso.estimator import DPLassoClassifier

__all__ = [
    "FORMAT_VERSION",
    "ModelParts",
    "check_writable",
    "load_model",
    "parts_of",
    "read_parts",
    "save_model",
    "write_parts",
]

MAGIC = "dplasso-model"
FORMAT_VERSION = 1
_DIGEST = "sha256"
_ARRAYS = {"vertex": "<i8", "sign": "|i1"}
# Parameters that are the curator's business: which file keeps the budget, and under what name.
_CURATORS = ("ledger", "dataset")
_HISTORY_ARRAYS = {"objective": "<f8", "gap": "<f8"}
_HEADER_KEYS = {
    "magic",
    "version",
    "written_by",
    "params",
    "privacy",
    "n_features",
    "classes",
    "feature_names",
}


@dataclass(frozen=True)
class ModelParts:
    """Everything a model file holds.

    Attributes
    ----------
    params : dict
        The estimator's parameters without the curator's (`ledger`, `dataset`); `random_state` is
        always ``None``.
    transcript : Transcript
        The vertices chosen.
    statement : PrivacyStatement
        What the fit guarantees.
    classes : ndarray, shape (2,)
        The labels.
    n_features : int
        Number of columns D.
    feature_names : ndarray of str objects, shape (D,), or None
        Names of the columns, if they had any.
    history : History or None
        Only without privacy.
    """

    params: dict[str, Any]
    transcript: Transcript
    statement: PrivacyStatement
    classes: NDArray[Any]
    n_features: int
    feature_names: NDArray[np.object_] | None = None
    history: History | None = None

    def __post_init__(self) -> None:
        steps = len(self.transcript)
        if steps != self.statement.steps:
            raise ValueError(f"{steps} vertices do not fit a statement of {self.statement.steps}")
        if not isinstance(self.n_features, int) or self.n_features < 1:
            raise ValueError(f"the number of columns cannot be {self.n_features!r}")
        vertex, sign = self.transcript.vertex, self.transcript.sign
        last = self.n_features if self.params.get("fit_intercept") else self.n_features - 1
        if steps and (vertex.min() < 0 or vertex.max() > last):
            raise ValueError(f"a vertex lies outside the {self.n_features} columns")
        if not np.all(np.abs(sign) == 1):
            raise ValueError("a sign is neither +1 nor -1")
        if self.classes.shape != (2,) or self.classes[0] == self.classes[1]:
            raise ValueError("a model has two different labels")
        if self.feature_names is not None and self.feature_names.shape != (self.n_features,):
            raise ValueError(f"the names do not fit {self.n_features} columns")
        if self.history is not None:
            # Losses and gaps are functions of the data: they must never leave a private fit.
            if self.statement.mechanism != "none":
                raise ValueError("only a fit without privacy has a history")
            if {self.history.objective.shape, self.history.gap.shape} != {(steps,)}:
                raise ValueError(f"the history does not fit {steps} steps")


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a model file, whole or not at all.

    Parameters
    ----------
    estimator : DPLassoClassifier
        Fitted.
    path : str or path-like
        Where; an older file there is replaced.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        If a label or parameter is of a kind that the file cannot hold.
    """
    write_parts(parts_of(estimator), path)


def load_model(path: str | os.PathLike[str]) -> "DPLassoClassifier":
    """Read a model file.

    Parameters
    ----------
    path : str or path-like
        A file that `save_model` wrote.

    Returns
    -------
    DPLassoClassifier
        Fitted, with the same weights. A seed is never stored: `random_state` is ``None``, and
        `privacy_` says whether there was one.

    Raises
    ------
    ModelFileError
        If the file is damaged, foreign, or of a newer version of the format.
    OSError
        If there is no such file or it cannot be read.
    """
    # The estimator imports this module for its `save`.
    from dplasso.estimator import DPLassoClassifier

    parts = read_parts(path)
    try:
        return DPLassoClassifier._from_parts(
            parts.params,
            parts.transcript,
            parts.statement,
            parts.classes,
            parts.n_features,
            parts.feature_names,
            parts.history,
        )
    except (TypeError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise ModelFileError(f"{os.fspath(path)} holds no usable model: {reason}.") from error


def parts_of(estimator: Any) -> ModelParts:
    """Collect what a model file holds from a fitted estimator.

    Parameters
    ----------
    estimator : DPLassoClassifier
        Fitted.

    Returns
    -------
    ModelParts
        Public values and the transcript; no seed, nothing that depends on the data otherwise.
    """
    given = {**estimator.get_params(deep=False), "random_state": None}
    params = {name: value for name, value in given.items() if name not in _CURATORS}
    return ModelParts(
        params=params,
        transcript=estimator.transcript_,
        statement=estimator.privacy_,
        classes=np.asarray(estimator.classes_),
        n_features=int(estimator.n_features_in_),
        feature_names=getattr(estimator, "feature_names_in_", None),
        history=getattr(estimator, "history_", None),
    )


def write_parts(parts: ModelParts, path: str | os.PathLike[str]) -> None:
    """Write a model file, whole or not at all.

    Parameters
    ----------
    parts : ModelParts
        What it shall hold.
    path : str or path-like
        Where; an older file there is replaced.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        If a label or parameter is of a kind that the file cannot hold.
    """
    names = parts.feature_names
    params = {name: _to_json(name, value) for name, value in parts.params.items()}
    params["random_state"] = "seeded" if parts.statement.randomness == "seeded" else None
    header = {
        "magic": MAGIC,
        "version": FORMAT_VERSION,
        "written_by": f"dplasso {version('dplasso')}",
        "params": params,
        "privacy": parts.statement.to_dict(),
        "n_features": parts.n_features,
        "classes": labels_to_json(parts.classes),
        "feature_names": None if names is None else [str(name) for name in names],
    }
    text = json.dumps(header, allow_nan=False, separators=(",", ":"))
    members = {
        "header": _npy(np.frombuffer(text.encode(), dtype=np.uint8)),
        "vertex": _npy(parts.transcript.vertex.astype("<i8", copy=False)),
        "sign": _npy(parts.transcript.sign.astype("|i1", copy=False)),
    }
    if parts.history is not None:
        members["objective"] = _npy(parts.history.objective.astype("<f8", copy=False))
        members["gap"] = _npy(parts.history.gap.astype("<f8", copy=False))
    members[_DIGEST] = _npy(np.frombuffer(_digest(members), dtype=np.uint8))
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            # A ZipInfo made by hand carries a fixed date: the same model gives the same bytes.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)


def read_parts(path: str | os.PathLike[str]) -> ModelParts:
    """Read and check a model file.

    Parameters
    ----------
    path : str or path-like
        A file that `write_parts` wrote.

    Returns
    -------
    ModelParts
        What it holds.

    Raises
    ------
    ModelFileError
        If the file is damaged, foreign, or of a newer version of the format.
    OSError
        If there is no such file or it cannot be read.
    """
    shown = os.fspath(path)
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            members = _read_members(file, size)
            header = _read_header(members)
            return _parse(header, members)
        except ModelFileError as error:
            raise ModelFileError(f"{shown} {error}") from error.__cause__
        except Exception as error:
            # zipfile and numpy raise a dozen types on damaged bytes; all mean the same here.
            reason = str(error).rstrip(".") or type(error).__name__
            raise ModelFileError(f"{shown} is damaged or incomplete: {reason}.") from error


def _read_members(file: Any, size: int) -> dict[str, bytes]:
    """Read the archive's members, each checked against its CRC."""
    if not zipfile.is_zipfile(file):
        raise ModelFileError("is not a dplasso model file, or is cut short.")
    with zipfile.ZipFile(file) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if "header.npy" not in entries:
            raise ModelFileError("is not a dplasso model file.")
        for entry in entries.values():
            # Stored members cannot be larger than the file: nothing to unpack, nothing to bomb.
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size:
                raise ModelFileError("is damaged: a part of it is compressed or too large.")
        return {name.removesuffix(".npy"): archive.read(name) for name in entries}


def _read_header(members: dict[str, bytes]) -> dict[str, Any]:
    """Parse the header and settle whether this version can read the rest."""
    text = _array(members, "header", "|u1").tobytes()
    try:
        header = json.loads(text)
    except ValueError as error:
        raise ModelFileError("is not a dplasso model file.") from error
    if not isinstance(header, dict) or header.get("magic") != MAGIC:
        raise ModelFileError("is not a dplasso model file.")
    found = header.get("version")
    if isinstance(found, int) and found > FORMAT_VERSION:
        raise ModelFileError(
            f"has version {found} of the model format and this dplasso reads version "
            f"{FORMAT_VERSION}: install a newer dplasso."
        )
    if found != FORMAT_VERSION:
        raise ModelFileError(f"names no known version of the model format: {found!r}.")
    return header


def _parse(header: dict[str, Any], members: dict[str, bytes]) -> ModelParts:
    """Build the parts of a version 1 file."""
    expected = {"header", _DIGEST, *_ARRAYS}
    if set(members) not in (expected, expected | set(_HISTORY_ARRAYS)):
        raise ValueError(f"it holds {', '.join(sorted(members))}")
    if set(header) != _HEADER_KEYS:
        raise ValueError("its header has missing or unknown entries")
    digest = _array(members, _DIGEST, "|u1").tobytes()
    if digest != _digest({name: part for name, part in members.items() if name != _DIGEST}):
        raise ValueError("its checksum does not fit")
    history = None
    if "gap" in members:
        history = History(*(_array(members, name, kind) for name, kind in _HISTORY_ARRAYS.items()))
    transcript = Transcript(
        _array(members, "vertex", "<i8").astype(np.int64, copy=False),
        _array(members, "sign", "|i1"),
    )
    params = {name: _from_json(value) for name, value in header["params"].items()}
    if params.get("random_state") not in (None, "seeded"):
        raise ValueError("it holds a random_state")
    params["random_state"] = None
    if found := [name for name in _CURATORS if name in params]:
        # A fit with a loaded estimator must not be charged where a stranger's file says.
        raise ValueError(f"it holds a {found[0]}")
    names = header["feature_names"]
    if names is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("its feature names are no names")
        names = np.array(names, dtype=object)
    return ModelParts(
        params=params,
        transcript=transcript,
        statement=PrivacyStatement.from_dict(header["privacy"]),
        classes=labels_from_json(header["classes"]),
        n_features=header["n_features"],
        feature_names=names,
        history=history,
    )


def _npy(array: NDArray[Any]) -> bytes:
    """Serialise an array in numpy's .npy format."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _array(members: dict[str, bytes], name: str, kind: str) -> NDArray[Any]:
    """Parse one member, which must be a flat array of exactly this type."""
    array = np.lib.format.read_array(io.BytesIO(members[name]), allow_pickle=False)
    if array.dtype.str != kind or array.ndim != 1:
        raise ValueError(f"its part {name!r} is not a flat array of type {kind}")
    return array


def _digest(members: dict[str, bytes]) -> bytes:
    """Hash the members' bytes in the order of their names, lengths included."""
    digest = hashlib.sha256()
    for name in sorted(members):
        digest.update(f"{name} {len(members[name])}\n".encode())
        digest.update(members[name])
    return digest.digest()


def _to_json(name: str, value: Any) -> Any:
    """Write a parameter's value: plain values as they are, infinities and labels marked."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray | list | tuple):
        return {"labels": labels_to_json(np.asarray(value))}
    raise ValueError(
        f"A model file cannot hold the parameter {name}={value!r} of type {type(value).__name__}."
    )


def _from_json(value: Any) -> Any:
    """Read a parameter's value back."""
    if isinstance(value, dict):
        if set(value) == {"float"}:
            return float(value["float"])
        if set(value) == {"labels"}:
            return labels_from_json(value["labels"])
        raise ValueError("a parameter is of no known kind")
    if isinstance(value, list):
        raise ValueError("a parameter is of no known kind")
    return value
