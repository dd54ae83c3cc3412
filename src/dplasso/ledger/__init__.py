"""The budget ledger, a file that adds up what fits on data sets have spent (docs/ledger.md)."""

# isort: off
from dplasso.ledger.budgets import (
    Reservation as Reservation,
    add_dataset as add_dataset,
    create_ledger as create_ledger,
    find as find,
    finish as finish,
    name_dataset as name_dataset,
    new_budget as new_budget,
    pick as pick,
    read_budgets as read_budgets,
    reserve as reserve,
    total_of as total_of,
)
from dplasso.ledger.charging import (
    Ledger as Ledger,
    charged as charged,
    check_affordable as check_affordable,
    check_paid as check_paid,
    checked_ledger as checked_ledger,
)
from dplasso.ledger.composition import (
    affords as affords,
    epsilon_left as epsilon_left,
    epsilon_total as epsilon_total,
    fits_left as fits_left,
    largest_epsilon as largest_epsilon,
    rho_limit as rho_limit,
    share_of as share_of,
    whole_rho as whole_rho,
)
from dplasso.ledger.entries import (
    UNITS as UNITS,
    SCORE as SCORE,
    Budget as Budget,
    Charge as Charge,
    Entry as Entry,
    charge_of as charge_of,
    counted as counted,
    entry_of as entry_of,
    totals as totals,
)
from dplasso.ledger.rows import data_fingerprint as data_fingerprint, new_token as new_token
