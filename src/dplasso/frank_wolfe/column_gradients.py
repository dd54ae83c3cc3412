"""Alpha from nothing: all column gradients at given record gradients, in one parallel pass."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.frank_wolfe.gradient import add_contributions, contribution
from dplasso.frank_wolfe.problem import Problem
from dplasso.losses.contract import residual_vector
from dplasso.matrix.compressed import clip
from dplasso.matrix.numbering import look_up
from dplasso.runtime.threads import Threads, cut, even_parts

# Threads that sum rows need column gradients of their own: memory allows so many.
_MOST_COPIES = 3
# What more rows than this contribute does not fit a core's cache: column by column, every entry
# misses it, row by row only those of rare columns.
_CACHED_ROWS = 2**17


def starting_alpha(problem: Problem, threads: Threads) -> NDArray[np.int64]:
    """Return the column gradients at zero weights, output after output."""
    residuals = starting_residuals(problem.loss, problem.labels)
    parts = [alpha_of(problem, np.ascontiguousarray(one), threads) for one in residuals.T]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def starting_residuals(loss: Any, labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the record gradients at zero weights, shape (N, K)."""
    residuals = np.empty((labels.size, loss.n_outputs))
    _starting_residuals(loss, labels, residuals)
    return residuals


@njit(cache=True, nogil=True)
def _starting_residuals(loss, labels, residuals):
    nothing = np.zeros(residuals.shape[1])
    for i in range(labels.size):
        residual_vector(loss, nothing, labels[i], residuals[i])


def alpha_of(
    problem: Problem, residuals: NDArray[np.floating], threads: Threads
) -> NDArray[np.int64]:
    """Compute the column gradients for some record gradients."""
    design = problem.design
    equal = not design.rows.values.size
    rows_pay = equal and residuals.size > _CACHED_ROWS and threads.count <= _MOST_COPIES
    if not design.has_columns or rows_pay:
        return _alpha_by_rows(problem, residuals, threads)
    alpha = np.empty(design.n_coordinates, dtype=np.int64)
    contributions = _contributions(problem, residuals, threads)
    # Columns differ in length beyond measure: many parts of about equally many entries.
    parts = 8 * threads.count
    edges = even_parts(design.columns.indptr, parts)
    edges[-1] = alpha.size

    def some(t: int) -> None:
        for part in range(t, parts, threads.count):
            gather_contributions(
                problem, residuals, contributions, edges[part], edges[part + 1], alpha
            )

    threads.run(some)
    return alpha


def _alpha_by_rows(
    problem: Problem, residuals: NDArray[np.floating], threads: Threads
) -> NDArray[np.int64]:
    """Sum the contributions of all rows, each thread into gradients of its own."""
    n_coordinates = problem.design.n_coordinates
    n_parts = min(threads.count, _MOST_COPIES)
    edges = even_parts(problem.design.rows.indptr, n_parts)

    def part(t: int) -> NDArray[np.int64]:
        alpha = np.zeros(n_coordinates if t < n_parts else 0, dtype=np.int64)
        if t < n_parts:
            add_contributions(problem, edges[t], edges[t + 1], residuals, alpha)
        return alpha

    alpha: NDArray[np.int64]
    alpha, *others = threads.run(part)
    for other in others[: n_parts - 1]:
        alpha += other
    return alpha


def _contributions(
    problem: Problem, residuals: NDArray[np.floating], threads: Threads
) -> NDArray[np.int64]:
    """Return what each record adds to its columns where all entries are equal, else nothing."""
    columns = problem.design.columns
    found = np.empty(0 if columns.values.size else residuals.size, dtype=np.int64)
    value = clip(columns.constant, problem.design.bound)
    edges = cut(0, found.size, threads.count)
    threads.run(
        lambda t: _fill_contributions(problem, residuals, value, edges[t], edges[t + 1], found)
    )
    return found


@njit(cache=True, nogil=True)
def _fill_contributions(problem, residuals, value, first, last, found):
    for i in range(first, last):
        found[i] = contribution(residuals[i] * problem.unit, value, problem.share_limit)


@njit(cache=True, nogil=True)
def gather_contributions(problem, residuals, contributions, first, last, alpha):
    """Set the column gradients `first` to `last` (exclusive) to the sums of their contributions.

    `contributions`: what each record adds to its columns, if that does not depend on the entry.
    """
    design = problem.design
    columns = design.columns
    indices, values = columns.indices, columns.values
    unit, limit = problem.unit, problem.share_limit
    for c in range(first, last):
        total = np.int64(0)
        if c == design.n_columns:
            for i in range(residuals.size):
                total += contribution(residuals[i] * unit, design.bound, limit)
        elif contributions.size:
            for p in range(np.uint64(columns.indptr[c]), np.uint64(columns.indptr[c + 1])):
                total += contributions[np.uint64(indices[p])]
        else:
            for p in range(np.uint64(columns.indptr[c]), np.uint64(columns.indptr[c + 1])):
                value = clip(values[p], design.bound)
                total += contribution(residuals[np.uint64(indices[p])] * unit, value, limit)
        place = c if design.columns_internal else look_up(design.numbering.internal, c)
        alpha[place] = total
