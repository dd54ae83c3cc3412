"""The other orientation of a matrix that does not fit into memory, on disk.

The rows lie in files, with columns as the source numbers them. One pass over them renumbers the
columns in place and moves every entry to its *part*, a range of columns: row and value go
straight to the part's place in the files by columns, the column (counted from the part's first)
to a temporary file. Then each part, which fits into memory, is sorted by column and written back.

So an entry costs 2 or 4 bytes of temporary file, and is written three times and read twice in all.
Both passes run in threads; the result does not depend on how many, nor on the memory.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.store.arrays import ArrayFiles, ArrayWriter, checksum
from dplasso.data.store.header import OFFSETS_FILE, index_dtype
from dplasso.data.store.kernel import partition, place_part, renumber

# Up to here the temporary file holds 2 bytes per entry, and no part has more than 2^16 columns.
NARROW_COLUMNS = 2**26
_MOST_PARTS = 2**16 - 1
# Aim at parts that sort in the cache, but at no more than this many of them.
_AIM_PARTS = 256
_AIM_ENTRIES = 1 << 20
_CHUNKS_PER_THREAD = 2
# With smaller parts or chunks, system calls would dominate.
_FEWEST_ENTRIES = 1 << 10

Tell = Callable[[int, int], None]
"""Called with how many entries are done, and how many there are."""


class Transposition:
    """The two passes over the entries of a store; each leaves its checksums with the arrays.

    `files`: with ``rows.indices`` and perhaps ``rows.values``; those by columns are added.
    `row_starts`, shape (N + 1,); `column_starts`, shape (D + 1,), of the columns as renumbered.
    `memory`: bytes for all threads together.
    """

    def __init__(
        self,
        files: ArrayFiles,
        row_starts: NDArray[np.int64],
        column_starts: NDArray[np.int64],
        *,
        memory: int,
        n_threads: int,
    ) -> None:
        self._row_starts, self._starts = row_starts, column_starts
        self._memory, self._n_threads = memory // n_threads, n_threads
        self._rows = [files[name] for name in ("rows.indices", "rows.values") if name in files]
        kinds = [index_dtype(row_starts.size - 1), *(one.dtype for one in self._rows[1:])]
        names = ("columns.indices", "columns.values")
        self._columns = [files.new(*pair) for pair in zip(names, kinds, strict=False)]
        narrow = column_starts.size - 1 <= NARROW_COLUMNS
        offset = np.dtype(np.uint16 if narrow else np.uint32)
        self._offsets = files.file(files.directory / OFFSETS_FILE, offset)
        for writer in (*self._columns, self._offsets):
            writer.reserve(int(column_starts[-1]))
        self._value_dtype = kinds[1] if kinds[1:] else np.dtype(np.float32)
        self._value_bytes = kinds[1].itemsize if kinds[1:] else 0
        self._first_column = self._parts(2 ** (8 * offset.itemsize))

    def _parts(self, most_columns: int) -> NDArray[np.int64]:
        """Cut the columns into parts that the threads can sort in the memory together."""
        # Offset, row and value as partitioned, row and value as sorted, a column's position.
        fits = self._memory // (4 + 2 * (8 + self._value_bytes) + 8)
        aim = max(_AIM_ENTRIES, int(self._starts[-1]) // _AIM_PARTS)
        most = max(_FEWEST_ENTRIES, min(fits, aim))
        # Positions take memory even in columns without entries.
        width = min(most, most_columns)
        while (first := cut_columns(self._starts, most, width)).size - 1 > _MOST_PARTS:
            most, width = 2 * most, min(2 * width, most_columns)
        return first

    def renumber_and_partition(self, internal_column: NDArray[Any], tell: Tell) -> None:
        """Renumber the columns of the rows in place, and move every entry to its part."""
        n_parts = self._first_column.size - 1
        part_of = np.repeat(np.arange(n_parts, dtype=np.uint16), np.diff(self._first_column))
        stored = self._rows[0], self._offsets, self._columns[0]
        entry_bytes = sum(one.dtype.itemsize for one in stored) + 2 * self._value_bytes
        n_entries = self._rows[0].size
        chunk = max(_FEWEST_ENTRIES, self._memory // entry_bytes)
        # Several chunks for each thread, so that some compute while others read or write.
        several = _CHUNKS_PER_THREAD * self._n_threads
        chunk = min(chunk, max(_AIM_ENTRIES, -(-n_entries // several)))
        n_chunks = -(-n_entries // chunk)
        buffers: SimpleQueue[list[NDArray[Any]]] = SimpleQueue()
        for _ in range(min(self._n_threads, n_chunks)):
            held = [np.empty(min(chunk, n_entries), one.dtype) for one in stored]
            values = min(chunk, n_entries) if self._value_bytes else 0
            buffers.put(held + [np.empty(values, self._value_dtype) for _ in range(2)])
        # Where the next entry of each part goes: what each chunk waits for from the one before.
        places: dict[int, Future[NDArray[np.int64]]] = {k: Future() for k in range(n_chunks + 1)}
        places[0].set_result(self._starts[self._first_column[:-1]])

        def one(number: int) -> tuple[int, int]:
            first, held = number * chunk, buffers.get()
            room = [array[: n_entries - first] for array in held]
            columns, offsets, rows, values, part_values = room
            try:
                try:
                    for stored, array in zip(self._rows, (columns, values), strict=False):
                        stored.read_at(first, array)
                    counts = np.zeros(n_parts, np.int64)
                    renumber(columns, internal_column, part_of, counts)
                    target = places[number].result()
                    places[number + 1].set_result(target + counts)
                    del places[number]
                except BaseException as error:
                    places[number + 1].set_exception(error)
                    raise
                self._rows[0].write_at(first, columns)
                ends = np.cumsum(counts)
                starts = ends - counts
                partition(
                    *(columns, values, self._row_starts, first, part_of, self._first_column),
                    *(starts.copy(), offsets, rows, part_values),
                )
                self._write_parts(target, starts, ends, offsets, [rows, part_values])
                return checksum(columns)
            finally:
                buffers.put(held)

        with ThreadPoolExecutor(self._n_threads) as pool:
            for number, piece in enumerate(pool.map(one, range(n_chunks)), 1):
                self._rows[0].pieces.append(piece)
                tell(min(number * chunk, n_entries), n_entries)

    def _write_parts(
        self,
        target: NDArray[np.int64],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        offsets: NDArray[Any],
        entries: Sequence[NDArray[Any]],
    ) -> None:
        """Write the entries of a chunk by parts, each from its place in `target` on."""
        for part in np.flatnonzero(ends > starts):
            begin, end, to = int(starts[part]), int(ends[part]), int(target[part])
            for stored, array in zip(self._columns, entries, strict=False):
                stored.write_at(to, array[begin:end])
            # A part of one column is in order already.
            if self._first_column[part + 1] - self._first_column[part] > 1:
                self._offsets.write_at(to, offsets[begin:end])

    def sort_parts(self, tell: Tell) -> None:
        """Sort each part by column, in place."""
        with ThreadPoolExecutor(self._n_threads) as pool:
            parts = range(self._first_column.size - 1)
            for part, pieces in enumerate(pool.map(self._sort_part, parts), 1):
                for stored, some in zip(self._columns, pieces, strict=True):
                    stored.pieces += some
                tell(int(self._starts[self._first_column[part]]), int(self._starts[-1]))
        self._offsets.close()
        self._offsets.path.unlink()

    def _sort_part(self, part: int) -> list[list[tuple[int, int]]]:
        """Return the checksums of a part, of its rows and perhaps of its values."""
        first, last = (int(column) for column in self._first_column[part : part + 2])
        begin, end = int(self._starts[first]), int(self._starts[last])
        if last - first == 1:
            # In order, and perhaps larger than the memory.
            step = max(_FEWEST_ENTRIES, self._memory // 16)
            ranges = [(at, min(step, end - at)) for at in range(begin, end, step)]
            return [[checksum(_read(stored, *one)) for one in ranges] for stored in self._columns]
        offsets = _read(self._offsets, begin, end - begin)
        entries = [_read(stored, begin, end - begin) for stored in self._columns]
        rows, values = entries if entries[1:] else (entries[0], np.empty(0, np.float32))
        ordered = np.empty_like(rows), np.empty_like(values)
        place_part(offsets, rows, values, self._starts[first:last] - begin, *ordered)
        pieces = []
        for stored, array in zip(self._columns, ordered, strict=False):
            stored.write_at(begin, array)
            pieces.append([checksum(array)] if array.size else [])
        return pieces


def _read(stored: ArrayWriter, begin: int, count: int) -> NDArray[Any]:
    return stored.read_at(begin, np.empty(count, stored.dtype))


def cut_columns(
    starts: NDArray[np.int64], most_entries: int, most_columns: int
) -> NDArray[np.int64]:
    """Return the first column of each part, and after them the number of columns.

    A part has at most so many entries and columns, or one column; where there are more parts than
    can be numbered the cut ends early.
    """
    first, n_columns = [0], starts.size - 1
    while first[-1] < n_columns and len(first) <= _MOST_PARTS + 1:
        begin = first[-1]
        fits = int(np.searchsorted(starts, starts[begin] + most_entries, side="right")) - 1
        first.append(min(max(fits, begin + 1), begin + most_columns))
    return np.array(first)
