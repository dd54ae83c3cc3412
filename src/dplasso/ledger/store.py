"""The ledger's file: who charged what to which data set, safe among processes and crashes.

Every operation locks the file, does one transaction and closes it, so nothing is held while a fit
runs and nothing is inherited by a fork. A charge reads the budget and writes its entry under one
lock: two processes can never both take the last of a budget, whatever name they know the file by.
All raise LedgerError if the ledger cannot be used.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from dplasso.errors import LedgerError
from dplasso.ledger.composition import affords
from dplasso.ledger.creation import check_name
from dplasso.ledger.entries import Budget, Charge
from dplasso.ledger.opening import LedgerPath, transaction
from dplasso.ledger.provenance import keyed, now
from dplasso.ledger.refusal import refuse_overspending, refuse_relation
from dplasso.ledger.rows import insert_entry, read_rows
from dplasso.ledger.schema import FAILED, FINISHED


@dataclass(frozen=True)
class Reservation:
    """A charge made for a fit; the random token tells it from one of another copy of the file."""

    path: str
    number: int
    token: str


def read_budgets(path: LedgerPath) -> tuple[Budget, ...]:
    """Return the budgets of a ledger, in the order in which their data sets were added."""
    with transaction(path, write=False) as db:
        return tuple(read_rows(db, path).values())


def reserve(
    path: LedgerPath, dataset: str | None, charge: Charge, *, token: str | None = None
) -> Reservation:
    """Charge a fit to a data set's budget, before the fit; durable when this returns.

    `dataset`: None where the ledger has only one. A name given for the first time to a ledger
    whose data set has none becomes its name.
    `token`: from `new_token`, written down before: tried again with it after a crash, a charge that
    was made is not made a second time.
    """
    if token is not None and (made := find(path, token)) is not None:
        return rejoin(path, made, token, charge, dataset=dataset)
    budget = pick(read_budgets(path), dataset, path)
    refuse_relation(budget, charge, path)
    # The slow part of the comparison, done and remembered before the file is locked.
    affords(budget, charge)
    with transaction(path) as db:
        budgets = read_rows(db, path)
        budget = pick(budgets.values(), dataset, path)
        key = next(key for key, known in budgets.items() if known is budget)
        if affords(budget, charge):
            if budget.name is None and dataset is not None:
                db.execute("UPDATE dataset SET name = ? WHERE id = ?", (check_name(dataset), key))
            if charge.fingerprint is not None:
                charge = replace(charge, fingerprint=keyed(path, charge.fingerprint))
            return Reservation(os.fspath(path), *insert_entry(db, key, charge, token))
    # The sentence takes the accountant a while, so it is made when the file is free again.
    return refuse_overspending(budget, charge, path)


def find(path: LedgerPath, token: str) -> int | None:
    """Return the number of the entry with a token that `reserve` was given, or None."""
    with transaction(path, write=False) as db:
        read_rows(db, path)
        row = db.execute("SELECT number FROM entry WHERE token = ?", (token,)).fetchone()
    return None if row is None else int(row[0])


def finish(reservation: Reservation, *, failed: bool = False, release: str | None = None) -> bool:
    """Note that a fit has ended, with a model or without; what it cost stays spent.

    Return False if the ledger has no such reservation, or noted before that it was finished with
    another release, or an unknown one: a charge pays for one model.
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


def rejoin(
    path: LedgerPath,
    number: int,
    token: str,
    charge: Charge,
    *,
    dataset: str | None = None,
    release: str | None = None,
) -> Reservation:
    """Return the reservation of an interrupted fit that is resumed, so that it is not paid twice.

    `charge`: what it costs as a whole. `release`: digest of what it releases, if that is complete:
    an entry that paid for that very one may be taken up although it is finished.
    """
    with transaction(path, write=False) as db:
        read_rows(db, path)
        row = db.execute(
            "SELECT rho, draw_delta, entry.rows_per_person, state, release, name FROM entry "
            "JOIN dataset ON dataset.id = entry.dataset WHERE number = ? AND token = ?",
            (number, token),
        ).fetchone()
    if (
        row is None
        or (int(row[0]), int(row[1])) != (charge.rho, charge.draw_delta)
        or row[2] not in (None, charge.rows_per_person)
    ):
        raise LedgerError(
            f"{path} holds no entry {number} of the fit to be resumed: it is another ledger than "
            "the one that was charged, or an old copy of it"
        )
    state, released, name = row[3:]
    if dataset is not None and name is not None and dataset != name:
        raise LedgerError(
            f"entry {number} of {path} is charged to {name!r}, not {dataset!r}: resume with the "
            "data set of the interrupted fit"
        )
    if state == FINISHED and (release is None or release != released):
        raise LedgerError(
            f"entry {number} of {path} has paid for a model already, and this fit would end in "
            "another one: start it again, at its own cost"
        )
    return Reservation(os.fspath(path), number, token)


def pick(budgets: Iterable[Budget], dataset: str | None, path: Any) -> Budget:
    """Return the budget of that name, or the only one if no name is given or it has none yet."""
    known = list(budgets)
    for budget in known:
        if dataset is not None and budget.name == check_name(dataset):
            return budget
    if len(known) == 1 and (dataset is None or known[0].name is None):
        return known[0]
    names = ", ".join(repr(budget.name) for budget in known)
    if dataset is None:
        raise LedgerError(f"{path} keeps several data sets; name one of {names} (dataset)")
    raise LedgerError(f"{path} has no data set {dataset!r}; it knows {names}")
