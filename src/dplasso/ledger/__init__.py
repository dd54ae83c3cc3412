"""The budget ledger: a file that adds up what the fits on each data set have spent.

A fit reserves its cost before anything private is computed; the entry stays, whatever becomes of
the fit. ``entries.py`` says what a charge counts for whom, ``composition.py`` what a budget has
room for; ``store.py`` keeps them, in a file that ``creation.py`` makes, ``image.py`` locks and
replaces, and ``opening.py``, ``schema.py`` and ``rows.py`` know; ``charging.py`` is what a fit does
with all this. See docs/ledger.md.
"""

from dplasso.ledger.charging import (
    Payment,
    charged,
    check_affordable,
    check_ledger_settings,
)
from dplasso.ledger.composition import (
    affords,
    epsilon_total,
    fits_left,
    largest_epsilon,
    rho_limit,
)
from dplasso.ledger.creation import add_dataset, create_ledger, name_dataset, new_budget
from dplasso.ledger.entries import (
    UNITS,
    Budget,
    Charge,
    Entry,
    charge_of,
    counted,
    totals,
)
from dplasso.ledger.provenance import data_fingerprint
from dplasso.ledger.rows import new_token
from dplasso.ledger.store import (
    Reservation,
    find,
    finish,
    pick,
    read_budgets,
    rejoin,
    reserve,
)

__all__ = [
    "UNITS",
    "Budget",
    "Charge",
    "Entry",
    "Payment",
    "Reservation",
    "add_dataset",
    "affords",
    "charge_of",
    "charged",
    "check_affordable",
    "check_ledger_settings",
    "counted",
    "create_ledger",
    "data_fingerprint",
    "epsilon_total",
    "find",
    "finish",
    "fits_left",
    "largest_epsilon",
    "name_dataset",
    "new_budget",
    "new_token",
    "pick",
    "read_budgets",
    "rejoin",
    "reserve",
    "rho_limit",
    "totals",
]
