"""A part of the rows on its own: those of a worker, in a run with a given radius.

A part owns the margins, gradients and calendar of its rows and knows nothing of the others. It
answers each step with the integer changes of the column gradients that its rows bring about; the
sum over the parts is what one process computes, whatever the partition (docs/cluster.md).
Coordinates go by their original numbers, since each part may store its columns in an order of its
own.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import starting_alpha
from dplasso.frank_wolfe.drift import count_due
from dplasso.frank_wolfe.large_step import LargeSteps, large_rows, take_large_step
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.round_part import Changes
from dplasso.frank_wolfe.sparse import step_rows
from dplasso.frank_wolfe.state import start_sparse
from dplasso.matrix.design import column_of, refuse_damage
from dplasso.runtime.threads import ONE_THREAD, Threads
from dplasso.selection.change_log import new_change_log


class RowPart:
    """Rows that take their steps when told which vertex was drawn.

    `problem`: these rows alone, with the public numbers of the whole run.
    `**forced`: as in `dplasso.frank_wolfe.solve.FrankWolfe`.
    """

    def __init__(
        self,
        problem: Problem,
        drift_tol: float | None,
        threads: Threads = ONE_THREAD,
        **forced: float,
    ) -> None:
        size = problem.design.n_coordinates
        self._problem, self._tolerance = problem, float(drift_tol or 0.0)
        self._state = start_sparse(problem, np.zeros(size, dtype=np.int64), drift_tol)
        self._log = new_change_log(size)
        self._done = 0
        # Sums computed afresh are no changes.
        numbers: dict[str, Any] = {"part_recomputed": np.inf} | forced
        self._large_steps = LargeSteps(threads, **numbers)

    def start(self) -> NDArray[np.int64]:
        """Return these rows' part of the column gradients at zero weights, shape (D,)."""
        return self._in_original_order(starting_alpha(self._problem, self._large_steps.threads))

    def move(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> Changes:
        """Take the next step with the only vertex that is given."""
        self._take(*vertex.tolist(), *sign.tolist())
        alpha, untold = self._state.alpha, self._state.untold
        counts = self._state.step_counts.copy()
        if untold[0]:
            untold[0] = False
            amounts = self._in_original_order(alpha)
            alpha[:] = 0
            return Changes(None, amounts, counts)
        places = self._log.changed[: self._log.length[0]]
        self._log.length[0] = 0
        original = self._problem.design.numbering.original
        coordinates = original[places] if original.size else places.copy()
        amounts = alpha[places]
        alpha[places] = 0
        return Changes(coordinates, amounts, counts)

    def catch_up(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> None:
        """Take steps that the other parts have taken already: their changes are in the sum."""
        for step in range(vertex.size):
            self.move(vertex[step : step + 1], sign[step : step + 1])

    def _take(self, coordinate: int, sign: int) -> None:
        self._done += 1
        problem, state, means = self._problem, self._state, self._large_steps
        step, weight = self._done, sign * (self._done + 1)
        column, begin, end = column_of(problem.design, coordinate, means.threads)
        numbers = step, self._tolerance, False, True
        if end - begin + int(count_due(state.calendar, step)) > large_rows(problem, means):
            take_large_step(problem, state, self._log, means, coordinate, weight, *numbers)
        elif not step_rows(problem, state, self._log, column, (begin, end, weight), *numbers):
            refuse_damage()

    def _in_original_order(self, alpha: NDArray[np.int64]) -> NDArray[np.int64]:
        internal = self._problem.design.numbering.internal
        return alpha[internal] if internal.size else alpha.copy()
