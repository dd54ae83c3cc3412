"""The checkpoint's file: public parameters and what has been released (docs/checkpoints.md)."""

import os
import re
from dataclasses import dataclass, field
from typing import Any

from dplasso.errors import CheckpointError
from dplasso.files.archive import ArchiveKind, parse_array, read_archive
from dplasso.files.disk import sidecar_path
from dplasso.model.file import ReleasedFile, parse_released, write_released
from dplasso.phases.contract import Snapshot

Place = str | os.PathLike[str]

FORMAT_VERSION = 4
_TOKEN = re.compile("[0-9a-f]{32}")
_OLDER = "finish the fit with the dplasso that began it, or begin it again"
_KIND = ArchiveKind(
    "checkpoint", "dplasso-checkpoint", FORMAT_VERSION, CheckpointError, _OLDER, private=True
)
_STATE = "state-"
_ABOUT = (
    "A checkpoint of a fit: its public parameters and what has been released so far. Nothing else "
    "in it depends on the data, so by composition the privacy statement, which is that of the "
    "whole fit, covers it. How far the fit had come is a matter of time, which nothing protects: "
    "keep this file with the data and release the model instead."
)


@dataclass(frozen=True)
class Checkpoint(ReleasedFile):
    """What a checkpoint holds.

    `statement`: of the whole fit. `state`: the snapshot of the phase under way, released too.
    `token`: that of the ledger's entry.
    """

    n_phases: int = 1
    state: Snapshot = field(default_factory=dict)
    token: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        done = len(self.released)
        if type(self.n_phases) is not int or not done <= self.n_phases:
            raise ValueError(f"{done} releases do not fit a fit of {self.n_phases!r} phases")
        steps = self.state.get("done")
        if self.state and (steps is None or steps.shape or steps.dtype.kind != "i" or steps < 0):
            raise ValueError("it does not say how many steps of a phase under way are done")
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            raise ValueError("its ledger entry has no token")

    @property
    def place(self) -> tuple[int, int]:
        """How far the fit had come: phases that are done, and steps of the one under way."""
        return len(self.released), int(self.state["done"]) if self.state else 0

    @property
    def is_complete(self) -> bool:
        """Whether every phase is done."""
        return len(self.released) == self.n_phases


def write_checkpoint(checkpoint: Checkpoint, path: Place) -> None:
    """Write a checkpoint, whole or not at all; OSError, ValueError as `write_released`."""
    entries = {"about": _ABOUT, "n_phases": checkpoint.n_phases, "token": checkpoint.token}
    state = {f"{_STATE}{name}": array for name, array in checkpoint.state.items()}
    write_released(
        checkpoint,
        path,
        _KIND,
        params=checkpoint.params,
        entries=entries,
        arrays=state,
        # Always the same name, so that killed processes leave one file at most.
        temporary=sidecar_path(path, "tmp").name,
    )


def read_checkpoint(path: Place) -> Checkpoint:
    """Read and check a checkpoint; CheckpointError if it is damaged, foreign or of another version.

    ``DPLogisticRegression(**checkpoint.params)`` is the estimator to go on with, but for a seed,
    which is never stored.
    """
    return read_archive(path, _KIND, _parse)


def _parse(header: dict[str, Any], members: dict[str, bytes]) -> Checkpoint:
    entries = ("about", "n_phases", "token")
    state = sorted(name for name in members if name.startswith(_STATE))
    content = parse_released(header, members, entries=entries, besides=state)
    return Checkpoint(
        **content,
        n_phases=header["n_phases"],
        state={name.removeprefix(_STATE): parse_array(members[name]) for name in state},
        token=header["token"],
    )
