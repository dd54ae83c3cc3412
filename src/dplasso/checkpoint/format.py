"""The checkpoint's file: the vertices drawn so far and the public parameters, nothing else.

The format is described in ``docs/checkpoints.md``.
"""

import os
import re
from dataclasses import asdict, dataclass
from typing import Any

from dplasso.errors import CheckpointError
from dplasso.files.archive import ArchiveKind, read_archive
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.model.codec import Released, parse_released, write_released

FORMAT_VERSION = 2
_TOKEN = re.compile("[0-9a-f]{32}")
_OLDER = "finish the fit with the dplasso that began it, or begin it again"
_KIND = ArchiveKind(
    "checkpoint", "dplasso-checkpoint", FORMAT_VERSION, CheckpointError, _OLDER, private=True
)
_ABOUT = (
    "A checkpoint of a fit: its public parameters and the vertices drawn so far. Nothing else in "
    "it depends on the data, so by composition the privacy statement, which is that of the whole "
    "fit, covers it. How far the fit had come is a matter of time, which nothing protects: keep "
    "this file with the data and release the model instead."
)


@dataclass(frozen=True)
class ChargeNote:
    """Which entry of a ledger has paid; no number as long as the ledger has not confirmed it."""

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
class Checkpoint(Released):
    """What a checkpoint holds.

    `params`: the estimator's parameters that the model depends on; no seed, and none that only says
    how to compute or to report.
    `release`: what was drawn so far, at most ``statement.steps`` steps.
    `statement`: what the whole fit guarantees.
    `finished`: whether the fit's results are where they belong, so that nothing is left to do.
    `charge`: the entry of the ledger that the fit is charged to, if there is one.
    """

    finished: bool = False
    charge: ChargeNote | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        steps = len(self.release)
        if steps > self.statement.steps:
            raise ValueError(f"{steps} steps do not fit a run of {self.statement.steps}")
        if not isinstance(self.finished, bool) or (self.finished and not self.is_complete):
            raise ValueError(f"a run is not finished after {steps} of its steps")
        if steps and self.charge is not None and self.charge.number is None:
            raise ValueError("it has steps that no ledger entry paid for")

    @property
    def transcript(self) -> Transcript:
        """The vertices drawn so far; of a fit by Frank-Wolfe."""
        if self.release.vertices is None:
            raise AttributeError("only a fit by Frank-Wolfe has a transcript")
        return self.release.vertices.transcript

    @property
    def is_complete(self) -> bool:
        """Whether every step has been taken."""
        return self.release.complete(self.statement.steps)


def write_checkpoint(
    checkpoint: Checkpoint, path: str | os.PathLike[str], *, temporary: str | None = None
) -> None:
    """Write a checkpoint, whole or not at all; OSError, ValueError as `write_released`."""
    charge = None if checkpoint.charge is None else asdict(checkpoint.charge)
    entries = {"about": _ABOUT, "finished": checkpoint.finished, "charge": charge}
    params = checkpoint.params
    write_released(checkpoint, path, _KIND, params=params, entries=entries, temporary=temporary)


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read and check a checkpoint; CheckpointError if it is damaged, foreign or of another version.

    ``DPLassoClassifier(**checkpoint.params)`` is the estimator to go on with, but for a seed, which
    is never stored.
    """
    return read_archive(path, _KIND, _parse)


def _parse(header: dict[str, Any], members: dict[str, bytes]) -> Checkpoint:
    found = parse_released(header, members, entries=("about", "finished", "charge"))
    charge = None if header["charge"] is None else ChargeNote(**header["charge"])
    return Checkpoint(**found, finished=header["finished"], charge=charge)
