"""What a fit does with a ledger: refuse what cannot be charged, charge, note the end."""

import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from dplasso.errors import LedgerError, LedgerWarning, ParameterTypeError
from dplasso.ledger.budgets import Reservation, check_name, finish, pick, read_budgets, reserve
from dplasso.ledger.composition import affords, refuse_overspending, refuse_relation
from dplasso.ledger.database import LedgerPath
from dplasso.ledger.entries import charge_of
from dplasso.privacy.budget import Cost


@dataclass(frozen=True)
class Payment:
    """How a fit that can be resumed pays: once, however often it is begun again.

    `release`: gives, after the fit, the digest of the one release that the charge pays for.
    """

    take: Callable[[], Reservation]
    release: Callable[[], str]


def check_ledger_settings(settings: Mapping[str, Any]) -> None:
    """Refuse an estimator's parameters, by name, that no ledger can account for."""
    ledger = settings["ledger"]
    for name in ("dataset", "purpose"):
        if settings[name] is None:
            continue
        check_name(settings[name], name)
        if ledger is None:
            raise LedgerError(f"`{name}={settings[name]!r}` needs a ledger, and none is given")
    if ledger is None:
        return
    if not isinstance(ledger, str | os.PathLike) or not os.fspath(ledger):
        raise ParameterTypeError(f"`ledger` must be None or a path, got {ledger!r}")
    if settings["random_state"] is not None:
        cause = "`random_state`"
    elif settings["mechanism"] not in ("exponential", "gaussian"):
        cause = f"`mechanism={settings['mechanism']!r}`"
    elif math.isinf(settings["epsilon"]):
        cause = "infinite epsilon"
    else:
        return
    raise LedgerError(
        f"a fit with {cause} is not private, so no ledger can account for it; leave out one "
        "of the two"
    )


def check_affordable(
    ledger: LedgerPath | None, dataset: str | None, mechanism: Cost, kind: str | None = None
) -> None:
    """Refuse a fit as `charged` would, before the long work; nothing is spent."""
    if ledger is None:
        return
    charge = charge_of(mechanism, kind=kind)
    budget = pick(read_budgets(ledger), dataset, ledger)
    refuse_relation(budget, charge, ledger)
    if not affords(budget, charge):
        refuse_overspending(budget, charge, ledger)


def check_paid(ledger: LedgerPath | None, release: str, what: str) -> None:
    """Raise LedgerError if an earlier release, which is called `what`, was not charged here."""
    if ledger is None:
        return
    entries = (entry for budget in read_budgets(ledger) for entry in budget.entries)
    if all(entry.release != release for entry in entries):
        raise LedgerError(
            f"{what} were released from the same records, and {os.fspath(ledger)} was not charged "
            "for it; release them with this ledger"
        )


@contextmanager
def charged(
    ledger: LedgerPath | None,
    dataset: str | None,
    mechanism: Cost,
    *,
    payment: Payment | None = None,
    release: Callable[[], str | None] | None = None,
    notes: Mapping[str, str | None] | None = None,
) -> Iterator[Reservation | None]:
    """Charge the work inside the block to a ledger, if there is one, before it begins.

    The charge is on the disk then, and stays spent however the block ends. `payment` is of a fit
    that can be resumed; of others `release` gives the digest of what the block released, and
    `notes` purpose and fingerprint.

    Raises LedgerError after the block, whose result must not be used then, if its charge has paid
    for another model meanwhile, or the end of a fit that can be resumed cannot be noted (a copy of
    it could be released as well). Of other fits an end that cannot be noted is a LedgerWarning.
    """
    if ledger is None:
        yield None
        return
    if payment is not None:
        reservation = payment.take()
    else:
        reservation = reserve(ledger, dataset, charge_of(mechanism, **(notes or {})))
    try:
        yield reservation
    except BaseException:
        # Only a note for the curator: without it the entry stays "reserved" and costs the same.
        with suppress(Exception):
            finish(reservation, failed=True)
        raise
    try:
        digest = release if payment is None else payment.release
        noted = finish(reservation, release=None if digest is None else digest())
    except LedgerError as error:
        if payment is not None:
            raise
        # The model exists and is paid for: losing it would spend the budget for nothing.
        warnings.warn(
            f"the fit was charged, but its end could not be recorded: {error}",
            LedgerWarning,
            stacklevel=4,
        )
        return
    if not noted:
        raise LedgerError(
            f"entry {reservation.number} of {reservation.path} has meanwhile paid for another "
            "model, or is gone; this one must not be used"
        )
