"""Data files as streams of bytes: decompressed, split at line ends, read ahead of their use."""

import bz2
import codecs
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from dplasso.errors import DataError
from dplasso.runtime.extras import need

if TYPE_CHECKING:
    pass

COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")

BLOCK_BYTES = 2 << 20
"""Decompressed bytes handed on at a time; a longer line makes a longer block."""

MAX_LINE_BYTES = 1 << 30
"""A file with a longer line is refused: it is not text, and would fill the memory."""

_MAGIC = {
    b"\x1f\x8b": "gzip (.gz)",
    b"BZh": "bzip2 (.bz2)",
    b"\xfd7zXZ\x00": "xz (.xz)",
    b"\x28\xb5\x2f\xfd": "zstandard (.zst)",
    b"PK\x03\x04": "zip (.zip, .npz)",
}

_STREAM_ERRORS = (EOFError, zlib.error, lzma.LZMAError, OSError)

Progress = Callable[[int, int], None]
"""Called with the bytes of the file read so far and its size, both as on disk."""


def shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Return a callback that reports the progress in one file as that in all of them."""
    return None if progress is None else lambda done, _size: progress(before + done, total)


class Block(NamedTuple):
    """Whole lines of a file, and how far into the file on disk they reach."""

    text: bytes
    done: int
    total: int


@dataclass(frozen=True)
class FileMark:
    """A file's size, time and identity, which change when the file does.

    `modified`: time of the last change, in nanoseconds.
    `inode`: device and number: another file put in its place has another one.
    """

    size: int
    modified: int
    inode: tuple[int, int]

    @classmethod
    def of(cls, path: Path, descriptor: int | None = None) -> "FileMark":
        """Look at a file, by an open descriptor or by its name.

        Raises DataError if it is not there any more, or not to be looked at.
        """
        try:
            found = path.stat() if descriptor is None else os.fstat(descriptor)
        except OSError as error:
            raise DataError(f"{path}: cannot be opened: {error.strerror}") from error
        return cls(found.st_size, found.st_mtime_ns, (found.st_dev, found.st_ino))


def check_unchanged(path: Path, mark: FileMark, descriptor: int | None = None) -> None:
    """Refuse a file that has changed since it was first looked at.

    Raises DataError if size, time of change or the file itself are not those of `mark`.
    """
    if FileMark.of(path, descriptor) != mark:
        raise DataError(
            f"{path}: the file changed while it was being read; read it when nothing writes to it"
        )


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _ZstdReader:
    """A zstandard file of any number of frames; a frame cut short is an error.

    The package's own ``stream_reader`` ends silently where a file was cut short.
    """

    _CHUNK = 8 << 10  # small, because one chunk of a well-compressed file can be very long

    def __init__(self, raw: BinaryIO) -> None:
        need("zstandard", "Reading .zst files")
        import zstandard

        self._raw = raw
        self._new_frame = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj
        self._damage = zstandard.ZstdError
        self._rest = b""
        self._frame: zstandard.ZstdDecompressionObj | None = None

    def read(self, size: int, /) -> bytes:
        parts: list[bytes] = []
        held = 0
        while held < size:
            chunk = self._rest or self._raw.read(self._CHUNK)
            self._rest = b""
            if not chunk:
                if self._frame is not None:
                    raise EOFError("the last frame is not complete")
                break
            if self._frame is None:
                self._frame = self._new_frame()
            try:
                parts.append(self._frame.decompress(chunk))
            except self._damage as error:
                raise OSError(str(error)) from error
            held += len(parts[-1])
            if self._frame.eof:
                self._rest = self._frame.unused_data
                self._frame = None
        return b"".join(parts)


def check_readable(path: Path) -> None:
    """Refuse a path that is not a file.

    Raises DataError if there is nothing at ``path``, a directory, or something that cannot be read
    again.
    """
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; a data file is needed")
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if not path.is_file():
        raise DataError(f"{path}: this is not a file but a pipe or device; a data file is needed")


def _decompressed(raw: BinaryIO, suffix: str) -> _Readable:
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=raw, mode="rb")
    if suffix == ".bz2":
        return bz2.BZ2File(raw)
    if suffix == ".xz":
        return lzma.LZMAFile(raw)
    if suffix == ".zst":
        return _ZstdReader(raw)
    return raw


def _refuse_hidden_compression(raw: BinaryIO, path: Path) -> None:
    start = raw.read(8)
    raw.seek(0)
    for magic, name in _MAGIC.items():
        if start.startswith(magic):
            raise DataError(
                f"{path}: the content is {name}, the name says plain text; give it the suffix"
            )


def line_blocks(
    path: Path, block_bytes: int = BLOCK_BYTES, mark: FileMark | None = None
) -> Generator[Block]:
    """Yield a file's text in blocks of whole lines, decompressed by the file's suffix.

    One thread reads and decompresses the next block while the caller works on the last one.
    Only the last block may lack a line end; a byte-order mark is left out. At most three blocks
    are in memory.

    `path`: plain text, or ``.gz``, ``.bz2``, ``.xz``, ``.zst``.
    `block_bytes`: decompressed bytes a block, about; a block holds at least one line.
    `mark`: what the file must look like. Default: as it looks when it is opened.

    Raises DataError if the file is missing, a directory, not readable, or its compressed stream is
    damaged or cut short; if it changes while it is read; if a line is longer than 1 GiB.
    """
    check_readable(path)
    suffix = path.suffix.lower()
    with ExitStack() as stack:
        try:
            raw = stack.enter_context(path.open("rb"))
        except OSError as error:
            raise DataError(f"{path}: cannot be opened: {error.strerror}") from error
        mark = mark or FileMark.of(path, raw.fileno())
        check_unchanged(path, mark, raw.fileno())
        total = mark.size
        if suffix not in COMPRESSED_SUFFIXES:
            _refuse_hidden_compression(raw, path)
        stream = _decompressed(raw, suffix)

        def read() -> tuple[bytes, int]:
            try:
                return stream.read(block_bytes), raw.tell()
            except _STREAM_ERRORS as error:
                if suffix not in COMPRESSED_SUFFIXES:
                    raise DataError(f"{path}: cannot be read: {error}") from error
                raise DataError(
                    f"{path}: the {suffix} stream is damaged or cut short: {error}"
                ) from error

        reader = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="dplasso-read"))
        pending: list[bytes] = []  # the start of a line that has not ended yet
        held = 0
        mark_of_order = codecs.BOM_UTF8  # left out where the text begins with it
        ahead = reader.submit(read)
        while True:
            try:
                chunk, done = ahead.result()
            except DataError:
                # The effect of a change must not be taken for damage.
                check_unchanged(path, mark, raw.fileno())
                raise
            # Before the block is handed on: a changed file is not a malformed line.
            check_unchanged(path, mark, raw.fileno())
            if not chunk:
                break
            ahead = reader.submit(read)
            end = chunk.rfind(b"\n") + 1
            if end:
                text = b"".join([*pending, chunk[:end]])
                yield Block(text.removeprefix(mark_of_order), done, total)
                pending, held, mark_of_order = [], 0, b""
            if end < len(chunk):
                pending.append(chunk[end:])
                held += len(chunk) - end
                if held > MAX_LINE_BYTES:
                    raise DataError(
                        f"{path}: a line is longer than {MAX_LINE_BYTES:,} bytes; "
                        "this is not a text file of one record a line"
                    )
        check_unchanged(path, mark)
        if pending:
            yield Block(b"".join(pending).removeprefix(mark_of_order), total, total)
