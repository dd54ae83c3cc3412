"""The one path from a method and records to a model; fits with checkpoints take it too."""

import time

from dplasso.fit.drawing import Drawing
from dplasso.fit.hooks import Begun, Hooks, Session
from dplasso.fit.method import Method
from dplasso.fit.partitioned import Records
from dplasso.fit.task import Task
from dplasso.frank_wolfe.work import Work
from dplasso.ledger import charged, check_affordable, check_paid
from dplasso.model import Model
from dplasso.model.release import digest_of
from dplasso.privacy.randomness import random_stream
from dplasso.privacy.statement import Accounted, PrivacyStatement, make_statement, use_of_count
from dplasso.runtime.chunks import run_in_chunks
from dplasso.runtime.threads import thread_pool


def run(method: Method, records: Records, hooks: Hooks) -> tuple[Model, Work | None]:
    """Fit a model; return all that may leave the fit, and the work per step if it is not private.

    Everything that can be refused is refused, and the records are laid out, before the ledger is
    charged. Whatever is drawn is drawn after: step 0, the counts, is kept before the first step.

    Raises ValueError for an undeclared label, or fewer than two without `classes`; DataError for a
    damaged store; BudgetError, LedgerError if the ledger has too little left or cannot be used;
    nothing is spent then.
    """
    began = time.perf_counter()
    stream = random_stream(method.random_state)
    task = method.targets.task(records)
    method, records = method.knowing(task), records.encoded(task)
    method = method.starting(task, records)
    edges = None if records.origin is None else records.origin.edges
    mechanism = method.mechanism(task, *records.shape)
    if edges is not None:
        seeded = method.random_state is not None
        mechanism = edges.before(mechanism, seeded=seeded, by_person=records.by_person)
        check_paid(method.ledger, edges.digest, f"the edges of {', '.join(edges.columns)}")
    statement = _statement(method, task, mechanism, records)
    n_records = method.n_records if hooks.known_records is None else hooks.known_records
    cautions = statement.cautions(n_records)
    hooks.cautioned(cautions)
    if hooks.checkpoints is None:
        check_affordable(method.ledger, method.dataset, mechanism)
    # This reads all of a store, so what can be refused without comes first.
    records.check(method.n_threads)
    notes = {}
    if method.ledger is not None:
        notes = {
            "purpose": method.purpose,
            "fingerprint": records.fingerprint(),
            "prior": method.starts_from or None,
        }
    begun = Begun(method, task, mechanism, statement, records, notes)
    session = Session() if hooks.checkpoints is None else hooks.checkpoints(begun)
    # A fit that goes on was warned when it began.
    warned = session.prefix is not None
    size = records.shape[1]
    if method.n_records is not None and not warned:
        method.warn_of_noise(task, mechanism, float(method.n_records), size, stacklevel=5)
        warned = True

    def keep(done: int) -> None:
        session.keep(done, done == solver.n_steps, lambda: solver.release(done))
        # A run that draws vertices alone counts nobody.
        counted = getattr(solver, "counted", None)
        if done == 0 and counted is not None and not warned:
            method.warn_of_noise(task, mechanism, counted, size, stacklevel=7)

    with thread_pool(method.n_threads) as threads:
        drawing = Drawing(stream, threads, session.prefix)
        solver = method.solver(task, mechanism, records, drawing)
        prepared = time.perf_counter()
        with charged(
            method.ledger,
            method.dataset,
            mechanism,
            payment=session.payment,
            release=lambda: digest_of(release),
            notes=notes,
        ):
            run_in_chunks(solver, marks=session.marks, checkpoint=keep, progress=hooks.progress)
            release = solver.release()
    # What the released count adds; a delta that was said to be too large is not said again.
    counted = statement.cautions(release.n_records if n_records is None else n_records)
    if len(counted) > len(cautions):
        hooks.cautioned([one for one in counted if one not in cautions])
    if hooks.seconds is not None:
        hooks.seconds["prepare"] = prepared - began
        hooks.seconds["train"] = time.perf_counter() - prepared
    model = Model(
        params=dict(method.params),
        release=release,
        statement=statement,
        classes=task.classes,
        n_features=size,
        feature_names=records.feature_names,
        history=solver.history,
        origin=records.origin,
        prior=method.prior,
    )
    return model, solver.work


def _statement(
    method: Method, task: Task, mechanism: Accounted, records: Records
) -> PrivacyStatement:
    """Return what the fit guarantees, and what was public in it."""
    edges = None if records.origin is None else records.origin.edges
    return make_statement(
        mechanism,
        seeded=method.random_state is not None,
        classes_declared=method.targets.is_declared or task.many_labels,
        records=use_of_count(mechanism, method.n_records),
        n_classes=task.classes.size,
        target_bounds=task.target_bounds,
        weight_bound=method.weight_bound if records.weighted else None,
        prior=method.starts_from,
        many_labels=task.many_labels,
        edges="" if edges is None else edges.told,
    )
