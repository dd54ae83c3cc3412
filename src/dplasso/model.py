"""The model file: what a fit released, in a documented, versioned file without pickle.

The transcript of vertices *is* the model; the weights follow from it. The format is described in
``docs/model-file.md``.
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dplasso.errors import ModelFileError
from dplasso.files.archive import (
    ArchiveKind,
    array_of,
    params_from_json,
    params_to_json,
    read_archive,
    write_archive,
)
from dplasso.files.atomic import check_writable
from dplasso.files.label_json import labels_from_json, labels_to_json
from dplasso.frank_wolfe.transcript import History, Transcript
from dplasso.privacy.statement import PrivacyStatement

if TYPE_CHECKING:
    from dplasso.estimators.lasso import DPLassoClassifier

__all__ = [
    "FORMAT_VERSION",
    "ModelParts",
    "check_release",
    "check_writable",
    "load_model",
    "parts_of",
    "read_parts",
    "save_model",
    "write_parts",
]

MAGIC = "dplasso-model"
FORMAT_VERSION = 1
_KIND = ArchiveKind("model", MAGIC, FORMAT_VERSION, ModelFileError)
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
        check_release(
            self.transcript, self.n_features, self.classes, self.feature_names, self.params
        )
        if self.history is not None:
            # Losses and gaps are functions of the data: they must never leave a private fit.
            if self.statement.mechanism != "none":
                raise ValueError("only a fit without privacy has a history")
            if {self.history.objective.shape, self.history.gap.shape} != {(steps,)}:
                raise ValueError(f"the history does not fit {steps} steps")


def check_release(
    transcript: Transcript,
    n_features: int,
    classes: NDArray[Any],
    feature_names: NDArray[Any] | None,
    params: dict[str, Any],
) -> None:
    """Check that vertices, columns and labels can belong together.

    Parameters
    ----------
    transcript : Transcript
        Vertices.
    n_features : int
        Number of columns D.
    classes : ndarray
        The labels.
    feature_names : ndarray or None
        Names of the columns.
    params : dict
        The estimator's parameters; ``fit_intercept`` says whether D is a coordinate.

    Raises
    ------
    ValueError
        If they do not.
    """
    if type(n_features) is not int or not 1 <= n_features < 2**63:
        raise ValueError(f"the number of columns cannot be {n_features!r}")
    vertex, sign = transcript.vertex, transcript.sign
    last = n_features if params.get("fit_intercept") else n_features - 1
    if vertex.size and (vertex.min() < 0 or vertex.max() > last):
        raise ValueError(f"a vertex lies outside the {n_features} columns")
    if not np.all(np.abs(sign) == 1):
        raise ValueError("a sign is neither +1 nor -1")
    if classes.shape != (2,) or classes[0] == classes[1]:
        raise ValueError("a model has two different labels")
    if feature_names is not None and feature_names.shape != (n_features,):
        raise ValueError(f"the names do not fit {n_features} columns")


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
    from dplasso.estimators.lasso import DPLassoClassifier

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
    except (TypeError, ValueError, OverflowError) as error:
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
    params = params_to_json(parts.params, "model")
    params["random_state"] = "seeded" if parts.statement.randomness == "seeded" else None
    header = {
        "params": params,
        "privacy": parts.statement.to_dict(),
        "n_features": parts.n_features,
        "classes": labels_to_json(parts.classes),
        "feature_names": None if names is None else [str(name) for name in names],
    }
    arrays = {
        "vertex": parts.transcript.vertex.astype("<i8", copy=False),
        "sign": parts.transcript.sign.astype("|i1", copy=False),
    }
    if parts.history is not None:
        arrays["objective"] = parts.history.objective.astype("<f8", copy=False)
        arrays["gap"] = parts.history.gap.astype("<f8", copy=False)
    write_archive(path, _KIND, header, arrays)


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
    return read_archive(path, _KIND, _parse)


def _parse(header: dict[str, Any], members: dict[str, bytes]) -> ModelParts:
    """Build the parts of a version 1 file."""
    expected = {"header", *_ARRAYS}
    if set(members) not in (expected, expected | set(_HISTORY_ARRAYS)):
        raise ValueError(f"it holds {', '.join(sorted(members))}")
    if set(header) != _HEADER_KEYS:
        raise ValueError("its header has missing or unknown entries")
    history = None
    if "gap" in members:
        history = History(
            *(array_of(members, name, kind) for name, kind in _HISTORY_ARRAYS.items())
        )
    transcript = Transcript(
        array_of(members, "vertex", "<i8").astype(np.int64, copy=False),
        array_of(members, "sign", "|i1"),
    )
    params = params_from_json(header["params"])
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
