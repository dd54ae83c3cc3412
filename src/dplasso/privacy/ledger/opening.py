"""Opening a ledger's file: it is what it should be, or one sentence says why not."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dplasso.errors import LedgerError
from dplasso.privacy.ledger.schema import APPLICATION_ID, SCHEMA_VERSION

# Seconds to wait for other processes; each holds the file for some milliseconds.
BUSY_SECONDS = 60.0

_MAGIC = b"SQLite format 3\x00"
# Where SQLite's file header keeps the application's number.
_APPLICATION = slice(68, 72)
_HEADER_SIZE = 100


@contextmanager
def connect(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """Open a ledger, close it at the end, and turn what SQLite complains of into one sentence.

    Parameters
    ----------
    path : str or path-like
        The ledger; never created here, never changed if it is not one.

    Yields
    ------
    sqlite3.Connection
        Without implicit transactions; a commit is on the disk when it returns.

    Raises
    ------
    LedgerError
        If the file is missing, no ledger, damaged, of a newer version, not writable, or locked by
        others for a minute.
    """
    shown = os.fspath(path)
    _check_header(Path(path), shown)
    try:
        uri = f"{Path(path).absolute().as_uri()}?mode=rw"
        with closing(
            sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        ) as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > SCHEMA_VERSION:
                raise LedgerError(
                    f"{shown} has version {version} of the ledger's layout and this dplasso knows "
                    f"version {SCHEMA_VERSION}; install a newer dplasso"
                )
            if version != SCHEMA_VERSION:
                raise LedgerError(f"{shown} is damaged: it has no known version")
            # In WAL mode anything less could lose the last commits in a power failure.
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
            yield db
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise LedgerError(_sentence(error, shown)) from error


def _check_header(path: Path, shown: str) -> None:
    """Refuse what is no ledger before SQLite touches it."""
    if path.is_dir():
        raise LedgerError(f"{shown} is a directory, not a ledger")
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_SIZE)
    except FileNotFoundError:
        raise LedgerError(
            f"there is no ledger {shown}; create it with dplasso ledger init"
        ) from None
    except OSError as error:
        raise LedgerError(f"{shown} cannot be read: {error.strerror}") from error
    number = int.from_bytes(header[_APPLICATION], "big")
    if header[: len(_MAGIC)] != _MAGIC or number != APPLICATION_ID:
        raise LedgerError(f"{shown} is not a dplasso ledger")


def _sentence(error: Exception, shown: str) -> str:
    """Word what SQLite reports as a user needs it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return (
            f"{shown} was locked by other processes for more than {BUSY_SECONDS:g} seconds; "
            "nothing was spent, try again"
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return (
            f"{shown} cannot be written; the file and its directory must be writable, because "
            "SQLite keeps two files beside it"
        )
    if code == sqlite3.SQLITE_FULL:
        return f"{shown} cannot be written: the disk is full"
    # SQLite quotes what it cannot read, which may be of several lines or no text at all.
    told = " ".join(str(error).split())
    damaged = isinstance(error, UnicodeDecodeError)
    if damaged or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return f"{shown} is damaged ({told}); restore it from a backup"
    return f"{shown} cannot be used: {told}"
