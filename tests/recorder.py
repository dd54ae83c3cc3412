"""A recorder in the place of the door: what leaves a fit, before and after its noise.

A first fit runs as always, and its releases are noted. Then the same fit runs again on the same
records and on a neighbouring data set, each time with the first one's releases for answers, and
every statistic of the one is compared with that of the other before its noise: none may have moved
by more than the sensitivity that its noise was made for. Nothing is left to chance, so one pair
that breaks the claim is enough.

The method is that of Re:cord-play (arXiv 2602.17454).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.frank_wolfe import PartitionedFrankWolfe
from dplasso.frank_wolfe.rounds import RoundsFrankWolfe
from dplasso.frank_wolfe.solve import FrankWolfe
from dplasso.privacy import release as door_module
from dplasso.privacy.release import Door
from dplasso.selection.replay import ReplayState, replay_state

# What rounding of an exponent may add is paid for (`EXPONENT_SLACK`); this is far below.
_ROUNDING = 1.0 + 2.0**-40


@dataclass(frozen=True)
class Released:
    """A statistic with noise: as it was, its sensitivity, the noise, and what came out."""

    statistic: NDArray[np.int64]
    sensitivity: float
    scale: float
    answer: NDArray[np.int64]


@dataclass
class Drawn:
    """A structure that draws: its sensitivity, and the solver that has the vertices in the end."""

    sensitivity: float
    numbering: Any
    solver: Any = None
    state: ReplayState | None = None

    def alphas(self) -> NDArray[np.int64]:
        """Return the gradients at every draw of a replay, shape (T, D), in the columns' order."""
        assert self.state is not None
        internal = self.numbering.internal
        seen = self.state.seen[: int(self.state.position[0])]
        return seen[:, internal] if internal.size else seen


@dataclass
class Recorder(Door):
    """Notes what passes; with the notes of an earlier run, answers what that one answered."""

    earlier: "Recorder | None" = None
    releases: list[Released] = field(default_factory=list)
    draws: list[Drawn] = field(default_factory=list)

    def release(
        self, statistic: NDArray[np.int64], sensitivity: float, noise: Any
    ) -> NDArray[np.int64]:
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

    def drawing_from(self, selector: Any, sensitivity: float, numbering: Any) -> Any:
        """Note a structure, or put one in its place that draws what was drawn before."""
        self.draws.append(Drawn(sensitivity, numbering))
        if self.earlier is None:
            return selector
        solver = self.earlier.draws[len(self.draws) - 1].solver
        taken = solver.transcript()
        state = replay_state(taken.vertex.copy(), taken.sign.copy(), solver.n_coordinates)
        self.draws[-1].state = state
        return state

    def made(self, solver: Any) -> None:
        """Note the solver that the last structure was made for."""
        self.draws[-1].solver = solver


@contextmanager
def recording(earlier: Recorder | None = None) -> Iterator[Recorder]:
    """Put a recorder in the place of the door."""
    recorder = Recorder(earlier)
    with ExitStack() as stack:
        stack.enter_context(patch.object(door_module, "_door", recorder))
        for kind in (FrankWolfe, PartitionedFrankWolfe, RoundsFrankWolfe):
            stack.enter_context(_watched(kind, recorder))
        yield recorder


@contextmanager
def _watched(kind: type, recorder: Recorder) -> Iterator[None]:
    """Tell the recorder of every solver that is made."""
    original = kind.__init__

    def made(self: Any, *arguments: Any, **options: Any) -> None:
        if recorder.draws:
            recorder.made(self)
        original(self, *arguments, **options)

    with patch.object(kind, "__init__", made):
        yield


@dataclass(frozen=True)
class Comparison:
    """Two fits under the same releases.

    `violations`: what breaks the claim.
    `statistics`: how many were compared, each draw for one.
    `largest`: the largest part of its sensitivity that a statistic moved by.
    `results`: what the two fits returned.
    """

    violations: tuple[str, ...]
    statistics: int
    largest: float
    results: tuple[Any, Any]


def compare(work: Callable[[Any], Any], one: Any, other: Any) -> Comparison:
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
    return Comparison(*_compared(first, *runs), (results[0], results[1]))


def _compared(
    first: Recorder, one: Recorder, other: Recorder
) -> tuple[tuple[str, ...], int, float]:
    found: list[str] = []
    largest = 0.0
    sizes = {(len(run.releases), len(run.draws)) for run in (first, one, other)}
    if len(sizes) > 1:
        found.append(f"the runs released different numbers of statistics: {sorted(sizes)}")
    for number, (was, a, b) in enumerate(
        zip(first.releases, one.releases, other.releases, strict=False)
    ):
        if not np.array_equal(was.statistic, a.statistic):
            found.append(f"statistic {number} is another one in a second fit of the same records")
        if (a.sensitivity, a.scale) != (b.sensitivity, b.scale):
            found.append(f"the noise of statistic {number} depends on the records")
        moved = _distance(a.statistic, b.statistic)
        largest = max(largest, moved / a.sensitivity if a.sensitivity else float(moved > 0))
        if moved > a.sensitivity:
            found.append(f"statistic {number} moved by {moved:.6g}, beyond {a.sensitivity:.6g}")
    draws = 0
    for number, (p, q) in enumerate(zip(one.draws, other.draws, strict=False)):
        left, right = p.alphas(), q.alphas()
        if left.shape != right.shape or p.sensitivity != q.sensitivity:
            found.append(f"draws {number} are not of the same gradients")
            continue
        draws += len(left)
        moved = max((_largest(a, b) for a, b in zip(left, right, strict=True)), default=0.0)
        largest = max(largest, moved / p.sensitivity if p.sensitivity else float(moved > 0))
        if moved > p.sensitivity * _ROUNDING:
            found.append(f"a gradient of draws {number} moved by {moved / p.sensitivity:.6g}")
    return tuple(found), len(one.releases) + draws, largest


def _distance(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return the L2 distance, computed in Python's integers: 64 bits might overflow."""
    pairs = zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)
    return float(sum((a - b) ** 2 for a, b in pairs)) ** 0.5


def _largest(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    pairs = zip(one.tolist(), other.tolist(), strict=True)
    return float(max((abs(a - b) for a, b in pairs), default=0))
