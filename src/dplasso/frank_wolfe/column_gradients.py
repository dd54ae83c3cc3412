"""Alpha from nothing: all column gradients at given record gradients, in one parallel pass."""

from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.data.store.kernel import first_outside
from dplasso.frank_wolfe.gradient import add_shares, clip, share
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.threads import Crew, even_parts, refuse_damage
from dplasso.matrix.numbering import look_up

# Entries checked and then used while they are in the cache.
_CHECKED_ENTRIES = 2**17
# Threads that sum rows need column gradients of their own: memory allows so many.
_MOST_COPIES = 3


def _blocks(problem: Problem, first: int, last: int) -> list[int]:
    """Cut rows so that a block that has been checked is still in the cache when it is used."""
    if problem.checked:
        return [first, last]
    indptr = problem.rows.indptr
    ends = np.arange(int(indptr[first]), int(indptr[last]), _CHECKED_ENTRIES)
    edges = np.searchsorted(indptr, ends[1:].astype(indptr.dtype))
    return [first, *edges.clip(first, last).tolist(), last]


def _check_rows(problem: Problem, first: int, last: int) -> None:
    """Refuse rows with a column number outside the matrix or a value that is no number."""
    begin, end = int(problem.rows.indptr[first]), int(problem.rows.indptr[last])
    if first_outside(problem.rows.indices[begin:end], problem.n_columns) >= 0:
        refuse_damage()
    if problem.rows.values.size and not np.isfinite(problem.rows.values[begin:end]).all():
        refuse_damage()


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
    return alpha_of(problem, 0.5 - problem.labels, workers)


def alpha_of(problem: Problem, gradient: NDArray[np.floating], workers: Crew) -> NDArray[np.int64]:
    """Compute the column gradients for some record gradients."""
    if not (problem.has_columns and problem.checked):
        return _alpha_by_rows(problem, gradient, workers)
    alpha = np.empty(problem.n_columns + int(problem.intercept), dtype=np.int64)
    # Columns differ in length beyond measure: many parts of about equally many entries.
    parts = 8 * workers.n_threads
    edges = even_parts(problem.columns.indptr, parts)
    edges[-1] = alpha.size

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
    edges = even_parts(problem.rows.indptr, n_parts)

    def part(t: int) -> NDArray[np.int64]:
        alpha = np.zeros(n_coordinates if t < n_parts else 0, dtype=np.int64)
        if t < n_parts:
            for first, last in pairwise(_blocks(problem, edges[t], edges[t + 1])):
                if not problem.checked:
                    _check_rows(problem, first, last)
                add_shares(problem, first, last, gradient, alpha)
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
