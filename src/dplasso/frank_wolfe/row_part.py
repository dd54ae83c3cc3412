"""A part of the rows on its own: those of a worker.

A part owns the margins, gradients and calendar of its rows and knows nothing of the others. It
answers each step with the integer changes of the column gradients that its rows bring about; the
sum over the parts is what one process computes, whatever the partition (docs/cluster.md).
Coordinates go by their original numbers, since each part may store its columns in an order of its
own.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import starting_alpha
from dplasso.frank_wolfe.drift import count_due
from dplasso.frank_wolfe.large_step import LargeSteps, large_rows, large_steps_of, take_large_step
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.sparse import step_rows
from dplasso.frank_wolfe.state import start_sparse
from dplasso.matrix.design import column_of, refuse_damage
from dplasso.runtime.threads import ONE_THREAD, Threads
from dplasso.selection.change_log import new_change_log

# A part knows nothing of the vertices drawn before: it leaves none out.
_UNKNOWN = np.zeros(0, dtype=np.int64)


class Changes(NamedTuple):
    """What a step changes of the column gradients, by the rows of a part.

    `coordinates`: coordinates that change, ascending; None for all of them.
    `amounts`: by how much.
    `counts`, shape (3,): rows looked at, rows whose gradient changed, and their entries.
    """

    coordinates: NDArray[np.integer] | None
    amounts: NDArray[np.int64]
    counts: NDArray[np.int64]


class RowPart:
    """Rows that take their steps when told which vertex was drawn.

    `problem`: these rows alone, with the public numbers of the whole run.
    `drift_tol`: as in `dplasso.frank_wolfe.solve.FrankWolfe`.
    `threads`: for the set-up and for steps that touch many rows.
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
        # Sums computed afresh are no changes.
        self._large_steps: LargeSteps = large_steps_of(
            threads, **{"part_recomputed": np.inf} | forced
        )

    def start(self) -> NDArray[np.int64]:
        """Return these rows' part of the column gradients at zero weights, shape (D,)."""
        return self._in_original_order(starting_alpha(self._problem, self._large_steps.threads))

    def move(self, step: int, coordinate: int, sign: int) -> Changes:
        """Take a step.

        `step`: its number, from 1; each is taken once, in order.
        `coordinate`, `sign`: the vertex drawn.
        """
        self._take(step, coordinate, sign, replaying=False)
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

    def catch_up(self, step: int, coordinate: int, sign: int) -> None:
        """Take a step that the other parts have taken already: its changes are in their sum."""
        self._take(step, coordinate, sign, replaying=True)

    def _take(self, step: int, coordinate: int, sign: int, *, replaying: bool) -> None:
        problem, state, means = self._problem, self._state, self._large_steps
        weight = sign * (step + problem.late_start + 1)
        column, begin, end = column_of(problem.design, coordinate, means.threads)
        looked_at = end - begin + int(count_due(state.calendar, step))
        if not replaying and looked_at > large_rows(problem, means):
            take_large_step(
                problem,
                state,
                self._log,
                _UNKNOWN,
                means,
                coordinate,
                weight,
                step,
                self._tolerance,
                record=False,
            )
            return
        span = begin, end, weight
        if not step_rows(
            problem,
            state,
            self._log,
            _UNKNOWN,
            column,
            span,
            step,
            self._tolerance,
            False,
            replaying,
        ):
            refuse_damage()

    def _in_original_order(self, alpha: NDArray[np.int64]) -> NDArray[np.int64]:
        internal = self._problem.design.numbering.internal
        return alpha[internal] if internal.size else alpha.copy()
