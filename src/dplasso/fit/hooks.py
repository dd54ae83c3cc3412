"""What the command line and checkpoints add to a fit."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from dplasso.fit.method import Method
from dplasso.fit.records import Records
from dplasso.fit.task import Task
from dplasso.ledger import Payment
from dplasso.phases.contract import NO_SNAPSHOT, Plan, Snapshot
from dplasso.phases.released import Released
from dplasso.privacy.budget import Budget
from dplasso.privacy.cautions import Caution, warn_of
from dplasso.privacy.statement import PrivacyStatement
from dplasso.runtime.progress import Progress

Snapshots = Callable[[int], Snapshot]


@dataclass(frozen=True)
class Begun:
    """What is known of a fit before anything private is computed.

    `records`: for what is public of them: D, the names of the columns and how they were made.
    `notes`: what the ledger's entry holds besides the cost.
    """

    method: Method
    task: Task
    budget: Budget
    plan: Plan
    statement: PrivacyStatement
    records: Records
    notes: Mapping[str, str | None]


class Session:
    """A fit that keeps no checkpoint; `dplasso.checkpoint.session` has one that does.

    `released`: what an interrupted fit has released, which is not drawn again.
    `payment`: how the fit is charged, if there is a ledger and the fit can be resumed.
    """

    released = Released()
    payment: Payment | None = None

    def snapshot_of(self, place: int) -> Snapshot:  # noqa: ARG002
        """Return how far an interrupted fit had come in the phase of a place."""
        return NO_SNAPSHOT

    def marks_of(self, place: int, n_steps: int) -> Collection[int]:  # noqa: ARG002
        """Return the steps at which what is released must be looked at."""
        return ()

    def keeping(self, released: Released, snapshots: Snapshots) -> Callable[[int], None]:
        """Return what is called after each chunk of a phase, with the steps done."""
        return lambda done: self.keep(released, done, snapshots)

    def keep(
        self, released: Released, done: int = 0, snapshots: Snapshots = lambda _: NO_SNAPSHOT
    ) -> None:
        """Keep what has been released, and the snapshot of the phase under way after some steps."""


@dataclass(frozen=True)
class Hooks:
    """What a fit is given besides data and method; all of it is optional.

    `progress`: called between chunks with the steps done and T, at most.
    `seconds`: receives the times of preparing and training; the curator's, no part of the model.
    `checkpoints`: takes a `Begun` fit, returns its `Session`.
    `copied`: called with the bytes that workers have copied from object storage, and those to be
    copied.
    `cautioned`: called with what is to be said of the promise, before the charge.
    `known_records`: the number of records, of which the curator's screen alone may speak.
    """

    progress: Progress | None = None
    seconds: dict[str, float] | None = None
    checkpoints: Callable[[Begun], Session] | None = None
    copied: Callable[[int, int], None] | None = None
    cautioned: Callable[[Sequence[Caution]], None] = warn_of
    known_records: int | None = None

    def progress_of(self, plan: Plan, place: int, taken: int) -> Progress | None:
        """Return the progress of one phase as that of the fit; `taken` steps came before it."""
        progress, later = self.progress, sum(one.most_steps for one in plan.phases[place + 1 :])
        if progress is None:
            return None
        return lambda done, n_steps: progress(taken + done, taken + n_steps + later)
