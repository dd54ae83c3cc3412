"""The checkpoint's file: the vertices drawn so far and the public parameters, nothing else.

The format is described in ``docs/checkpoints.md``.
"""

import os
import re
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.errors import CheckpointError
from dplasso.files.archive import ArchiveKind, read_archive, write_archive
from dplasso.files.release_header import ReleaseHeader, read_release, write_release
from dplasso.frank_wolfe.release import VertexRelease
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.model import Release, check_columns
from dplasso.model.release import RELEASE_ARRAYS, release_from
from dplasso.privacy.statement import PrivacyStatement

FORMAT_VERSION = 2
_TOKEN = re.compile("[0-9a-f]{32}")
_KIND = ArchiveKind("checkpoint", "dplasso-checkpoint", FORMAT_VERSION, CheckpointError)
_ABOUT = (
    "A checkpoint of a fit: its public parameters and the vertices drawn so far. Nothing else in "
    "it depends on the data, so by composition the privacy statement, which is that of the whole "
    "fit, covers it. How far the fit had come is a matter of time, which nothing protects: keep "
    "this file with the data and release the model instead."
)


@dataclass(frozen=True)
class ChargeNote:
    """Which entry of a budget ledger has paid for the fit.

    `token`: random, chosen before the charge is made.
    `number`: of the entry; None as long as the ledger has not confirmed it.
    """

    token: str
    number: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.token, str) or not _TOKEN.fullmatch(self.token):
            raise ValueError("its ledger entry has no token")
        if self.number is not None and (
            type(self.number) is not int or not 0 < self.number < 1 << 63
        ):
            raise ValueError("its ledger entry has no number")


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds.

    Attributes
    ----------
    params : dict
        The estimator's parameters that the model depends on; no seed, and none that only says how
        to compute or to report.
    release : Release
        What was drawn so far, at most ``statement.steps`` steps.
    statement : PrivacyStatement
        What the whole fit guarantees.
    classes : ndarray, shape (2,)
        The labels.
    n_features : int
        Number of columns D.
    feature_names : ndarray of str objects, shape (D,), or None
        Names of the columns, if they had any.
    finished : bool
        Whether the fit's results have been put where they belong, so that nothing is left to do.
    charge : ChargeNote or None
        The entry of the ledger that the fit is charged to, if there is one.
    """

    params: dict[str, Any]
    release: Release
    statement: PrivacyStatement
    classes: NDArray[Any]
    n_features: int
    feature_names: NDArray[np.object_] | None = None
    finished: bool = False
    charge: ChargeNote | None = None

    def __post_init__(self) -> None:
        steps = len(self.release)
        if steps > self.statement.steps:
            raise ValueError(f"{steps} vertices do not fit a run of {self.statement.steps}")
        if not isinstance(self.finished, bool) or (self.finished and not self.is_complete):
            raise ValueError(f"a run is not finished after {steps} of its steps")
        if steps and self.charge is not None and self.charge.number is None:
            raise ValueError("it has steps that no ledger entry paid for")
        check_columns(self.n_features, self.classes, self.feature_names)

    @property
    def transcript(self) -> Transcript:
        """The vertices drawn so far; of a fit by Frank-Wolfe."""
        if not isinstance(self.release, VertexRelease):
            raise AttributeError("only a fit by Frank-Wolfe has a transcript")
        return self.release.transcript

    @property
    def is_complete(self) -> bool:
        """Whether every vertex has been drawn."""
        return len(self.release) == self.statement.steps


def write_checkpoint(
    checkpoint: Checkpoint, path: str | os.PathLike[str], *, temporary: str | None = None
) -> None:
    """Write a checkpoint, whole or not at all.

    `checkpoint`: what the file shall hold.
    `path`: where; an older file there is replaced.
    `temporary`: as in `dplasso.files.atomic.atomic_write`.

    Raises OSError if the file cannot be written; ValueError if a label or parameter is of a kind
    that the file cannot hold.
    """
    header, arrays = write_release(
        ReleaseHeader(
            checkpoint.release.kind,
            checkpoint.params,
            checkpoint.statement.to_dict(),
            checkpoint.n_features,
            checkpoint.classes,
            checkpoint.feature_names,
        ),
        "checkpoint",
    )
    header |= {
        "about": _ABOUT,
        "finished": checkpoint.finished,
        "charge": None if checkpoint.charge is None else asdict(checkpoint.charge),
    }
    write_archive(path, _KIND, header, arrays | checkpoint.release.arrays(), temporary=temporary)


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read and check a checkpoint.

    Parameters
    ----------
    path : str or path-like
        A file that `write_checkpoint` wrote.

    Returns
    -------
    Checkpoint
        What it holds. ``DPLassoClassifier(**checkpoint.params)`` is the estimator to go on with,
        but for a seed, which is never stored.

    Raises
    ------
    CheckpointError
        If the file is damaged, foreign, or of another version of the format.
    OSError
        If there is no such file or it cannot be read.
    """
    return read_archive(path, _KIND, _parse)


def _parse(header: dict[str, Any], members: dict[str, bytes]) -> Checkpoint:
    """Build the contents of a file."""
    found = read_release(
        header, members, arrays=RELEASE_ARRAYS, entries=("about", "finished", "charge")
    )
    return Checkpoint(
        params=found.params,
        release=release_from(
            found.release, members, found.params, found.n_features, found.classes.size
        ),
        statement=PrivacyStatement.from_dict(found.privacy),
        classes=found.classes,
        n_features=found.n_features,
        feature_names=found.feature_names,
        finished=header["finished"],
        charge=None if header["charge"] is None else ChargeNote(**header["charge"]),
    )
