"""Where a coordinate's column stands, in every layout of X."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.threads import Crew, even_parts
from dplasso.matrix.numbering import look_up

Column = tuple[NDArray[np.integer], NDArray[np.floating], float]


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
    edges = even_parts(rows.indptr, workers.n_threads)

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
