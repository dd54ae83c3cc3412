"""Rows scaled to unit length, each by its own entries, with a constant entry.

A record's gradient is its residual times its row, so the length of the row bounds it in L2. The
scale of each row is stored beside the matrix, so no entry is copied.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dplasso.matrix.compressed import FEW, Compressed, Make, as_scipy, compress
from dplasso.matrix.orientations import transpose
from dplasso.matrix.scaling import NO_SCALE_EXPONENTS, SCALES, SLACK
from dplasso.matrix.tiles import Tiles
from dplasso.runtime.compilation import kernel
from dplasso.runtime.threads import Threads, even_parts

# The relative rounding error of a sum of n squares is below n times this number.
_ROUNDING = 2.0**-52
# Rows with smaller entries only count as empty, because their factor would not be finite.
_SMALLEST_ENTRY = 1e-290
# Entries that are copied at once; they fit the cache.
_TOGETHER = 2**16


class UnitRows(NamedTuple):
    """A matrix whose rows are read as unit rows.

    `factor`, shape (N,): scale of each row's entries.
    `constant`: the constant entry of every row, column D; 0 without an intercept.
    `scale_exponents`, shape (D,): how often each column's entries are halved; empty for never.
    """

    rows: Compressed
    tiles: Tiles
    factor: NDArray[np.float64]
    n_columns: int
    constant: float
    scale_exponents: NDArray[np.int8]


def row_factors(
    rows: Compressed,
    constant: float,
    norm_bound: float | None,
    threads: Threads,
    scale_exponents: NDArray[np.int8] = NO_SCALE_EXPONENTS,
) -> NDArray[np.float64]:
    """Compute the scale of each row's entries from the row alone, shape (N,); 0 if empty.

    `constant`: the constant entry, in [0, 1); the others share the rest of the unit length.
    `norm_bound`: None scales every row to unit length. A number R scales longer rows down to R and
    then divides all rows by R.
    """
    factor = np.empty(rows.indptr.size - 1)
    longest = np.sqrt(1.0 - constant * constant) * (1.0 - SLACK)
    edges = even_parts(rows.indptr, threads.count)

    def part(t: int) -> None:
        _row_factors(
            rows, scale_exponents, edges[t], edges[t + 1], longest, norm_bound or 0.0, factor
        )

    threads.run(part)
    return factor


@register_jitable
def _entry(rows, scale_exponents, p):
    """Return the entry of a row at place p, times the scale of its column; exact."""
    value = np.float64(rows.values[p]) if rows.values.size else np.float64(rows.constant)
    return (
        value * SCALES[scale_exponents[np.uint64(rows.indices[p])]]
        if scale_exponents.size
        else value
    )


@kernel
def _row_factors(rows, scale_exponents, first, last, longest, norm_bound, factor):
    values = rows.values
    for i in range(first, last):
        begin, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
        largest = abs(np.float64(rows.constant)) if end > begin else 0.0
        if values.size or scale_exponents.size:
            largest = 0.0
            for p in range(begin, end):
                largest = max(largest, abs(_entry(rows, scale_exponents, p)))
        factor[i] = 0.0
        if largest < _SMALLEST_ENTRY:
            continue
        # Squares of ratios to the largest neither overflow nor vanish.
        total = np.float64(end - begin)
        count = total
        if values.size or scale_exponents.size:
            total = count = 0.0
            for p in range(begin, end):
                part = _entry(rows, scale_exponents, p) / largest
                total += part * part
                count += part != 0.0
        root = np.sqrt(total * (1.0 + count * _ROUNDING))
        if norm_bound == 0.0:
            factor[i] = longest / root / largest
        else:
            # NaN compares with nothing: a row with it counts as empty.
            length = root * largest
            factor[i] = longest / max(norm_bound, length) if length >= 0.0 else 0.0


def parts_within(
    rows: Compressed,
    scale_exponents: NDArray[np.int8],
    factor: NDArray[np.float64],
    constant: float,
    threads: Threads,
) -> NDArray[np.float64]:
    """Return the factors that limit rows times `factor` to unit length, shape (N,).

    1 for rows that are not longer or have no entry; 0 if entries are too small for a length.
    """
    longest = row_factors(rows, constant, None, threads, scale_exponents)
    parts = np.ones(longest.size)
    edges = even_parts(rows.indptr, threads.count)
    arguments = rows, scale_exponents, factor, longest
    threads.run(lambda t: _parts_within(*arguments, edges[t], edges[t + 1], parts))
    return parts


@kernel
def _parts_within(rows, scale_exponents, factor, longest, first, last, parts):
    for i in range(first, last):
        if longest[i] > 0.0:
            parts[i] = min(1.0, longest[i] / factor[i]) if factor[i] > 0.0 else 1.0
            continue
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            if _entry(rows, scale_exponents, p) != 0.0:
                parts[i] = 0.0


@kernel
def row_products(rows, first, last, weights, products):
    """Set `products` to those of some rows with weights, summed in storage order."""
    indptr, indices, values = rows.indptr, rows.indices, rows.values
    constant = np.float64(rows.constant)
    for i in range(first, last):
        total = 0.0
        if values.size:
            for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                total += np.float64(values[p]) * weights[np.uint64(indices[p])]
        else:
            # Rounded as above, because whether all entries are equal depends on other rows.
            for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                total += constant * weights[np.uint64(indices[p])]
        products[i - first] = total


@kernel
def row_product_vectors(rows, first, last, weights, products):
    """Set `products` to those of some rows with K weights per column."""
    indptr, indices, values = rows.indptr, rows.indices, rows.values
    constant = np.float64(rows.constant)
    for i in range(first, last):
        products[i - first] = 0.0
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            value = np.float64(values[p]) if values.size else constant
            j = np.uint64(indices[p])
            for k in range(weights.shape[1]):
                products[i - first, k] += value * weights[j, k]


def by_rows(X: Any, n_threads: int) -> Compressed:
    """Return a matrix in memory by rows; raises DataError as `compress` does."""
    matrix, given_so = compress(X, n_threads)
    return matrix if given_so else transpose(matrix, X.shape[0], n_threads)


def keep_columns(
    rows: Compressed, kept: NDArray[np.integer], n_columns: int, threads: Threads
) -> Compressed:
    """Return rows restricted to some columns, which ascend."""
    if max(rows.indices.size, n_columns) <= FEW:
        some = as_scipy(rows, n_columns)[:, kept]
        indptr, indices = some.indptr.astype(np.int64), some.indices.astype(rows.indices.dtype)
        values = some.data if rows.values.size else rows.values
        return Compressed(indptr, indices, values, rows.constant)
    places = np.full(n_columns, -1, dtype=rows.indices.dtype)
    places[kept] = np.arange(kept.size)
    indptr = np.zeros_like(rows.indptr)
    edges = even_parts(rows.indptr, threads.count)
    threads.run(lambda t: _count_kept(rows, places, edges[t], edges[t + 1], indptr))
    indptr = np.cumsum(indptr)
    indices = np.empty(int(indptr[-1]), dtype=rows.indices.dtype)
    values = np.empty(indices.size if rows.values.size else 0, dtype=rows.values.dtype)
    taken = Compressed(indptr, indices, values, rows.constant)
    threads.run(lambda t: _take_kept(rows, places, edges[t], edges[t + 1], taken))
    return taken


@kernel
def _count_kept(rows, places, first, last, counts):
    """Count the entries of some rows in the columns that are kept."""
    for i in range(first, last):
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            counts[i + 1] += places[np.uint64(rows.indices[p])] >= 0


@kernel
def _take_kept(rows, places, first, last, taken):
    """Copy the entries of some rows in the columns that are kept."""
    for i in range(first, last):
        place = np.uint64(taken.indptr[i])
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            k = places[np.uint64(rows.indices[p])]
            if k >= 0:
                taken.indices[place] = k
                if rows.values.size:
                    taken.values[place] = rows.values[p]
                place += np.uint64(1)


def take_columns(
    columns: Compressed,
    kept: NDArray[np.integer],
    index: Any,
    threads: Threads,
    make: Make = np.empty,
) -> Compressed:
    """Return the matrix of some columns, in this order, with row numbers of a type."""
    pointers = np.zeros(kept.size + 1, dtype=np.int64)
    np.cumsum(columns.indptr[kept + 1] - columns.indptr[kept], out=pointers[1:])
    size = int(pointers[-1])
    indices, values = (
        make(size, index),
        make(size if columns.values.size else 0, columns.values.dtype),
    )
    moved = columns.indptr[kept] - pointers[:-1]
    edges = even_parts(pointers, -(-pointers[-1] // _TOGETHER) + 1).tolist()

    def part(t: int) -> None:
        # Many columns at once, because a loop over short columns is slow.
        for first, last in list(pairwise(edges))[t :: threads.count]:
            begin, end = pointers[first], pointers[last]
            places = np.repeat(moved[first:last], np.diff(pointers[first : last + 1]))
            places += np.arange(begin, end)
            indices[begin:end] = columns.indices[places]
            if values.size:
                values[begin:end] = columns.values[places]

    threads.run(part)
    return Compressed(pointers, indices, values, columns.constant)


def unit_row_margins(
    rows: Compressed,
    weights: NDArray[np.float64],
    factor: NDArray[np.float64],
    offset: Any,
    threads: Threads,
) -> NDArray[np.float64]:
    """Compute the margins of unit rows, shape (N,), or (N, K) for weights of shape (D, K)."""
    offsets = np.atleast_1d(np.asarray(offset, dtype=np.float64))
    margins = np.empty((factor.size, *weights.shape[1:]))
    edges = even_parts(rows.indptr, threads.count)
    products = row_products if weights.ndim == 1 else row_product_vectors

    def part(t: int) -> None:
        own = slice(edges[t], edges[t + 1])
        products(rows, edges[t], edges[t + 1], weights, margins[own])
        # Huge entries may make a margin infinite or NaN.
        with np.errstate(over="ignore", invalid="ignore"):
            margins[own] *= factor[own].reshape(-1, *[1] * (weights.ndim - 1))
            margins[own] += offsets

    threads.run(part)
    return margins
