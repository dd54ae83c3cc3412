"""The path from a method and records to a model: the phases of its plan, one after another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dplasso.encoding.origin import columns_declared
from dplasso.fit.method import Method
from dplasso.fit.records import Records
from dplasso.fit.task import Task
from dplasso.ledger import (
    Reservation,
    charged,
    check_affordable,
    check_paid,
    data_fingerprint,
)
from dplasso.model import Model
from dplasso.phases.phase import NO_SNAPSHOT, Fit, Plan, Snapshot, Steps, check_share
from dplasso.phases.released import Released
from dplasso.phases.releases import Counted
from dplasso.privacy.budget import Budget
from dplasso.privacy.randomness import random_stream
from dplasso.privacy.statement import PrivacyStatement
from dplasso.privacy.wording import Caution, warn_of
from dplasso.runtime.progress import Progress, run_in_chunks
from dplasso.runtime.threads import thread_pool

Snapshots = Callable[[int], Snapshot]


@dataclass(frozen=True)
class Begun:
    """What is known of a fit before anything private is computed."""

    method: Method
    task: Task
    budget: Budget
    plan: Plan
    statement: PrivacyStatement
    records: Records

    @property
    def notes(self) -> dict[str, str | None]:
        """What the entry of a ledger says of the data and of public knowledge."""
        labels = np.concatenate(self.records.of_targets(lambda own: own.labels.astype(np.float32)))
        prior = self.method.public_knowledge or None
        return {"fingerprint": data_fingerprint(labels), "prior": prior}

    def cautions(self, n_records: float | None) -> list[Caution]:
        """Return the cautions about the statement for a number of records, if that is known."""
        return self.statement.cautions(
            n_records,
            classes=self.task.classes.tolist(),
            columns_declared=columns_declared(self.records.origin),
        )


class Session:
    """A fit that keeps no checkpoint; `dplasso.checkpoint.session` has one that does.

    `released`: what an interrupted fit has released, which is not drawn again. `state`: how far it
    had come in the phase after that. `take`: charges a fit that may have been charged before.
    """

    released = Released()
    state = NO_SNAPSHOT
    take: Callable[[], Reservation] | None = None

    def keep(
        self, released: Released, done: int = 0, snapshots: Snapshots = lambda _: NO_SNAPSHOT
    ) -> None:
        """Keep what has been released, and the snapshot of the phase under way after some steps."""


@dataclass(frozen=True)
class Hooks:
    """What a fit is called with besides data and method; all of it is optional.

    `copied`: called with the bytes that workers have copied, and those to be copied. `cautioned`:
    called with the cautions before the charge.
    """

    progress: Progress | None = None
    checkpoints: Callable[[Begun], Session] | None = None
    copied: Callable[[int, int], None] | None = None
    cautioned: Callable[[Sequence[Caution]], None] = warn_of

    def progress_of(self, plan: Plan, place: int, taken: int) -> Progress | None:
        """Return the progress of one phase as that of the fit; `taken` steps came before it."""
        progress, later = self.progress, sum(p.most_steps for p in plan.phases[place + 1 :])
        if progress is None:
            return None
        return lambda done, n_steps: progress(taken + done, taken + n_steps + later)


def run(method: Method, records: Records, hooks: Hooks) -> tuple[Model, dict[str, Any]]:
    """Fit a model; return it, and what a fit without privacy notes of its steps, by attribute.

    Everything that can be refused is refused, and the records are laid out, before the ledger is
    charged. Each release is kept before the next phase begins.
    """
    begun = _prepared(method, records, hooks)
    method, records, budget, plan = begun.method, begun.records, begun.budget, begun.plan
    session = Session() if hooks.checkpoints is None else hooks.checkpoints(begun)
    released, snapshot, taken = session.released, session.state, 0
    steps: Steps | None = None
    if method.n_records is not None and not len(released):
        method.warn_of_noise(begun.task, budget, method.n_records)
    # The caller may have numpy raise errors: a tiny number of one record would end a charged fit.
    with np.errstate(all="ignore"), thread_pool(method.n_threads) as threads:
        stream = random_stream(method.random_state)
        fit = Fit(budget, records, stream, threads, method.starting_model)
        plan.lay_out(fit)
        with charged(
            method.ledger,
            budget,
            take=session.take,
            release=lambda: released.digest,
            notes={} if method.ledger is None else begun.notes,
        ):
            for place, phase in enumerate(plan.phases[len(released) :], len(released)):
                share = check_share(phase, phase.share(budget, released), released)
                steps = phase.begin(fit, released, budget.mu_of(share), snapshot)
                run_in_chunks(
                    steps,
                    one_by_one=records.every_step,
                    checkpoint=partial(session.keep, released, snapshots=steps.snapshot),
                    progress=hooks.progress_of(plan, place, taken),
                )
                released, taken = released.then(share, steps.release()), taken + steps.n_steps
                snapshot = NO_SNAPSHOT
                session.keep(released)
                counted = released.entries[-1].release
                if method.n_records is None and isinstance(counted, Counted):
                    method.warn_of_noise(begun.task, budget, counted.total)
        return _modelled(begun, hooks, released, steps)


def _prepared(method: Method, records: Records, hooks: Hooks) -> Begun:
    """Refuse what can be refused, and return what is known before anything private is computed."""
    task = method.targets.task(records)
    records = records.encoded(task)
    method = method.starting(task, records)
    n_features = records.shape[1]
    budget, earlier = method.budget(task, n_features), []
    edges = None if records.origin is None else records.origin.edges
    if edges is not None:
        seeded = method.random_state is not None
        budget = edges.before(budget, seeded=seeded, by_person=records.by_person)
        check_paid(method.ledger, edges.digest, f"the edges of {', '.join(edges.columns)}")
        earlier = [edges.stated(budget.rows_per_person)]
    statement = method.statement(task, budget, n_features, earlier, by_person=records.by_person)
    plan = method.plan(task, n_features)
    begun = Begun(method, task, budget, plan, statement, records)
    hooks.cautioned(begun.cautions(method.n_records))
    if hooks.checkpoints is None:
        check_affordable(method.ledger, budget)
    # This reads all of a store, so cheaper refusals come first.
    records.check(method.n_threads)
    return begun


def _modelled(
    begun: Begun, hooks: Hooks, released: Released, last: Steps | None
) -> tuple[Model, dict[str, Any]]:
    """Return the model that follows from the releases, and what a fit without privacy notes."""
    counted, method, statement = released.last(Counted), begun.method, begun.statement
    if method.n_records is None and counted:
        # Show the cautions that the released count adds.
        before, after = begun.cautions(None), begun.cautions(counted.total)
        if len(after) > len(before):
            hooks.cautioned([caution for caution in after if caution not in before])
    run_of_last = getattr(last, "run", None)
    model = Model(
        params=dict(method.params),
        released=released,
        statement=statement,
        classes=begun.task.classes,
        n_features=begun.records.shape[1],
        feature_names=begun.records.feature_names,
        origin=begun.records.origin,
        prior=method.prior,
    )
    noted = {f"{name}_": getattr(run_of_last, name, None) for name in ("history", "work")}
    if noted["history_"] is not None and statement.mechanism != "none":
        # Losses and gaps are functions of the data: they must never leave a private fit.
        raise RuntimeError("only a fit without privacy has a history")
    return model, {name: value for name, value in noted.items() if value is not None}
