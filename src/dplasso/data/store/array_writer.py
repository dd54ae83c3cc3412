"""Writing one flat array of a store: appended to in order, or filled piece by piece."""

import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dplasso.data.store.format import DATA_OFFSET, ArrayEntry, npy_header

# A checksum covers about this much of what is appended.
PIECE_BYTES = 1 << 26
_COPY_BYTES = 1 << 22


class ArrayWriter:
    """A flat array in a file, of a size that is known only at the end.

    `checksums`: whether `append` sums up what it writes; pieces written elsewhere come with their
    own.
    """

    def __init__(self, path: Path, dtype: DTypeLike, *, checksums: bool = True) -> None:
        self.path = path
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.size = 0
        self.pieces: list[tuple[int, int]] = []
        self._checksums = checksums
        self._open_piece = (0, 0)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)

    def append(self, part: NDArray[Any]) -> None:
        """Write some elements after those there are."""
        data = _bytes_of(part.astype(self.dtype, copy=False))
        _write_at(self._descriptor, data, self._place(self.size))
        self.size += part.size
        if self._checksums:
            length, crc = self._open_piece
            self._open_piece = (length + data.nbytes, zlib.crc32(data, crc))
            if self._open_piece[0] >= PIECE_BYTES:
                self._close_piece()

    def append_constant(self, value: Any, count: int) -> None:
        """Write one value many times."""
        step = _COPY_BYTES // self.dtype.itemsize
        part = np.full(min(step, count), value, self.dtype)
        for done in range(0, count, step):
            self.append(part[: count - done])

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
        _write_at(self._descriptor, _bytes_of(part), self._place(position))

    def read_at(self, position: int, part: NDArray[Any]) -> None:
        """Fill `part` with the elements from a position on; from several threads if need be."""
        data, offset = _bytes_of(part), self._place(position)
        while data.nbytes:
            count = os.preadv(self._descriptor, [data], offset)
            if count == 0:
                raise OSError(f"{self.path} became shorter while it was in use")
            data, offset = data[count:], offset + count

    def recast(self, dtype: DTypeLike) -> "ArrayWriter":
        """Return a writer of the same elements, in the same file, as another type."""
        other = ArrayWriter(self.path.with_suffix(".recast"), dtype, checksums=self._checksums)
        try:
            step = _COPY_BYTES // self.dtype.itemsize
            for begin in range(0, self.size, step):
                part = np.empty(min(step, self.size - begin), self.dtype)
                self.read_at(begin, part)
                other.append(part)
        except BaseException:
            other.close()
            raise
        self.close()
        other.path.replace(self.path)
        other.path = self.path
        return other

    def finish(self) -> ArrayEntry:
        """Write the first bytes, send everything to the disk, and close the file."""
        self._close_piece()
        _write_at(self._descriptor, memoryview(npy_header(self.dtype, self.size)), 0)
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

    def _close_piece(self) -> None:
        if self._open_piece[0]:
            self.pieces.append(self._open_piece)
        self._open_piece = (0, 0)


def checksum(part: NDArray[Any]) -> tuple[int, int]:
    """Return the length in bytes and the CRC-32 of an array's data."""
    data = _bytes_of(part)
    return data.nbytes, zlib.crc32(data)


def _bytes_of(part: NDArray[Any]) -> memoryview:
    # A view of uint8, since an empty memoryview of another type cannot be cast.
    return np.ascontiguousarray(part).view(np.uint8).data


def _write_at(descriptor: int, data: memoryview, offset: int) -> None:
    while data.nbytes:
        count = os.pwrite(descriptor, data, offset)
        data, offset = data[count:], offset + count
