"""A ledger's file: one SQLite database that is read whole and replaced whole, under one lock.

SQLite's own journals are files beside the database, named after the path it was opened by. A file
that has two names (a hard link, a bind mount of the file alone) has two such journals, and a commit
that waits in one of them is invisible under the other name. So nothing is kept beside the file: the
database is worked on in memory, and the file is written here.

- The *lock* is the file's own (``flock``), so all names of it have the same one.
- A *commit* appends a copy of the new database to the file, with its digest, and waits for the
  disk. Then it writes the same over the old database, waits again, and cuts the copy off. Whoever
  opens the file after a crash finds a whole copy, which counts, or else the old database whole.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from dplasso.errors import LedgerError
from dplasso.files.lock import lock, unlock

# Seconds to wait for other processes; each holds the file for some milliseconds.
BUSY_SECONDS = 60.0

# The end of a copy: SHA-256 of the database, its size in 8 bytes, and this.
_COPY_MAGIC = b"dplasso: commit\x00"
_TRAILER = 32 + 8 + len(_COPY_MAGIC)

# SQLite's file header: the size of a page, and the number of pages.
_PAGE_SIZE, _PAGES = slice(16, 18), slice(28, 32)


@contextmanager
def locked(path: Path, shown: str, *, write: bool) -> Iterator[FileIO]:
    """Open a ledger's file, `shown` in messages, and hold its lock, which readers share."""
    refusal = LedgerError(
        f"{shown} was locked by other processes for more than {BUSY_SECONDS:g} "
        "seconds; nothing was spent, try again"
    )
    with FileIO(path, "r+" if write else "r") as file:
        lock(file, refusal, seconds=BUSY_SECONDS, shared=not write)
        try:
            yield file
        finally:
            unlock(file)


def read_image(file: FileIO) -> bytes:
    """Return the database that a file holds, whatever moment a commit was interrupted at."""
    file.seek(0)
    content = file.readall()
    copy = _whole_copy(content)
    return content[: _size(content)] if copy is None else copy


def write_image(file: FileIO, image: bytes) -> None:
    """Replace the database that a file holds; a crash leaves the old one or the new one."""
    file.seek(0)
    content = file.readall()
    copy = _whole_copy(content)
    if copy is not None:
        _finish(file, copy)
        content = copy
    size = _size(content)
    # What an interrupted write left behind would hide the end of the copy.
    file.truncate(size)
    # The bytes between the two are written too, so that the second half needs no more room.
    padding = bytes(max(0, len(image) - size))
    try:
        _write(file, size, padding + image + _trailer(image))
    except OSError:
        with suppress(OSError):
            file.truncate(size)
        raise
    _finish(file, image)


def _finish(file: FileIO, image: bytes) -> None:
    """Do the second half of a commit, which can be done again."""
    _write(file, 0, image)
    file.truncate(len(image))


def _write(file: FileIO, start: int, data: bytes) -> None:
    rest = memoryview(data)
    file.seek(start)
    while rest:
        rest = rest[file.write(rest) :]
    os.fsync(file.fileno())


def _trailer(image: bytes) -> bytes:
    return hashlib.sha256(image).digest() + len(image).to_bytes(8, "big") + _COPY_MAGIC


def _whole_copy(content: bytes) -> bytes | None:
    """Return the copy at the end of the file, if a commit got as far as to write all of it."""
    if not content.endswith(_COPY_MAGIC):
        return None
    end = len(content) - _TRAILER
    size = int.from_bytes(content[end + 32 : end + 40], "big")
    image = content[end - size : end] if 0 < size <= end else b""
    return image if image and content[end:] == _trailer(image) else None


def _size(content: bytes) -> int:
    """Return the size of the database at the beginning of the file, as its header has it."""
    page = int.from_bytes(content[_PAGE_SIZE], "big")
    size = (65536 if page == 1 else page) * int.from_bytes(content[_PAGES], "big")
    return size or len(content)
