"""What a fit does with a ledger: refuse what cannot be charged, charge, note the end."""

import math
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from dplasso.errors import LedgerError, LedgerWarning
from dplasso.privacy.ledger.composition import affords, charge_of
from dplasso.privacy.ledger.creation import check_name
from dplasso.privacy.ledger.refusal import refuse_overspending, refuse_relation
from dplasso.privacy.ledger.rows import LedgerPath
from dplasso.privacy.ledger.store import (
    Reservation,
    finish,
    pick,
    read_budgets,
    reserve,
)
from dplasso.privacy.mechanism import Mechanism


def check_ledger_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings of a fit that no ledger can account for.

    Parameters
    ----------
    settings : mapping
        The estimator's parameters by name.

    Raises
    ------
    TypeError
        If the ledger is no path or the data set no string.
    LedgerError
        If a data set is named without a ledger, or if a fit with a ledger is not private: seeded
        (whoever knows the seed can take the noise away), `mechanism="paper"` or infinite epsilon.
    """
    ledger, dataset = settings["ledger"], settings["dataset"]
    if dataset is not None:
        check_name(dataset)
    if ledger is None:
        if dataset is not None:
            raise LedgerError(
                f"dataset={dataset!r} names a budget in a ledger, and no ledger is given"
            )
        return
    if not isinstance(ledger, str | os.PathLike) or not os.fspath(ledger):
        raise TypeError(f"ledger must be None or a path, got {ledger!r}")
    if settings["random_state"] is not None:
        cause = "random_state"
    elif settings["mechanism"] != "exponential":
        cause = f"mechanism={settings['mechanism']!r}"
    elif math.isinf(settings["epsilon"]):
        cause = "infinite epsilon"
    else:
        return
    raise LedgerError(
        f"a fit with {cause} is not private, so no ledger can account for it; leave out the one or "
        "the other"
    )


def check_affordable(ledger: LedgerPath | None, dataset: str | None, mechanism: Mechanism) -> None:
    """Find out before the long work whether a fit could be charged; nothing is spent.

    Parameters
    ----------
    ledger : path or None
        The ledger; None has nothing to refuse.
    dataset : str or None
        The data set.
    mechanism : Mechanism
        The fit's private step.

    Raises
    ------
    LedgerError, BudgetError
        As `charged` would.
    """
    if ledger is None:
        return
    charge = charge_of(mechanism)
    budget = pick(read_budgets(ledger), dataset, ledger)
    refuse_relation(budget, charge, ledger)
    if not affords(budget, charge):
        refuse_overspending(budget, charge, ledger)


@contextmanager
def charged(
    ledger: LedgerPath | None,
    dataset: str | None,
    mechanism: Mechanism,
    *,
    resumed: Reservation | None = None,
) -> Iterator[Reservation | None]:
    """Charge the work inside the block to a ledger, before it begins.

    Parameters
    ----------
    ledger : path or None
        The ledger; None charges nothing.
    dataset : str or None
        The data set.
    mechanism : Mechanism
        The private step of the fit inside the block.
    resumed : Reservation, optional
        From `rejoin`: the charge of the interrupted fit that the block goes on with. Nothing more
        is charged then.

    Yields
    ------
    Reservation or None
        After the charge is on the disk. It stays spent however the block ends.

    Raises
    ------
    LedgerError
        If the ledger cannot be used or the mechanism is not private: the block does not run. After
        the block, if its charge has paid for another model meanwhile, or a resumed fit's end
        cannot be noted (it could be resumed, and released, again): the result must not be used.
    BudgetError
        If too little is left; the block does not run.

    Warns
    -----
    LedgerWarning
        If the ledger cannot be told that the block ended; the charge is not affected.
    """
    if ledger is None:
        yield None
        return
    reservation = resumed or reserve(ledger, dataset, charge_of(mechanism))
    try:
        yield reservation
    except BaseException:
        # Only a note for the curator: without it the entry stays "reserved" and costs the same.
        with suppress(Exception):
            finish(reservation, failed=True)
        raise
    try:
        noted = finish(reservation)
    except LedgerError as error:
        if resumed is not None:
            raise
        # The model exists and is paid for: losing it would spend the budget for nothing.
        warnings.warn(
            f"the fit was charged, but its end could not be noted: {error}",
            LedgerWarning,
            stacklevel=4,
        )
        return
    if not noted:
        raise LedgerError(
            f"entry {reservation.number} of {reservation.path} has paid for another model "
            "meanwhile, or is gone; this one must not be used"
        )
