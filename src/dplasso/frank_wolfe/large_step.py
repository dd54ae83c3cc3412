"""Steps that touch very many rows, taken by all threads: other loops, the same bits.

Rows are worked through in slabs, each thread on its own part; what a thread finds (gradients to
change, rows to schedule) is carried into calendar and gradients in the order of rows. Where a large
part of all shares changes, alpha is computed anew from the record gradients, column by column: a
sum of integers has no order, so the result is that of the replacements one by one.

Everything here decides how a number is computed and may depend on all the data; which numbers are
computed is decided in `dplasso.frank_wolfe.sparse.touch_rows`, row by row.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.frank_wolfe.drift import take_due
from dplasso.frank_wolfe.gradient import add_shares, clip, margin_scale, share
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.sparse import (
    TOUCHES_PER_COORDINATE,
    Scratch,
    SparseState,
    new_scratch,
    refresh_block,
    touch_rows,
)
from dplasso.frank_wolfe.work import OPERATIONS_PER_GRADIENT
from dplasso.selection.contract import rebuild
from dplasso.selection.numbering import look_up

# Rows each thread works through at a time.
SLAB_ROWS = 16384
# Steps whose rows have more entries than this between them are taken here.
LARGE_STEP_ENTRIES = 2**20
# Threads that sum rows need column gradients of their own: memory allows so many.
_MOST_COPIES = 3
# From this part of all shares on, computing alpha anew is cheaper than replacing them.
RECOMPUTED_PART = 0.3

Column = tuple[NDArray[np.integer], NDArray[np.floating], float]


@dataclass(frozen=True)
class Crew:
    """The threads of a run and what they work with.

    Attributes
    ----------
    n_threads : int
        Threads.
    run : callable
        ``run(work)`` calls ``work(t)`` for every thread t and returns the results in order.
    scratch : list of Scratch
        One for each thread.
    entries_large, part_recomputed : float
        `LARGE_STEP_ENTRIES` and `RECOMPUTED_PART`, or what a test forces.
    """

    n_threads: int
    run: Callable[[Callable[[int], Any]], list[Any]]
    scratch: list[Scratch]
    entries_large: float
    part_recomputed: float


@contextmanager
def crew(
    n_threads: int,
    *,
    entries_large: float = LARGE_STEP_ENTRIES,
    part_recomputed: float = RECOMPUTED_PART,
) -> Iterator[Crew]:
    """Keep threads for a run."""
    scratch = [new_scratch(SLAB_ROWS, 1) for _ in range(n_threads)]
    if n_threads == 1:
        yield Crew(1, lambda work: [work(0)], scratch, entries_large, part_recomputed)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield Crew(
            n_threads,
            lambda work: list(pool.map(work, range(n_threads))),
            scratch,
            entries_large,
            part_recomputed,
        )


def large_rows(problem: Problem, workers: Crew) -> int:
    """Return how many rows a step may look at before it counts as large."""
    mean = max(1.0, problem.rows.indices.size / max(1, problem.labels.size))
    return int(min(workers.entries_large / mean, 2.0**62))


def cut(first: int, last: int, n_parts: int) -> NDArray[np.int64]:
    """Return the edges of `n_parts` even parts of a range."""
    return np.linspace(first, last, n_parts + 1).astype(np.int64)


def starting_alpha(problem: Problem, workers: Crew) -> NDArray[np.int64]:
    """Compute the column gradients at zero weights, in one pass over the entries.

    Parameters
    ----------
    problem : Problem
        The data.
    workers : Crew
        Threads to share the pass; the bits do not depend on their number.

    Returns
    -------
    ndarray of int64, shape (D,) or (D + 1,)
        In fixed point.
    """
    return _alpha_of(problem, 0.5 - problem.labels, workers)


def _alpha_of(problem: Problem, gradient: NDArray[np.floating], workers: Crew) -> NDArray[np.int64]:
    """Compute the column gradients for some record gradients."""
    if not problem.has_columns:
        return _alpha_by_rows(problem, gradient, workers)
    alpha = np.empty(problem.n_columns + int(problem.intercept), dtype=np.int64)
    # Columns differ in length beyond measure: many parts of about equally many entries.
    parts = 8 * workers.n_threads
    edges = np.searchsorted(problem.columns.indptr, cut(0, int(problem.columns.indptr[-1]), parts))
    edges[0], edges[-1] = 0, alpha.size

    def some(t: int) -> None:
        for part in range(t, parts, workers.n_threads):
            gather_shares(problem, gradient, edges[part], edges[part + 1], alpha)

    workers.run(some)
    return alpha


def _alpha_by_rows(
    problem: Problem, gradient: NDArray[np.floating], workers: Crew
) -> NDArray[np.int64]:
    """Sum the shares of all rows, each thread into gradients of its own."""
    n_coordinates = problem.n_columns + int(problem.intercept)
    n_parts = min(workers.n_threads, _MOST_COPIES)
    edges = np.searchsorted(problem.rows.indptr, cut(0, int(problem.rows.indptr[-1]), n_parts))
    edges[0], edges[-1] = 0, problem.labels.size

    def part(t: int) -> NDArray[np.int64]:
        alpha = np.zeros(n_coordinates if t < n_parts else 0, dtype=np.int64)
        if t < n_parts:
            add_shares(problem, edges[t], edges[t + 1], gradient, alpha)
        return alpha

    alpha: NDArray[np.int64]
    alpha, *others = workers.run(part)
    for other in others[: n_parts - 1]:
        alpha += other
    return alpha


@njit(cache=True, nogil=True)
def gather_shares(problem, gradient, first, last, alpha):
    """Set the column gradients `first` to `last` (exclusive) to the sums of their shares."""
    columns = problem.columns
    values = columns.values
    constant = clip(columns.constant, problem.bound)
    unit = problem.unit
    for c in range(first, last):
        total = np.int64(0)
        if c == problem.n_columns:
            for i in range(gradient.size):
                total += share(gradient[i] * unit, problem.bound)
        else:
            value = constant
            for p in range(np.uint64(columns.indptr[c]), np.uint64(columns.indptr[c + 1])):
                if values.size:
                    value = clip(values[p], problem.bound)
                total += share(gradient[np.uint64(columns.indices[p])] * unit, value)
        place = c if problem.columns_internal else look_up(problem.numbering.internal, c)
        alpha[place] = total


@njit(cache=True, nogil=True)
def _count_equal(indices, first, last, k):
    """Return how often k stands among some indices."""
    count = 0
    for p in range(np.uint64(first), np.uint64(last)):
        count += indices[p] == k
    return count


@njit(cache=True, nogil=True)
def _find_rows(rows, first, last, k, found, values):
    """Write the rows among `first` to `last` that hold column k, and its entries there."""
    count = 0
    for i in range(first, last):
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            if rows.indices[p] == k:
                found[count] = i
                if values.size:
                    values[count] = rows.values[p]
                count += 1
                break


def scan_column(problem: Problem, j: int, workers: Crew) -> tuple[Column, int]:
    """Find a column by reading all rows; what a run of few steps does instead of a transpose.

    Parameters
    ----------
    problem : Problem
        The data.
    j : int
        Original number of the column.
    workers : Crew
        Threads to share the rows.

    Returns
    -------
    column : tuple of (indices, values, constant)
        As `dplasso.frank_wolfe.sparse.touch_rows` takes it.
    length : int
        Number of entries.
    """
    rows = problem.rows
    k = int(look_up(problem.numbering.internal, j))
    edges = np.searchsorted(rows.indptr, cut(0, int(rows.indptr[-1]), workers.n_threads))
    edges[0], edges[-1] = 0, problem.labels.size

    def count(t: int) -> int:
        return int(_count_equal(rows.indices, rows.indptr[edges[t]], rows.indptr[edges[t + 1]], k))

    counts = workers.run(count)
    ends = np.cumsum([0, *counts])
    found = np.empty(int(ends[-1]), dtype=problem.columns.indices.dtype)
    values = np.empty(found.size if rows.values.size else 0, dtype=rows.values.dtype)

    def fill(t: int) -> None:
        part = slice(ends[t], ends[t + 1])
        if counts[t]:
            _find_rows(rows, edges[t], edges[t + 1], k, found[part], values[part])

    workers.run(fill)
    return (found, values, rows.constant), found.size


def column_of(problem: Problem, j: int, workers: Crew) -> tuple[Column, int, int]:
    """Return a coordinate's column and where it begins and ends in it."""
    columns = problem.columns
    if j == problem.n_columns:
        return (
            (columns.indices[:0], columns.values[:0], problem.bound),
            0,
            problem.labels.size,
        )
    if not problem.has_columns:
        column, length = scan_column(problem, j, workers)
        return column, 0, length
    c = int(look_up(problem.numbering.internal, j)) if problem.columns_internal else j
    whole = columns.indices, columns.values, columns.constant
    return whole, int(columns.indptr[c]), int(columns.indptr[c + 1])


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
    anew = bool(expected > workers.part_recomputed) and expected * problem.rows.indices.size > limit
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
        state.effort[1] += OPERATIONS_PER_GRADIENT * (end - begin)
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
                not anew,
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
    if anew:
        gradient = np.ascontiguousarray(state.rows["gradient"])
        state.alpha[:] = _alpha_of(problem, gradient, workers)
    if anew or touched > limit:
        index(selector, state.alpha)


@njit(cache=True, nogil=True)
def index(selector, alpha):
    """Call `rebuild` from Python."""
    rebuild(selector, alpha)
