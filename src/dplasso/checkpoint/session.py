"""Fits that survive being killed: a checkpoint every few seconds, and resuming from it.

A checkpoint holds what was released so far and nothing else: of the LASSO the vertices drawn, which
resuming takes again without drawing; of noisy gradient descent the weights and the momentum.

Two rules keep the budget from being spent twice. A fit writes its last step to the checkpoint
before it returns anything, so whatever has been released can only be continued as it was; and a
checkpoint is in use by one process at a time. What they cannot prevent, copies of the file resumed
each for itself, is in ``docs/checkpoints.md``.
"""

import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike, NDArray

from dplasso.checkpoint.charge import check_charge, take_charge
from dplasso.checkpoint.format import Checkpoint, read_checkpoint, write_checkpoint
from dplasso.cluster import Engine
from dplasso.errors import BudgetError, CheckpointError
from dplasso.estimators.fitting import fit_estimator, method_of
from dplasso.estimators.load import Estimator
from dplasso.files.lock import claim, sidecar_path
from dplasso.files.release_header import params_to_json
from dplasso.fit.hooks import Begun, Hooks, Session
from dplasso.ledger import Payment, Reservation
from dplasso.model import Release
from dplasso.model.release import digest_of, empty_release
from dplasso.privacy.mechanisms import StagedSteps
from dplasso.privacy.wording import FROM_SYSTEM

__all__ = [
    "DEFAULT_SECONDS",
    "Checkpoint",
    "check_resumable",
    "fit_with_checkpoints",
    "keep_checkpoints",
    "mark_finished",
    "read_checkpoint",
    "resume_fit",
]

DEFAULT_SECONDS = 5.0
# No checkpoint is written before so many times as long as the last one took have passed.
_PAUSE = 10.0

# They say how to compute or what to report, not what is computed. A seed is a secret.
_NOT_STORED = ("random_state", "n_jobs", "verbose", "ledger", "dataset", "purpose")

Begin = Callable[[Begun], Session]


def fit_with_checkpoints(
    estimator: Estimator,
    X: Any,
    y: ArrayLike | None,
    path: str | os.PathLike[str],
    *,
    seconds: float = DEFAULT_SECONDS,
    overwrite: bool = False,
    engine: Engine | None = None,
) -> Estimator:
    """Fit, and keep a checkpoint while at it.

    Parameters
    ----------
    estimator : DPLassoClassifier or DPLogisticRegression
        Fitted in place.
    X : sparse or dense matrix, shape (N, D)
        As in the estimator's `fit`.
    y : array-like, shape (N,)
        Labels.
    path : path
        The checkpoint: replaced at once whenever it is written, never left half-written.
    seconds : float, default=5.0
        How often it is written, or less where writing would take up more than a tenth of the time;
        what step 0 counted and the last steps always are. At 0, about ten times a second.
    overwrite : bool, default=False
        Whether a checkpoint that exists is given up and the fit starts anew.
    engine : Engine, optional
        As in the estimator's `fit`; then every step is written before any worker hears of it.

    Returns
    -------
    DPLassoClassifier or DPLogisticRegression
        The estimator itself.

    Raises
    ------
    FileExistsError
        If there is a file at `path` and `overwrite` is false.
    CheckpointError
        If another process is using the checkpoint.
    OSError
        If the checkpoint cannot be written; the fit stops, and the last one stays.
    BudgetError, LedgerError, ValueError, TypeError
        As the estimator's `fit`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dplasso import DPLassoClassifier
    >>> from dplasso.checkpoint.session import fit_with_checkpoints, read_checkpoint
    >>> X, y = np.eye(4), [0, 1, 0, 1]
    >>> path = Path(tempfile.mkdtemp()) / "fit.checkpoint"
    >>> estimator = DPLassoClassifier(n_iter=20, l1_radius=5.0)
    >>> model = fit_with_checkpoints(estimator, X, y, path)
    >>> len(read_checkpoint(path).transcript)
    20
    """
    with claim(path):
        if not overwrite and os.path.lexists(path):
            raise FileExistsError(
                f"{os.fspath(path)} exists already: resume the fit, which spends nothing twice, or "
                "overwrite it to begin another, which is paid for again"
            )
        hooks = Hooks(checkpoints=keep_checkpoints(path, None, seconds))
        fit_estimator(estimator, X, y, hooks, engine=engine)
        return estimator


def resume_fit(
    estimator: Estimator,
    X: Any,
    y: ArrayLike | None,
    path: str | os.PathLike[str],
    *,
    seconds: float = DEFAULT_SECONDS,
    engine: Engine | None = None,
) -> Estimator:
    """Go on with a fit that was interrupted, from its checkpoint.

    Without a seed the steps in the checkpoint are taken again and the others drawn afresh. With one
    (or without privacy) everything is drawn again and must agree with the checkpoint. Either way
    the fit costs what an uninterrupted one does. A checkpoint that holds all steps gives the same
    model again.

    Parameters
    ----------
    estimator : DPLassoClassifier or DPLogisticRegression
        With the parameters of the interrupted fit, `random_state` and `ledger` included; fitted in
        place.
    X : sparse or dense matrix, shape (N, D)
        The same data. Without a seed nothing can tell other rows of as many columns apart, because
        a checkpoint holds no trace of them; see ``docs/checkpoints.md``.
    y : array-like, shape (N,)
        The same labels.
    path : path
        The checkpoint, which the fit goes on writing.
    seconds : float, default=5.0
        As in `fit_with_checkpoints`.
    engine : Engine, optional
        As in the estimator's `fit`; it may be another one than before, or none.

    Returns
    -------
    DPLassoClassifier or DPLogisticRegression
        The estimator itself.

    Raises
    ------
    CheckpointError
        If the checkpoint is damaged, marked as finished, in use by another process, or of a fit
        with other parameters, columns, labels or (with a seed) data.
    FileNotFoundError
        If there is no checkpoint.
    LedgerError
        If the ledger is not the one that was charged, or the charge has paid for another model.
    ValueError, TypeError
        As the estimator's `fit`.
    """
    with claim(path):
        stored = check_resumable(estimator, path)
        hooks = Hooks(checkpoints=keep_checkpoints(path, stored, seconds))
        fit_estimator(estimator, X, y, hooks, engine=engine)
        return estimator


def mark_finished(path: str | os.PathLike[str]) -> None:
    """Note in a complete checkpoint that the model is safe, so that it is not resumed any more.

    Parameters
    ----------
    path : path
        The checkpoint.

    Raises
    ------
    CheckpointError
        If it is damaged, in use by another process, or the fit is not complete.
    OSError
        If it cannot be read or written.
    """
    with claim(path):
        note_finished(path)


def note_finished(path: str | os.PathLike[str]) -> None:
    """Do what `mark_finished` does, for whoever has claimed the checkpoint."""
    checkpoint = read_checkpoint(path)
    if not checkpoint.is_complete:
        raise CheckpointError(
            f"{os.fspath(path)} holds {len(checkpoint.release)} of "
            f"{checkpoint.statement.steps} steps: resume the fit before marking it as finished."
        )
    _write(replace(checkpoint, finished=True), path)


def check_resumable(estimator: Estimator, path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint and find out whether an estimator can go on with it, before any data.

    Parameters
    ----------
    estimator : DPLassoClassifier or DPLogisticRegression
        With the parameters of the interrupted fit; `classes` may still be missing.
    path : path
        The checkpoint.

    Returns
    -------
    Checkpoint
        What it holds.

    Raises
    ------
    CheckpointError
        If it is damaged, marked as finished, or of a fit with other parameters, or with a ledger
        on one side only.
    LedgerError
        If the ledger is not the one that was charged, or the charge has paid for another model.
    FileNotFoundError
        If there is no checkpoint.
    """
    if not Path(path).exists():
        raise FileNotFoundError(
            f"There is no checkpoint {os.fspath(path)}: there is nothing that could be resumed."
        )
    stored = read_checkpoint(path)
    if stored.finished:
        raise CheckpointError(
            f"{os.fspath(path)} belongs to a finished fit, whose results were written: there is "
            "nothing to resume."
        )
    # Weights of classes may go by the names of labels that were taken from the data.
    method = method_of(estimator)
    task = method.targets.of_classes(stored.classes)
    method = method.knowing(task)
    _check_same_params(path, stored.params, _stored(method.params), besides=("classes",))
    # Of a mechanism that a ledger accounts for, the number of rows is no part.
    mechanism = method.mechanism(task, 1, stored.n_features)
    check_charge(method.ledger, method.dataset, mechanism, stored, path)
    return stored


def keep_checkpoints(
    path: str | os.PathLike[str], stored: Checkpoint | None, seconds: float = DEFAULT_SECONDS
) -> Begin:
    """Return the hook that `dplasso.fit.hooks.Hooks` takes as `checkpoints`.

    `path`: the checkpoint, already claimed.
    `stored`: what to go on from; None starts at the first step.
    `seconds`: how often to write.

    Returns: takes what is known of the fit when nothing is drawn yet; returns the steps to take
    again, the callback between chunks, and how the fit is charged to a ledger, if it has one.

    Raises ValueError if `seconds` is negative or not a number.
    """
    if not seconds >= 0:
        raise ValueError(f"the seconds between two checkpoints must be 0 or more, got {seconds}")

    def begin(begun: Begun) -> Session:
        method, mechanism, steps = begun.method, begun.mechanism, begun.statement.steps
        ledger, dataset, params = method.ledger, method.dataset, _stored(method.params)
        n_features, classes = begun.records.shape[1], begun.task.classes
        nothing = empty_release(
            params,
            n_features,
            steps,
            staged=isinstance(mechanism, StagedSteps),
            n_classes=classes.size,
        )
        names = begun.records.feature_names
        start = Checkpoint(params, nothing, begun.statement, classes, n_features, names)
        if stored is not None:
            _check_same(path, stored, start)
        note = check_charge(ledger, dataset, mechanism, stored, path)
        start = replace(start, charge=note)
        # Of a fit that is charged, right before it is: one that is refused leaves no checkpoint.
        if stored is None and note is None:
            _write(start, path)
        reached = nothing if stored is None else stored.release
        repeatable = begun.statement.randomness != FROM_SYSTEM
        written, last, pause = time.monotonic(), len(reached), seconds
        taken: Callable[[], Release] = lambda: reached  # noqa: E731

        def keep(done: int, release: Callable[[], Release]) -> None:
            nonlocal written, last, pause, taken
            if repeatable and not release().agrees_with(reached):
                raise CheckpointError(
                    f"{os.fspath(path)} holds different steps from those of this fit: the data or "
                    "the seed are not those of the interrupted fit."
                )
            now, taken = time.monotonic(), release
            # What step 0 counted is on the disk before anything is computed from it.
            counted = done == 0 == len(reached) and digest_of(release()) != digest_of(reached)
            due = begun.records.every_step or done == steps or now - written >= pause
            if counted or (done > last and due):
                _write(replace(start, release=release()), path)
                written, last = time.monotonic(), done
                if seconds:
                    pause = max(seconds, _PAUSE * (written - now))

        def take() -> Reservation:
            nonlocal start
            assert ledger is not None and start.charge is not None  # noqa: PT018
            if stored is None:
                _write(start, path)
            try:
                reservation = take_charge(
                    ledger, dataset, mechanism, start.charge, reached, begun.notes
                )
            except BudgetError:
                # Another fit took the last of it meanwhile: there is nothing to go on with.
                if stored is None:
                    Path(path).unlink()
                raise
            if start.charge.number is None:
                # From here on it is known which entry has paid for whatever is drawn.
                start = replace(start, charge=replace(start.charge, number=reservation.number))
                _write(start, path)
            return reservation

        payment = None if start.charge is None else Payment(take, lambda: digest_of(taken()))
        marks: Collection[int] = (len(reached),) if repeatable else ()
        if begun.records.every_step:
            marks = range(1, steps)
        return Session(None if repeatable else reached, keep, payment, marks)

    return begin


def _check_same(path: str | os.PathLike[str], stored: Checkpoint, current: Checkpoint) -> None:
    """Refuse to go on with a fit that is not the checkpoint's."""
    shown = os.fspath(path)
    _check_same_params(path, stored.params, current.params)
    if stored.n_features != current.n_features:
        raise CheckpointError(
            f"{shown} belongs to a fit on {stored.n_features:,} columns and these data have "
            f"{current.n_features:,}: resume with the data of the interrupted fit."
        )
    if stored.classes.tolist() != current.classes.tolist():
        raise CheckpointError(
            f"{shown} belongs to a fit with the labels {_listed(stored.classes)} and these data "
            "have others: resume with the data of the interrupted fit."
        )
    if _names(stored) != _names(current):
        raise CheckpointError(
            f"{shown} belongs to a fit on columns of other names: resume with the data of the "
            "interrupted fit."
        )
    if stored.statement != current.statement:
        raise CheckpointError(
            f"{shown} was written under another privacy statement, by another version of dplasso "
            "or dp-accounting or with a seed on one side only: resume as the fit was begun."
        )


def _check_same_params(
    path: str | os.PathLike[str],
    stored: dict[str, Any],
    current: dict[str, Any],
    besides: tuple[str, ...] = (),
) -> None:
    """Refuse other parameters; the message names the first that differs."""
    one, other = params_to_json(stored, "checkpoint"), params_to_json(current, "checkpoint")
    for name in sorted((one.keys() | other.keys()) - set(besides)):
        if one.get(name, _MISSING) != other.get(name, _MISSING):
            raise CheckpointError(
                f"{os.fspath(path)} belongs to a fit with {name}={stored.get(name)!r}, not "
                f"{current.get(name)!r}: resume with the parameters of the interrupted fit."
            )


_MISSING = object()


def _stored(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in _NOT_STORED}


def _names(checkpoint: Checkpoint) -> list[str] | None:
    names = checkpoint.feature_names
    return None if names is None else [str(name) for name in names]


def _listed(labels: NDArray[Any]) -> str:
    return " and ".join(repr(label) for label in labels.tolist())


def _write(checkpoint: Checkpoint, path: str | os.PathLike[str]) -> None:
    # One name for the temporary file: whoever holds the claim is alone, and a killed process
    # leaves at most this one behind.
    write_checkpoint(checkpoint, path, temporary=sidecar_path(path, "tmp").name)
