"""Opening a ledger: it is what it should be, or one sentence says why not."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dplasso.errors import LedgerError
from dplasso.ledger import image as images
from dplasso.ledger.schema import APPLICATION_ID, OLDEST_VERSION, SCHEMA_VERSION, UPGRADES

LedgerPath = str | os.PathLike[str]

_MAGIC = b"SQLite format 3\x00"
# Where SQLite's file header keeps the number of the layout and the application's.
_VERSION, _APPLICATION = slice(60, 64), slice(68, 72)


@contextmanager
def transaction(path: LedgerPath, *, write: bool = True) -> Iterator[sqlite3.Connection]:
    """Open a ledger, as a database in memory, for one transaction.

    Its changes are on the disk when the block has been left, and undone if it raises anything. A
    file that is no ledger is refused with a LedgerError, and never created or changed.
    """
    shown, target = os.fspath(path), Path(path)
    try:
        if not write:
            with images.locked(target, shown, write=False) as file:
                held = _checked(images.read_image(file), shown)
            with closing(_in_memory(_upgraded(held))) as db:
                yield db
            return
        with images.locked(target, shown, write=True) as file:
            held = _upgraded(_checked(images.read_image(file), shown))
            with closing(_in_memory(held)) as db:
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


def _checked(image: bytes, shown: str) -> bytes:
    """Return what is a ledger of a known version; refuse all else before SQLite sees it."""
    number = int.from_bytes(image[_APPLICATION], "big")
    if image[: len(_MAGIC)] != _MAGIC or number != APPLICATION_ID:
        raise LedgerError(f"{shown} is not a dplasso ledger")
    version = int.from_bytes(image[_VERSION], "big")
    if version > SCHEMA_VERSION:
        raise LedgerError(
            f"{shown} has version {version} of the ledger's layout and this dplasso knows "
            f"version {SCHEMA_VERSION}; install a newer dplasso"
        )
    if version < OLDEST_VERSION:
        raise LedgerError(
            f"{shown} has version {version} of the ledger's layout, from before dplasso 0.2.0; "
            "charge it once with dplasso 0.2.0, or make a new ledger and charge there what was "
            "spent (dplasso ledger spend)"
        )
    return image


def _upgraded(image: bytes) -> bytes:
    """Return the same ledger in the present layout."""
    for version in range(int.from_bytes(image[_VERSION], "big"), SCHEMA_VERSION):
        with closing(_in_memory(image)) as db:
            db.executescript(UPGRADES[version])
            image = db.serialize()
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
    # SQLite quotes what it cannot read, which may be of several lines or no text at all.
    told = " ".join(str(error).split())
    damaged = isinstance(error, UnicodeDecodeError)
    if damaged or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return f"{shown} is damaged ({told}); restore it from a backup"
    return f"{shown} cannot be used: {told}"
