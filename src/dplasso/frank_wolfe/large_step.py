"""Steps that touch very many rows, taken by all threads: other loops, the same bits.

Each thread owns blocks of rows: their margins, gradients and calendar. It takes the step of
`dplasso.frank_wolfe.sparse` through them and sums the changes of the column gradients into an
array of its own; these are added up once all are done. Where a large part of all contributions
changes, alpha is computed afresh from the record gradients instead, column by column. A sum of
integers has no order, so either way the result is that of one thread.

Everything here decides how a number is computed and may depend on all the data; which numbers are
computed is decided in `dplasso.frank_wolfe.sparse.touch_rows`, row by row.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import alpha_of
from dplasso.frank_wolfe.drift import count_due
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.reports import begin_step, report
from dplasso.frank_wolfe.sparse import step_numbers, step_rows, work_through
from dplasso.frank_wolfe.state import BLOCK_ROWS, SparseState, new_scratch
from dplasso.matrix.design import column_of, refuse_damage
from dplasso.runtime.threads import Threads, cut
from dplasso.selection.contract import NOTHING_REPORTED, granularity

# Steps whose rows have more entries than this between them are large.
LARGE_STEP_ENTRIES = 2**20
# From this part of all contributions on, computing alpha anew is cheaper than replacing them: where
# entries differ, and where all are equal, so that a row has one change.
RECOMPUTED_PART, RECOMPUTED_PART_EQUAL = 0.15, 0.6
# Threads sum changes in arrays of D numbers each: with fewer entries to look at for each
# coordinate, one thread replaces them in place.
SHARED_PART = 0.5


@dataclass(frozen=True)
class LargeSteps:
    """What large steps are taken with; tests force the numbers.

    `part_recomputed`: None for `RECOMPUTED_PART` or, of equal entries, `RECOMPUTED_PART_EQUAL`.
    `part_shared`: None for `SHARED_PART` with several threads; one alone never shares.
    `changes`: arrays of zeros, shape (D,), for the changes that each thread sums; made when needed.
    """

    threads: Threads
    entries_large: float = LARGE_STEP_ENTRIES
    part_recomputed: float | None = None
    part_shared: float | None = None
    changes: list[NDArray[np.int64]] = field(default_factory=list)

    def are_shared(self, entries_a_coordinate: float) -> bool:
        """Return whether a step that looks at so many entries for each coordinate is shared."""
        if self.part_shared is None:
            return self.threads.count > 1 and entries_a_coordinate > SHARED_PART
        return entries_a_coordinate > self.part_shared


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
    record: bool,
    telling_all: bool,
) -> None:
    """Add `weight` to K_j and refresh what has to be, with all threads.

    Does what `dplasso.frank_wolfe.sparse.step_rows` does, bit for bit. `j` is the coordinate
    chosen; `step` counts the steps done, this one included.
    """
    threads = large_steps.threads
    column, begin, end = column_of(problem.design, j, threads)
    n_looked_at = end - begin + int(count_due(state.calendar, step))
    # As many contributions are about to change as the last such step lets expect.
    part = n_looked_at / max(1, problem.labels.size)
    enough = large_steps.part_recomputed
    if enough is None:
        equal = not problem.design.rows.values.size
        enough = RECOMPUTED_PART_EQUAL if equal else RECOMPUTED_PART
    recompute = part * float(state.refreshed_part[0]) > enough
    n_entries = problem.design.rows.indices.size
    shared = large_steps.are_shared(part * n_entries / state.alpha.size)
    public = step_numbers(problem, state.calendar, step, tolerance)
    if not (recompute or shared):
        span = begin, end, weight
        if not step_rows(
            problem, state, selector, column, span, step, tolerance, record, telling_all
        ):
            refuse_damage()
        return
    noting = bool(begin_step(problem, state, telling_all, n_looked_at))
    blocks = cut(0, len(state.calendar.head), threads.count)
    rows = np.minimum(blocks << state.calendar.shift, problem.labels.size)
    edges = np.minimum(rows, end)
    if column[0].size:
        edges = begin + np.searchsorted(column[0][begin:end], rows.astype(column[0].dtype))
    parts = _parts(state, large_steps, summing=not recompute)
    gradient = np.empty(problem.labels.size if recompute else 0)

    def some(t: int) -> bool:
        own, span = parts[t], (int(edges[t]), int(edges[t + 1]), weight)
        owned = (int(blocks[t]), int(blocks[t + 1]))
        if not _ascends(column[0], span[0], span[1]):
            return False
        nothing = own.scratch.changed, own.scratch.before, 0
        found = work_through(
            problem, own, selector, column, span, owned, public, record, not recompute, nothing
        )
        if recompute:
            gradient[rows[t] : rows[t + 1]] = state.gradient[rows[t] : rows[t + 1]]
        return bool(found[2] >= 0)

    if not all(threads.run(some)):
        refuse_damage()
    for own in parts:
        state.operation_counts[:] += own.operation_counts
        state.step_counts[1:] += own.step_counts[1:]
    sums = [alpha_of(problem, gradient, threads)] if recompute else [own.alpha for own in parts]
    shift = int(granularity(selector)) if noting else NOTHING_REPORTED
    notes = _take_sums(state.alpha, sums, recompute, shift, threads)
    report(problem, state, selector, telling_all, noting, notes)


def _parts(state: SparseState, large_steps: LargeSteps, *, summing: bool) -> list[SparseState]:
    """Return what each thread works with: the rows of all, and counts and changes of its own."""
    n_parts, changes = large_steps.threads.count, large_steps.changes
    while summing and len(changes) < n_parts:
        changes.append(np.zeros_like(state.alpha))
    return [
        state._replace(
            alpha=changes[t] if summing else state.alpha,
            operation_counts=np.zeros_like(state.operation_counts),
            step_counts=np.zeros_like(state.step_counts),
            scratch=new_scratch(BLOCK_ROWS, 0),
        )
        for t in range(n_parts)
    ]


def _take_sums(
    alpha: NDArray[np.int64],
    sums: list[NDArray[np.int64]],
    afresh: bool,
    shift: int,
    threads: Threads,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Add what the threads have summed to alpha, and set it to zero, or take `sums` afresh.

    Returns: notes of the gradients of which ``alpha >> shift`` changes.
    """
    if afresh and shift == NOTHING_REPORTED:
        alpha[:] = sums[0]
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0
    edges = cut(0, alpha.size, threads.count)

    def some(t: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first, last = int(edges[t]), int(edges[t + 1])
        size = last - first if shift != NOTHING_REPORTED else 0
        changed, before = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        for one in sums[:-1]:
            _add_up(sums[-1], one, first, last)
        count = _take(alpha, sums[-1], first, last, afresh, shift, changed, before)
        return changed[:count], before[:count]

    found = threads.run(some)
    changed = np.concatenate([one[0] for one in found])
    return changed, np.concatenate([one[1] for one in found]), changed.size


@njit(cache=True, nogil=True)
def _ascends(indices, first, last):
    """Return whether the rows of a column ascend, as those of a store on disk should."""
    ascending = True
    for p in range(first + 1, min(last, indices.size)):
        ascending &= indices[p - 1] < indices[p]
    return ascending


@njit(cache=True, nogil=True)
def _add_up(total, more, first, last):
    """Add a part of one array to another's, and set it to zero."""
    for k in range(first, last):
        total[k] += more[k]
        more[k] = 0


@njit(cache=True, nogil=True)
def _take(alpha, sums, first, last, afresh, shift, changed, before):
    """Change a part of alpha, note what the selector may have to hear of; return how many notes."""
    count = 0
    for k in range(first, last):
        was = alpha[k]
        now = sums[k] if afresh else was + sums[k]
        alpha[k] = now
        sums[k] = 0
        if shift != NOTHING_REPORTED and (was ^ now) >> shift:
            changed[count] = k
            before[count] = was
            count += 1
    return count
