"""Creating a ledger and adding data sets to it."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from dplasso.errors import LedgerError
from dplasso.files.atomic import atomic_write
from dplasso.ledger.composition import draws_part, rho_limit
from dplasso.ledger.entries import Budget
from dplasso.ledger.opening import LedgerPath, transaction
from dplasso.ledger.rows import insert_dataset, read_rows
from dplasso.ledger.schema import APPLICATION_ID, SCHEMA, SCHEMA_VERSION
from dplasso.privacy.parameters import (
    check_delta,
    check_epsilon,
    check_neighbors,
    check_positive,
    check_rows_per_person,
)

_LONGEST_NAME = 200


def create_ledger(
    path: LedgerPath,
    epsilon: float,
    delta: float,
    *,
    dataset: str | None = None,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
) -> None:
    """Create a ledger with the budget of one data set; the file appears whole or not at all.

    `epsilon`, `delta`: what all fits on the data set may spend together; both finite.
    `dataset`: the data set's name. None leaves it to the first fit that gives one.
    `neighbors`: the neighbour relation that all fits must have.
    `rows_per_person`: whom the budget protects: 1 for each row, m for each person with up to m
    rows. A fit that covers fewer rows of a person (its own `rows_per_person`) counts for more.
    """
    name = None if dataset is None else check_name(dataset)
    budget = new_budget(name, epsilon, delta, neighbors, rows_per_person)
    target = Path(path)
    if os.path.lexists(target):
        raise LedgerError(f"{target} exists already; a ledger is never overwritten")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript(SCHEMA)
        insert_dataset(db, budget)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        image = db.serialize()
    try:
        with atomic_write(target, replace=False, private=True) as file:
            file.write(image)
    except FileExistsError:
        raise LedgerError(f"{target} exists already; a ledger is never overwritten") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise LedgerError(f"no ledger can be created at {target}: {reason}") from error


def add_dataset(
    path: LedgerPath,
    dataset: str,
    epsilon: float,
    delta: float,
    *,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
) -> None:
    """Add the budget of one more data set, about other records, as `create_ledger` makes it.

    Its name must be new, and the data sets that are there must have names.
    """
    name = check_name(dataset)
    added = new_budget(name, epsilon, delta, neighbors, rows_per_person)
    with transaction(path) as db:
        names = [budget.name for budget in read_rows(db, path).values()]
        if name in names:
            raise LedgerError(f"{path} has a data set {name!r} already; its budget stays as it is")
        if None in names:
            raise LedgerError(
                f"the data set in {path} has no name yet; name it first (dplasso ledger name)"
            )
        insert_dataset(db, added)


def name_dataset(path: LedgerPath, dataset: str) -> None:
    """Name the data set of a ledger; LedgerError if its data sets have names."""
    name = check_name(dataset)
    with transaction(path) as db:
        if all(budget.name is not None for budget in read_rows(db, path).values()):
            raise LedgerError(f"the data sets in {path} have names, and names do not change")
        db.execute("UPDATE dataset SET name = ? WHERE name IS NULL", (name,))


def check_name(dataset: Any, what: str = "dataset") -> str:
    """Return the name of a data set, or another line of the curator's in the parameter `what`."""
    if not isinstance(dataset, str):
        raise TypeError(f"{what} must be a string, got {dataset!r}")
    if not dataset.strip() or not dataset.isprintable() or len(dataset) > _LONGEST_NAME:
        raise LedgerError(
            f"{what} must be one line of 1 to {_LONGEST_NAME} printable characters, got {dataset!r}"
        )
    return dataset


def new_budget(
    name: str | None, epsilon: Any, delta: Any, neighbors: Any, rows_per_person: Any = 1
) -> Budget:
    """Return an empty budget, with the limits that it has from the start."""
    budget = Budget(
        name=name,
        epsilon=check_positive("epsilon", check_epsilon(epsilon)),
        delta=check_delta(delta),
        neighbors=check_neighbors(neighbors),
        draw_delta_limit=draws_part(float(delta)),
        rows_per_person=check_rows_per_person(rows_per_person),
    )
    if rho_limit(budget) == 0:
        raise LedgerError(
            f"a budget of epsilon {epsilon!r} at delta {delta!r} allows no fit at all"
        )
    return budget
