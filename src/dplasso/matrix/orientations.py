"""The design of a fit: X by rows and by columns, with its constant column, and the transposition.

A textbook transpose writes each entry at its column's position: a cache miss per entry. Here the
entries are first distributed to blocks of 2^12 to 2^16 columns, then each block is sorted by column
inside the cache. The distributed entries lie where their block stands in the result, so a transpose
needs 2 bytes per entry and a copy of one block per thread. The result does not depend on threads.
"""

from typing import NamedTuple, NoReturn

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dplasso.errors import DataError
from dplasso.matrix.compressed import Compressed, Make, as_scipy
from dplasso.runtime.compilation import kernel
from dplasso.runtime.threads import even_parts, thread_pool

# Column sums of fewer records than this fit 64 bits.
MAX_ROWS = 2**31 - 1

# Bits of a column's number in its block, at most two bytes: few, so that counters stay in the
# nearest cache, but at most 2^9 blocks.
_FEWEST_BITS, _MOST_BITS, _STREAM_BITS = 12, 16, 9
# Bytes of a page of memory.
_PAGE = 4096
# Each block has several counters, so that increments do not wait for each other.
_COUNTERS = 4


class Design(NamedTuple):
    """The records as the kernels read them.

    `intercept`: whether coordinate D is a constant column of value `bound`.
    `bound`: entries are clipped to [-bound, bound].
    """

    rows: Compressed
    columns: Compressed
    n_rows: int
    n_columns: int
    intercept: bool
    bound: float

    @property
    def n_coordinates(self) -> int:
        """D, plus one for an intercept."""
        return self.n_columns + int(self.intercept)


def check_row_count(n_rows: int) -> None:
    """Raise DataError for more records than 64-bit sums can hold."""
    if n_rows > MAX_ROWS:
        raise DataError(f"the data have {n_rows:,} rows; at most {MAX_ROWS:,} are possible")


def refuse_damage() -> NoReturn:
    """Raise DataError for a store whose entries changed after they were checked."""
    raise DataError(
        "the store is damaged: an index lies outside the matrix, or a value is not a number; find "
        "the damage with `dplasso data info --verify`, and convert again"
    )


Column = tuple[NDArray[np.integer], NDArray[np.floating], float]


@register_jitable
def column_span(design, j):
    """Return a coordinate's column, and the begin and end of its part of the arrays.

    Without values every entry is `constant`; without indices every row holds it, and the part is
    one of rows.
    """
    columns = design.columns
    if j == design.n_columns:
        return (columns.indices[:0], columns.values[:0], design.bound), 0, design.n_rows
    whole = columns.indices, columns.values, columns.constant
    return whole, np.int64(columns.indptr[j]), np.int64(columns.indptr[j + 1])


def transpose(
    matrix: Compressed, n_columns: int, n_threads: int = 1, make: Make = np.empty
) -> Compressed:
    """Return a matrix by its `n_columns` columns instead of its rows, in new arrays."""
    n_rows, n_entries = matrix.indptr.size - 1, matrix.indices.size
    indptr = np.zeros(n_columns + 1, dtype=np.int64)
    index = np.int32 if n_rows < 2**31 else np.int64
    rows: NDArray[np.integer] = make(n_entries, index)
    values = make(matrix.values.size, matrix.values.dtype)
    result = Compressed(indptr, rows, values, matrix.constant)
    bits = min(_MOST_BITS, max(_FEWEST_BITS, int(n_columns).bit_length() - _STREAM_BITS))
    n_blocks = -(-n_columns >> bits)
    if n_blocks <= 1:
        turned = as_scipy(matrix, n_columns).tocsc()
        indptr[:], rows[:] = turned.indptr, turned.indices
        if values.size:
            values[:] = turned.data
        return result

    edges = even_parts(matrix.indptr, n_threads)
    counts = np.zeros((n_threads, n_blocks), dtype=np.int64)
    columns = make(n_entries, np.uint16)
    with thread_pool(n_threads) as threads:

        def count(part: int) -> None:
            begin, end = matrix.indptr[edges[part]], matrix.indptr[edges[part + 1]]
            # If threads touched a new page at the same time, each would have it cleared.
            for array in (columns, rows, values):
                array[begin:end][:: _PAGE // array.itemsize] = 0
            count_blocks(matrix.indices, bits, begin, end, counts[part])

        def deal(part: int) -> None:
            span = edges[part], edges[part + 1]
            _deal(matrix, bits, *span, position[part], columns, rows, values)

        def sort(part: int) -> None:
            for number in range(part, n_blocks, n_threads):
                first, own = number << bits, slice(bounds[number], bounds[number + 1])
                pointers = indptr[first : min(first + (1 << bits), n_columns) + 1]
                block = columns[own], rows[own].copy(), values[own].copy()
                _sort_block(*block, pointers, bounds[number], rows, values)

        threads.run(count)
        # Where the entries of each part and block begin. In a block the parts follow each other, so
        # rows ascend.
        flat = counts.T.ravel()
        position = np.ascontiguousarray((np.cumsum(flat) - flat).reshape(counts.T.shape).T)
        bounds = np.append(position[0], n_entries)
        threads.run(deal)
        threads.run(sort)
    indptr[n_columns] = n_entries
    return result


@kernel
def count_blocks(indices, bits, begin, end, counts):
    """Add to `counts` the number of entries of each block of columns."""
    own = np.zeros((_COUNTERS, counts.size), dtype=np.int64)
    for p in range(np.uint64(begin), np.uint64(end)):
        own[p % np.uint64(_COUNTERS), np.uint64(indices[p]) >> np.uint64(bits)] += 1
    for k in range(counts.size):
        for m in range(_COUNTERS):
            counts[k] += own[m, k]


@kernel
def _deal(matrix, bits, first, last, position, columns, rows, values):
    """Distribute the entries of some rows to the blocks, from their positions on."""
    indptr, indices, entries = matrix.indptr, matrix.indices, matrix.values
    shift, inner = np.uint64(bits), (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for i in range(first, last):
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            k = np.uint64(indices[p])
            block = k >> shift
            place = np.uint64(position[block])
            position[block] = np.int64(place) + 1
            columns[place] = k & inner
            rows[place] = i
            if entries.size:
                values[place] = entries[p]


@kernel
def _sort_block(columns, block_rows, block_values, indptr, begin, rows, values):
    """Sort one block by column, keeping the order of rows, and write its column pointers."""
    width = indptr.size - 1
    position = np.zeros(width + 1, dtype=np.int64)
    for p in range(np.uint64(columns.size)):
        position[np.uint64(columns[p]) + np.uint64(1)] += 1
    position[0] = begin
    for k in range(width):
        position[k + 1] += position[k]
        indptr[k] = position[k]
    for p in range(np.uint64(columns.size)):
        k = np.uint64(columns[p])
        place = np.uint64(position[k])
        position[k] = np.int64(place) + 1
        rows[place] = block_rows[p]
        if values.size:
            values[place] = block_values[p]
