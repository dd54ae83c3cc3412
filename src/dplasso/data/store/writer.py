"""Write a stream of row blocks to a store on disk in bounded memory."""

import os
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dplasso.data.blocks import (
    INT32_MAX,
    MOST_COLUMNS,
    BlockSource,
    RowBlock,
    check_finite,
    check_shape,
)
from dplasso.data.labels import labels_of_one_kind
from dplasso.data.source_files import Progress, exhaust, in_order
from dplasso.data.store.files import (
    COLUMNS_DECLARED,
    DATA_OFFSET,
    HEADER_FILE,
    INDICES,
    LABELS,
    PEOPLE,
    RECAST_SUFFIX,
    VALUES,
    ArrayEntry,
    StoreHeader,
    array_file,
    bytes_of,
    check_place,
    header_text,
    npy_header,
    put_in_place,
    unfinished,
)
from dplasso.data.store.opening import Store, open_store
from dplasso.errors import DataError
from dplasso.files.disk import descriptor, open_private, program, report_disk_full
from dplasso.matrix.compressed import check_rows

# Bytes that one checksum covers, but for the last of an array; a multiple of any element's.
PIECE_BYTES = 1 << 26
_COPY_BYTES = 1 << 22


class ArrayWriter:
    """A flat array in a file that grows until it is finished."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self.path = path
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.size = 0
        self._pieces: list[tuple[int, int]] = []
        self._open_piece = (0, 0)
        self._descriptor = descriptor(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def append(self, part: NDArray[Any]) -> None:
        """Append elements."""
        data = bytes_of(part.astype(self.dtype, copy=False))
        self._write(data, self._place(self.size))
        self.size += part.size
        while data.nbytes:
            length, crc = self._open_piece
            # Of the same length however the elements come.
            some, data = data[: PIECE_BYTES - length], data[PIECE_BYTES - length :]
            self._open_piece = (length + some.nbytes, zlib.crc32(some, crc))
            if self._open_piece[0] == PIECE_BYTES:
                self._close_piece()

    def append_constant(self, value: Any, count: int) -> None:
        """Append the same value `count` times."""
        step = _COPY_BYTES // self.dtype.itemsize
        part = np.full(min(step, count), value, self.dtype)
        for done in range(0, count, step):
            self.append(part[: count - done])

    def append_from(self, other: "ArrayWriter") -> None:
        """Append the elements of another array, which may have another type."""
        step = _COPY_BYTES // other.dtype.itemsize
        for begin in range(0, other.size, step):
            part = np.empty(min(step, other.size - begin), other.dtype)
            self.append(other.read_at(begin, part))

    def read_at(self, position: int, part: NDArray[Any]) -> NDArray[Any]:
        """Fill `part` with the elements from `position` on, and return it."""
        data, offset = bytes_of(part), self._place(position)
        while data.nbytes:
            count = os.preadv(self._descriptor, [data], offset)
            if count == 0:
                raise OSError(f"{self.path} was truncated by another program")
            data, offset = data[count:], offset + count
        return part

    def finish(self) -> ArrayEntry:
        """Write the header, sync the file to the disk, and close it."""
        self._close_piece()
        self._write(memoryview(npy_header(self.dtype, self.size)), 0)
        os.fsync(self._descriptor)
        self.close()
        return ArrayEntry(self.dtype.str, self.size, tuple(self._pieces))

    def close(self) -> None:
        """Close the file without finishing the array."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _place(self, position: int) -> int:
        return DATA_OFFSET + position * self.dtype.itemsize

    def _write(self, data: memoryview, offset: int) -> None:
        while data.nbytes:
            count = os.pwrite(self._descriptor, data, offset)
            data, offset = data[count:], offset + count

    def _close_piece(self) -> None:
        if self._open_piece[0]:
            self._pieces.append(self._open_piece)
        self._open_piece = (0, 0)


class ArrayFiles(dict[str, ArrayWriter]):
    """The arrays of a store in a directory, by name; a ``with`` block closes them."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self._open = ExitStack()

    def __enter__(self) -> "ArrayFiles":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def new(self, name: str, dtype: DTypeLike) -> ArrayWriter:
        """Begin an array."""
        self[name] = self._file(array_file(self.directory, name), dtype)
        return self[name]

    def _file(self, path: Path, dtype: DTypeLike) -> ArrayWriter:
        writer = ArrayWriter(path, dtype)
        self._open.callback(writer.close)
        return writer

    def widen(self, name: str, dtype: DTypeLike) -> ArrayWriter:
        """Return an array, rewritten in a wider type if it cannot hold elements of `dtype`."""
        old = self[name]
        wider = np.result_type(old.dtype, dtype)
        if wider == old.dtype:
            return old
        new = self._file(old.path.with_suffix(RECAST_SUFFIX), wider)
        new.append_from(old)
        old.close()
        new.path = new.path.replace(old.path)
        self[name] = new
        return new

    def finish(self) -> dict[str, ArrayEntry]:
        """Finish all arrays."""
        return {name: writer.finish() for name, writer in self.items()}


_MOST_WORDS = 2**16

DEFAULT_MEMORY = 2 * 2**30
_SOURCE_BYTES = 1 << 28


class RowWriter:
    """Write records to the files of a store; `constant` holds while there is no file of values."""

    def __init__(self, files: ArrayFiles, name: str, n_features: int | None) -> None:
        self.n_rows = self.n_entries = 0
        self.n_columns = n_features or 0
        self.constant = 1.0
        self.largest_value = 0.0
        self.value_dtype: np.dtype[Any] = np.dtype(np.float32)
        self.words: dict[str, int] | None = None
        self._files, self._name, self._declared = files, name, n_features
        self._label_kind: str | None = None
        files.new("rows.indptr", np.int64).append(np.zeros(1, np.int64))
        files.new(INDICES, np.int64 if self.n_columns > INT32_MAX + 1 else np.int32)

    def add(self, block: RowBlock) -> None:
        """Append a block."""
        indptr, indices, values = block.indptr, block.indices, block.values
        outside, unordered, largest = check_rows(indptr, indices, self._declared or MOST_COLUMNS)
        if outside >= 0 or unordered >= 0:
            bad = unordered if unordered >= 0 else outside
            raise DataError(
                f"{self._name}: row {self.n_rows + bad + 1} has columns that do not ascend, or a "
                f"column outside the {self._declared or MOST_COLUMNS} possible columns"
            )
        if int(indptr[-1]) != indices.size or values.size != indices.size:
            raise DataError(f"{self._name}: the row pointers do not match the number of entries")
        self.n_columns = max(self.n_columns, int(largest) + 1)
        if self.n_columns > INT32_MAX + 1:
            self._files.widen(INDICES, np.int64)
        self._add_values(indptr, values)
        self._files[INDICES].append(indices)
        self._files["rows.indptr"].append(indptr[1:].astype(np.int64, copy=False) + self.n_entries)
        self._add_labels(block.labels)
        # A source has the people of all rows, or of none.
        if block.people is not None:
            if PEOPLE not in self._files:
                self._files.new(PEOPLE, np.int64)
            self._files[PEOPLE].append(block.people)
        self.n_entries += indices.size
        self.n_rows += indptr.size - 1

    def _add_values(self, indptr: NDArray[np.int64], values: NDArray[Any]) -> None:
        self.value_dtype = np.result_type(self.value_dtype, values.dtype)
        if VALUES in self._files:
            self._files.widen(VALUES, self.value_dtype)
        if not values.size:
            return
        if self.n_entries == 0:
            self.constant = float(values[0])
        low, high = check_finite(self._name, indptr, values, self.n_rows)
        self.largest_value = max(self.largest_value, -low, high)
        if VALUES not in self._files and not low == high == self.constant:
            self._files.new(VALUES, self.value_dtype).append_constant(self.constant, self.n_entries)
        if VALUES in self._files:
            self._files[VALUES].append(values)

    def _add_labels(self, labels: NDArray[Any]) -> None:
        text = labels.dtype.kind not in "biuf"
        labels = labels.astype(np.str_) if text else labels
        labels, self._label_kind = labels_of_one_kind(labels, self._place, self._label_kind)
        if text:
            labels = self._numbers(labels)
        if LABELS not in self._files:
            self._files.new(LABELS, labels.dtype)
        self._files.widen(LABELS, labels.dtype).append(labels)

    def _place(self, row: int) -> str:
        return f"{self._name}, row {self.n_rows + row + 1}"

    def _numbers(self, labels: NDArray[Any]) -> NDArray[np.int32]:
        """Return the numbers of text labels; a new label gets the next number."""
        words = self.words = self.words or {}
        distinct, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        # In the order in which they come first, whatever the blocks are.
        for place in np.sort(first):
            words.setdefault(str(labels[place]), len(words))
        if len(words) > _MOST_WORDS:
            raise DataError(
                f"{self._name}: the first {self.n_rows + labels.size:,} rows have more than "
                f"{_MOST_WORDS:,} different labels; check the label column"
            )
        return np.array([words[str(word)] for word in distinct], np.int32)[inverse]


def write_blocks(
    source: BlockSource,
    path: str | os.PathLike[str],
    *,
    memory: int = DEFAULT_MEMORY,
    force: bool = False,
    origin: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Store:
    """Write records to a store, and open it.

    The store appears at `path` when it is complete and on the disk. Until then it is in a directory
    beside it, with the suffix ``.partial``.

    `memory`: bytes that the process may use. `force`: whether to replace a store at `path`.
    `origin`: how the columns were made, as plain JSON for the header.
    """
    place = check_place(path, force=force)
    declared = source.n_features is not None and source.columns_declared
    with unfinished(place) as directory:
        with ArrayFiles(directory) as files:
            rows = _write_rows(files, source, place, memory, progress)
            with report_disk_full(place):
                arrays = files.finish()
        header = StoreHeader(
            shape=(rows.n_rows, rows.n_columns),
            nnz=rows.n_entries,
            value_dtype=rows.value_dtype.newbyteorder("<").str,
            constant=None if VALUES in arrays else rows.constant,
            largest_value=rows.largest_value,
            label_words=None if rows.words is None else tuple(rows.words),
            source=source.name,
            origin={**(origin or {}), COLUMNS_DECLARED: declared},
            written_by=program(),
            arrays=arrays,
        )
        with report_disk_full(place):
            with open_private(directory / HEADER_FILE, "x") as file:
                file.write(header_text(header))
                file.flush()
                os.fsync(file.fileno())
            # Check again: the conversion takes long, and another program may have written here.
            check_place(place, force=force)
            put_in_place(directory, place)
        # Before another process may replace it.
        return open_store(place)


def _write_rows(
    files: ArrayFiles, source: BlockSource, place: Path, memory: int, progress: Progress | None
) -> RowWriter:
    """Write all rows; each block is written while the source makes the next one."""
    with report_disk_full(place):
        rows = RowWriter(files, source.name, source.n_features)

    def add(block: RowBlock) -> None:
        with report_disk_full(place):
            rows.add(block)

    blocks = source.blocks(min(memory // 4, _SOURCE_BYTES), progress)
    exhaust(in_order(add, blocks, 1))
    check_shape(source.name, rows.n_rows, rows.n_columns)
    return rows
