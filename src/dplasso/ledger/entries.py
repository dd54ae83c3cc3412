"""Budgets, charges and entries of a ledger, and the cost of a charge to a person.

For a person with b rows, where a charge covers m, two data sets are ``k = ceil(b / m)`` steps
apart. Then rho counts k^2 times (arXiv 1605.02065, proposition 27). The delta of a draw grows with
``1 + exp(k eps0)``, where eps0 is at most ``sqrt(8 rho)``. Fewer than 2^60 Gaussian variates lack
less than 1e-38 of total variation, times ``exp(L)``: the loss exceeds ``L = k^2 rho + 2 k sqrt(40
rho)`` with a probability below e^-40. A search has a cost only for the rows that it was made for.

Both numbers are whole multiples of 10^-30, rounded up when spent and down when granted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dplasso.errors import LedgerError

# Charges other than fits.
KINDS = SEARCH, SCORE = "search", "score"
# Units of rho and delta in 1.
UNITS = 10**30
# Relative part by which a factor of delta may be rounded.
_ROUNDING = 2.0**-40
# A larger factor of delta exceeds every budget.
_LARGEST_EXPONENT = 600.0


@dataclass(frozen=True)
class Charge:
    """The cost of one fit, and its public parameters.

    `rho`, `draw_delta`: in units of 10^-30. `mechanism`: of the fit, or one of `KINDS`. `eps0`:
    None without common steps. `rows_per_person`: None in entries of 0.2.0. `fingerprint`:
    `data_fingerprint` before the charge, `keyed` in an entry.
    """

    rho: int
    draw_delta: int
    epsilon: float
    delta: float
    n_iter: int
    eps0: float | None
    neighbors: str
    mechanism: str
    rows_per_person: int | None = 1
    purpose: str | None = None
    fingerprint: str | None = None
    prior: str | None = None

    @property
    def kind(self) -> str:
        """What the charge paid for: a fit, a search or a score."""
        return self.mechanism if self.mechanism in KINDS else "fit"


@dataclass(frozen=True)
class Entry:
    """One charge in a ledger, which counts in every state: "reserved", "finished" or "failed".

    `number`: in the order of the reservations. `release`: digest of what the fit released.
    """

    number: int
    state: str
    charge: Charge
    user: str
    host: str
    program: str
    process: int
    reserved_at: str
    ended_at: str | None
    release: str | None = None


@dataclass(frozen=True)
class Budget:
    """The budget of one data set, and what was charged to it.

    `draw_delta_limit`: the part of `delta` for all draws, in units of 10^-30. `rows_per_person`: a
    person with up to so many rows is protected.
    """

    name: str | None
    epsilon: float
    delta: float
    neighbors: str
    draw_delta_limit: int
    rows_per_person: int = 1
    entries: tuple[Entry, ...] = ()

    @property
    def rho(self) -> int:
        """The zCDP parameter spent, for whom the budget protects, in units of 10^-30."""
        return spent(self.entries, self.rows_per_person)[0]

    @property
    def draw_delta(self) -> int:
        """The delta spent on the inexactness of draws, for the same, in units of 10^-30."""
        return spent(self.entries, self.rows_per_person)[1]


def entry_of(budgets: Sequence[Budget], release: str) -> tuple[Budget, Entry] | None:
    """Return the entry that paid for a release, with its budget; None if none did."""
    entries = ((budget, entry) for budget in budgets for entry in budget.entries)
    return next((pair for pair in entries if pair[1].release == release), None)


def counted(charge: Charge, rows_per_person: int) -> tuple[int, int]:
    """Return the rho and the delta that a charge costs a person with `rows_per_person` rows."""
    steps = -(-rows_per_person // (charge.rows_per_person or 1))
    if steps <= 1:
        return charge.rho, charge.draw_delta
    if charge.kind == SEARCH:
        return steps * steps * charge.rho, UNITS
    rho = charge.rho / UNITS
    eps0 = math.sqrt(8.0 * rho) if charge.eps0 is None else charge.eps0
    loss = steps * steps * rho + 2.0 * steps * math.sqrt(40.0 * rho)
    vertices = _exp(steps * eps0) / _exp(eps0)
    draws = charge.draw_delta * Fraction(vertices)
    if charge.eps0 is None:
        draws += Fraction(_exp(loss))
    return steps * steps * charge.rho, math.ceil(draws * Fraction(1.0 + _ROUNDING))


def _exp(loss: float) -> float:
    return 1.0 + math.exp(min(loss, _LARGEST_EXPONENT))


def spent(entries: Sequence[Entry], rows_per_person: int) -> tuple[int, int]:
    """Return the sums of what all entries cost a person with `rows_per_person` rows."""
    costs = [counted(entry.charge, rows_per_person) for entry in entries]
    return sum(rho for rho, _ in costs), sum(draws for _, draws in costs)


def totals(budget: Budget) -> dict[int, tuple[int, int]]:
    """Return what was charged in all, as `counted`, by the rows of everybody who is covered."""
    units = {entry.charge.rows_per_person or 1 for entry in budget.entries}
    return {
        rows: spent(budget.entries, rows) for rows in sorted({1, budget.rows_per_person, *units})
    }


def charge_of(
    mechanism: Any,
    *,
    purpose: str | None = None,
    fingerprint: str | None = None,
    prior: str | None = None,
    kind: str | None = None,
) -> Charge:
    """Return the charge for a fit's budget or a search's cost, in whole units; `kind` if no fit."""
    eps0, draws = mechanism.eps0_accounted, mechanism.sampling_delta
    cost = mechanism.rho if eps0 is None else eps0
    if not (math.isfinite(cost) and cost >= 0 and 0 <= draws < 1):
        raise LedgerError(
            f"a fit with mechanism {mechanism.name!r} is not private, so a ledger cannot account "
            "for it; leave out `ledger`"
        )
    rho = Fraction(cost) if eps0 is None else mechanism.n_iter * Fraction(eps0) ** 2 / 8
    stated = ("epsilon", "delta", "n_iter", "neighbors", "rows_per_person")
    return Charge(
        rho=math.ceil(rho * UNITS),
        draw_delta=math.ceil(Fraction(draws) * UNITS),
        eps0=eps0,
        mechanism=kind or mechanism.name,
        purpose=purpose,
        fingerprint=fingerprint,
        prior=prior,
        **{name: getattr(mechanism, name) for name in stated},
    )
