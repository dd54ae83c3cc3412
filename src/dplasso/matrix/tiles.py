"""A matrix in tiles that fit a core's cache: one copy of its entries, for both passes of a step.

Chunks of rows and blocks of columns form tiles. The entries of a tile stand column by column, rows
ascending. Each is a number of 32 bits: the column in the block, then the row in the chunk. Block by
block, the entries of every row appear in column order, so a sum over them has the bits of a sum
over the row.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable
from numpy.typing import NDArray

from dplasso.matrix.compressed import FEW, Compressed, Make, as_scipy
from dplasso.matrix.orientations import count_blocks
from dplasso.runtime.compilation import kernel
from dplasso.runtime.threads import Threads, even_parts

# Limits on the rows of a chunk. A chunk has about as many entries as there are columns, because
# each chunk passes through all columns. With few columns, chunks are small enough for the nearest
# cache.
_FEW_COLUMNS, _FEW_ROWS, _MANY_ROWS = 2**17, (2**12, 2**16), (2**16, 2**19)
# The most entries of a chunk; a thread that lays it out may copy as many, those of a tile.
_MOST_ENTRIES = 2**24
# Bits of the row and of the column of an entry in its tile.
ROW_BITS, COLUMN_BITS = 19, 13
# The numbers of the rows of taller chunks do not fit a core's cache (one per row, or one per
# scale). They are prefetched for so many entries at a time.
_NEAR_ROWS, _NEAR_SCALED_ROWS, _AHEAD = 2**17, 2**16, 128
_ROW_SHIFT, _ROW_MASK = np.uint32(ROW_BITS), np.uint32(2**ROW_BITS - 1)


class Tiles(NamedTuple):
    """A matrix in tiles.

    `row_edges`, shape (R + 1,): edges of the chunks of rows.
    `block_bits`: a block has ``2^block_bits`` columns; the last may have fewer.
    `bounds`, shape (R, B + 1): edges of the tiles of each chunk among the entries.
    `places`: column and row of each entry, in one number.
    `values`: the entries; empty if every one is `constant`.
    """

    row_edges: NDArray[np.int64]
    block_bits: int
    bounds: NDArray[np.int64]
    places: NDArray[np.uint32]
    values: NDArray[np.floating]
    constant: float

    @property
    def width(self) -> int:
        """Number of columns of a block."""
        return 1 << self.block_bits

    @property
    def n_blocks(self) -> int:
        """Number of blocks of columns."""
        return int(self.bounds.shape[1] - 1)


def lay_tiles(
    rows: Compressed,
    n_columns: int,
    n_outputs: int,
    threads: Threads,
    make: Make = np.empty,
) -> Tiles:
    """Lay rows, whose columns ascend, in tiles; each thread's even part is whole chunks."""
    n_rows, n_entries = rows.indptr.size - 1, rows.indices.size
    bits = max(0, COLUMN_BITS - (n_outputs - 1).bit_length())
    least, most = _FEW_ROWS if n_columns * n_outputs <= _FEW_COLUMNS else _MANY_ROWS
    even = max(least // n_outputs, n_columns * n_rows // max(1, n_entries))
    shortest = min(most, 2**ROW_BITS) // n_outputs, _MOST_ENTRIES * n_rows // max(1, n_entries)
    height = max(1, min(even, *shortest))
    parts = even_parts(rows.indptr, threads.count)
    row_edges = np.unique(np.concatenate([parts, np.arange(0, n_rows, height), [n_rows]]))
    # Cut chunks with too many entries; a single row is never cut.
    while (long := np.diff(rows.indptr[row_edges]) > _MOST_ENTRIES).any():
        middle = (row_edges[:-1] + row_edges[1:])[long] // 2
        if np.isin(middle, row_edges).all():
            break
        row_edges = np.union1d(row_edges, middle)
    bounds = np.zeros((row_edges.size - 1, -(-n_columns >> bits) + 1), dtype=np.int64)
    places, values = make(n_entries, np.uint32), make(rows.values.size, rows.values.dtype)
    tiles = Tiles(row_edges, bits, bounds, places, values, rows.constant)
    chunks = np.searchsorted(row_edges, parts)
    few = max(n_entries, n_columns) <= FEW

    def part(t: int) -> None:
        for r in range(chunks[t], chunks[t + 1]):
            begin, end = rows.indptr[row_edges[r : r + 2]]
            if few:
                _fill_few(rows, tiles, n_columns, r, begin, end)
            else:
                _fill_many(rows, tiles, r, begin, end)

    threads.run(part)
    return tiles


@register_jitable
def row_of(place):
    """Return the row of an entry within its chunk."""
    return np.uint64(place & _ROW_MASK)


@register_jitable
def column_of(place):
    """Return the column of an entry within its block."""
    return np.uint64(place >> _ROW_SHIFT)


@register_jitable
def tile_entries(tiles, r, b):
    """Return places and values of the entries of a tile; no values if all are equal."""
    span = slice(tiles.bounds[r, b], tiles.bounds[r, b + 1])
    # If there are no values, each slice of them is empty.
    return tiles.places[span], tiles.values[span]


def entries_ahead(tiles: Tiles, *, scaled: bool) -> int | None:
    """Return how many entries to prefetch for; None if a cache holds the rows of a chunk.

    Kernels are compiled for each case, so a first fit of few rows compiles no prefetch.
    """
    near = _NEAR_SCALED_ROWS if scaled else _NEAR_ROWS
    return _AHEAD if np.diff(tiles.row_edges).max(initial=0) > near else None


@register_jitable
def prefetched(places, begin, end, ahead, rows, columns, times, stride):
    """Choose entries of a tile from `begin` on, prefetch for those after them; return the end.

    `rows`, `columns`: the numbers of the chunk's rows and of the block's columns.
    `times`, `stride`: a column needs the numbers ``times * stride`` after those of its rows.
    """
    middle = min(begin + np.uint64(ahead), end)
    _request(places, middle, min(middle + np.uint64(ahead), end), rows, columns, times, stride)
    return middle


@kernel
def _request(places, begin, end, rows, columns, times, stride):
    """Prefetch the numbers of the rows and columns of some entries."""
    if times.size and stride:
        for p in range(begin, end):
            c = column_of(places[p])
            prefetch(rows, row_of(places[p]) + np.uint64(times[c]) * np.uint64(stride))
            prefetch(columns, c)
    else:
        for p in range(begin, end):
            prefetch(rows, row_of(places[p]))
            prefetch(columns, column_of(places[p]))


def _fill_few(rows: Compressed, tiles: Tiles, n_columns: int, r: int, begin: int, end: int) -> None:
    """Lay a chunk: its entries by ascending columns and rows are those of ascending blocks."""
    pointers = rows.indptr[tiles.row_edges[r] : tiles.row_edges[r + 1] + 1] - begin
    chunk = Compressed(pointers, rows.indices[begin:end], rows.values[begin:end], rows.constant)
    columns = as_scipy(chunk, n_columns).tocsc()
    starts, width = columns.indptr, 1 << tiles.block_bits
    tiles.bounds[r] = begin + starts[np.minimum(np.arange(tiles.n_blocks + 1) * width, n_columns)]
    places = (np.arange(n_columns) % width).astype(np.uint32) << _ROW_SHIFT
    tiles.places[begin:end] = np.repeat(places, np.diff(starts)) | columns.indices.astype(np.uint32)
    if rows.values.size:
        tiles.values[begin:end] = columns.data


def _fill_many(rows: Compressed, tiles: Tiles, r: int, begin: int, end: int) -> None:
    """Lay a chunk: distribute its entries to blocks, then sort each tile by column."""
    bounds, columns = tiles.bounds[r], rows.indices[begin:end]
    bounds[0] = begin
    count_blocks(columns, tiles.block_bits, 0, columns.size, bounds[1:])
    np.cumsum(bounds, out=bounds)
    _deal(rows, columns, tiles, r)
    _sort(tiles, r)


@kernel
def _deal(rows, columns, tiles, r):
    """Distribute the entries of a chunk to its tiles, row by row."""
    first, bits = tiles.row_edges[r], np.uint64(tiles.block_bits)
    within = (np.uint64(1) << bits) - np.uint64(1)
    begin = np.uint64(rows.indptr[first])
    position = tiles.bounds[r, :-1].copy()
    for i in range(first, tiles.row_edges[r + 1]):
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            j = np.uint64(columns[p - begin])
            b = j >> bits
            place = np.uint64(position[b])
            position[b] += 1
            tiles.places[place] = (np.uint32(j & within) << _ROW_SHIFT) | np.uint32(i - first)
            if rows.values.size:
                tiles.values[place] = rows.values[p]


@kernel
def _sort(tiles, r):
    """Sort the tiles of a chunk by column, keeping the order of rows."""
    width = np.uint64(1) << np.uint64(tiles.block_bits)
    position = np.zeros(width + np.uint64(1), dtype=np.int64)
    for b in range(tiles.bounds.shape[1] - 1):
        places, values = tile_entries(tiles, r, b)
        dealt, entries = places.copy(), values.copy()
        for k in range(position.size):
            position[k] = 0
        for p in range(dealt.size):
            position[column_of(dealt[p]) + np.uint64(1)] += 1
        for k in range(width):
            position[k + np.uint64(1)] += position[k]
        for p in range(dealt.size):
            k = column_of(dealt[p])
            place = np.uint64(position[k])
            position[k] += 1
            places[place] = dealt[p]
            if entries.size:
                values[place] = entries[p]


def prefetch(array: NDArray[Any], place: int) -> None:
    """Request the cache line of an element of a flat array; does nothing when interpreted."""


@overload(prefetch, strict=False)
def _compiled(*_: Any) -> Any:
    return lambda array, place: _prefetch_one(array, place)


def _prefetch(_context: Any, array: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        line = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        declared = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        insert: Any = cgutils.get_or_insert_function
        function = insert(builder.module, declared, "llvm.prefetch.p0i8")
        # For reading, into the second cache (the first holds few lines), as data.
        builder.call(function, [line, word(0), word(2), word(1)])
        return context.get_dummy_value()

    return types.void(array, place), generate


_prefetch_one: Any = intrinsic(_prefetch)
