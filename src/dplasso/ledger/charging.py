"""How a fit uses a ledger: refuse what cannot be charged, charge, note the end."""

import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from dplasso.errors import LedgerError, LedgerWarning, ParameterTypeError, shown
from dplasso.ledger.budgets import Reservation, check_name, finish, pick, read_budgets, reserve
from dplasso.ledger.composition import affords, refuse_overspending, refuse_relation
from dplasso.ledger.entries import Budget, Charge, charge_of, entry_of


@dataclass(frozen=True)
class Ledger:
    """The budget that a fit, a score or a search is charged to.

    Parameters
    ----------
    path : path
        The ledger's file, made by `dplasso.ledger.create_ledger` or ``dplasso ledger init``.
    dataset : str, default=None
        Name of the data set in the ledger. None is for a ledger that has only one.
    purpose : str, default=None
        What the result is for. The ledger notes it; no model or score holds it.

    Raises
    ------
    TypeError
        If `path` is not a path, or empty.
    LedgerError
        If a name is empty, has more than one line, or is longer than 200 characters.

    Examples
    --------
    >>> from dplasso import DPLogisticRegression, Ledger
    >>> model = DPLogisticRegression(0.5, ledger=Ledger("team.ledger", dataset="visits"))
    """

    path: str | os.PathLike[str]
    dataset: str | None = None
    purpose: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike) or not os.fspath(self.path):
            raise ParameterTypeError(
                f"`ledger` must be None, a path or a dplasso.Ledger, got {shown(self.path)}"
            )
        for name in ("dataset", "purpose"):
            if getattr(self, name) is not None:
                check_name(getattr(self, name), name)

    def budget(self) -> Budget:
        """Read the budget of the data set; LedgerError if there is none or it cannot be read."""
        return pick(read_budgets(self.path), self.dataset, self.path)

    def charge(self, cost: Any, **notes: str | None) -> Charge:
        """Return what the ledger will hold of a cost."""
        return charge_of(cost, **{"purpose": self.purpose, **notes})


def checked_ledger(
    ledger: Any, *, epsilon: float, random_state: Any, mechanism: str = "gaussian"
) -> Ledger | None:
    """Return the ledger of a parameter; LedgerError for settings that it cannot account for."""
    if ledger is None:
        return None
    checked = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    if random_state is not None:
        cause = "`random_state`"
    elif mechanism not in ("exponential", "gaussian"):
        cause = f"`mechanism={mechanism!r}`"
    elif math.isinf(epsilon):
        cause = "infinite epsilon"
    else:
        return checked
    raise LedgerError(
        f"a fit with {cause} is not private, so a ledger cannot account for it; leave out "
        "one of the two"
    )


def check_affordable(ledger: Ledger | None, mechanism: Any, kind: str | None = None) -> None:
    """Refuse a fit as `charged` would, before the long work; nothing is spent."""
    if ledger is None:
        return
    charge = charge_of(mechanism, kind=kind)
    budget = ledger.budget()
    refuse_relation(budget, charge, ledger.path)
    if not affords(budget, charge):
        refuse_overspending(budget, charge, ledger.path)


def check_paid(ledger: Ledger | None, release: str, what: str) -> None:
    """Raise LedgerError if the data set was not charged for an earlier release, called `what`."""
    if ledger is not None and entry_of([ledger.budget()], release) is None:
        raise LedgerError(
            f"{what} were released from the same records, and the data set of the fit in "
            f"{os.fspath(ledger.path)} was not charged for it; release them with this ledger and "
            "data set. If they were other records, delete `edges` from the schema"
        )


@contextmanager
def charged(
    ledger: Ledger | None,
    mechanism: Any,
    *,
    take: Callable[[], Reservation] | None = None,
    release: Callable[[], str | None] | None = None,
    notes: Mapping[str, str | None] | None = None,
) -> Iterator[Reservation | None]:
    """Charge the work inside the block to a ledger, if there is one, before it begins.

    `take` charges a fit that can be resumed. The charge stays spent however the block ends.
    LedgerError after the block means that another model was paid for, or that the end of a fit that
    can be resumed cannot be noted. Do not use the result then.
    """
    if ledger is None:
        yield None
        return
    if take is not None:
        reservation = take()
    else:
        reservation = reserve(
            ledger.path, ledger.dataset, ledger.charge(mechanism, **(notes or {}))
        )
    try:
        yield reservation
    except BaseException:
        # Only a note for the curator: without it the entry stays "reserved" and costs the same.
        with suppress(Exception):
            finish(reservation, failed=True)
        raise
    try:
        noted = finish(reservation, release=None if release is None else release())
    except LedgerError as error:
        if take is not None:
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
            f"entry {reservation.number} of {reservation.path} is missing or has "
            "paid for another model since; do not use this model"
        )
