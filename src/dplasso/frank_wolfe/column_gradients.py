"""Compute all column gradients from the residuals in one parallel pass."""

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.gradient import contribution, contributions, replace_contributions
from dplasso.matrix.compressed import Compressed, clip
from dplasso.matrix.orientations import Design, refuse_damage
from dplasso.runtime.compilation import kernel
from dplasso.runtime.threads import Threads, cut, even_parts
from dplasso.selection.selector import NOTHING_REPORTED

# At most so many threads sum rows, because each needs its own array of column gradients.
_MOST_COPIES = 3
# The contributions of more rows do not fit a core's cache. Column by column, every entry misses it;
# row by row, only the entries of rare columns do.
_CACHED_ROWS = 2**17
# Threads divide steps that touch more entries than this, and than this part of all gradients.
LARGE_STEP_ENTRIES, SHARED_PART = 2**20, 0.5
# If a larger part of all contributions changes, recomputing alpha is faster than replacing them: an
# entry costs 0.8 to 1.9 ns when recomputed, and 1.4 to 7 ns when replaced.
RECOMPUTED_PART = 0.3
# Columns whose indices stay in a core's cache; the length of short columns; the entries of short
# columns that one loop sums.
_BLOCK, _SHORT, _TOGETHER = 4096, 64, 1024
# Entries of a row whose changes are computed together.
ENTRIES = 256

Units = tuple[float, float, float]


def gradients_of(
    design: Design, units: Units, residuals: NDArray[np.float64], threads: Threads
) -> NDArray[np.int64]:
    """Return the column gradients, output after output, for residuals of shape (K, N)."""
    outputs = [alpha_of(design, units, residual, threads) for residual in residuals]
    return outputs[0] if len(outputs) == 1 else np.concatenate(outputs)


def alpha_of(
    design: Design, units: Units, residuals: NDArray[np.float64], threads: Threads
) -> NDArray[np.int64]:
    """Return the column gradients of one output, for residuals of shape (N,)."""
    rows_pay = not design.rows.values.size and residuals.size > _CACHED_ROWS
    if rows_pay and threads.count <= _MOST_COPIES:
        return _alpha_by_rows(design, units, residuals, threads)
    alpha = np.empty(design.n_coordinates, dtype=np.int64)
    return sums_of_columns(design.columns, units, residuals, threads, alpha)


def sums_of_columns(
    columns: Compressed,
    units: Units,
    residuals: NDArray[np.float64],
    threads: Threads,
    alpha: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Set `alpha` to the gradients of some columns, then of a constant column if it is longer."""
    bound, unit, limit = units
    # The contribution of each record, if all entries are equal.
    shared = np.empty(0 if columns.values.size else residuals.size, dtype=np.int64)
    rows = cut(0, shared.size, threads.count)
    value = clip(columns.constant, bound)

    def share(t: int) -> None:
        own = slice(rows[t], rows[t + 1])
        shared[own] = contributions(residuals[own] * unit, value, limit)

    if shared.size:
        threads.run(share)
    # Columns differ greatly in length, so the parts have about equally many entries.
    parts = 8 * threads.count
    edges = even_parts(columns.indptr, parts)
    edges[-1] = alpha.size

    def some(t: int) -> bool:
        spans = [(edges[part], edges[part + 1]) for part in range(t, parts, threads.count)]
        return all(_gather(columns, units, residuals, shared, *span, alpha) for span in spans)

    return alpha if all(threads.run(some)) else refuse_damage()


def _alpha_by_rows(
    design: Design, units: Units, residuals: NDArray[np.float64], threads: Threads
) -> NDArray[np.int64]:
    """Sum the contributions of all rows; each thread has its own array of gradients."""
    edges = even_parts(design.rows.indptr, threads.count)
    rows = np.arange(residuals.size, dtype=np.int32)
    nothing, no_notes = np.zeros(residuals.size), np.empty(0, dtype=np.int64)

    def part(t: int) -> NDArray[np.int64]:
        alpha, own = np.zeros(design.n_coordinates, dtype=np.int64), slice(edges[t], edges[t + 1])
        *_, count = replace_contributions(
            design.rows,
            design.n_columns,
            design.intercept,
            units,
            alpha,
            rows[own],
            nothing[own],
            residuals[own],
            NOTHING_REPORTED,
            np.empty(ENTRIES, dtype=np.int64),
            (no_notes, no_notes, 0),
        )
        return alpha if count == 0 else refuse_damage()

    alpha: NDArray[np.int64]
    alpha, *others = threads.run(part)
    for other in others:
        alpha += other
    return alpha


@kernel
def _entry_share(indices, values, bound, unit, limit, residuals, shared, p):
    """Return what the entry at place p adds to its column gradient; `shared` holds it by record."""
    i = np.uint64(indices[p])
    if shared.size:
        return shared[i]
    return contribution(residuals[i] * unit, clip(values[p], bound), limit)


@kernel
def _gather(columns, units, residuals, shared, first, last, alpha):
    """Set the gradients of columns `first` to `last`; return False for a damaged row number.

    The entries of many short columns are added up in one loop. The sum of a column is the
    difference between two running totals.
    """
    indptr, indices, values = columns.indptr, columns.indices, columns.values
    bound, unit, limit = units
    n_columns, size, inside = indptr.size - 1, residuals.size, True
    sums = np.zeros(_TOGETHER + 1, dtype=np.int64)
    for begin in range(first, min(last, n_columns), _BLOCK):
        end = min(begin + _BLOCK, last, n_columns)
        # The store may have changed on the disk since it was checked.
        for p in range(np.uint64(indptr[begin]), np.uint64(indptr[end])):
            inside &= np.uint64(indices[p]) < np.uint64(size)
        if not inside:
            return False
        c = begin
        while c < end:
            until, start = c, np.uint64(indptr[c])
            most = indptr[c] + _TOGETHER
            while until < end and indptr[until + 1] <= min(most, indptr[until] + _SHORT):
                until += 1
            # A long column has a loop of its own.
            until = max(until, c + 1)
            stop, total = np.uint64(indptr[until]), np.int64(0)
            if until == c + 1:
                for p in range(start, stop):
                    total += _entry_share(indices, values, bound, unit, limit, residuals, shared, p)
                alpha[c] = total
                c = until
                continue
            for p in range(start, stop):
                total += _entry_share(indices, values, bound, unit, limit, residuals, shared, p)
                sums[p - start + np.uint64(1)] = total
            before = np.int64(0)
            for k in range(c, until):
                here = sums[np.uint64(indptr[k + 1]) - start]
                alpha[k] = here - before
                before = here
            c = until
    if last > n_columns:
        total = np.int64(0)
        for i in range(residuals.size):
            total += contribution(residuals[i] * unit, bound, limit)
        alpha[n_columns] = total
    return True
