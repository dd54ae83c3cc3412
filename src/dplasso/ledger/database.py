"""A ledger's file: one SQLite database that is read whole and replaced whole, under one lock.

SQLite names its journals after a path, so a file with two names would have two. Here the database
is changed in memory. A commit appends the new database to the file with its digest, waits for the
disk, writes it over the old one, waits again and cuts the copy off. After a crash there is a whole
copy, which counts, or the old database whole.
"""

import errno
import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from io import FileIO
from pathlib import Path

from dplasso.errors import LedgerError
from dplasso.files.disk import SQLITE, lock, unlock

LedgerPath = str | os.PathLike[str]

# In the file's header, where SQLite has a number for each application.
APPLICATION_ID = 0x64704C31
SCHEMA_VERSION = 5

RESERVED, FINISHED, FAILED = "reserved", "finished", "failed"

_DIGITS = "CHECK (length({0}) > 0 AND {0} NOT GLOB '*[^0-9]*')"

# Sums of rho and delta exceed 64 bits, so they are decimal digits. `eps0` is 0 for none. Triggers
# keep any program from changing or removing what was charged.
SCHEMA = f"""
CREATE TABLE dataset (
    id INTEGER PRIMARY KEY,
    name TEXT UNIQUE CHECK (length(name) > 0),
    epsilon REAL NOT NULL CHECK (epsilon > 0),
    delta REAL NOT NULL CHECK (delta > 0 AND delta < 1),
    neighbors TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    digest TEXT NOT NULL,
    draw_delta_limit TEXT NOT NULL {_DIGITS.format("draw_delta_limit")},
    rows_per_person INTEGER NOT NULL DEFAULT 1 CHECK (rows_per_person >= 1)
);
CREATE TABLE entry (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset INTEGER NOT NULL REFERENCES dataset (id),
    token TEXT NOT NULL UNIQUE,
    rho TEXT NOT NULL {_DIGITS.format("rho")},
    draw_delta TEXT NOT NULL {_DIGITS.format("draw_delta")},
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    n_iter INTEGER NOT NULL,
    eps0 REAL NOT NULL,
    neighbors TEXT NOT NULL,
    mechanism TEXT NOT NULL,
    user TEXT NOT NULL,
    host TEXT NOT NULL,
    program TEXT NOT NULL,
    process INTEGER NOT NULL,
    reserved_at TEXT NOT NULL,
    digest TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('{RESERVED}', '{FINISHED}', '{FAILED}')),
    ended_at TEXT,
    release TEXT,
    purpose TEXT,
    fingerprint TEXT,
    rows_per_person INTEGER CHECK (rows_per_person >= 1),
    prior TEXT
);
CREATE TRIGGER dataset_stays BEFORE DELETE ON dataset
    BEGIN SELECT RAISE (ABORT, 'a data set cannot leave a ledger'); END;
CREATE TRIGGER dataset_fixed BEFORE UPDATE ON dataset
    WHEN old.name IS NOT NULL OR new.id IS NOT old.id OR new.epsilon IS NOT old.epsilon
        OR new.delta IS NOT old.delta OR new.neighbors IS NOT old.neighbors
        OR new.digest IS NOT old.digest OR new.draw_delta_limit IS NOT old.draw_delta_limit
        OR new.rows_per_person IS NOT old.rows_per_person
    BEGIN SELECT RAISE (ABORT, 'a budget cannot be changed'); END;
CREATE TRIGGER entry_stays BEFORE DELETE ON entry
    BEGIN SELECT RAISE (ABORT, 'an entry cannot leave a ledger'); END;
CREATE TRIGGER entry_fixed BEFORE UPDATE ON entry
    WHEN old.state IS '{FINISHED}' OR new.digest IS NOT old.digest
        OR new.number IS NOT old.number OR new.dataset IS NOT old.dataset
        OR new.token IS NOT old.token OR new.rho IS NOT old.rho
        OR new.draw_delta IS NOT old.draw_delta
    BEGIN SELECT RAISE (ABORT, 'an entry cannot be changed'); END;
"""

# Seconds to wait for other processes; each holds the file for some milliseconds.
BUSY_SECONDS = 60.0

# The end of a copy: SHA-256 of the database, its size in 8 bytes, and this.
_COPY_MAGIC = b"dplasso: commit\x00"
_TRAILER = 32 + 8 + len(_COPY_MAGIC)

# SQLite's file header: the size of a page, and the number of pages.
_PAGE_SIZE, _PAGES = slice(16, 18), slice(28, 32)
# The numbers of the layout and of the application.
_VERSION, _APPLICATION = slice(60, 64), slice(68, 72)


@contextmanager
def locked(path: Path, shown: str, *, write: bool) -> Iterator[FileIO]:
    """Open a ledger's file, `shown` in messages, and hold its lock, which readers share."""
    refusal = LedgerError(
        f"{shown} was locked by other processes for more than {BUSY_SECONDS:g} seconds; try again"
    )
    with FileIO(path, "r+" if write else "r") as file:
        lock(file, refusal, seconds=BUSY_SECONDS, shared=not write)
        try:
            yield file
        finally:
            unlock(file)


def new_image(fill: Callable[[sqlite3.Connection], None]) -> bytes:
    """Return the database of a new ledger, filled."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript(SCHEMA)
        fill(db)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        return db.serialize()


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
    # Remains of an interrupted write would hide the end of the copy.
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


@contextmanager
def transaction(path: LedgerPath, *, write: bool = True) -> Iterator[sqlite3.Connection]:
    """Open a ledger, as a database in memory, for one transaction.

    Its changes are on the disk when the block has been left, and undone if it raises anything.
    """
    shown, target = os.fspath(path), Path(path)
    try:
        with locked(target, shown, write=write) as file:
            held = _checked(read_image(file), shown)
            if not write:
                # Else readers, who share the lock, would leave no moment for a charge.
                unlock(file)
            with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
                db.deserialize(held)
                db.execute("PRAGMA foreign_keys = ON")
                db.execute("BEGIN")
                yield db
                db.execute("COMMIT")
                changed = db.serialize()
            if write and changed != held:
                write_image(file, changed)
    except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
        raise LedgerError(_sentence(error, shown)) from error


def _checked(image: bytes, shown: str) -> bytes:
    """Return what is a ledger of a known version; refuse all else before SQLite sees it."""
    number = int.from_bytes(image[_APPLICATION], "big")
    if image[: len(SQLITE)] != SQLITE or number != APPLICATION_ID:
        raise LedgerError(f"{shown} is not a dplasso ledger; create one with dplasso ledger init")
    version = int.from_bytes(image[_VERSION], "big")
    if version > SCHEMA_VERSION:
        raise LedgerError(
            f"{shown} has version {version} of the ledger's layout and this dplasso knows "
            f"version {SCHEMA_VERSION}; install a newer dplasso"
        )
    if version < SCHEMA_VERSION:
        raise LedgerError(
            f"{shown} was written before dplasso 0.3. Charge it once with dplasso 0.3, which "
            "converts it, or charge what was spent to a new ledger (dplasso ledger spend)"
        )
    return image


def _sentence(error: Exception, shown: str) -> str:
    """Return what the system or SQLite reports, in the words a user needs."""
    if isinstance(error, FileNotFoundError):
        return f"there is no ledger {shown}; create it with dplasso ledger init"
    if isinstance(error, IsADirectoryError):
        return f"{shown} is a folder, not a ledger"
    if isinstance(error, OSError):
        if error.errno == errno.ENOSPC:
            return f"{shown} cannot be written: the disk is full"
        verb = "written" if os.access(shown, os.R_OK) else "read"
        return f"{shown} cannot be {verb}: {error.strerror}"
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    # SQLite quotes what it cannot read, which may have several lines.
    reason = " ".join(str(error).split())
    damaged = isinstance(error, UnicodeDecodeError)
    if damaged or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return f"{shown} is damaged ({reason}); restore it from a backup"
    return f"{shown} cannot be used: {reason}"
