"""The files of a data set: patterns, addresses, reading in blocks, changes during reading."""

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
from typing import Any, TypeVar

from dplasso.errors import DataError

BLOCK_BYTES = 2 << 20
"""Decompressed bytes in a block; a longer line makes a longer block."""

MAX_LINE_BYTES = 1 << 30
"""A longer line is refused, because the file is not text and would fill the memory."""

_MAGIC = {
    b"\x1f\x8b": "gzip (.gz)",
    b"BZh": "bzip2 (.bz2)",
    b"\xfd7zXZ\x00": "xz (.xz)",
    b"PK\x03\x04": "zip (.zip, .npz)",
}

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_STREAM_ERRORS = (EOFError, zlib.error, lzma.LZMAError, OSError)

Progress = Callable[[int, int], None]
"""Called with the amount done and the total, usually in bytes on disk."""


_OPENERS: dict[str, Callable[[Any], Any]]
_OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
COMPRESSED_SUFFIXES = (*_OPENERS,)


def check_readable(path: Path) -> None:
    """Raise `DataError` unless a path is a regular file, which can be read twice."""
    if path.is_dir():
        raise DataError(f"{path} is a folder; pass a data file")
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if not path.is_file():
        raise DataError(f"{path} is not a file but a pipe or device; pass a data file")


def line_blocks(path: Path, block_bytes: int = BLOCK_BYTES) -> Generator[tuple[bytes, int]]:
    """Yield decompressed blocks of whole lines, and the bytes of the file read so far.

    A thread reads the next block while the caller works on the last one, and at most three blocks
    are in memory. The text has no byte-order mark, and only the last block may lack a line end.
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
                    f"{path}: the content is {name}, but the file name lacks this suffix; rename "
                    "the file"
                )
        stream = _OPENERS[suffix](raw) if suffix in _OPENERS else raw

        def read(_: None) -> tuple[bytes, int]:
            try:
                return stream.read(block_bytes), raw.tell()
            except _STREAM_ERRORS as error:
                problem = f"cannot be read: {error}"
                if suffix in _OPENERS:
                    # The message may quote the first bytes.
                    problem = f"the {suffix} stream is damaged or truncated; compress it again"
                raise DataError(f"{path}: {problem}") from error

        pending: list[bytes] = []  # the start of a line that has not ended yet
        mark_of_order = codecs.BOM_UTF8  # removed from the start of the text
        with closing(in_order(read, repeat(None), 1)) as chunks:
            for chunk, done in takewhile(lambda pair: pair[0], chunks):
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
    """Run an iterator to its end, and discard its items."""
    deque(items, maxlen=0)


def in_order(
    work: Callable[[_Item], _Result], items: Iterable[_Item], n_threads: int
) -> Generator[_Result]:
    """Apply `work` in threads, a little ahead of the caller, and yield the results in order.

    A `DataError` from `items` is raised after the results of all earlier items.
    """
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="dplasso-read")
    ahead: deque[Future[_Result]] = deque()

    def submitted() -> Iterator[Future[_Result]]:
        try:
            for item in items:
                yield pool.submit(work, item)
                del item  # frees memory before the next item is made
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
# A scheme, a host, an optional port, and a path. All other parts of an address can hold a secret:
# a user, a password or token, parameters, a signature, a fragment, or an encoding of these (%).
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^@:/?#;&%]*(:[0-9]{1,5})?(/[^@:?#;&%]*)?")
# An option before its value, and words such as those of a purpose.
_BEFORE = re.compile(r"(--[a-z0-9-]+=)?([\w,. ]* )?")


def is_address(path: str) -> bool:
    """Return whether a path is an address such as s3://bucket/a, not a local path."""
    return "://" in path


def hidden(address: str) -> str:
    """Return the part of an address that is safe to show in a message."""
    scheme = address.partition("://")[0]
    return f"{scheme if _SCHEME.fullmatch(scheme) else '...'}://..."


def checked_address(address: str) -> str:
    """Return an address without trailing slashes; `DataError` if it may hold a secret."""
    if not (_PLAIN.fullmatch(address) and address.isprintable()):
        raise DataError(
            f"an address {hidden(address)} holds more than a scheme, a host and a path, which logs "
            "and messages would reveal; set user names, passwords, tokens and signatures in the "
            "environment or in fsspec's configuration files"
        )
    return address.rstrip("/")


def check_argument(text: str) -> None:
    """Raise `DataError` if a command-line argument is an address that may hold a secret."""
    if is_address(text):
        checked_address(_BEFORE.sub("", text, count=1))


@dataclass(frozen=True)
class SourceFiles:
    """The files of a data set in their order, at least one, with their first `os.stat` results."""

    paths: tuple[Path, ...]
    stats: tuple[os.stat_result, ...]

    @property
    def name(self) -> str:
        """The first file and the number of others, for messages."""
        more = len(self.paths) - 1
        return f"{self.paths[0]} and {more} more" if more else str(self.paths[0])

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return self.before(len(self.paths))

    def before(self, i: int) -> int:
        """Bytes of the files before file ``i``."""
        return sum(stat.st_size for stat in self.stats[:i])

    def check_unchanged(self, i: int) -> None:
        """Raise `DataError` if file ``i`` has changed."""
        before, now = self.stats[i], _look_at(self.paths[i])
        same = os.path.samestat(before, now) and before.st_mtime_ns == now.st_mtime_ns
        if not same or before.st_size != now.st_size:
            raise DataError(
                f"{self.paths[i]}: the file changed during reading; try again when no program "
                "writes to it"
            )


Paths = str | Path | Iterable[str | Path]
"""One file, a pattern such as ``part-*.svm.gz``, or several of these."""


def source_files(paths: Paths) -> SourceFiles:
    """Return the files of a data set; `DataError` for any that cannot be read."""
    files = tuple(expand(paths))
    for path in files:
        check_readable(path)
    return SourceFiles(files, tuple(_look_at(path) for path in files))


def _look_at(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error.strerror}") from error


def expand(paths: Paths) -> list[Path]:
    """Return the files that match names and patterns: at least one, none twice.

    An existing name is not a pattern. The files of a pattern are sorted, part-2 before part-10.
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    files: list[Path] = []
    for name in map(str, paths):
        there = Path(name).exists()
        if is_address(name) and not there:
            # The rest of it may hold a password.
            raise DataError(
                f"{hidden(name)}: on object storage only a fit on a cluster can read, and only "
                "stores; use --cluster threads to run a cluster in this process"
            )
        if not there and glob.has_magic(name):
            matches = [match for match in places_of(name) if not match.is_dir()]
            if not matches:
                raise DataError(f"{name}: no file matches this pattern")
            files += matches
        elif there:
            files.append(Path(name))
        else:
            raise DataError(f"{name}: no such file")
    if not files:
        raise DataError("no data file was passed; at least one is needed")
    seen: set[Path] = set()
    for path in files:
        if (place := path.resolve()) in seen:
            raise DataError(
                f"{path}: the file is named twice, so its records would count twice; name it once"
            )
        seen.add(place)
    return files


def places_of(pattern: str) -> list[Path]:
    """Return the files and folders that match a pattern, part-2 before part-10."""
    # Path.glob needs the folder and the pattern separately.
    names = glob.glob(pattern, recursive=True)  # noqa: PTH207
    return sorted(map(Path, names), key=natural_order)


def natural_order(path: Path) -> list[Any]:
    """Return a sort key that puts part-2 before part-10."""
    runs = enumerate(re.split(r"(\d+)", str(path)))
    return [(int(run), run) if k % 2 else run for k, run in runs]
