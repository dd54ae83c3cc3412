"""The other orientation of a matrix that does not fit into memory, on disk.

The rows lie in files, with columns as the source numbers them. One pass over them renumbers the
columns in place and moves every entry to its *part*, a range of columns: row and value go
straight to the part's place in the files by columns, the column (counted from the part's first)
to a temporary file. Then each part, which fits into memory, is sorted by column and written back.

So an entry costs 2 or 4 bytes of temporary file, and is written three times and read twice in all.
Both passes run in threads; the result does not depend on how many, nor on the memory.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

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
    """Cut columns into parts that can be sorted in the given memory.

    `indptr`, shape (D + 1,): where each column starts.
    `value_bytes`: bytes of a value, 0 where none is stored.
    `memory`: bytes for all threads together.
    `n_threads`: parts sorted at a time.
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
) -> list[tuple[int, int]]:
    """Renumber the columns of the rows in place, and partition the entries.

    `rows`: with original columns; left with internal ones.
    `internal_column`, shape (D,): internal number of each column.
    `column_indptr`, shape (D + 1,): where each internal column starts.
    `columns`: written: rows and values, by part.
    `offsets`: written: columns within their part.
    `memory`: bytes for all threads together.
    `progress`: told how many more entries are done.

    Returns: checksums of the renumbered columns, in order.
    """
    n_entries, n_parts = rows.indices.size, parts.first_column.size - 1
    value_dtype = rows.values.dtype if rows.values else np.dtype(np.float32)
    value_bytes = value_dtype.itemsize if rows.values else 0
    column_bytes, row_bytes = rows.indices.dtype.itemsize, columns.indices.dtype.itemsize
    entry_bytes = column_bytes + row_bytes + parts.offset_dtype.itemsize + 2 * value_bytes
    chunk = max(_FEWEST_ENTRIES, memory // (n_threads * entry_bytes))
    # Several chunks for each thread, so that some compute while others read or write.
    chunk = min(chunk, max(_AIM_ENTRIES, -(-n_entries // (_CHUNKS_PER_THREAD * n_threads))))
    n_chunks = -(-n_entries // chunk)
    place = column_indptr[parts.first_column[:-1]].copy()
    pieces: list[tuple[int, int]] = [(0, 0)] * n_chunks
    turns = _Turns()

    def work() -> Callable[[int], None]:
        size = min(chunk, n_entries)
        column_buffer = np.empty(size, rows.indices.dtype)
        value_buffer = np.empty(size if rows.values else 0, value_dtype)
        offset_buffer = np.empty(size, parts.offset_dtype)
        row_buffer = np.empty(size, columns.indices.dtype)
        part_values_buffer = np.empty(value_buffer.size, value_dtype)

        def one(number: int) -> None:
            first = number * chunk
            size = min(chunk, n_entries - first)
            part_columns, part_values = column_buffer[:size], value_buffer[:size]
            rows.indices.read_at(first, part_columns)
            if rows.values:
                rows.values.read_at(first, part_values)
            counts = np.zeros(n_parts, np.int64)
            renumber(part_columns, internal_column, parts.of_column, counts)
            with turns.wait(number):
                target = place.copy()
                place[:] += counts
            rows.indices.write_at(first, part_columns)
            pieces[number] = checksum(part_columns)
            ends = np.cumsum(counts)
            partition(
                part_columns,
                part_values,
                rows.indptr,
                first,
                parts.of_column,
                parts.first_column,
                ends - counts,
                offset_buffer,
                row_buffer,
                part_values_buffer,
            )
            for part in np.flatnonzero(counts):
                begin, end, to = int(ends[part] - counts[part]), int(ends[part]), int(target[part])
                columns.indices.write_at(to, row_buffer[begin:end])
                # A part of one column is in order already.
                if parts.first_column[part + 1] - parts.first_column[part] > 1:
                    offsets.write_at(to, offset_buffer[begin:end])
                if columns.values:
                    columns.values.write_at(to, part_values_buffer[begin:end])
            progress(size)

        return one

    _in_threads(work, n_chunks, n_threads, turns)
    return pieces


def sort_parts(
    columns: Orientation,
    offsets: ArrayWriter,
    parts: Parts,
    *,
    memory: int,
    n_threads: int,
    progress: Callable[[int], None],
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Sort each part by column, in place.

    `columns`: as `renumber_and_partition` left them.
    `offsets`: columns within their part.
    `memory`: bytes for all threads together: what `cut_parts` was told.
    `progress`: told how many more entries are done.

    Returns `indices`, `values`: checksums in order.
    """
    n_parts = parts.first_column.size - 1
    sums: list[list[tuple[int, int]]] = [[] for _ in range(n_parts)]
    value_sums: list[list[tuple[int, int]]] = [[] for _ in range(n_parts)]
    step = max(_FEWEST_ENTRIES, memory // (n_threads * 16))
    turns = _Turns()

    def work() -> Callable[[int], None]:
        def one(part: int) -> None:
            first, last = int(parts.first_column[part]), int(parts.first_column[part + 1])
            begin, end = int(columns.indptr[first]), int(columns.indptr[last])
            if begin == end:
                return
            if last - first == 1:
                for at in range(begin, end, step):
                    count = min(step, end - at)
                    _sum_up(columns.indices, at, count, sums[part])
                    if columns.values:
                        _sum_up(columns.values, at, count, value_sums[part])
            else:
                _sort_part(columns, offsets, first, last, sums[part], value_sums[part])
            progress(end - begin)

        return one

    _in_threads(work, n_parts, n_threads, turns)
    return list(chain.from_iterable(sums)), list(chain.from_iterable(value_sums))


def _sum_up(array: ArrayWriter, at: int, count: int, sums: list[tuple[int, int]]) -> None:
    part = np.empty(count, array.dtype)
    array.read_at(at, part)
    sums.append(checksum(part))


def _sort_part(
    columns: Orientation,
    offsets: ArrayWriter,
    first: int,
    last: int,
    sums: list[tuple[int, int]],
    value_sums: list[tuple[int, int]],
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


class _StoppedError(Exception):
    """Another thread failed; its error is the one to report."""


class _Turns:
    """Lets threads pass through a section in the order of their items."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next = 0
        self.stopped = False

    def stop(self) -> None:
        with self._changed:
            self.stopped = True
            self._changed.notify_all()

    @contextmanager
    def wait(self, number: int) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._next == number or self.stopped)
            if self.stopped:
                raise _StoppedError
            yield
            self._next += 1
            self._changed.notify_all()


def _in_threads(
    work: Callable[[], Callable[[int], None]], n_items: int, n_threads: int, turns: _Turns
) -> None:
    """Work on items 0, 1, ... in threads, each with its own buffers; stop all if one fails."""
    numbers = iter(range(n_items))
    lock = threading.Lock()

    def run() -> None:
        one = work()
        try:
            while not turns.stopped:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                one(number)
        except _StoppedError:
            return
        except BaseException:
            turns.stop()
            raise

    with ThreadPoolExecutor(n_threads) as pool:
        running = [pool.submit(run) for _ in range(min(n_threads, n_items))]
        try:
            for future in running:
                future.result()
        except BaseException:
            turns.stop()
            raise
