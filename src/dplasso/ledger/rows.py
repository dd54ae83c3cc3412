"""The rows of a ledger, and the checksums that tie them together."""

import getpass
import hashlib
import hmac
import json
import os
import secrets
import socket
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.errors import LedgerError
from dplasso.files.disk import descriptor, program
from dplasso.ledger.database import RESERVED, LedgerPath
from dplasso.ledger.entries import Budget, Charge, Entry

# Columns of an entry that its digest covers, in this order.
ENTRY_FIXED = (
    *("dataset", "token", "rho", "draw_delta", "epsilon", "delta", "n_iter", "eps0"),
    *("neighbors", "mechanism", "user", "host", "program", "process", "reserved_at"),
)
# Covered if an entry has one of them.
ENTRY_NOTES = ("purpose", "fingerprint")
# The same for a budget, besides its limit and the rows of a person.
DATASET_FIXED = ("epsilon", "delta", "neighbors")
_KEY_BYTES = 32


def now() -> str:
    """Return the time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def origin() -> dict[str, str]:
    """Return user, host and program, as far as the system knows them."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container whose user has no name
        user = f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
    host = socket.gethostname() or "unknown"
    # A name in another encoding than the system's cannot be stored.
    user = os.fsencode(user).decode(errors="backslashreplace")
    return {"user": user, "host": host, "program": program()}


def data_fingerprint(labels: NDArray[Any]) -> str:
    """Return a hash of the number of records and of their labels or targets, in order.

    It has no key: who knows all labels but one can read that one from it. Only `keyed` may save it.
    """
    # Two classes are bits, as in the entries of dplasso 0.3.
    binary = np.logical_or(labels == 0, labels == 1).all()
    content = np.packbits(labels != 0) if binary else labels.astype("<f4", copy=False)
    return hashlib.sha256(f"{labels.size}\n".encode() + content.tobytes()).hexdigest()


def keyed(path: str | os.PathLike[str], fingerprint: str) -> str | None:
    """Return a fingerprint's HMAC-SHA-256, cut to 16 digits, with 8 digits that say which key.

    The key is 32 random bytes in the private file ``NAME.key`` beside the ledger, made when it is
    first needed. None where there can be no key.
    """
    place = f"{os.path.realpath(path)}.key"
    try:
        with os.fdopen(descriptor(place, os.O_RDWR | os.O_CREAT), "r+b") as file:
            key = file.read()
            if not key:
                key = secrets.token_bytes(_KEY_BYTES)
                file.write(key)
                file.flush()
                os.fsync(file.fileno())
    except OSError:
        return None
    if len(key) != _KEY_BYTES:
        return None
    which = hashlib.sha256(b"dplasso: which key\n" + key).hexdigest()[:8]
    return f"{which}:{hmac.new(key, fingerprint.encode(), hashlib.sha256).hexdigest()[:16]}"


def new_token() -> str:
    """Return a random token that no other entry of any ledger has."""
    return secrets.token_hex(16)


def insert_dataset(db: sqlite3.Connection, budget: Budget) -> None:
    """Append a data set, without entries."""
    who = origin()
    key = db.execute("SELECT coalesce(max(id), 0) + 1 FROM dataset").fetchone()[0]
    values = {
        "id": key,
        "name": budget.name,
        **{name: getattr(budget, name) for name in DATASET_FIXED},
        "created_by": f"{who['user']}@{who['host']}",
        "created_at": now(),
        "draw_delta_limit": str(budget.draw_delta_limit),
        "rows_per_person": budget.rows_per_person,
    }
    values["digest"] = _dataset_digest(values)
    _insert(db, "dataset", values)


def _insert(db: sqlite3.Connection, table: str, values: dict[str, Any]) -> None:
    names, marks = ", ".join(values), ", ".join("?" * len(values))
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(values.values()))


def _dataset_digest(row: Any) -> str:
    rows = row["rows_per_person"]
    values = [row["id"], *(row[name] for name in DATASET_FIXED), row["draw_delta_limit"]]
    # Budgets of 0.2.0 were for a row.
    return _digest("dataset", values + [rows] * (rows != 1))


def insert_entry(
    db: sqlite3.Connection, dataset: int, charge: Charge, token: str | None = None
) -> tuple[int, str]:
    """Append a charge to a data set's key; return its number and token."""
    token = token or new_token()
    values = {
        "dataset": dataset,
        "token": token,
        **asdict(charge),
        # These exceed 64 bits.
        **{name: str(getattr(charge, name)) for name in ("rho", "draw_delta")},
        "eps0": charge.eps0 or 0.0,
        **origin(),
        "process": os.getpid(),
        "reserved_at": now(),
    }
    last = db.execute("SELECT number, digest FROM entry ORDER BY number DESC LIMIT 1").fetchone()
    number, before = (0, "") if last is None else last
    values["digest"] = _entry_digest(before, values)
    values |= {"number": number + 1, "state": RESERVED}
    _insert(db, "entry", values)
    return number + 1, token


def _entry_digest(before: str, row: Any) -> str:
    notes = [row[name] for name in ENTRY_NOTES]
    noted = any(note is not None for note in notes)
    rows = row["rows_per_person"]
    # Entries of 0.2.0 do not say how many rows they cover.
    covered = [*notes, rows] if rows is not None else notes if noted else []
    started = [] if row["prior"] is None else [row["prior"]]
    return _digest(before, [*(row[name] for name in ENTRY_FIXED), *covered, *started])


def _digest(before: str, values: Sequence[Any]) -> str:
    """Hash an entry's values together with the entry before it: none can be lost or altered."""
    return hashlib.sha256(json.dumps([before, *values]).encode()).hexdigest()


def read_rows(db: sqlite3.Connection, path: LedgerPath) -> dict[int, Budget]:
    """Read and verify everything; return the budgets by the data sets' keys."""
    db.row_factory = sqlite3.Row
    try:
        return _verified(db)
    except (LookupError, TypeError, ValueError) as error:
        raise LedgerError(
            f"{path} is damaged: what it holds does not fit its checksums; restore it from a "
            "backup and charge what was spent since (dplasso ledger spend)"
        ) from error
    finally:
        db.row_factory = None


def _verified(db: sqlite3.Connection) -> dict[int, Budget]:
    """Read the budgets and their entries; ValueError if a row was altered or lost."""
    entries: dict[int, list[Entry]] = {}
    datasets: dict[int, sqlite3.Row] = {}
    for row in db.execute("SELECT * FROM dataset ORDER BY id"):
        if row["digest"] != _dataset_digest(row):
            raise ValueError("a budget")
        datasets[row["id"]] = row
        entries[row["id"]] = []
    before, number = "", 0
    for row in db.execute("SELECT * FROM entry ORDER BY number"):
        number += 1
        in_order = row["number"] == number and row["dataset"] in entries
        if not in_order or row["digest"] != _entry_digest(before, row):
            raise ValueError(f"entry {number}")
        before = row["digest"]
        entries[row["dataset"]].append(_entry(row))
    # SQLite counts the rows ever made, so the last one cannot be lost unnoticed.
    ever = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entry'").fetchone()
    if not datasets or (int(ever["seq"]) if ever else 0) != number:
        raise ValueError("the number of entries")
    return {
        key: Budget(
            name=row["name"],
            **{name: row[name] for name in DATASET_FIXED},
            draw_delta_limit=int(row["draw_delta_limit"]),
            rows_per_person=row["rows_per_person"],
            entries=tuple(entries[key]),
        )
        for key, row in datasets.items()
    }


def _entry(row: sqlite3.Row) -> Entry:
    charge = Charge(
        rho=int(row["rho"]),
        draw_delta=int(row["draw_delta"]),
        eps0=row["eps0"] or None,
        **{name: row[name] for name in ("epsilon", "delta", "n_iter", "neighbors", "mechanism")},
        **{name: row[name] for name in ("rows_per_person", "prior", *ENTRY_NOTES)},
    )
    facts = ("number", "state", "user", "host", "program", "process", "reserved_at", "ended_at")
    return Entry(charge=charge, **{name: row[name] for name in (*facts, "release")})
