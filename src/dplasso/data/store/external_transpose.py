"""The other orientation of a matrix that does not fit into memory, on disk.

The rows lie in files, with columns as the source numbers them. One pass over them renumbers the
columns in place and moves every entry to its *part*, a range of columns: row and value go
straight to the part's place in the files by columns, the column (counted from the part's first)
to a temporary file. Then each part, which fits into memory, is sorted by column and written back.

So an entry costs 2 or 4 bytes of temporary file, and is written three times and read twice in all.
Both passes run in threads; the result does not depend on how many, nor on the memory.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.data.store.array_writer import ArrayWriter, checksum
from dplasso.data.store.kernel import cut_columns, partition, place_part, renumber

# Up to here the temporary file holds 2 bytes per entry, and no part has more than 2^16 columns.
NARROW_COLUMNS = 2**26
_MOST_PARTS = 2**16 - 1
# Aim at parts that sort in the cache, but at no more than this many of them.
_AIM_PARTS = 256
_AIM_ENTRIES = 1 << 20
_CHUNKS_PER_THREAD = 2
# With smaller parts or chunks, system calls would dominate.
_FEWEST_ENTRIES = 1 << 10


# Length and CRC-32 of consecutive pieces.
Sums = list[tuple[int, int]]


@dataclass(frozen=True)
class Parts:
    """Ranges of columns.

    `first_column`, shape (parts + 1,): first column of each, and the number of columns.
    `of_column`, shape (D,): the part of each column.
    `offset_dtype`: type that holds a column counted from its part's first.
    """

    first_column: NDArray[np.int64]
    of_column: NDArray[np.uint16]
    offset_dtype: np.dtype[Any]


@dataclass(frozen=True)
class Orientation:
    """The files of one orientation; `values` is None where all are equal."""

    indptr: NDArray[np.int64]
    indices: ArrayWriter
    values: ArrayWriter | None


def cut_parts(indptr: NDArray[np.int64], value_bytes: int, memory: int, n_threads: int) -> Parts:
    """Cut columns into parts that `n_threads` threads can sort in the given memory together.

    `indptr`, shape (D + 1,): where each column starts.
    `value_bytes`: bytes of a value, 0 where none is stored.
    """
    n_columns, n_entries = indptr.size - 1, int(indptr[-1])
    narrow = n_columns <= NARROW_COLUMNS
    # Offset, row and value as partitioned, row and value as sorted, a column's position.
    entry_bytes = 4 + 2 * (8 + value_bytes) + 8
    fits = memory // (n_threads * entry_bytes)
    most = max(_FEWEST_ENTRIES, min(fits, max(_AIM_ENTRIES, n_entries // _AIM_PARTS)))
    # Positions take memory even in columns without entries.
    width = min(most, 2**16 if narrow else 2**32)
    nothing = np.empty(0, np.uint16)
    while (
        n_parts := cut_columns(indptr, most, width, np.empty(0, np.int64), nothing)
    ) > _MOST_PARTS:
        most, width = 2 * most, min(2 * width, 2**16 if narrow else 2**32)
    first_column = np.empty(n_parts + 1, np.int64)
    of_column = np.empty(n_columns, np.uint16)
    cut_columns(indptr, most, width, first_column, of_column)
    return Parts(first_column, of_column, np.dtype(np.uint16 if narrow else np.uint32))


def renumber_and_partition(
    rows: Orientation,
    internal_column: NDArray[Any],
    parts: Parts,
    column_indptr: NDArray[np.int64],
    columns: Orientation,
    offsets: ArrayWriter,
    *,
    memory: int,
    n_threads: int,
    progress: Callable[[int], None],
) -> Sums:
    """Renumber the columns of the rows in place, and partition the entries.

    `internal_column`, shape (D,): internal number of each column.
    `column_indptr`, shape (D + 1,): where each internal column starts.
    `columns`: written: rows and values, by part.
    `offsets`: written: columns within their part.
    `memory`: bytes for all threads together.
    `progress`: told how many more entries are done.

    Returns checksums of the renumbered columns, in order.
    """
    n_entries = rows.indices.size
    value_dtype = rows.values.dtype if rows.values else np.dtype(np.float32)
    value_bytes = value_dtype.itemsize if rows.values else 0
    column_bytes, row_bytes = rows.indices.dtype.itemsize, columns.indices.dtype.itemsize
    entry_bytes = column_bytes + row_bytes + parts.offset_dtype.itemsize + 2 * value_bytes
    chunk = max(_FEWEST_ENTRIES, memory // (n_threads * entry_bytes))
    # Several chunks for each thread, so that some compute while others read or write.
    chunk = min(chunk, max(_AIM_ENTRIES, -(-n_entries // (_CHUNKS_PER_THREAD * n_threads))))
    n_chunks = -(-n_entries // chunk)
    buffers: SimpleQueue[_Buffers] = SimpleQueue()
    for _ in range(min(n_threads, n_chunks)):
        buffers.put(_Buffers.of(min(chunk, n_entries), rows, columns, parts, value_dtype))
    # Where the next entry of each part goes: what each chunk waits for from the one before.
    places: dict[int, Future[NDArray[np.int64]]] = {k: Future() for k in range(n_chunks + 1)}
    places[0].set_result(column_indptr[parts.first_column[:-1]])

    def one(number: int) -> tuple[int, int]:
        first = number * chunk
        held = buffers.get()
        room = held.first(min(chunk, n_entries - first))
        try:
            try:
                counts = _renumber_chunk(rows, first, room, internal_column, parts)
                target = places[number].result()
                places[number + 1].set_result(target + counts)
                del places[number]
            except BaseException as error:
                places[number + 1].set_exception(error)
                raise
            _write_parts(rows, first, room, counts, parts, columns, offsets, target)
            piece = checksum(room.columns)
            progress(room.columns.size)
            return piece
        finally:
            buffers.put(held)

    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(one, range(n_chunks)))


class _Buffers(NamedTuple):
    """Room for the entries of a chunk: as they stand in the rows, and by parts."""

    columns: NDArray[Any]
    values: NDArray[Any]
    offsets: NDArray[Any]
    rows: NDArray[Any]
    part_values: NDArray[Any]

    @classmethod
    def of(
        cls, size: int, rows: Orientation, columns: Orientation, parts: Parts, value: np.dtype[Any]
    ) -> "_Buffers":
        n_values = size if rows.values else 0
        return cls(
            np.empty(size, rows.indices.dtype),
            np.empty(n_values, value),
            np.empty(size, parts.offset_dtype),
            np.empty(size, columns.indices.dtype),
            np.empty(n_values, value),
        )

    def first(self, size: int) -> "_Buffers":
        return _Buffers(*(array[:size] for array in self))


def _renumber_chunk(
    rows: Orientation, first: int, room: _Buffers, internal_column: NDArray[Any], parts: Parts
) -> NDArray[np.int64]:
    """Read and renumber the entries from `first` on; return how many there are of each part."""
    rows.indices.read_at(first, room.columns)
    if rows.values:
        rows.values.read_at(first, room.values)
    counts = np.zeros(parts.first_column.size - 1, np.int64)
    renumber(room.columns, internal_column, parts.of_column, counts)
    return counts


def _write_parts(
    rows: Orientation,
    first: int,
    room: _Buffers,
    counts: NDArray[np.int64],
    parts: Parts,
    columns: Orientation,
    offsets: ArrayWriter,
    target: NDArray[np.int64],
) -> None:
    """Write a renumbered chunk, and its entries by parts, each from its place in `target` on."""
    rows.indices.write_at(first, room.columns)
    ends = np.cumsum(counts)
    partition(
        room.columns,
        room.values,
        rows.indptr,
        first,
        parts.of_column,
        parts.first_column,
        ends - counts,
        room.offsets,
        room.rows,
        room.part_values,
    )
    for part in np.flatnonzero(counts):
        begin, end, to = int(ends[part] - counts[part]), int(ends[part]), int(target[part])
        columns.indices.write_at(to, room.rows[begin:end])
        # A part of one column is in order already.
        if parts.first_column[part + 1] - parts.first_column[part] > 1:
            offsets.write_at(to, room.offsets[begin:end])
        if columns.values:
            columns.values.write_at(to, room.part_values[begin:end])


def sort_parts(
    columns: Orientation,
    offsets: ArrayWriter,
    parts: Parts,
    *,
    memory: int,
    n_threads: int,
    progress: Callable[[int], None],
) -> tuple[Sums, Sums]:
    """Sort each part by column, in place, in the memory that `cut_parts` was told.

    Returns checksums of the rows and of the values, in order.
    """
    step = max(_FEWEST_ENTRIES, memory // (n_threads * 16))

    def one(part: int) -> tuple[Sums, Sums]:
        first, last = int(parts.first_column[part]), int(parts.first_column[part + 1])
        begin, end = int(columns.indptr[first]), int(columns.indptr[last])
        sums: Sums = []
        value_sums: Sums = []
        if last - first > 1 and end > begin:
            _sort_part(columns, offsets, first, last, sums, value_sums)
        else:
            for at in range(begin, end, step):
                count = min(step, end - at)
                _sum_up(columns.indices, at, count, sums)
                if columns.values:
                    _sum_up(columns.values, at, count, value_sums)
        if end > begin:
            progress(end - begin)
        return sums, value_sums

    with ThreadPoolExecutor(n_threads) as pool:
        found = list(pool.map(one, range(parts.first_column.size - 1)))
    return [pair for sums, _ in found for pair in sums], [
        pair for _, sums in found for pair in sums
    ]


def _sum_up(array: ArrayWriter, at: int, count: int, sums: Sums) -> None:
    part = np.empty(count, array.dtype)
    array.read_at(at, part)
    sums.append(checksum(part))


def _sort_part(
    columns: Orientation,
    offsets: ArrayWriter,
    first: int,
    last: int,
    sums: Sums,
    value_sums: Sums,
) -> None:
    begin, end = int(columns.indptr[first]), int(columns.indptr[last])
    part_offsets = np.empty(end - begin, offsets.dtype)
    part_rows = np.empty(end - begin, columns.indices.dtype)
    offsets.read_at(begin, part_offsets)
    columns.indices.read_at(begin, part_rows)
    values = np.empty(0, np.float32)
    if columns.values:
        values = np.empty(end - begin, columns.values.dtype)
        columns.values.read_at(begin, values)
    position = columns.indptr[first:last] - begin
    sorted_rows, sorted_values = np.empty_like(part_rows), np.empty_like(values)
    place_part(part_offsets, part_rows, values, position, sorted_rows, sorted_values)
    columns.indices.write_at(begin, sorted_rows)
    sums.append(checksum(sorted_rows))
    if columns.values:
        columns.values.write_at(begin, sorted_values)
        value_sums.append(checksum(sorted_values))
