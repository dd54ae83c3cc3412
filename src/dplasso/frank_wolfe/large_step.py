"""Steps that touch very many rows, taken by all threads: other loops, the same bits.

Rows are worked through in slabs, each thread on its own part; what a thread finds (gradients to
change, rows to schedule) is carried into calendar and gradients in the order of rows. Where a large
part of all contributions changes, alpha is computed afresh from the record gradients, column by
column: a sum of integers has no order, so the result is that of the replacements one by one.

Everything here decides how a number is computed and may depend on all the data; which numbers are
computed is decided in `dplasso.frank_wolfe.sparse.touch_rows`, row by row.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dplasso.frank_wolfe.column_gradients import alpha_of
from dplasso.frank_wolfe.drift import take_due
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.reports import begin_step, report
from dplasso.frank_wolfe.sparse import enter_block, refresh_block, step_numbers, touch_rows
from dplasso.frank_wolfe.state import Scratch, SparseState, new_scratch
from dplasso.frank_wolfe.work import OPERATIONS_PER_GRADIENT
from dplasso.matrix.design import Column, column_of, refuse_damage
from dplasso.runtime.threads import Threads, cut

# Rows each thread works through at a time.
SLAB_ROWS = 16384
# Steps whose rows have more entries than this between them are large.
LARGE_STEP_ENTRIES = 2**20
# From this part of all contributions on, computing alpha anew is cheaper than replacing them.
RECOMPUTED_PART = 0.3


@dataclass(frozen=True)
class LargeSteps:
    """What large steps are taken with.

    `threads`: all of the run's.
    `scratch`: one for each thread.
    `entries_large`, `part_recomputed`: `LARGE_STEP_ENTRIES` and `RECOMPUTED_PART`, or what a test
    forces.
    """

    threads: Threads
    scratch: list[Scratch]
    entries_large: float = LARGE_STEP_ENTRIES
    part_recomputed: float = RECOMPUTED_PART


def large_steps_of(
    threads: Threads,
    entries_large: float = LARGE_STEP_ENTRIES,
    part_recomputed: float = RECOMPUTED_PART,
) -> LargeSteps:
    """Return the means for large steps with these threads."""
    scratch = [new_scratch(SLAB_ROWS, 1) for _ in range(threads.count)]
    return LargeSteps(threads, scratch, entries_large, part_recomputed)


def large_rows(problem: Problem, large_steps: LargeSteps) -> int:
    """Return how many rows a step may look at before it counts as large."""
    mean = max(1.0, problem.design.rows.indices.size / max(1, problem.labels.size))
    return int(min(large_steps.entries_large / mean, 2.0**62))


def take_large_step(
    problem: Problem,
    state: SparseState,
    selector: Any,
    large_steps: LargeSteps,
    j: int,
    weight: int,
    step: int,
    tolerance: float,
    *,
    record: bool,
) -> None:
    """Add `weight` to K_j and refresh what has to be, with all threads.

    Does what `dplasso.frank_wolfe.sparse.step_rows` does, bit for bit.

    `problem`, `state`, `selector`, `tolerance`, `record`: as in
    `dplasso.frank_wolfe.sparse.run_sparse`.
    `large_steps`: threads, their scratch, and what counts as large.
    `j`: the coordinate chosen.
    `weight`, `step`: what is added to K_j; steps done, this one included.
    """
    public = step_numbers(problem, step, tolerance)
    threads = large_steps.threads
    scheduled = state.calendar.head.size > 0
    rows = state.rows
    column, begin, end = column_of(problem.design, j, threads)
    n_due = int(state.calendar.rows_due[step]) if scheduled else 0
    n_worked = end - begin + n_due
    noting = bool(begin_step(problem, state, n_worked))
    # As many contributions are about to change as the last such step lets expect.
    expected = n_worked * state.refreshed_part[0] / max(1, rows.size)
    recompute_all = bool(expected > large_steps.part_recomputed) and not noting
    notes: Any = state.scratch.changed, state.scratch.before, 0

    def slab(column: Column, begin: int, end: int, weight: int) -> None:
        nonlocal notes
        edges = cut(begin, end, threads.count)
        found = threads.run(
            lambda t: touch_rows(
                problem.loss,
                column,
                public,
                rows,
                edges[t],
                edges[t + 1],
                weight,
                step,
                scheduled,
                large_steps.scratch[t],
            )
        )
        state.operation_counts[1] += OPERATIONS_PER_GRADIENT * (end - begin)
        if min(counts[0] for counts in found) < 0:
            refuse_damage()
        for t, counts in enumerate(found):
            scratch = large_steps.scratch[t]
            if recompute_all:
                enter_block(problem, state, scratch, counts, record)
            else:
                notes = refresh_block(
                    problem, state, scratch, selector, counts, record, noting, notes
                )

    together = SLAB_ROWS * threads.count
    for first in range(begin, end, together):
        slab(column, first, min(first + together, end), weight)
    if scheduled:
        taken = np.empty(min(n_due, together), dtype=np.int32)
        due = taken, column[1][:0], column[2]
        while n_due:
            count = take_due(state.calendar.head, state.calendar.rows_due, rows, step, taken)
            slab(due, 0, count, 0)
            n_due = int(state.calendar.rows_due[step])
    if recompute_all:
        gradient = np.ascontiguousarray(state.rows["gradient"])
        state.alpha[:] = alpha_of(problem, gradient, threads)
    report(problem, state, selector, noting, notes)
