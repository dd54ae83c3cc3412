"""What a fit is made of: phases in a fixed order, each of which makes one release.

A phase spends a share of the fit's budget and reads the records only through exact sums that leave
with noise. Everything else that it uses is public or was released before.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.noisy_descent import gradient_unit
from dplasso.matrix.starting import StartingModel
from dplasso.phases.released import Released
from dplasso.phases.releases import Release
from dplasso.privacy.budget import Budget, Draws
from dplasso.privacy.parameters import share_bits
from dplasso.privacy.randomness import RandomStream, word_buffers
from dplasso.privacy.release import Gaussian, release
from dplasso.privacy.statement import StatedRelease
from dplasso.runtime.threads import Threads

Snapshot = dict[str, NDArray[Any]]
NO_SNAPSHOT: Snapshot = {}


class Steps(Protocol):
    """A phase under way; `done` counts the steps that a snapshot had taken."""

    @property
    def n_steps(self) -> int: ...
    @property
    def done(self) -> int: ...

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1, both included."""

    def snapshot(self, done: int) -> Snapshot:
        """Return what `Phase.begin` needs to go on after `done` steps: "done" and releases."""

    def release(self) -> Release | None:
        """Return what the phase has released, once all steps are taken."""


@dataclass
class Fit:
    """What the phases of a fit use besides releases; `layouts` holds laid out records."""

    budget: Budget
    records: Any
    stream: RandomStream
    threads: Threads
    prior: StartingModel | None = None
    layouts: dict[str, Any] = field(default_factory=dict)

    def release(
        self, total: NDArray[np.int64], moved: float, mu: float, unit: float
    ) -> NDArray[np.int64]:
        """Release a sum, changed in place, with the noise for `mu` and the sensitivity `moved`."""
        noise, deviation = None, deviation_of(moved, mu)
        if deviation:
            noise = Gaussian(deviation * unit, word_buffers(self.stream, 1)[0])
        return release(total, moved * unit, noise)

    def noisy(
        self,
        sums: Callable[[float], NDArray[np.int64]],
        moved: float,
        mu: float,
        n_records: float,
        bound: float = 1.0,
    ) -> NDArray[np.float64]:
        """Release ``sums(unit)``, in units of sums to which a record adds at most `bound`."""
        unit = gradient_unit(bound, deviation_of(moved, mu), share_bits(n_records))
        return self.release(sums(unit), moved, mu, unit) / unit


def deviation_of(moved: float, mu: float) -> float:
    """Return the standard deviation of the noise in a sum that moves by `moved`; 0 for none."""
    return moved / mu if moved else 0.0


@dataclass(frozen=True)
class Phase:
    """One step of a plan, from public parameters alone.

    `draws`, `most_steps`: the most random draws and steps. `begin`: ``begin(fit, released, mu,
    snapshot)``: its steps, ready to go on after the snapshot. `words`, `numbers`: what a statement
    says of it; "{n_steps}" stands for the most steps.
    """

    name: str
    draws: Draws
    share: Callable[[Budget, Released], float]
    begin: Callable[[Fit, Released, float, Snapshot], Steps]
    words: str = ""
    numbers: Callable[[Budget], dict[str, float]] = lambda _: {}
    most_steps: int = 0


Make = Callable[[Fit, Released, float], Release | None]
"""``make(fit, released, mu)``: a release; None where a phase has nothing to do."""


def at_once(make: Make) -> Callable[[Fit, Released, float, Snapshot], Steps]:
    """Return the `begin` of a phase that makes its release without steps."""
    return lambda fit, released, mu, _: _AtOnce(partial(make, fit, released, mu))


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


# The steps of a phase that is left out.
NOTHING: Steps = _AtOnce(lambda: None)


@dataclass(frozen=True)
class Plan:
    """The phases of a fit; `lay_out` prepares or refuses the records before the charge."""

    phases: tuple[Phase, ...]
    lay_out: Callable[[Fit], None]

    @property
    def draws(self) -> Draws:
        """The most random draws of all phases."""
        gaussian, vertices = zip(*(phase.draws for phase in self.phases), strict=True)
        return Draws(sum(gaussian), sum(vertices))

    @property
    def n_steps(self) -> int:
        """The most steps of all phases together."""
        return sum(phase.most_steps for phase in self.phases)

    def stated(self, budget: Budget) -> tuple[StatedRelease, ...]:
        """Return what a statement says of the phases, those of one name together."""
        stated = []
        for name in dict.fromkeys(phase.name for phase in self.phases):
            same = [phase for phase in self.phases if phase.name == name]
            n_steps = sum(phase.most_steps for phase in same)
            numbers = same[0].numbers(budget) | ({"steps": float(n_steps)} if n_steps else {})
            words = same[0].words.format(n_steps=f"{n_steps:,}")
            # A number that neighbours agree in is not a release of private data.
            if words and numbers.get("sensitivity", 1.0) > 0.0:
                stated.append(StatedRelease(name, words, numbers))
        return tuple(stated)


# By how much rounding may raise the sum of the shares above 1; a budget's margin is larger.
_ROUNDING = 1e-13


def check_share(phase: Phase, share: float, released: Released) -> float:
    """Return a phase's share; RuntimeError if less is left. The guarantee rests on this check."""
    if not (share >= 0.0 and math.fsum([released.spent, share]) <= 1.0 + _ROUNDING):
        raise RuntimeError(
            f"the phase {phase.name!r} asks for {share!r} of the budget, and "
            f"{released.spent!r} is spent"
        )
    return share
