"""The one path from settings and data to a model: estimators, checkpoints and replays take it."""

import time
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.partitions import Partitions
from dplasso.data.labels import encode_labels, encode_targets
from dplasso.data.store import Store, check_entries
from dplasso.encoding.origin import Origin
from dplasso.errors import PrivacyLeakWarning
from dplasso.fit.inputs import Inputs
from dplasso.fit.lasso import (
    lasso_mechanism,
    lasso_problem,
    lasso_solver,
    staged_mechanism,
)
from dplasso.fit.lasso_run import LassoRun
from dplasso.fit.logistic import logistic_mechanism, logistic_solver
from dplasso.fit.partitioned import all_label_bits, partitioned_targets
from dplasso.fit.settings import LassoSettings, LogisticSettings, with_class_weights
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.frank_wolfe.work import Work
from dplasso.ledger import Payment, charged, check_affordable, data_fingerprint
from dplasso.losses.targets import targets_of
from dplasso.model import Model
from dplasso.model.release import digest_of
from dplasso.privacy.mechanisms import StagedSteps
from dplasso.privacy.randomness import random_stream
from dplasso.privacy.statement import (
    Accounted,
    PrivacyStatement,
    make_statement,
    use_of_count,
)
from dplasso.runtime.chunks import Progress, run_in_chunks
from dplasso.runtime.threads import thread_pool

Settings = LassoSettings | LogisticSettings


def mechanism_of(
    settings: Settings, n_rows: int = 1, n_features: int = 2**24, n_classes: int = 2
) -> Any:
    """Return the private step of a fit; only the paper's depends on the number of rows."""
    if isinstance(settings, LassoSettings):
        if settings.is_staged:
            return staged_mechanism(settings, n_features, n_classes)
        return lasso_mechanism(settings, n_rows)
    return logistic_mechanism(settings, n_features, n_classes)


def _targets_of(settings: Settings, inputs: Inputs) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the classes, none for a regression, and the targets as a loss takes them.

    Those of partitions are known to the workers alone.
    """
    y = inputs.y
    if isinstance(inputs.X, Partitions):
        return partitioned_targets(settings, inputs.X), y
    if settings.target_bounds is not None:
        return np.zeros(0), encode_targets(y, settings.target_bounds)
    return encode_labels(y, settings.classes)


@dataclass(frozen=True)
class Begun:
    """What is known of a fit before anything private is computed.

    `settings`: its settings.
    `statement`: what the whole fit will guarantee.
    `classes`, shape (K,): the labels; none for a regression.
    `n_features`: D.
    `feature_names`, shape (D,): names of the columns, if they have any.
    `mechanism`: the private step.
    `origin`: how the columns were made, if it is known.
    `notes`: what the ledger's entry shall hold besides the cost.
    `every_step`: whether each step is to be on the disk before the next begins: workers hear of it
    then.
    """

    settings: Settings
    statement: PrivacyStatement
    classes: NDArray[Any]
    n_features: int
    feature_names: NDArray[np.object_] | None
    mechanism: Accounted
    origin: Origin | None
    notes: Mapping[str, str | None]
    every_step: bool = False


@dataclass(frozen=True)
class Session:
    """How a fit goes on from a checkpoint, keeps one, and is charged to a ledger.

    `prefix`: what was drawn already, to be taken again.
    `keep`: called after each chunk with the steps done and a function that returns what they have
    released: of a dense model a copy, which is made only to be written.
    `payment`: how the fit is charged, if there is a ledger.
    `marks`: steps at which what is released must be looked at.
    """

    prefix: Any
    keep: Callable[[int, Callable[[], Any]], None]
    payment: Payment | None
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Hooks:
    """What the command line, replays and checkpoints add to a fit.

    Attributes
    ----------
    progress : callable, optional
        Called between chunks with the steps done and T.
    seconds : dict, optional
        Receives the times of preparing and training, which are the curator's and no part of the
        model.
    replay : Transcript, optional
        Steps to take instead of drawing them.
    checkpoints : callable, optional
        Takes a `Begun` fit, returns its `Session`.
    copied : callable, optional
        Called with the bytes that workers have copied from object storage, and those to be copied.
    """

    progress: Progress | None = None
    seconds: dict[str, float] | None = None
    replay: Transcript | None = None
    checkpoints: Callable[[Begun], Session] | None = None
    copied: Callable[[int, int], None] | None = None


def train(settings: Settings, inputs: Inputs, hooks: Hooks) -> tuple[Model, Work | None]:
    """Train a model.

    Everything that can be refused is refused, and the records are laid out, before the ledger is
    charged. Whatever is drawn is drawn after: step 0, the counts, is kept before the first step.

    Parameters
    ----------
    settings : LassoSettings or LogisticSettings
        Valid settings.
    inputs : Inputs
        Records and labels, checked.
    hooks : Hooks
        What else to do on the way.

    Returns
    -------
    model : Model
        All that may leave the fit.
    work : Work or None
        Work per step, of fits that are not private.

    Raises
    ------
    ValueError
        For an undeclared label, or fewer than two without `classes`; for a damaged store.
    BudgetError, LedgerError
        If the ledger has too little left or cannot be used; nothing is spent.

    Warns
    -----
    PrivacyLeakWarning
        With ``mechanism="paper"``.
    """
    began = time.perf_counter()
    stream = random_stream(settings.random_state)
    classes, labels = _targets_of(settings, inputs)
    settings = with_class_weights(settings, classes)
    fingerprint, partitioned = None, isinstance(inputs.X, Partitions)
    if settings.ledger is not None:
        fingerprint = data_fingerprint(all_label_bits(inputs.X) if partitioned else labels)
    settings = replace(settings, weighted=inputs.weights is not None)
    # Workers have the weights of their own records.
    targets = targets_of(labels, None if partitioned else inputs.weights, inputs.within)
    mechanism = mechanism_of(settings, inputs.X.shape[0], inputs.n_features, classes.size)
    if mechanism.name == "paper":
        warnings.warn(
            "mechanism='paper' releases the true sign of a gradient entry at every step: this "
            "fit is not differentially private at any epsilon",
            PrivacyLeakWarning,
            stacklevel=4,
        )
    statement = make_statement(
        mechanism,
        seeded=settings.random_state is not None,
        classes_declared=settings.classes is not None,
        records=use_of_count(mechanism, settings.n_records),
        n_classes=classes.size,
        target_bounds=settings.target_bounds,
        weight_bound=settings.weight_bound if settings.weighted else None,
    )
    if hooks.checkpoints is None:
        check_affordable(settings.ledger, settings.dataset, mechanism)
    # All of a store is read, so only after what can be refused without.
    if isinstance(inputs.X, Store):
        check_entries(inputs.X, n_threads=settings.n_threads)
    notes = {}
    if settings.ledger is not None:
        notes = {"purpose": settings.purpose, "fingerprint": fingerprint}
    names, session = inputs.feature_names, None
    if hooks.checkpoints is not None:
        session = hooks.checkpoints(
            Begun(
                settings,
                statement,
                classes,
                inputs.n_features,
                names,
                mechanism,
                inputs.origin,
                notes,
                every_step=partitioned,
            )
        )
    with thread_pool(settings.n_threads) as threads:
        prefix = None if session is None else session.prefix
        solver: Any
        if isinstance(mechanism, StagedSteps):
            if hooks.replay is not None:
                raise ValueError("a replay needs both n_iter and l1_radius")
            assert isinstance(settings, LassoSettings)
            solver = LassoRun(
                settings, mechanism, inputs.X, targets, stream, threads=threads, prefix=prefix
            )
        elif isinstance(settings, LassoSettings):
            solver = lasso_solver(
                settings,
                mechanism,
                inputs.X
                if partitioned
                else lasso_problem(settings, inputs.X, targets, classes.size),
                stream,
                threads=threads,
                prefix=None if prefix is None else prefix.transcript,
                replay=hooks.replay,
            )
        else:
            solver = logistic_solver(
                settings,
                mechanism,
                inputs.X,
                targets,
                classes.size,
                stream,
                threads=threads,
                prefix=prefix,
            )
        prepared = time.perf_counter()

        marks: Collection[int]

        def keep(done: int) -> None:
            if session is not None:
                session.keep(done, lambda: solver.release(done))

        payment = None if session is None else session.payment
        with charged(
            settings.ledger,
            settings.dataset,
            mechanism,
            payment=payment,
            release=lambda: digest_of(release),
            notes=notes,
        ):
            marks = () if session is None else session.marks
            if session is not None and partitioned:
                marks = range(1, solver.n_steps)
            run_in_chunks(solver, marks=marks, checkpoint=keep, progress=hooks.progress)
            release = solver.release()
    if hooks.seconds is not None:
        hooks.seconds["prepare"] = prepared - began
        hooks.seconds["train"] = time.perf_counter() - prepared
    model = Model(
        params=dict(settings.params),
        release=release,
        statement=statement,
        classes=classes,
        n_features=inputs.n_features,
        feature_names=names,
        history=solver.history,
        origin=inputs.origin,
    )
    return model, solver.work
