"""The design: X by rows and by columns, numbered and bounded, with its constant column.

One function says where a coordinate's column stands (`column_span`, `column_of`); coordinate D is
the constant column that an intercept is.
"""

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from dplasso.errors import DataError
from dplasso.matrix.compressed import Compressed, Make, compress
from dplasso.matrix.transpose import transpose
from dplasso.runtime.threads import Threads, even_parts

# Column sums of fewer records than this fit 64 bits.
MAX_ROWS = 2**31 - 1

# Costs in nanoseconds, on one core of a common server; only their ratios matter: of reading an
# index, transposing an entry, and setting up a column of the transpose.
_SCAN, _TRANSPOSE, _COLUMN = 0.6, 12.0, 6.0


class Design(NamedTuple):
    """The records as the kernels read them.

    `rows`, `columns`: X by rows and by columns.
    `has_columns`: without, `columns` stands for nothing and columns are found by reading all rows.
    `intercept`: whether coordinate D is a constant column of value `bound`.
    `bound`: entries are clipped to [-bound, bound].
    """

    rows: Compressed
    columns: Compressed
    has_columns: bool
    n_rows: int
    n_columns: int
    intercept: bool
    bound: float

    @property
    def n_coordinates(self) -> int:
        """D, plus one for an intercept."""
        return self.n_columns + int(self.intercept)


def lay_out(
    X: Any,
    *,
    bound: float,
    intercept: bool,
    by_columns: bool,
    n_steps: int,
    n_threads: int = 1,
    given_rows: Compressed | None = None,
    make: Make = np.empty,
) -> Design:
    """Lay out a matrix, copying of it no more than pays; it is never written to.

    `by_columns`, `n_steps`: whether rows are looked up by column, and how often.
    `given_rows`: the rows of X, where they are known and checked.
    `make`: makes the arrays of entries.

    Raises DataError as `compress` does, and for more than `MAX_ROWS` rows.
    """
    check_row_count(X.shape[0])
    matrix, given_by_rows = (given_rows, True) if given_rows else compress(X, n_threads)
    (n_rows, n_columns), n_entries = X.shape, matrix.indices.size
    rows = matrix if given_by_rows else transpose(matrix, n_rows, n_threads, make)
    columns, has_columns = matrix, not given_by_rows
    if by_columns and given_by_rows and worth_transposing(n_entries, n_columns, n_steps):
        columns, has_columns = transpose(matrix, n_columns, n_threads, make), True
    return Design(rows, columns, has_columns, n_rows, n_columns, intercept, float(bound))


def check_row_count(n_rows: int) -> None:
    """Refuse more records than 64-bit sums have room for."""
    if n_rows > MAX_ROWS:
        raise DataError(f"the data have {n_rows:,} rows; at most {MAX_ROWS:,} are possible")


def refuse_damage() -> NoReturn:
    """Refuse a store whose entries, checked before the fit, are no longer what they were."""
    raise DataError(
        "the store is damaged: an index lies outside the matrix, or a value is not a number; find "
        "the damage with `dplasso data info --verify`, and convert again"
    )


def worth_transposing(n_entries: int, n_columns: int, n_steps: int) -> bool:
    """Return whether having X by columns saves more than it costs.

    Without it every step reads all column indices to find the chosen column.
    """
    return n_steps * n_entries * _SCAN > n_entries * _TRANSPOSE + n_columns * _COLUMN


Column = tuple[NDArray[np.integer], NDArray[np.floating], float]


@register_jitable
def column_span(design, j):
    """Return a coordinate's column, and the begin and end of its part of the arrays.

    The column is rows and entries: without values every entry is `constant`, without indices every
    row holds it, and the part is one of rows. Other columns need X by columns.
    """
    columns = design.columns
    if j == design.n_columns:
        return (columns.indices[:0], columns.values[:0], design.bound), 0, design.n_rows
    whole = columns.indices, columns.values, columns.constant
    return whole, np.int64(columns.indptr[j]), np.int64(columns.indptr[j + 1])


def column_of(design: Design, j: int, threads: Threads) -> tuple[Column, int, int]:
    """Return what `column_span` does, in every layout of X."""
    if design.has_columns or j == design.n_columns:
        column, begin, end = column_span(design, j)
        return column, begin, end
    column, length = scan_column(design, j, threads)
    return column, 0, length


def scan_column(design: Design, j: int, threads: Threads) -> tuple[Column, int]:
    """Find a column and its length by reading all rows: for few steps, cheaper than a transpose."""
    rows = design.rows
    edges = even_parts(rows.indptr, threads.count)

    def count(t: int) -> int:
        return int(_count_equal(rows.indices, rows.indptr[edges[t]], rows.indptr[edges[t + 1]], j))

    counts = threads.run(count)
    ends = np.cumsum([0, *counts])
    found = np.empty(int(ends[-1]), dtype=design.columns.indices.dtype)
    values = np.empty(found.size if rows.values.size else 0, dtype=rows.values.dtype)

    def fill(t: int) -> None:
        part = slice(ends[t], ends[t + 1])
        if counts[t]:
            _find_rows(rows, edges[t], edges[t + 1], j, found[part], values[part])

    threads.run(fill)
    return (found, values, rows.constant), found.size


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
