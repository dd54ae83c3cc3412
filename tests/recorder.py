"""A recorder in the place of the door: what leaves a fit, before and after its noise.

A first fit runs as always, and its releases are noted. Then the same fit runs again on the same
records and on a neighbouring data set, each time with the first one's releases for answers, and
every statistic of the one is compared with that of the other before its noise: none may have moved
by more than the sensitivity that its noise was made for. Nothing is left to chance, so one pair
that breaks the claim is enough.

The method is that of Re:cord-play (arXiv 2602.17454). Besides, everything that a fit or a score
released is added up: it may cost no more than its mechanism was charged for, and take no more
variates.
"""

import math
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from evidence.audit.replay import ReplayState, replay_state
from numpy.typing import NDArray

from dplasso.fit import method
from dplasso.frank_wolfe.rounds import RoundsFrankWolfe
from dplasso.frank_wolfe.solve import FrankWolfe
from dplasso.privacy import release as door_module
from dplasso.privacy.randomness import WORDS_PER_BLOCK
from dplasso.privacy.release import Door
from dplasso.tuning import scores, search

# What rounding of an exponent may add is paid for (`EXPONENT_SLACK`); this is far below.
_ROUNDING = 1.0 + 2.0**-40
# Of sums of squares of floating-point numbers.
_ADDED_UP = 1.0 + 1e-9


@dataclass(frozen=True)
class Released:
    """A statistic with noise: as it was, its sensitivity, the noise, and what came out."""

    statistic: NDArray[np.int64]
    sensitivity: float
    scale: float
    answer: NDArray[np.int64]


@dataclass
class Drawn:
    """A structure that draws: its sensitivity, and the solver that has the vertices in the end.

    `exponent`: the log-weight per unit of a gradient that it draws by.
    """

    sensitivity: float
    exponent: float
    solver: Any = None
    state: ReplayState | None = None

    def alphas(self):
        """Return the gradients at every draw of a replay, shape (T, D)."""
        return self.state.seen[: int(self.state.position[0])]


@dataclass
class Recorder(Door):
    """Notes what passes; with the notes of an earlier run, answers what that one answered."""

    earlier: "Recorder | None" = None
    releases: list[Released] = field(default_factory=list)
    draws: list[Drawn] = field(default_factory=list)
    budgets: list[Any] = field(default_factory=list)

    @property
    def rho(self) -> float:
        """What all that was released costs, in zCDP."""
        noisy = (one for one in self.releases if one.scale)
        spent = math.fsum((one.sensitivity / one.scale) ** 2 / 2.0 for one in noisy)
        for one in self.draws:
            spent += len(one.solver.transcript()) * (2.0 * one.exponent * one.sensitivity) ** 2 / 8
        return spent

    @property
    def variates(self) -> int:
        """How many Gaussian variates were drawn."""
        return sum(one.statistic.size for one in self.releases if one.scale)

    def release(self, statistic, sensitivity, noise):
        """Note a statistic, and add noise to it or give the earlier answer."""
        exact = statistic.copy()
        if self.earlier is None:
            answer = super().release(statistic, sensitivity, noise)
        else:
            answer = self.earlier.releases[len(self.releases)].answer
            assert answer.shape == statistic.shape, "another statistic than before"
        scale = 0.0 if noise is None else noise.scale
        self.releases.append(Released(exact, sensitivity, scale, answer.copy()))
        statistic[:] = answer
        return statistic

    def drawing_from(self, selector, sensitivity):
        """Note a structure, or put one in its place that draws what was drawn before."""
        exponent = getattr(selector, "exponent", math.inf)
        self.draws.append(Drawn(sensitivity, exponent))
        if self.earlier is None:
            return selector
        solver = self.earlier.draws[len(self.draws) - 1].solver
        taken = solver.transcript()
        state = replay_state(taken.vertex.copy(), taken.sign.copy(), solver.n_coordinates)
        self.draws[-1].state = state
        return state


@contextmanager
def recording(earlier=None):
    """Put a recorder in the place of the door; it is told of every solver that is made."""
    recorder = Recorder(earlier)

    def watched(original):
        def made(self, *arguments, **options):
            if recorder.draws:
                recorder.draws[-1].solver = self
            original(self, *arguments, **options)

        return made

    def stated(original):
        def state(*given, **options):
            recorder.budgets.append(given[0])
            return original(*given, **options)

        return state

    with ExitStack() as stack:
        stack.enter_context(patch.object(door_module, "_door", recorder))
        for kind in (FrankWolfe, RoundsFrankWolfe):
            stack.enter_context(patch.object(kind, "__init__", watched(kind.__init__)))
        makers = (method, "make_statement"), (scores, "make_statement"), (search, "state_search")
        for module, name in makers:
            stack.enter_context(patch.object(module, name, stated(getattr(module, name))))
        yield recorder


@dataclass(frozen=True)
class Comparison:
    """Two fits under the same releases.

    `violations`: what breaks the claim.
    `statistics`: how many were compared, each draw for one.
    `largest`: the largest part of its sensitivity that a statistic moved by.
    `spent`: what the first run released over what it was charged for, in zCDP; 0 for a search.
    `rho`: how far the Gaussian releases of the two were apart, in zCDP.
    `results`: what the two fits returned.
    """

    violations: tuple[str, ...]
    statistics: int
    largest: float
    spent: float
    rho: float
    results: tuple[Any, Any]


def compare(work, one, other):
    """Run `work` on a data set, then on both of two neighbours with the first run's releases.

    `work`: called with one of the data sets; a fit, a search or a score.
    """
    with recording() as first:
        work(one)
    runs, results = [], []
    for data in (one, other):
        with recording(first) as again:
            results.append(work(data))
        runs.append(again)
    return Comparison(*_compared(first, *runs), tuple(results))


def _compared(first, one, other):
    found, spent = _spent(first)
    largest, draws, apart = 0.0, 0, 0.0
    sizes = {(len(run.releases), len(run.draws)) for run in (first, one, other)}
    if len(sizes) > 1:
        found.append(f"the runs released different numbers of statistics: {sorted(sizes)}")

    def part(moved, sensitivity):
        return moved / sensitivity if sensitivity else float(moved > 0)

    releases = zip(first.releases, one.releases, other.releases, strict=False)
    for number, (was, a, b) in enumerate(releases):
        if not np.array_equal(was.statistic, a.statistic):
            found.append(f"statistic {number} is another one in a second fit of the same records")
        if (a.sensitivity, a.scale) != (b.sensitivity, b.scale):
            found.append(f"the noise of statistic {number} depends on the records")
        moved = float(sum(d * d for d in _differences(a.statistic, b.statistic))) ** 0.5
        largest = max(largest, part(moved, a.sensitivity))
        apart += (moved / a.scale) ** 2 / 2.0 if a.scale else 0.0
        if moved > a.sensitivity:
            found.append(f"statistic {number} moved by {moved:.6g}, beyond {a.sensitivity:.6g}")
    for number, (p, q) in enumerate(zip(one.draws, other.draws, strict=False)):
        left, right = p.alphas(), q.alphas()
        if left.shape != right.shape or p.sensitivity != q.sensitivity:
            found.append(f"draws {number} are not of the same gradients")
            continue
        draws += len(left)
        moved = float(max(map(abs, _differences(left, right)), default=0))
        largest = max(largest, part(moved, p.sensitivity))
        if moved > p.sensitivity * _ROUNDING:
            found.append(f"a gradient of draws {number} moved by {moved / p.sensitivity:.6g}")
    return tuple(found), len(one.releases) + draws, largest, spent, apart


def _spent(run):
    """Say where a run released more than it was charged for; return which part of that it did."""
    found = [
        f"statistic {number} has no noise, and a record moves it"
        for number, one in enumerate(run.releases)
        if not one.scale and one.sensitivity
    ]
    # Of a search every try is charged for.
    if len(run.budgets) != 1 or run.budgets[0].leak:
        return found, 0.0
    (budget,) = run.budgets
    # With edges that were released before, for which the budget leaves room.
    spent = run.rho / (budget.rho + budget.before**2 / 2.0)
    if spent > _ADDED_UP:
        found.append(f"what was released costs {spent:.6g} times what was charged")
    paid = budget.draws
    if run.variates > paid.gaussian:
        found.append(f"{run.variates} variates were drawn, and {paid.gaussian} are charged for")
    if (vertices := sum(len(one.solver.transcript()) for one in run.draws)) > paid.vertices:
        found.append(f"{vertices} vertices were drawn, and {paid.vertices} are charged for")
    return found, spent


def _differences(one, other):
    """Return them in Python's integers: 64 bits might overflow."""
    return [a - b for a, b in zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)]


def words_drawn(stream):
    """Return how many random words a stream has given."""
    blocks = int(stream.state[12]) + 2**32 * int(stream.state[13])
    return blocks * WORDS_PER_BLOCK + int(stream.position[0]) - stream.words.size
