"""Steps that touch very many rows, taken by all threads: other loops, the same bits.

Rows are worked through in slabs, each thread on its own part; what a thread finds (gradients to
change, rows to schedule) is carried into calendar and gradients in the order of rows. Where a large
part of all shares changes, alpha is computed afresh from the record gradients, column by column: a
sum of integers has no order, so the result is that of the replacements one by one.

Everything here decides how a number is computed and may depend on all the data; which numbers are
computed is decided in `dplasso.frank_wolfe.sparse.touch_rows`, row by row.
"""

from typing import Any

import numpy as np
from numba import njit

from dplasso.frank_wolfe.column_gradients import alpha_of
from dplasso.frank_wolfe.columns import Column, column_of
from dplasso.frank_wolfe.drift import take_due
from dplasso.frank_wolfe.gradient import margin_scale
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.sparse import TOUCHES_PER_COORDINATE, refresh_block, touch_rows
from dplasso.frank_wolfe.state import SparseState
from dplasso.frank_wolfe.threads import SLAB_ROWS, Crew, cut, refuse_damage
from dplasso.frank_wolfe.work import OPERATIONS_PER_GRADIENT
from dplasso.selection.contract import rebuild


def take_large_step(
    problem: Problem,
    state: SparseState,
    selector: Any,
    workers: Crew,
    j: int,
    weight: int,
    step: int,
    tolerance: float,
    *,
    record: bool,
) -> None:
    """Add `weight` to K_j and refresh what has to be, with all threads.

    Does what `dplasso.frank_wolfe.sparse.step_rows` does, bit for bit.

    Parameters
    ----------
    problem, state, selector, tolerance, record
        As in `dplasso.frank_wolfe.sparse.run_sparse`.
    workers : Crew
        Threads.
    j : int
        The coordinate chosen.
    weight, step : int
        What is added to K_j; steps done, this one included.
    """
    public = (
        float(problem.bound),
        float(problem.margin_unit),
        float(margin_scale(problem, step)),
        float(tolerance),
        int(problem.n_steps),
    )
    scheduled = state.calendar.head.size > 0
    rows = state.rows
    column, begin, end = column_of(problem, j, workers)
    limit = TOUCHES_PER_COORDINATE * state.alpha.size
    n_due = int(state.calendar.rows_due[step]) if scheduled else 0
    n_worked = end - begin + n_due
    # As many shares are about to change as the last such step lets expect.
    expected = n_worked * state.refreshed_part[0] / max(1, rows.size)
    recompute_all = (
        bool(expected > workers.part_recomputed) and expected * problem.rows.indices.size > limit
    )
    touched, n_refreshed = 0, 0

    def slab(column: Column, begin: int, end: int, weight: int) -> None:
        nonlocal touched, n_refreshed
        edges = cut(begin, end, workers.n_threads)
        found = workers.run(
            lambda t: touch_rows(
                column,
                public,
                rows,
                edges[t],
                edges[t + 1],
                weight,
                step,
                scheduled,
                workers.scratch[t],
            )
        )
        state.operation_counts[1] += OPERATIONS_PER_GRADIENT * (end - begin)
        if min(counts[0] for counts in found) < 0:
            refuse_damage()
        for t, counts in enumerate(found):
            n_refreshed += counts[0]
            touched = refresh_block(
                problem,
                state,
                workers.scratch[t],
                selector,
                counts,
                record,
                touched,
                not recompute_all,
            )

    together = SLAB_ROWS * workers.n_threads
    for first in range(begin, end, together):
        slab(column, first, min(first + together, end), weight)
    if scheduled:
        taken = np.empty(min(n_due, together), dtype=np.int32)
        due = taken, column[1][:0], column[2]
        while n_due:
            count = take_due(state.calendar.head, state.calendar.rows_due, rows, step, taken)
            slab(due, 0, count, 0)
            n_due = int(state.calendar.rows_due[step])
    state.refreshed_part[0] = n_refreshed / max(1, n_worked)
    if recompute_all:
        gradient = np.ascontiguousarray(state.rows["gradient"])
        state.alpha[:] = alpha_of(problem, gradient, workers)
    if recompute_all or touched > limit:
        index(selector, state.alpha)


@njit(cache=True, nogil=True)
def index(selector, alpha):
    """Call `rebuild` from Python."""
    rebuild(selector, alpha)
