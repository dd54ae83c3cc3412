"""Data files as streams of bytes: decompressed, split at line ends, read ahead of their use."""

import bz2
import codecs
import gzip
import lzma
import os
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import repeat, takewhile
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from dplasso.errors import DataError, need

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

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_STREAM_ERRORS = (EOFError, zlib.error, lzma.LZMAError, OSError)

Progress = Callable[[int, int], None]
"""Called with the bytes of the file read so far and its size, both as on disk."""


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
        self._frame: Any = None

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


_OPENERS: dict[str, Callable[[Any], Any]]
_OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": _ZstdReader}
COMPRESSED_SUFFIXES = (*_OPENERS,)


def check_readable(path: Path) -> None:
    """Raise `DataError` for a path that is not a file, and cannot be read twice."""
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; give a data file")
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if not path.is_file():
        raise DataError(f"{path}: this is not a file but a pipe or device; give a data file")


def line_blocks(path: Path, block_bytes: int = BLOCK_BYTES) -> Generator[tuple[bytes, int]]:
    """Yield a file's text in blocks of whole lines, decompressed, and how far into it they reach.

    One thread reads and decompresses the next block while the caller works on the last one.
    Only the last block may lack a line end; a byte-order mark is left out. At most three blocks, of
    about `block_bytes` decompressed bytes and a line at least, are in memory.
    """
    check_readable(path)
    suffix = path.suffix.lower()
    try:
        raw = path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error.strerror}") from error
    with raw:
        total = os.fstat(raw.fileno()).st_size
        start = raw.read(8)
        raw.seek(0)
        for magic, name in _MAGIC.items():
            if start.startswith(magic) and suffix not in _OPENERS:
                raise DataError(
                    f"{path}: the content is {name}, but the name has no suffix for "
                    "it; add the suffix"
                )
        stream = _OPENERS[suffix](raw) if suffix in _OPENERS else raw

        def read(_: None) -> tuple[bytes, int]:
            try:
                return stream.read(block_bytes), raw.tell()
            except _STREAM_ERRORS as error:
                damaged = f"the {suffix} stream is damaged or cut short"
                problem = damaged if suffix in _OPENERS else "cannot be read"
                raise DataError(f"{path}: {problem}: {error}") from error

        pending: list[bytes] = []  # the start of a line that has not ended yet
        mark_of_order = codecs.BOM_UTF8  # left out where the text begins with it
        with closing(in_order(read, repeat(None), 1)) as chunks:
            for chunk, done in takewhile(lambda found: found[0], chunks):
                end = chunk.rfind(b"\n") + 1
                if end:
                    text = b"".join([*pending, chunk[:end]])
                    yield text.removeprefix(mark_of_order), done
                    pending, mark_of_order = [], b""
                pending.append(chunk[end:])
                if sum(map(len, pending)) > MAX_LINE_BYTES:
                    raise DataError(
                        f"{path}: a line is longer than {MAX_LINE_BYTES:,} bytes; "
                        "this is not a text file with one record per line"
                    )
        if any(pending):
            yield b"".join(pending).removeprefix(mark_of_order), total


def exhaust(items: Iterable[object]) -> None:
    """Do what an iterator does, and keep nothing of what it yields."""
    deque(items, maxlen=0)


def in_order(
    work: Callable[[_Item], _Result], items: Iterable[_Item], n_threads: int
) -> Generator[_Result]:
    """Apply `work` in threads, a little ahead of the caller, and yield the results in order.

    A `DataError` of `items` is raised when the results of all items before it have been handed on.
    """
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="dplasso-read")
    ahead: deque[Future[_Result]] = deque()

    def submitted() -> Iterator[Future[_Result]]:
        try:
            for item in items:
                yield pool.submit(work, item)
                del item  # it may be large, and the next one is about to be made
        except DataError as error:
            failed: Future[_Result] = Future()
            failed.set_exception(error)
            yield failed

    try:
        for future in submitted():
            ahead.append(future)
            if len(ahead) > n_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
