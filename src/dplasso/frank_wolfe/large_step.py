"""Steps that touch very many rows, taken by all threads: other loops, the same bits.

Each thread owns blocks of rows and sums the changes of the column gradients in its own array. If a
large part of all contributions changes, alpha is recomputed from the residuals instead. Both give
the bits of one thread, because sums of integers do not depend on the order.
"""

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import (
    LARGE_STEP_ENTRIES,
    RECOMPUTED_PART,
    SHARED_PART,
    alpha_of,
)
from dplasso.frank_wolfe.gradient import share_units
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.reports import take_changes
from dplasso.frank_wolfe.sparse import step_numbers, step_rows, work_through
from dplasso.frank_wolfe.state import BLOCK_ROWS, SparseState, new_scratch
from dplasso.matrix.orientations import Column, refuse_damage
from dplasso.runtime.threads import Threads, cut
from dplasso.selection.selector import NOTHING_REPORTED

_EVERY = np.zeros(0, dtype=np.int64)

Notes = tuple[NDArray[np.int64], NDArray[np.int64], int]


def large_rows(problem: Problem) -> int:
    """Return the number of rows above which a step counts as large."""
    mean = max(1.0, problem.design.rows.indices.size / max(1, problem.design.n_rows))
    return int(min(LARGE_STEP_ENTRIES / mean, 2.0**62))


def take_step(
    problem: Problem,
    state: SparseState,
    threads: Threads,
    changes: list[NDArray[np.int64]],
    column: Column,
    span: tuple[int, int, int],
    step: int,
    tolerance: float,
    record: bool,
    shift: int,
    n_looked_at: int,
) -> Notes:
    """Take a large step as `step_rows` does, with all threads if that is faster.

    `changes`: zero arrays, shape (D,), for the sums of each thread; made when needed.
    `n_looked_at`: rows of the column and rows due. Raises DataError if a store is damaged.
    """
    n_rows = problem.design.n_rows
    # Expect the part of rows that changed in the last large step.
    part = n_looked_at / max(1, n_rows)
    n_entries, expected = problem.design.rows.indices.size, part * float(state.refreshed_part[0])
    afresh = expected > RECOMPUTED_PART
    size = state.alpha.size
    shared = threads.count > 1 and part * n_entries > SHARED_PART * size
    if not (afresh or shared):
        notes: Notes = step_rows(problem, state, column, span, step, tolerance, record, shift)
        return notes if notes[2] >= 0 else refuse_damage()
    begin, end, weight = span
    public = step_numbers(problem, state.calendar, step, tolerance)
    blocks = cut(0, len(state.calendar.head), threads.count)
    rows = np.minimum(blocks << state.calendar.shift, n_rows)
    edges = np.minimum(rows, end)
    if column[0].size:
        edges = begin + np.searchsorted(column[0][begin:end], rows.astype(column[0].dtype))
    while not afresh and len(changes) < threads.count:
        changes.append(np.zeros_like(state.alpha))
    parts = [_part_of(state, state.alpha if afresh else changes[t]) for t in range(threads.count)]

    def some(t: int) -> bool:
        first, last = int(edges[t]), int(edges[t + 1])
        owned = (int(blocks[t]), int(blocks[t + 1]))
        rows = column[0][first:last]
        # Those of a damaged store may not ascend.
        if not (rows[:-1] < rows[1:]).all():
            return False
        *_, count = work_through(
            problem,
            parts[t],
            column,
            (first, last, weight),
            owned,
            public,
            record,
            not afresh,
            NOTHING_REPORTED,
            (parts[t].scratch.changed, parts[t].scratch.before, 0),
        )
        return bool(count >= 0)

    if not all(threads.run(some)):
        refuse_damage()
    for own in parts:
        state.operation_counts[:] += own.operation_counts
        state.step_counts[1:] += own.step_counts[1:]
    sums = [own.alpha for own in parts]
    if afresh:
        residuals = np.ascontiguousarray(state.gradient)
        sums = [alpha_of(problem.design, share_units(problem), residuals, threads)]
    return _take_sums(state.alpha, sums, afresh, shift, threads)


def _part_of(state: SparseState, changes: NDArray[np.int64]) -> SparseState:
    """Return the state of a thread: shared rows, own counts and changes."""
    return state._replace(
        alpha=changes,
        operation_counts=np.zeros_like(state.operation_counts),
        step_counts=np.zeros_like(state.step_counts),
        scratch=new_scratch(BLOCK_ROWS, 0),
    )


def _take_sums(
    alpha: NDArray[np.int64],
    sums: list[NDArray[np.int64]],
    afresh: bool,
    shift: int,
    threads: Threads,
) -> Notes:
    """Add the sums of all threads to alpha, or set it to them; return notes of the changes."""
    edges = cut(0, alpha.size, threads.count)

    def some(t: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first, last = int(edges[t]), int(edges[t + 1])
        size = last - first if shift != NOTHING_REPORTED else 0
        changed, before = np.empty((2, size), dtype=np.int64)
        total = sums[-1][first:last]
        for others in sums[:-1]:
            total += others[first:last]
            others[first:last] = 0
        count = take_changes(alpha[first:last], _EVERY, total, afresh, shift, changed, before)
        total[:] = 0
        return changed[:count] + first, before[:count]

    notes = threads.run(some)
    changed, before = (np.concatenate(parts) for parts in zip(*notes, strict=True))
    return changed, before, changed.size
