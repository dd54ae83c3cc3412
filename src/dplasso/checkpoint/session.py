"""Fits that survive being killed, and resuming them (docs/checkpoints.md).

The checkpoint is written with a random token before the ledger is charged under that token. So a
resumed fit finds its charge. When the fit has ended the entry keeps a digest of its releases.
"""

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from dplasso.errors import CheckpointError, LedgerError, shown
from dplasso.estimators.base import PrivateLinearModel
from dplasso.estimators.fitting import fit_estimator
from dplasso.files.archive import ArchiveKind, parse_array, read_archive
from dplasso.files.disk import claim, program, sidecar_path
from dplasso.fit.run import Begun, Hooks, Session, Snapshots
from dplasso.ledger import Reservation, check_affordable, find, new_token, reserve
from dplasso.model.file import ReleasedFile, params_to_json, parse_released, write_released
from dplasso.phases.phase import NO_SNAPSHOT, Snapshot
from dplasso.phases.released import Released
from dplasso.privacy.wording import FROM_SYSTEM

if TYPE_CHECKING:
    # Fits in one process do not load it.
    from dplasso.cluster import Engine

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

DEFAULT_SECONDS = 5.0
# The pause between checkpoints, at least, in multiples of the time that the last one took.
_PAUSE = 10.0

# These do not change the model, and a seed is a secret.
_NOT_STORED = ("random_state", "n_jobs", "verbose", "ledger")


@dataclass(frozen=True)
class Checkpoint(ReleasedFile):
    """What a checkpoint holds.

    `statement`: of the whole fit. `state`: the snapshot of the phase under way, released too.
    `token`: that of the ledger's entry.
    """

    n_phases: int = 1
    state: Snapshot = field(default_factory=dict)
    token: str | None = None
    written_by: str = field(default_factory=program)

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
        written_by=str(header["written_by"]),
    )


def fit_with_checkpoints(
    estimator: PrivateLinearModel,
    X: Any,
    y: ArrayLike | None,
    path: Place,
    *,
    seconds: float = DEFAULT_SECONDS,
    overwrite: bool = False,
    engine: "Engine | None" = None,
) -> PrivateLinearModel:
    """Fit an estimator in place, keep a checkpoint while at it, and return the estimator.

    `path`: the checkpoint; it is replaced whole whenever it is written.
    `seconds`: how often it is written; less often where that takes more than a tenth of the time.
    `overwrite`: whether a checkpoint that exists is given up and the fit starts anew.
    `engine`: what runs the workers of rows in partitions; then every step is written before any
    worker hears of it.

    Raises FileExistsError if there is a checkpoint and `overwrite` is false; CheckpointError if
    another process is using it; OSError if it cannot be written; otherwise as `fit`.
    """
    with claim(path):
        if not overwrite and os.path.lexists(path):
            raise FileExistsError(
                f"{os.fspath(path)} exists already: resume the fit, which spends nothing twice, or "
                "overwrite it to begin another, which is paid for again"
            )
        hooks = Hooks(checkpoints=partial(KeptFit, path, None, seconds))
        fit_estimator(estimator, X, y, hooks, engine=engine)
    return estimator


def resume_fit(
    estimator: PrivateLinearModel,
    X: Any,
    y: ArrayLike | None,
    path: Place,
    *,
    seconds: float = DEFAULT_SECONDS,
    engine: "Engine | None" = None,
) -> PrivateLinearModel:
    """Go on with a fit that was interrupted, from its checkpoint, and return the estimator.

    The steps in the checkpoint are taken again and the others drawn afresh. With a seed or without
    privacy the fit begins again. Either way it costs what an uninterrupted one does.

    `estimator`: with the parameters of the interrupted fit, `random_state` and `ledger` included.
    `X`, `y`: the same data and labels. Other rows with the same columns are not detected, because a
    checkpoint holds no trace of the rows (``docs/checkpoints.md``).

    Raises CheckpointError if the checkpoint is damaged, in use, or of another fit;
    FileNotFoundError if there is none; LedgerError if the ledger is not the one that was charged,
    or the charge has paid for another model; otherwise as `fit`.
    """
    with claim(path):
        hooks = Hooks(checkpoints=partial(KeptFit, path, read_checkpoint(path), seconds))
        fit_estimator(estimator, X, y, hooks, engine=engine)
    return estimator


class KeptFit(Session):
    """A fit that is written to its checkpoint while it runs, and charged to its ledger once.

    The path is claimed. `stored`: its checkpoint; None for a new fit.
    """

    def __init__(
        self, path: Place, stored: Checkpoint | None, seconds: float, begun: Begun
    ) -> None:
        if not seconds >= 0:
            raise ValueError(
                f"the seconds between two checkpoints must be 0 or more, got {seconds}"
            )
        # The process may go to another folder meanwhile.
        self._path = Path(path).resolve()
        self._stored, self._begun, self._seconds = stored, begun, seconds
        ledger = begun.method.ledger
        start = Checkpoint(
            {k: v for k, v in begun.method.params.items() if k not in _NOT_STORED},
            Released(),
            begun.statement,
            begun.task.classes,
            begun.records.shape[1],
            begun.records.feature_names,
            n_phases=len(begun.plan.phases),
            token=None if ledger is None else new_token(),
        )
        if stored is None:
            check_affordable(ledger, begun.budget)
        else:
            _check_same(path, stored, start)
            # The ledger must have paid for what the checkpoint holds.
            if ledger and any(stored.place) and find(ledger.path, str(stored.token)) is None:
                raise LedgerError(
                    f"{os.fspath(ledger.path)} holds no entry of the fit in {os.fspath(path)}. "
                    "This is not the ledger that was charged, or it is an old copy; pass the one "
                    "that was charged"
                )
            start = replace(start, token=stored.token)
        if ledger is not None:
            self.take = self._take
        elif stored is None:
            # A charged fit writes it right before the charge, so a refused one leaves no file.
            write_checkpoint(start, path)
        self._start, self._reached = start, stored or start
        # With a seed or without privacy, a fit that begins again draws the same.
        if stored is not None and begun.statement.randomness == FROM_SYSTEM:
            self.released, self.state = stored.released, stored.state
        self._written, self._pause = time.monotonic(), seconds

    def keep(
        self, released: Released, done: int = 0, snapshots: Snapshots = lambda _: NO_SNAPSHOT
    ) -> None:
        """Write what is released, if it is time: always after a phase that released something."""
        now = time.monotonic()
        is_over = not done and released.entries[-1].release is not None
        # A release in the checkpoint is never lost: it would be drawn and released again.
        is_new = (len(released), done) > self._reached.place
        complete = len(released) == self._start.n_phases
        due = is_over or complete or self._begun.records.every_step
        if is_new and (due or now - self._written >= self._pause):
            write_checkpoint(
                replace(self._start, released=released, state=snapshots(done)), self._path
            )
            self._written = time.monotonic()
            if self._seconds:
                self._pause = max(self._seconds, _PAUSE * (self._written - now))

    def _take(self) -> Reservation:
        """Charge the fit, or find the charge that was made under its token."""
        ledger, token, reached = self._begun.method.ledger, self._start.token, self._reached
        assert ledger is not None, "a fit that is charged has a ledger"
        assert token is not None, "a fit that is charged has a token"
        if self._stored is None:
            write_checkpoint(self._start, self._path)
        charge = ledger.charge(self._begun.budget, **self._begun.notes)
        complete = reached.released.digest if reached.is_complete else None
        try:
            return reserve(ledger.path, ledger.dataset, charge, token=token, release=complete)
        except LedgerError:
            with suppress(LedgerError):
                # What was not charged is not resumed.
                if self._stored is None and find(ledger.path, token) is None:
                    self._path.unlink()
            raise


def _check_same(path: Place, stored: Checkpoint, current: Checkpoint) -> None:
    """Refuse to go on with a fit that is not the checkpoint's."""
    before, now = _facts(stored), _facts(current)
    for what in sorted(before.keys() | now.keys()):
        # An earlier version may lack a parameter.
        old, new = before.get(what), now.get(what)
        if old != new:
            raise CheckpointError(
                f"{os.fspath(path)} belongs to a fit with the {what} {_short(old)}, and this fit "
                f"has {_short(new)}: resume as the fit was begun."
            )
    if stored.statement != current.statement:
        raise CheckpointError(
            f"{os.fspath(path)} was written under another privacy statement, by another version of "
            "dp-accounting or with a seed on one side only: resume as the fit was begun."
        )


def _facts(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return what a resumed fit must agree in; `classes` are compared as labels."""
    names, params = checkpoint.feature_names, checkpoint.params | {"classes": None}
    written = params_to_json(params, "checkpoint")
    return {f"parameter `{name}`": value for name, value in written.items()} | {
        "program": checkpoint.written_by,
        "ledger": "none" if checkpoint.token is None else "that it was charged to",
        "number of columns": f"{checkpoint.n_features:,}",
        "labels": " and ".join(map(repr, checkpoint.classes.tolist())),
        "column names": "none" if names is None else [str(name) for name in names],
        "prior": checkpoint.statement.prior or "none",
        "public rows": checkpoint.statement.public_rows or "none",
    }


def _short(value: Any) -> str:
    return value if isinstance(value, str) else shown(value)
