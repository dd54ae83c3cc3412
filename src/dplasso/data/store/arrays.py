"""The arrays of a store that is being written: each a file, appended to or filled in pieces."""

import os
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dplasso.data.store.header import DATA_OFFSET, RECAST_SUFFIX, ArrayEntry, array_file, npy_header
from dplasso.files.atomic import descriptor

# A checksum covers about this much of what is appended.
PIECE_BYTES = 1 << 26
_COPY_BYTES = 1 << 22


class ArrayWriter:
    """A flat array in a file, of a size that is known only at the end.

    Pieces that `write_at` wrote, or that will be changed (`checksums` False), come with checksums
    of their own, which are put into `pieces`.
    """

    def __init__(self, path: Path, dtype: DTypeLike, *, checksums: bool = True) -> None:
        self.path = path
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.size = 0
        self.pieces: list[tuple[int, int]] = []
        self.checksums = checksums
        self._open_piece = (0, 0)
        self._descriptor = descriptor(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def append(self, part: NDArray[Any]) -> None:
        """Write some elements after those there are."""
        part = part.astype(self.dtype, copy=False)
        self.write_at(self.size, part)
        self.size += part.size
        if self.checksums:
            length, crc = self._open_piece
            data = bytes_of(part)
            self._open_piece = (length + data.nbytes, zlib.crc32(data, crc))
            if self._open_piece[0] >= PIECE_BYTES:
                self._close_piece()

    def append_constant(self, value: Any, count: int) -> None:
        """Write one value many times."""
        step = _COPY_BYTES // self.dtype.itemsize
        part = np.full(min(step, count), value, self.dtype)
        for done in range(0, count, step):
            self.append(part[: count - done])

    def append_from(self, other: "ArrayWriter") -> None:
        """Write the elements of another array, perhaps of another type."""
        step = _COPY_BYTES // other.dtype.itemsize
        for begin in range(0, other.size, step):
            part = np.empty(min(step, other.size - begin), other.dtype)
            self.append(other.read_at(begin, part))

    def reserve(self, size: int) -> None:
        """Make room for a known number of elements, which `write_at` then fills."""
        self.size = size
        length = self._place(size)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._descriptor, 0, length)
        else:
            os.ftruncate(self._descriptor, length)

    def write_at(self, position: int, part: NDArray[Any]) -> None:
        """Write elements at a position; from several threads if need be."""
        self._write(bytes_of(part), self._place(position))

    def read_at(self, position: int, part: NDArray[Any]) -> NDArray[Any]:
        """Fill `part` with the elements from a position on, and return it."""
        data, offset = bytes_of(part), self._place(position)
        while data.nbytes:
            count = os.preadv(self._descriptor, [data], offset)
            if count == 0:
                raise OSError(f"{self.path} became shorter while it was in use")
            data, offset = data[count:], offset + count
        return part

    def finish(self) -> ArrayEntry:
        """Write the first bytes, send everything to the disk, and close the file."""
        self._close_piece()
        self._write(memoryview(npy_header(self.dtype, self.size)), 0)
        os.ftruncate(self._descriptor, self._place(self.size))
        os.fsync(self._descriptor)
        self.close()
        return ArrayEntry(self.dtype.str, self.size, tuple(self.pieces))

    def close(self) -> None:
        """Close the file as it is."""
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
            self.pieces.append(self._open_piece)
        self._open_piece = (0, 0)


class ArrayFiles(dict[str, ArrayWriter]):
    """The arrays of a store in a directory, by name; they are closed with the block."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self._open = ExitStack()

    def __enter__(self) -> "ArrayFiles":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def new(self, name: str, dtype: DTypeLike, *, checksums: bool = True) -> ArrayWriter:
        """Begin an array."""
        self[name] = self.file(array_file(self.directory, name), dtype, checksums)
        return self[name]

    def file(self, path: Path, dtype: DTypeLike, checksums: bool = True) -> ArrayWriter:
        """Open a file that has no name among the arrays."""
        writer = ArrayWriter(path, dtype, checksums=checksums)
        self._open.callback(writer.close)
        return writer

    def widen(self, name: str, dtype: DTypeLike) -> ArrayWriter:
        """Return an array in a type that holds its own elements and those of another."""
        old = self[name]
        wider = np.result_type(old.dtype, dtype)
        if wider == old.dtype:
            return old
        new = self.file(old.path.with_suffix(RECAST_SUFFIX), wider, old.checksums)
        new.append_from(old)
        old.close()
        new.path = new.path.replace(old.path)
        self[name] = new
        return new

    def finish(self, *names: str) -> dict[str, ArrayEntry]:
        """Complete those of the arrays that there are."""
        return {name: self[name].finish() for name in names if name in self}


def checksum(part: NDArray[Any]) -> tuple[int, int]:
    """Return the length in bytes and the CRC-32 of an array's data."""
    data = bytes_of(part)
    return data.nbytes, zlib.crc32(data)


def bytes_of(part: NDArray[Any]) -> memoryview:
    """Return the data of an array, as bytes."""
    # A view of uint8, since an empty memoryview of another type cannot be cast.
    return np.ascontiguousarray(part).view(np.uint8).data
