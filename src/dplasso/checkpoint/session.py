"""Fits that survive being killed, and resuming them (docs/checkpoints.md).

The checkpoint is written with a random token before the ledger is charged under that token, and
with the entry's number before the first phase. So a resumed fit knows whether it was charged. When
the fit has ended the entry keeps a digest of its releases.
"""

import os
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from dplasso.checkpoint.format import (
    ChargeNote,
    Checkpoint,
    Place,
    read_checkpoint,
    write_checkpoint,
)
from dplasso.cluster import Engine
from dplasso.errors import BudgetError, CheckpointError, shown
from dplasso.estimators.base import PrivateLinearModel
from dplasso.estimators.fitting import fit_estimator, method_of
from dplasso.files.disk import claim
from dplasso.fit.method import Method
from dplasso.fit.run import Begun, Hooks, Session, Snapshots
from dplasso.ledger import (
    Payment,
    Reservation,
    charge_of,
    check_affordable,
    find,
    new_token,
    rejoin,
    reserve,
)
from dplasso.model.file import params_to_json
from dplasso.phases.contract import NO_SNAPSHOT, Snapshot
from dplasso.phases.released import Released
from dplasso.privacy.budget import Budget
from dplasso.privacy.wording import FROM_SYSTEM

DEFAULT_SECONDS = 5.0
# The pause between checkpoints, at least, in multiples of the time that the last one took.
_PAUSE = 10.0

_OTHER_STATEMENT = (
    "was written under another privacy statement, by another version of dplasso or dp-accounting "
    "or with a seed on one side only: resume as the fit was begun."
)

# These do not change the model, and a seed is a secret.
_NOT_STORED = ("random_state", "n_jobs", "verbose", "ledger")


def fit_with_checkpoints(
    estimator: PrivateLinearModel,
    X: Any,
    y: ArrayLike | None,
    path: Place,
    *,
    seconds: float = DEFAULT_SECONDS,
    overwrite: bool = False,
    engine: Engine | None = None,
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
    engine: Engine | None = None,
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
        stored = check_resumable(estimator, path)
        hooks = Hooks(checkpoints=partial(KeptFit, path, stored, seconds))
        fit_estimator(estimator, X, y, hooks, engine=engine)
    return estimator


def check_resumable(estimator: PrivateLinearModel, path: Place) -> Checkpoint:
    """Return a checkpoint that an estimator can go on with, before any data are read."""
    if not Path(path).exists():
        raise FileNotFoundError(
            f"There is no checkpoint {os.fspath(path)}: there is nothing that could be resumed."
        )
    stored = read_checkpoint(path)
    # Class weights may be given by label, and the labels may come from the data.
    method, statement = method_of(estimator), stored.statement
    task = method.targets.of_classes(stored.classes, many_labels=statement.many_labels)
    _check_same_params(path, stored.params, _stored(method.knowing(task).params))
    budget = method.budget(task, stored.n_features)
    if budget.name != statement.mechanism:
        raise CheckpointError(f"{os.fspath(path)} {_OTHER_STATEMENT}")
    if edges := statement.find("edges"):
        budget = budget.after(edges.numbers["mu"])
    _check_charge(method, budget, stored, path)
    return stored


class KeptFit(Session):
    """A fit that is written to its checkpoint while it runs, and charged to its ledger once.

    The path is claimed, and `stored` is what `check_resumable` returned; None for a new fit.
    """

    def __init__(
        self, path: Place, stored: Checkpoint | None, seconds: float, begun: Begun
    ) -> None:
        if not seconds >= 0:
            raise ValueError(
                f"the seconds between two checkpoints must be 0 or more, got {seconds}"
            )
        self._path, self._stored, self._begun, self._seconds = path, stored, begun, seconds
        start = Checkpoint(
            _stored(begun.method.params),
            Released(),
            begun.statement,
            begun.task.classes,
            begun.records.shape[1],
            begun.records.feature_names,
            n_phases=len(begun.plan.phases),
        )
        note = None
        if stored is not None:
            _check_same(path, stored, start)
            note = stored.charge
        elif begun.method.ledger is not None:
            check_affordable(begun.method.ledger, begun.budget)
            note = ChargeNote(new_token())
        self._start = replace(start, charge=note)
        # A charged fit writes it right before the charge, so a refused one leaves no file.
        if stored is None and note is None:
            write_checkpoint(self._start, path)
        self._reached = self._start if stored is None else stored
        # With a seed or without privacy, a fit that begins again draws the same.
        self._goes_on = stored is not None and begun.statement.randomness == FROM_SYSTEM
        if self._goes_on:
            self.released = self._reached.released
        self._taken = self.released
        if note is not None:
            self.payment = Payment(self._take, lambda: self._taken.digest)
        self._written, self._pause = time.monotonic(), seconds

    def snapshot_of(self, place: int) -> Snapshot:
        goes_on = self._goes_on and place == len(self.released)
        return self._reached.state if goes_on else NO_SNAPSHOT

    def marks_of(self, n_steps: int) -> Collection[int]:
        """Return all steps, where workers take them."""
        return range(1, n_steps) if self._begun.records.every_step else ()

    def keep(
        self, released: Released, done: int = 0, snapshots: Snapshots = lambda _: NO_SNAPSHOT
    ) -> None:
        """Write what is released, if it is time: always after a phase that released something."""
        now, self._taken = time.monotonic(), released
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
        """Make the fit's one charge, or take it up where it was made."""
        method, note = self._begun.method, self._start.charge
        assert note is not None, "a fit that is charged has a token"
        if self._stored is None:
            write_checkpoint(self._start, self._path)
        if note.number is not None:
            return _rejoin(method, self._begun.budget, note, self._reached)
        ledger = method.ledger
        assert ledger is not None, "a fit with a token has a ledger"
        charge = ledger.charge(self._begun.budget, **self._begun.notes)
        try:
            reservation = reserve(ledger.path, ledger.dataset, charge, token=note.token)
        except BudgetError:
            # Another fit has used up the budget meanwhile, so there is nothing to resume.
            if self._stored is None:
                Path(self._path).unlink()
            raise
        # From here on the checkpoint names the entry that has paid.
        self._start = replace(self._start, charge=replace(note, number=reservation.number))
        write_checkpoint(self._start, self._path)
        return reservation


def _check_charge(method: Method, budget: Budget, stored: Checkpoint, path: Place) -> None:
    """Refuse to go on with a fit that the method's ledger has not paid for, and cannot pay for."""
    note = stored.charge
    if method.ledger is None and note is not None:
        entry = "a ledger" if note.number is None else f"entry {note.number} of a ledger"
        raise CheckpointError(
            f"{os.fspath(path)} belongs to a fit charged to {entry}: resume with that `ledger`."
        )
    if method.ledger is None:
        return
    if note is None:
        raise CheckpointError(
            f"{os.fspath(path)} belongs to a fit that no ledger was charged for: resume without a "
            "ledger, or begin the fit again."
        )
    number = note.number or find(method.ledger.path, note.token)
    if number is None:
        check_affordable(method.ledger, budget)
    else:
        _rejoin(method, budget, replace(note, number=number), stored)


def _rejoin(method: Method, budget: Budget, note: ChargeNote, stored: Checkpoint) -> Reservation:
    assert method.ledger is not None
    assert note.number is not None, "the ledger has confirmed it"
    return rejoin(
        method.ledger.path,
        note.number,
        note.token,
        charge_of(budget),
        dataset=method.ledger.dataset,
        release=stored.released.digest if stored.is_complete else None,
    )


def _check_same(path: Place, stored: Checkpoint, current: Checkpoint) -> None:
    """Refuse to go on with a fit that is not the checkpoint's."""
    for what in (before := _facts(stored)):
        if before[what] != (now := _facts(current)[what]):
            raise CheckpointError(
                f"{os.fspath(path)} belongs to a fit with the {what} {_short(before[what])}, and "
                f"this fit has {_short(now)}: resume with those of the interrupted fit."
            )
    if stored.statement != current.statement:
        raise CheckpointError(f"{os.fspath(path)} {_OTHER_STATEMENT}")


def _short(value: Any) -> str:
    return value if isinstance(value, str) else shown(value)


def _facts(checkpoint: Checkpoint) -> dict[str, Any]:
    names = checkpoint.feature_names
    return {
        "number of columns": f"{checkpoint.n_features:,}",
        "labels": " and ".join(map(repr, checkpoint.classes.tolist())),
        "column names": "none" if names is None else [str(name) for name in names],
        "prior": checkpoint.statement.prior or "none",
        "public rows": checkpoint.statement.public_rows or "none",
    }


def _check_same_params(path: Place, stored: dict[str, Any], current: dict[str, Any]) -> None:
    """Refuse parameters that are not the checkpoint's; `classes` are compared as labels."""
    held, own = (params_to_json(params, "checkpoint") for params in (stored, current))
    for name in sorted((held.keys() | own.keys()) - {"classes"}):
        # An earlier version may lack a parameter.
        if held.get(name) != own.get(name):
            raise CheckpointError(
                f"{os.fspath(path)} belongs to a fit with `{name}={stored.get(name)!r}`, not "
                f"{current.get(name)!r}: resume with the parameters of the interrupted fit."
            )


def _stored(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in _NOT_STORED}
