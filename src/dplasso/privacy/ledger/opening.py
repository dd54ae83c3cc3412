"""Opening a ledger: it is what it should be, or one sentence says why not."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import FileIO
from pathlib import Path

from dplasso.errors import LedgerError
from dplasso.privacy.ledger import image as images
from dplasso.privacy.ledger.schema import APPLICATION_ID, SCHEMA_VERSION, UPGRADES

LedgerPath = str | os.PathLike[str]

_MAGIC = b"SQLite format 3\x00"
# Where SQLite's file header keeps the number of the layout and the application's.
_VERSION, _APPLICATION = slice(60, 64), slice(68, 72)


@contextmanager
def transaction(path: LedgerPath, *, write: bool = True) -> Iterator[sqlite3.Connection]:
    """Open a ledger for one transaction, which is undone if the block raises anything.

    `path`: the ledger; never created here, never changed if it is not one.
    `write`: whether the block changes anything.

    Yields: to the database in memory. Its changes are on the disk when the block has been left.

    Raises LedgerError if the file is missing, no ledger, damaged, of a newer version, not
    writable, or locked by others for a minute.
    """
    shown, target = os.fspath(path), Path(path)
    try:
        if not write:
            with images.locked(target, shown, write=False) as file:
                held = _checked(images.read_image(file), shown)
            # A ledger of version 1 is brought to the present layout even by those that only read:
            # entries may still be in its log.
            write = _version(held) == 1
            if not write:
                with closing(_in_memory(_upgraded(held))) as db:
                    yield db
                return
        with images.locked(target, shown, write=True) as file:
            held = _checked(images.read_image(file), shown)
            if _version(held) == 1:
                held = _upgrade(file, target)
            with closing(_in_memory(_upgraded(held))) as db:
                db.execute("BEGIN")
                yield db
                db.execute("COMMIT")
                changed = db.serialize()
            if changed != held:
                images.write_image(file, changed)
    except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
        raise LedgerError(_sentence(error, shown)) from error


def _in_memory(image: bytes) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.deserialize(image)
    db.execute("PRAGMA foreign_keys = ON")
    return db


def _version(image: bytes) -> int:
    return int.from_bytes(image[_VERSION], "big")


def _checked(image: bytes, shown: str) -> bytes:
    """Return what is a ledger of a known version; refuse all else before SQLite sees it."""
    number = int.from_bytes(image[_APPLICATION], "big")
    if image[: len(_MAGIC)] != _MAGIC or number != APPLICATION_ID:
        raise LedgerError(f"{shown} is not a dplasso ledger")
    version = _version(image)
    if version > SCHEMA_VERSION:
        raise LedgerError(
            f"{shown} has version {version} of the ledger's layout and this dplasso knows "
            f"version {SCHEMA_VERSION}; install a newer dplasso"
        )
    if version < 1:
        raise LedgerError(f"{shown} is damaged: it has no known version")
    return image


def _upgraded(image: bytes) -> bytes:
    """Return the same ledger in the present layout."""
    for version in range(_version(image), SCHEMA_VERSION):
        with closing(_in_memory(image)) as db:
            db.executescript(UPGRADES[version])
            image = db.serialize()
    return image


def _upgrade(file: FileIO, path: Path) -> bytes:
    """Bring a ledger of version 1, which SQLite kept in WAL mode, to the present layout.

    What is still in its write-ahead log is found only under the name that the ledger was charged
    by. SQLite's own lock keeps programs of version 0.1.0 out until the file is of a version that
    they refuse.
    """
    uri = f"{path.resolve().as_uri()}?mode=rw"
    timeout = images.BUSY_SECONDS
    with closing(sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)) as old:
        old.execute("PRAGMA locking_mode = EXCLUSIVE")
        old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        old.execute("BEGIN EXCLUSIVE")
        held = images.without_wal_mode(images.read_image(file))
        held = _upgraded(held)
        images.write_image(file, held)
        old.execute("ROLLBACK")
    return held


def _sentence(error: Exception, shown: str) -> str:
    """Return what the system or SQLite reports, in the words a user needs."""
    if isinstance(error, OSError):
        return _sentence_of_system(error, shown)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return (
            f"{shown} was locked by other processes for more than {images.BUSY_SECONDS:g} seconds; "
            "nothing was spent, try again"
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return (
            f"{shown} cannot be written; to bring a ledger of an older version up to date, the "
            "file and its folder must be writable"
        )
    # SQLite quotes what it cannot read, which may be of several lines or no text at all.
    told = " ".join(str(error).split())
    damaged = isinstance(error, UnicodeDecodeError)
    if damaged or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return f"{shown} is damaged ({told}); restore it from a backup"
    return f"{shown} cannot be used: {told}"


def _sentence_of_system(error: OSError, shown: str) -> str:
    if isinstance(error, FileNotFoundError):
        return f"there is no ledger {shown}; create it with dplasso ledger init"
    if isinstance(error, IsADirectoryError):
        return f"{shown} is a folder, not a ledger"
    if error.errno == errno.ENOSPC:
        return f"{shown} cannot be written: the disk is full"
    if os.access(shown, os.R_OK):
        return f"{shown} cannot be written: {error.strerror}"
    return f"{shown} cannot be read: {error.strerror}"
