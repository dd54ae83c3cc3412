"""A part of the rows on its own: a thread's slab, or the rows of another machine.

A part owns the margins, gradients and calendar of its rows and knows nothing of the others. It
answers each step with the integer changes of the column gradients that its rows bring about; the
sum over the parts is what one process computes, whatever the partition (DESIGN.md, section 11).
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import starting_alpha
from dplasso.frank_wolfe.large_step import LargeSteps, large_rows, large_steps_of, take_large_step
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.sparse import step_rows
from dplasso.frank_wolfe.state import start_sparse
from dplasso.matrix.design import column_span, refuse_damage
from dplasso.matrix.transpose import transpose
from dplasso.runtime.threads import ONE_THREAD, Threads, even_parts
from dplasso.selection.change_log import new_change_log


class RowPart:
    """Rows that take their steps when told which vertex was drawn.

    `problem`: these rows alone, with the public numbers of the whole run.
    `drift_tol`: as in `dplasso.frank_wolfe.solve.FrankWolfe`.
    `threads`: for the set-up and for steps that touch many rows.
    """

    def __init__(
        self, problem: Problem, drift_tol: float | None, threads: Threads = ONE_THREAD
    ) -> None:
        size = problem.design.n_coordinates
        self._problem, self._tolerance = problem, float(drift_tol or 0.0)
        self._state = start_sparse(problem, np.zeros(size, dtype=np.int64), drift_tol)
        self._log = new_change_log(size)
        self._large_steps: LargeSteps = large_steps_of(threads)

    def start(self) -> NDArray[np.int64]:
        """Return these rows' part of the column gradients at zero weights.

        Returns shape (D,): in internal order.
        """
        return starting_alpha(self._problem, self._large_steps.threads)

    def move(
        self, step: int, coordinate: int, sign: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Take a step.

        `step`: its number, from 1; each is taken once, in order.
        `coordinate`, `sign`: the vertex drawn.

        Returns `places`: places of the column gradients that change, ascending.
        `changes`: by how much; none is 0.
        """
        problem, state, log = self._problem, self._state, self._log
        weight = sign * (step + problem.late_start + 1)
        if not self._is_small(step, coordinate):
            take_large_step(
                problem,
                state,
                log,
                self._large_steps,
                coordinate,
                weight,
                step,
                self._tolerance,
                record=False,
            )
        elif not _move(problem, state, log, coordinate, weight, step, self._tolerance):
            refuse_damage()
        given_up = bool(log.length[1])
        listed = log.changed[: log.length[0]]
        places = np.flatnonzero(state.alpha) if given_up else np.sort(listed)
        changes = state.alpha[places]
        state.alpha[places] = 0
        log.noted[listed] = False
        log.length[:] = 0
        kept = changes != 0
        return places[kept], changes[kept]

    def _is_small(self, step: int, coordinate: int) -> bool:
        """Return whether one thread is to take a step by itself."""
        design, rows_due = self._problem.design, self._state.calendar.rows_due
        if not design.has_columns and coordinate != design.n_columns:
            return False
        _, begin, end = column_span(design, coordinate)
        looked_at = end - begin + (int(rows_due[step]) if rows_due.size else 0)
        return bool(looked_at <= large_rows(self._problem, self._large_steps))


@njit(cache=True, nogil=True)
def _move(problem, state, log, coordinate, weight, step, tolerance):
    """Add `weight` to K of a coordinate; return whether all row numbers were inside the matrix."""
    column, begin, end = column_span(problem.design, coordinate)
    return step_rows(problem, state, log, column, begin, end, weight, step, tolerance, False)


def row_parts(problem: Problem, n_parts: int, **options: Any) -> list[RowPart]:
    """Cut a problem into parts with about equally many entries.

    `problem`: the whole.
    `n_parts`: how many.
    `**options`: as in `RowPart`.
    """
    design = problem.design
    edges = even_parts(design.rows.indptr, n_parts)
    parts = []
    for first, last in pairwise(edges):
        begin, end = design.rows.indptr[first], design.rows.indptr[last]
        rows = design.rows._replace(
            indptr=design.rows.indptr[first : last + 1] - begin,
            indices=design.rows.indices[begin:end],
            values=design.rows.values[begin:end],
        )
        part = design._replace(
            rows=rows,
            columns=transpose(rows, design.n_columns),
            has_columns=True,
            columns_internal=True,
            n_rows=int(last - first),
        )
        labels = problem.labels[first:last]
        parts.append(RowPart(problem._replace(design=part, labels=labels), **options))
    return parts
