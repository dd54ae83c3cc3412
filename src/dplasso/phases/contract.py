"""What a fit is made of: phases in a fixed order, each of which makes one release.

A phase spends a share of the fit's budget (`dplasso.privacy.budget`) and reads the records through
exact sums that leave with noise (`dplasso.privacy.release`). Everything else that it uses is public
or was released by the phases before it. So what has been released so far is the only state of a
fit, and `dplasso.fit.run` needs to know nothing about any phase.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dplasso.matrix.starting import StartingModel
from dplasso.phases.released import Released
from dplasso.phases.releases import Release
from dplasso.privacy.budget import Budget, Draws
from dplasso.privacy.randomness import RandomStream, word_buffers
from dplasso.privacy.release import Gaussian, release
from dplasso.privacy.statement_entries import StatedRelease
from dplasso.runtime.threads import Threads

Snapshot = dict[str, NDArray[Any]]
NO_SNAPSHOT: Snapshot = {}


class Steps(Protocol):
    """A phase under way: it takes its steps when `advance` is called.

    `done`: steps that a snapshot had taken.
    """

    @property
    def n_steps(self) -> int: ...
    @property
    def done(self) -> int: ...

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1, both included."""

    def snapshot(self, done: int) -> Snapshot:
        """Return what `Phase.begin` needs to go on after `done` steps; all of it is released.

        Its entry "done" is their number.
        """

    def release(self) -> Release | None:
        """Return what the phase has released, once all steps are taken."""


@dataclass
class Fit:
    """What the phases of a fit use besides releases: public values, records and random numbers.

    `records`: see `dplasso.fit.records`; they answer with exact sums and layouts.
    `prior`: the public model that margins may start from.
    `layouts`: records as they were laid out, by what they were laid out for; a phase that is the
    last to need one takes it out.
    """

    budget: Budget
    records: Any
    stream: RandomStream
    threads: Threads
    prior: StartingModel | None = None
    layouts: dict[str, Any] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        """Number of columns D."""
        return int(self.records.shape[1])

    def release(
        self, total: NDArray[np.int64], moved: float, mu: float, unit: float
    ) -> NDArray[np.int64]:
        """Release a sum in units with the noise for `mu`; between neighbours it moves by `moved`.

        `total` is changed in place.
        """
        noise, deviation = None, deviation_of(moved, mu)
        if deviation:
            noise = Gaussian(deviation * unit, word_buffers(self.stream, 1)[0])
        return release(total, moved * unit, noise)


def deviation_of(moved: float, mu: float) -> float:
    """Return the standard deviation of the noise in a sum that moves by `moved`; 0 for none."""
    return moved / mu if moved else 0.0


class Phase(Protocol):
    """One step of a plan.

    `name`: what statements call it.
    `draws`: the most random draws that it makes. `most_steps`: the most steps that it takes.
    """

    @property
    def name(self) -> str: ...

    @property
    def draws(self) -> Draws: ...

    @property
    def most_steps(self) -> int: ...

    def words(self, task: Any, n_steps: int) -> str:
        """Say what it releases, as a part of a sentence; phases of one name say it together.

        `n_steps`: the most steps of all of them. Empty where nothing new is read.
        """

    def numbers(self, budget: Budget) -> dict[str, float]:
        """Return what a statement says of it in numbers."""

    def share(self, budget: Budget, released: Released) -> float:
        """Return the share of the budget that it spends; 0 for none."""

    def begin(self, fit: Fit, released: Released, mu: float, snapshot: Snapshot) -> Steps:
        """Return its steps, ready for the first, or for the one after a snapshot.

        `mu`: the Gaussian differential privacy that its share comes to; infinite without privacy.

        Raises ValueError for a snapshot of another plan.
        """


@dataclass(frozen=True)
class OneRelease:
    """A phase that releases at once, without steps that an interrupted fit could take up.

    `share`: ``share(budget, released)``.
    `make`: ``make(fit, released, mu)``: its release, None where it has nothing to do.
    `said`: what it releases, in words. `numbers`: ``numbers(budget)``: the same in numbers.
    """

    name: str
    draws: Draws
    share: Callable[[Budget, Released], float]
    make: Callable[[Fit, Released, float], Release | None]
    said: str = ""
    numbers: Callable[[Budget], dict[str, float]] = lambda _: {}

    most_steps: ClassVar[int] = 0

    def words(self, task: Any, n_steps: int) -> str:  # noqa: ARG002
        return self.said

    def begin(self, fit: Fit, released: Released, mu: float, snapshot: Snapshot) -> Steps:  # noqa: ARG002
        return _AtOnce(lambda: self.make(fit, released, mu))


@dataclass(frozen=True)
class _AtOnce:
    """The steps of a phase that has none."""

    release: Callable[[], Release | None]

    n_steps: ClassVar[int] = 0
    done: ClassVar[int] = 0

    def advance(self, first: int, last: int) -> None:
        """Do nothing."""

    def snapshot(self, done: int) -> Snapshot:  # noqa: ARG002
        return NO_SNAPSHOT


# What phases begin with that are left out.
NOTHING: Steps = _AtOnce(lambda: None)


@dataclass(frozen=True)
class Plan:
    """The phases of a fit, from public parameters alone.

    `lay_out`: prepares the records before anything is paid for, so that records that cannot be
    used, or not held, are found by then.
    """

    phases: tuple[Phase, ...]
    lay_out: Callable[[Fit], None]

    @property
    def draws(self) -> Draws:
        """The most random draws of all phases."""
        each = [phase.draws for phase in self.phases]
        return Draws(sum(one.gaussian for one in each), sum(one.vertices for one in each))

    @property
    def n_steps(self) -> int:
        """The most steps of all phases together."""
        return sum(phase.most_steps for phase in self.phases)

    def stated(self, budget: Budget, task: Any) -> tuple[StatedRelease, ...]:
        """Return what a statement says of the phases, those of one name together."""
        names = dict.fromkeys(phase.name for phase in self.phases)
        found = []
        for name in names:
            own = [phase for phase in self.phases if phase.name == name]
            n_steps = sum(phase.most_steps for phase in own)
            numbers = own[0].numbers(budget) | ({"steps": float(n_steps)} if n_steps else {})
            words = own[0].words(task, n_steps)
            # What neighbours agree in is no release of private data.
            if words and numbers.get("sensitivity", 1.0) > 0.0:
                found.append(StatedRelease(name, words, numbers))
        return tuple(found)


# What shares may come to beyond 1 by rounding; a budget's margin is larger.
_ROUNDING = 1e-13


def check_share(phase: Phase, share: float, released: Released) -> float:
    """Return a phase's share; RuntimeError if it is more than earlier phases have left.

    The guarantee follows from this check alone, whatever a phase makes its share of.
    """
    if not (share >= 0.0 and math.fsum([released.spent, share]) <= 1.0 + _ROUNDING):
        raise RuntimeError(
            f"the phase {phase.name!r} asks for {share!r} of the budget, and "
            f"{released.spent!r} is spent"
        )
    return share
