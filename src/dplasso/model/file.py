"""The model file: what a fit released, in a documented, versioned file without pickle.

The release *is* the model; the weights follow from it. The format is described in
``docs/model-file.md``.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.encoding.origin import Origin, origin_from_json
from dplasso.errors import ModelFileError
from dplasso.files.archive import ArchiveKind, array_of, read_archive, write_archive
from dplasso.files.release_header import ReleaseHeader, read_release, write_release
from dplasso.frank_wolfe.transcript import History
from dplasso.model.release import RELEASE_ARRAYS, Release, n_outputs_of, release_from
from dplasso.privacy.statement import PrivacyStatement

__all__ = ["FORMAT_VERSION", "Model", "check_columns", "read_model", "write_model"]

MAGIC = "dplasso-model"
FORMAT_VERSION = 2
_KIND = ArchiveKind("model", MAGIC, FORMAT_VERSION, ModelFileError)
# Parameters that are the curator's business: which file keeps the budget, under what name, and why.
_CURATORS = ("ledger", "dataset", "purpose")
_HISTORY_ARRAYS = {"objective": "<f8", "gap": "<f8"}
_ORIGIN = "origin"


@dataclass(frozen=True)
class Model:
    """Everything that leaves a fit, and that a model file holds.

    Attributes
    ----------
    params : dict
        The estimator's parameters at the fit. A file leaves out the curator's (`ledger`, `dataset`,
        `purpose`) and any seed.
    release : Release
        What was drawn.
    statement : PrivacyStatement
        What the fit guarantees.
    classes : ndarray, shape (K,)
        The labels; none for a regression.
    n_features : int
        Number of columns D.
    feature_names : ndarray of str objects, shape (D,), or None
        Names of the columns, if they had any.
    history : History or None
        Only without privacy.
    origin : Origin or None
        How the columns were made; None where nobody noted it.
    """

    params: dict[str, Any]
    release: Release
    statement: PrivacyStatement
    classes: NDArray[Any]
    n_features: int
    feature_names: NDArray[np.object_] | None = None
    history: History | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        steps = len(self.release)
        if steps != self.statement.steps:
            raise ValueError(f"{steps} vertices do not fit a statement of {self.statement.steps}")
        check_columns(self.n_features, self.classes, self.feature_names)
        schema = None if self.origin is None else self.origin.schema
        if schema is not None and schema.n_features != self.n_features:
            raise ValueError(f"the schema does not make {self.n_features} columns")
        if self.release.n_outputs != n_outputs_of(self.classes.size):
            raise ValueError(f"{self.release.n_outputs} outputs do not fit its labels")
        if self.history is not None:
            # Losses and gaps are functions of the data: they must never leave a private fit.
            if self.statement.mechanism != "none":
                raise ValueError("only a fit without privacy has a history")
            if {self.history.objective.shape, self.history.gap.shape} != {(steps,)}:
                raise ValueError(f"the history does not fit {steps} steps")


def check_columns(
    n_features: int, classes: NDArray[Any], feature_names: NDArray[Any] | None
) -> None:
    """Check that columns, labels and names can belong together.

    Raises ValueError if they do not.
    """
    if type(n_features) is not int or not 1 <= n_features < 2**63:
        raise ValueError(f"the number of columns cannot be {n_features!r}")
    if classes.ndim != 1 or classes.size == 1 or len(set(classes.tolist())) < classes.size:
        raise ValueError("a model has two or more different labels, or none for a regression")
    if feature_names is not None and feature_names.shape != (n_features,):
        raise ValueError(f"the names do not fit {n_features} columns")


def write_model(
    model: Model, path: str | os.PathLike[str], *, temporary: str | None = None
) -> None:
    """Write a model file, whole or not at all.

    Parameters
    ----------
    model : Model
        What it shall hold.
    path : str or path-like
        Where; an older file there is replaced.
    temporary : str, optional
        As in `dplasso.files.atomic.atomic_write`.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        If a label or parameter is of a kind that the file cannot hold.
    """
    params = {name: value for name, value in model.params.items() if name not in _CURATORS}
    params["random_state"] = "seeded" if model.statement.randomness == "seeded" else None
    header, arrays = write_release(
        ReleaseHeader(
            model.release.kind,
            params,
            model.statement.to_dict(),
            model.n_features,
            model.classes,
            model.feature_names,
        ),
        "model",
    )
    arrays |= model.release.arrays()
    if model.history is not None:
        arrays["objective"] = model.history.objective.astype("<f8", copy=False)
        arrays["gap"] = model.history.gap.astype("<f8", copy=False)
    if model.origin is not None:
        header[_ORIGIN] = model.origin.to_json()
    write_archive(path, _KIND, header, arrays, temporary=temporary)


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read and check a model file.

    Parameters
    ----------
    path : str or path-like
        A file that `write_model` wrote.

    Returns
    -------
    Model
        What it holds; `random_state` is ``None`` and the curator's parameters are missing.

    Raises
    ------
    ModelFileError
        If the file is damaged, foreign, or of another version of the format.
    OSError
        If there is no such file or it cannot be read.
    """
    return read_archive(path, _KIND, _parse)


def written_by(path: str | os.PathLike[str]) -> str:
    """Return the program that wrote a model file, as it says itself."""
    return read_archive(path, _KIND, lambda header, _: str(header["written_by"]))


def _parse(header: dict[str, Any], members: dict[str, bytes]) -> Model:
    """Build the parts of a file."""
    # A file need not say how its columns were made.
    entries = {_ORIGIN} & set(header)
    found = read_release(
        header, members, arrays=RELEASE_ARRAYS, besides=_HISTORY_ARRAYS, entries=entries
    )
    history = None
    if "gap" in members:
        history = History(
            *(array_of(members, name, kind) for name, kind in _HISTORY_ARRAYS.items())
        )
    params = found.params
    if params.get("random_state") not in (None, "seeded"):
        raise ValueError("it holds a random_state")
    params["random_state"] = None
    if curators := [name for name in _CURATORS if name in params]:
        # A fit with a loaded estimator must not be charged where a stranger's file says.
        raise ValueError(f"it holds a {curators[0]}")
    return Model(
        params=params,
        release=release_from(found.release, members, params, found.n_features, found.classes.size),
        statement=PrivacyStatement.from_dict(found.privacy),
        classes=found.classes,
        n_features=found.n_features,
        feature_names=found.feature_names,
        history=history,
        origin=origin_from_json(header.get(_ORIGIN)),
    )
