"""The rows of one worker in a run with a fixed radius.

A part holds the margins, residuals and calendar of its rows. It answers each step with the integer
changes of the column gradients. Their sum over all parts does not depend on the partition.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import starting_alpha
from dplasso.frank_wolfe.drift import count_due
from dplasso.frank_wolfe.large_step import LargeSteps, take_step
from dplasso.frank_wolfe.problem import Problem, VertexLayout, build_problem, design_of
from dplasso.frank_wolfe.reports import begin_step, expected_entries
from dplasso.frank_wolfe.round_part import Changes
from dplasso.frank_wolfe.state import start_sparse
from dplasso.losses.targets import Targets
from dplasso.matrix.orientations import Design, column_span
from dplasso.runtime.threads import ONE_THREAD, Threads
from dplasso.selection.contract import NOTHING_REPORTED

# A step lists its changes if it touches at most this part of all gradients.
_LISTED_PART = 1 / 4


@dataclass(frozen=True)
class VertexSteps:
    """The public numbers of a run of Frank-Wolfe with a fixed radius."""

    loss: Any
    bound: float
    intercept: bool
    radius: float
    n_steps: int
    drift_tol: float | None
    share_bits: int

    def problem(self, design: Design, targets: Targets) -> Problem:
        """Return the problem of some rows, or of none."""
        return build_problem(
            design,
            targets.labels,
            weights=targets.weights,
            offsets=targets.offsets,
            radius=self.radius,
            n_steps=self.n_steps,
            loss=self.loss,
            share_bits=self.share_bits,
        )

    def part(self, X: Any, targets: Targets, threads: Threads) -> "RowPart":
        """Lay out rows, and return them at zero weights."""
        layout = VertexLayout(self.bound, self.intercept, n_steps=self.n_steps)
        problem = self.problem(design_of(X, layout, threads), targets)
        return RowPart(problem, self.drift_tol, threads)


class RowPart:
    """Rows that take the steps whose vertices the coordinator drew."""

    def __init__(
        self, problem: Problem, drift_tol: float | None, threads: Threads = ONE_THREAD
    ) -> None:
        self._problem, self._tolerance = problem, float(drift_tol or 0.0)
        self._state = start_sparse(problem, np.zeros(0, dtype=np.int64), drift_tol)
        self._large_steps = LargeSteps(threads, recomputing=False)
        self._done = 0

    def start(self) -> NDArray[np.int64]:
        """Return these rows' part of the column gradients at zero weights, shape (D,)."""
        return starting_alpha(self._problem, self._large_steps.threads)

    def move(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> Changes:
        """Take the next step with a single vertex."""
        step = self._done = self._done + 1
        problem, state = self._problem, self._state
        size = problem.design.n_coordinates
        column, begin, end = column_span(problem.design, vertex.item())
        n_looked_at = end - begin + int(count_due(state.calendar, step))
        n_entries, n_rows = problem.design.rows.indices.size, problem.labels.size
        expected = expected_entries(n_looked_at, 1.0, n_entries, n_rows)
        # This alpha receives the changes of the step.
        if expected > _LISTED_PART * size:
            state = state._replace(alpha=np.zeros(size, dtype=np.int64))
        begin_step(problem, state, n_looked_at)
        places, amounts, count = take_step(
            problem,
            state,
            self._large_steps,
            column,
            (begin, end, sign.item() * (step + 1)),
            step,
            self._tolerance,
            False,
            NOTHING_REPORTED if state.alpha.size else 0,
            n_looked_at,
        )
        if state.alpha.size:
            changes = Changes(None, state.alpha)
        else:
            changes = Changes(places[:count].copy(), amounts[:count].copy())
        return changes._replace(counts=state.step_counts.copy())

    def catch_up(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> None:
        """Take steps whose changes are in the sum already."""
        for step in range(vertex.size):
            self.move(vertex[step : step + 1], sign[step : step + 1])
