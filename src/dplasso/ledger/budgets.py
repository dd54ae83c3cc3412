"""Operations on a ledger file: create budgets, and charge them.

Every operation locks the file, does one transaction and closes it. A charge reads the budget and
writes its entry under one lock, so two processes can never both take the last of a budget.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dplasso.errors import LedgerError, ParameterTypeError, shown
from dplasso.files.disk import atomic_write
from dplasso.ledger.composition import (
    affords,
    draws_part,
    epsilon_total,
    refuse_overspending,
    refuse_relation,
    rho_limit,
)
from dplasso.ledger.database import FAILED, FINISHED, LedgerPath, new_image, transaction
from dplasso.ledger.entries import SEARCH, Budget, Charge, spent
from dplasso.ledger.rows import insert_dataset, insert_entry, keyed, now, read_rows
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
    `rows_per_person`: whom the budget protects: 1 for each row, m for each person with up to m
    rows. A fit that covers fewer rows of a person (its own `rows_per_person`) counts for more.
    """
    name = None if dataset is None else check_name(dataset)
    budget = new_budget(name, epsilon, delta, neighbors, rows_per_person)
    target = Path(path)
    exists = LedgerError(f"{target} exists already and is not overwritten; choose another name")
    if os.path.lexists(target):
        raise exists
    image = new_image(lambda db: insert_dataset(db, budget))
    try:
        with atomic_write(target, replace=False, private=True) as file:
            file.write(image)
    except FileExistsError:
        raise exists from None
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
    """Add the budget of one more data set, about other records, as `create_ledger` makes it."""
    name = check_name(dataset)
    added = new_budget(name, epsilon, delta, neighbors, rows_per_person)
    with transaction(path) as db:
        budgets = read_rows(db, path).values()
        if name in [budget.name for budget in budgets]:
            raise LedgerError(f"{path} has a data set {name!r} already; its budget was not changed")
        if any(budget.name is None for budget in budgets):
            raise LedgerError(
                f"the data set in {path} has no name; give it one first (dplasso ledger name)"
            )
        insert_dataset(db, added)


def name_dataset(path: LedgerPath, dataset: str) -> None:
    """Name the data set of a ledger; LedgerError if its data sets have names."""
    name = check_name(dataset)
    with transaction(path) as db:
        if all(budget.name is not None for budget in read_rows(db, path).values()):
            raise LedgerError(
                f"the data sets in {path} already have names, and a name cannot be changed"
            )
        db.execute("UPDATE dataset SET name = ? WHERE name IS NULL", (name,))


def check_name(dataset: Any, what: str = "dataset") -> str:
    """Return the name of a data set, or another line of the curator's in the parameter `what`."""
    if not isinstance(dataset, str):
        raise ParameterTypeError(f"`{what}` must be a string, got {shown(dataset)}")
    if not dataset.strip() or not dataset.isprintable() or len(dataset) > _LONGEST_NAME:
        raise LedgerError(
            f"`{what}` must be one line of 1 to {_LONGEST_NAME} printable characters, got "
            f"{dataset!r}"
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
            f"a budget of epsilon {epsilon!r} at delta {delta!r} is too small for any fit: "
            "use a larger epsilon"
        )
    return budget


@dataclass(frozen=True)
class Reservation:
    """A charge made for a fit; its random token is in no other copy of the file."""

    path: str
    number: int
    token: str


def read_budgets(path: LedgerPath) -> tuple[Budget, ...]:
    """Return the budgets of a ledger, in the order in which their data sets were added."""
    with transaction(path, write=False) as db:
        return tuple(read_rows(db, path).values())


def reserve(
    path: LedgerPath,
    dataset: str | None,
    charge: Charge,
    *,
    token: str | None = None,
    release: str | None = None,
) -> Reservation:
    """Charge a fit to a data set's budget, before the fit; durable when this returns.

    `dataset`: None if the ledger has only one. The first name given to a data set without one
    becomes its name.
    `token`: from `new_token`, written down before. A charge that is tried again with it after a
    crash is made once.
    `release`: digest of the complete release of a fit that is resumed, which alone a finished entry
    may be taken up for.
    """
    if token is not None and (number := find(path, token)) is not None:
        made = Reservation(os.fspath(path), number, token)
        return _rejoined(path, made, charge, dataset, release)
    budget = pick(read_budgets(path), dataset, path)
    refuse_relation(budget, charge, path)
    # The slow part of the comparison, cached before the file is locked.
    affords(budget, charge)
    with transaction(path) as db:
        budgets = read_rows(db, path)
        budget = pick(budgets.values(), dataset, path)
        key = next(key for key, other in budgets.items() if other is budget)
        if affords(budget, charge):
            if budget.name is None and dataset is not None:
                db.execute("UPDATE dataset SET name = ? WHERE id = ?", (check_name(dataset), key))
            if charge.fingerprint is not None:
                charge = replace(charge, fingerprint=keyed(path, charge.fingerprint))
            return Reservation(os.fspath(path), *insert_entry(db, key, charge, token))
    # The message takes the accountant a while, so it is made after the file is unlocked.
    return refuse_overspending(budget, charge, path)


def find(path: LedgerPath, token: str) -> int | None:
    """Return the number of the entry with a token that `reserve` was given, or None."""
    with transaction(path, write=False) as db:
        read_rows(db, path)
        row = db.execute("SELECT number FROM entry WHERE token = ?", (token,)).fetchone()
    return None if row is None else int(row[0])


def finish(reservation: Reservation, *, failed: bool = False, release: str | None = None) -> bool:
    """Note that a fit has ended, with a model or without; its cost stays spent.

    Return False if there is no such reservation, or if it has paid for another release already.
    """
    with transaction(reservation.path) as db:
        done = db.execute(
            "UPDATE entry SET state = ?, ended_at = ?, release = ? WHERE number = ? AND token = ? "
            "AND state IS NOT ?",
            (
                *(FAILED if failed else FINISHED, now(), release),
                *(reservation.number, reservation.token, FINISHED),
            ),
        )
        if done.rowcount == 1:
            return True
        before = db.execute(
            "SELECT release FROM entry WHERE number = ? AND token = ?",
            (reservation.number, reservation.token),
        ).fetchone()
        return not failed and release is not None and before == (release,)


def _rejoined(
    path: LedgerPath, made: Reservation, charge: Charge, dataset: str | None, release: str | None
) -> Reservation:
    """Return the reservation of an interrupted fit, unless another fit made it or goes on."""
    every = ((budget, entry) for budget in read_budgets(path) for entry in budget.entries)
    budget, entry = next(pair for pair in every if pair[1].number == made.number)
    held, name = entry.charge, budget.name
    covered = held.rows_per_person in (None, charge.rows_per_person)
    if not covered or (held.rho, held.draw_delta) != (charge.rho, charge.draw_delta):
        raise LedgerError(
            f"{path} holds no entry {made.number} of the fit to be resumed. This is not the ledger "
            "that was charged, or it is an old copy; pass the one that was charged"
        )
    if dataset is not None and name is not None and dataset != name:
        raise LedgerError(
            f"entry {made.number} of {path} is charged to {name!r}, not {dataset!r}: resume with "
            "the data set of the interrupted fit"
        )
    own = None if charge.fingerprint is None else keyed(path, charge.fingerprint)
    # Only fingerprints under one key compare.
    alike = held.fingerprint and own and held.fingerprint.split(":")[0] == own.split(":")[0]
    if alike and held.fingerprint != own:
        raise LedgerError(
            f"entry {made.number} of {path} was charged for other records: resume with the rows of "
            "the interrupted fit, in their order"
        )
    if entry.state == FINISHED and (release is None or release != entry.release):
        raise LedgerError(
            f"entry {made.number} of {path} has paid for a model already, and this fit would end "
            "in another one: start it again, at its own cost"
        )
    return made


def pick(budgets: Iterable[Budget], dataset: str | None, path: Any) -> Budget:
    """Return the budget of that name, or the only one if no name is given or it has none yet."""
    choices = list(budgets)
    for budget in choices:
        if dataset is not None and budget.name == check_name(dataset):
            return budget
    if len(choices) == 1 and (dataset is None or choices[0].name is None):
        return choices[0]
    names = ", ".join(repr(budget.name) for budget in choices)
    if dataset is None:
        raise LedgerError(f"{path} keeps several data sets; name one of {names} with `dataset`")
    raise LedgerError(f"{path} has no data set {dataset!r}; it knows {names}")


def total_of(budgets: Sequence[Budget]) -> tuple[float, float] | None:
    """Return epsilon and delta of a person in all data sets; None if neighbour relations differ.

    In each of them the person has as many rows as any of the budgets protects. A search that has a
    budget to itself may be charged less zCDP than it costs (`dplasso.tuning.search_cost`), so its
    own epsilon and delta are added.
    """
    if len({budget.neighbors for budget in budgets}) > 1:
        return None
    rows, delta = (max(getattr(b, name) for b in budgets) for name in ("rows_per_person", "delta"))
    costs = [spent(budget.entries, rows) for budget in budgets]
    rho, draws = (sum(cost) for cost in zip(*costs, strict=True))
    alone = [b.entries for b in budgets if [entry.charge.kind for entry in b.entries] == [SEARCH]]
    rho -= sum(spent(entries, rows)[0] for entries in alone)
    epsilon = epsilon_total(rho, draws, delta)
    searches = [entry.charge for entries in alone for entry in entries]
    return epsilon + sum(s.epsilon for s in searches), delta + sum(s.delta for s in searches)
