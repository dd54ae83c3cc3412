"""Creating a ledger and adding data sets to it."""

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from dplasso.errors import LedgerError
from dplasso.files.atomic import sync_directory
from dplasso.privacy.ledger.composition import capacity
from dplasso.privacy.ledger.rows import LedgerPath, insert_dataset, read_rows, transaction
from dplasso.privacy.ledger.schema import APPLICATION_ID, SCHEMA, SCHEMA_VERSION
from dplasso.privacy.parameters import check_delta, check_epsilon, check_neighbors, check_positive

_LONGEST_NAME = 200


def create_ledger(
    path: LedgerPath,
    epsilon: float,
    delta: float,
    *,
    dataset: str | None = None,
    neighbors: str = "add-remove",
) -> None:
    """Create a ledger with the budget of one data set; the file appears whole or not at all.

    Parameters
    ----------
    path : str or path-like
        Where; nothing may be there yet.
    epsilon, delta : float
        What all fits on the data set may spend together; both finite.
    dataset : str, optional
        The data set's name. None leaves it to the first fit that gives one.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        The neighbour relation that all fits must have.

    Raises
    ------
    LedgerError
        If something is there already, the place cannot be written to, or the name is no name.
    TypeError, ValueError
        If a parameter is not of its kind or out of range.
    """
    values = _checked_budget(epsilon, delta, neighbors)
    name = None if dataset is None else check_name(dataset)
    target = Path(path)
    if os.path.lexists(target):
        raise LedgerError(f"{target} exists already; a ledger is never overwritten")
    temporary = target.with_name(f".dplasso-{secrets.token_hex(8)}.tmp")
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as db:
            db.executescript(SCHEMA)
            insert_dataset(db, name, *values)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            db.execute("PRAGMA journal_mode = WAL")
        # A link, unlike a rename, never takes the place of a file that appeared meanwhile.
        os.link(temporary, target)
        sync_directory(target.parent)
    except FileExistsError:
        raise LedgerError(f"{target} exists already; a ledger is never overwritten") from None
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise LedgerError(
            f"no ledger can be created at {target}: its directory {target.parent} is missing or "
            f"takes no such file ({reason})"
        ) from error
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                temporary.with_name(temporary.name + suffix).unlink(missing_ok=True)


def add_dataset(
    path: LedgerPath, dataset: str, epsilon: float, delta: float, *, neighbors: str = "add-remove"
) -> None:
    """Add the budget of one more data set, about other records, to a ledger.

    Parameters
    ----------
    path : str or path-like
        The ledger.
    dataset : str
        A name that the ledger does not have yet.
    epsilon, delta, neighbors
        As in `create_ledger`.

    Raises
    ------
    LedgerError
        If the ledger cannot be used, has the name already, or has a data set without a name.
    TypeError, ValueError
        If a parameter is not of its kind or out of range.
    """
    values = _checked_budget(epsilon, delta, neighbors)
    name = check_name(dataset)
    with transaction(path) as db:
        names = [budget.name for budget in read_rows(db, path).values()]
        if name in names:
            raise LedgerError(f"{path} has a data set {name!r} already; its budget stays as it is")
        if None in names:
            raise LedgerError(
                f"the data set in {path} has no name yet; name it first (dplasso ledger name)"
            )
        insert_dataset(db, name, *values)


def name_dataset(path: LedgerPath, dataset: str) -> None:
    """Name the data set of a ledger that was created without a name.

    Parameters
    ----------
    path : str or path-like
        The ledger.
    dataset : str
        The name.

    Raises
    ------
    LedgerError
        If the ledger cannot be used or its data sets have names.
    """
    name = check_name(dataset)
    with transaction(path) as db:
        if all(budget.name is not None for budget in read_rows(db, path).values()):
            raise LedgerError(f"the data sets in {path} have names, and names do not change")
        db.execute("UPDATE dataset SET name = ? WHERE name IS NULL", (name,))


def check_name(dataset: Any) -> str:
    """Check the name of a data set.

    Parameters
    ----------
    dataset : str
        The name given.

    Returns
    -------
    str
        The same.

    Raises
    ------
    TypeError
        If it is not a string.
    LedgerError
        If it is empty, longer than 200 characters, or not one line of printable text.
    """
    if not isinstance(dataset, str):
        raise TypeError(f"dataset must be a string, got {dataset!r}")
    if not dataset.strip() or not dataset.isprintable() or len(dataset) > _LONGEST_NAME:
        raise LedgerError(
            f"dataset must be one line of 1 to {_LONGEST_NAME} printable characters, "
            f"got {dataset!r}"
        )
    return dataset


def _checked_budget(epsilon: Any, delta: Any, neighbors: Any) -> tuple[float, float, str]:
    values = (
        check_positive("epsilon", check_epsilon(epsilon)),
        check_delta(delta),
        check_neighbors(neighbors),
    )
    if capacity(values[0], values[1], 0) == 0:
        raise LedgerError(
            f"a budget of epsilon {epsilon!r} at delta {delta!r} allows no fit at all"
        )
    return values
