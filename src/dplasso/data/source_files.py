"""The files behind a data set: names, patterns and addresses, sizes, and changes meanwhile."""

import bz2
import codecs
import glob
import gzip
import lzma
import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
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


_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]{0,15}")
# A scheme, a host, perhaps its port, and a path. Whatever else an address can hold can be a secret:
# a user, a password or token, parameters, a signature, a fragment, or one of these in disguise (%).
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^@:/?#;&%]*(:[0-9]{1,5})?(/[^@:?#;&%]*)?")
# An option that its value follows, and words such as those of a purpose.
_BEFORE = re.compile(r"(--[a-z0-9-]+=)?([\w,. ]* )?")


def is_address(path: str) -> bool:
    """Return whether a store is at an address such as s3://bucket/a, not in a local folder."""
    return "://" in path


def hidden(address: str) -> str:
    """Return what a message may show of an address that may hold a secret."""
    scheme = address.partition("://")[0]
    return f"{scheme if _SCHEME.fullmatch(scheme) else '...'}://..."


def checked_address(address: str) -> str:
    """Return an address without slashes at its end; DataError if it may hold a secret."""
    if not (_PLAIN.fullmatch(address) and address.isprintable()):
        raise DataError(
            f"an address {hidden(address)} holds more than a scheme, a host and a path, and logs "
            "and messages would show it. Set names, passwords, tokens and signatures in the "
            "environment or in fsspec's configuration files"
        )
    return address.rstrip("/")


def check_argument(text: str) -> None:
    """Raise `DataError` if an argument of a command line is an address that may hold a secret."""
    if is_address(text):
        checked_address(_BEFORE.sub("", text, count=1))


@dataclass(frozen=True)
class SourceFiles:
    """Files that make one data set, one at least, in their order; what they first looked like."""

    paths: tuple[Path, ...]
    found: tuple[os.stat_result, ...]

    @property
    def name(self) -> str:
        """The first file, and how many others there are."""
        more = len(self.paths) - 1
        return f"{self.paths[0]} and {more} more" if more else str(self.paths[0])

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return self.before(len(self.paths))

    def before(self, i: int) -> int:
        """Bytes of the files before file ``i``."""
        return sum(found.st_size for found in self.found[:i])

    def check_unchanged(self, i: int) -> None:
        """Raise `DataError` if file ``i`` is no longer what it was at first."""
        before, now = self.found[i], _look_at(self.paths[i])
        same = os.path.samestat(before, now) and before.st_mtime_ns == now.st_mtime_ns
        if not same or before.st_size != now.st_size:
            raise DataError(
                f"{self.paths[i]}: the file changed while it was being read; read it when nothing "
                "writes to it"
            )


Paths = str | Path | Iterable[str | Path] | SourceFiles
"""One file, a pattern such as ``part-*.svm.gz``, several of these, or what they mean."""


def source_files(paths: Paths) -> SourceFiles:
    """Return the files of a data set; `DataError` as `expand`, or if a file cannot be read."""
    if isinstance(paths, SourceFiles):
        return paths
    files = tuple(expand(paths))
    for path in files:
        check_readable(path)
    return SourceFiles(files, tuple(_look_at(path) for path in files))


def _look_at(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error.strerror}") from error


def expand(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the files that names and patterns mean: one at least, none of them twice.

    A name that exists is taken as it is; files of a pattern come as part-2 before part-10.
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    found: list[Path] = []
    for name in map(str, paths):
        there = Path(name).exists()
        if is_address(name) and not there:
            # The rest of it may hold a password.
            raise DataError(
                f"{hidden(name)}: of what is on object storage only stores are "
                "read, and with a cluster: --cluster threads is one in this process"
            )
        if not there and glob.has_magic(name):
            matches = [match for match in places_of(name) if not match.is_dir()]
            if not matches:
                raise DataError(f"{name}: no file fits this pattern")
            found += matches
        else:
            found.append(Path(name))
    if not found:
        raise DataError("no data file is named; give at least one")
    seen: set[Path] = set()
    for path in found:
        if (place := path.resolve()) in seen:
            raise DataError(f"{path}: the file is named twice; its records would count twice")
        seen.add(place)
    return found


def places_of(pattern: str) -> list[Path]:
    """Return the files and folders that a pattern fits, part-2 before part-10."""
    # Path.glob would want the folder apart from the pattern.
    names = glob.glob(pattern, recursive=True)  # noqa: PTH207
    return sorted(map(Path, names), key=natural_order)


def natural_order(path: Path) -> list[Any]:
    """Return a key that orders names so that part-2 comes before part-10."""
    runs = enumerate(re.split(r"(\d+)", str(path)))
    return [(int(run), run) if k % 2 else run for k, run in runs]
