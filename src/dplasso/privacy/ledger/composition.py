"""What several fits on one data set cost together, in integers.

A fit of T steps, each eps0-bounded-range, is ``T eps0^2 / 8``-zCDP but for a part of delta that
covers the inexactness of its draws (`dplasso.privacy.mechanisms`). Adaptively chosen fits add up in
both numbers (arXiv 1605.02065, lemma 2.3 and section 8): with R the sum of the first and E the sum
of the second, all of them together are (epsilon, delta)-differentially private with the epsilon
that the accountant reports for R-zCDP at ``delta - E``. Epsilons are never added.

Both numbers are held as whole numbers of 10^-30, rounded up when they are spent and down when they
are granted. A double has 53 bits, so the rounding is far below its last one, and sums and
comparisons are exact: k equal parts of a budget are the budget.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dplasso.errors import LedgerError
from dplasso.privacy.accounting import renyi_orders
from dplasso.privacy.mechanisms import Mechanism, build_mechanism

# Units to 1: of rho, and of delta.
UNITS = 10**30
# Relative precision of a budget's capacity; finer than the margin of a calibration.
_CAPACITY_TOLERANCE = 2.0**-45
# Below this a budget is taken for empty rather than searched further.
_SMALLEST_RHO = 1e-29
# Attempts, each 4 times farther, to step from a solved epsilon to one that is surely affordable.
_STEPS_DOWN = 20


@dataclass(frozen=True)
class Charge:
    """What one fit costs, and what it is; made of public parameters alone.

    Attributes
    ----------
    rho : int
        zCDP parameter of the whole fit, in units of 10^-30, rounded up.
    draw_delta : int
        Delta that covers the inexactness of the fit's draws, in units of 10^-30, rounded up.
    epsilon, delta : float
        What was asked for.
    n_iter : int
        Number of steps T.
    eps0 : float
        Bounded-range parameter of a step as it was accounted.
    neighbors : {"add-remove", "replace-one"}
        The neighbour relation.
    mechanism : str
        The mechanism's name.
    """

    rho: int
    draw_delta: int
    epsilon: float
    delta: float
    n_iter: int
    eps0: float
    neighbors: str
    mechanism: str


@dataclass(frozen=True)
class Entry:
    """One charge in a ledger.

    Attributes
    ----------
    number : int
        1, 2, 3 ... in the order of the reservations, over all data sets of the ledger.
    state : {"reserved", "finished", "failed"}
        "reserved" means that the fit is still running or that its process died. The cost counts
        in every state.
    charge : Charge
        What was charged.
    user, host, program : str
        Who charged it, where, and with which version of the program.
    process : int
        The process's number on that host.
    reserved_at, ended_at : str or None
        UTC, ISO 8601.
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


@dataclass(frozen=True)
class Budget:
    """The budget of one data set and what was charged to it.

    Attributes
    ----------
    name : str or None
        The data set; None as long as nobody has named it.
    epsilon, delta : float
        What all fits together may spend.
    neighbors : {"add-remove", "replace-one"}
        The neighbour relation all of them must have.
    entries : tuple of Entry
        In the order of the reservations.
    """

    name: str | None
    epsilon: float
    delta: float
    neighbors: str
    entries: tuple[Entry, ...] = field(default=())

    @property
    def rho(self) -> int:
        """The zCDP parameter spent, in units of 10^-30."""
        return sum(entry.charge.rho for entry in self.entries)

    @property
    def draw_delta(self) -> int:
        """The delta spent on the inexactness of draws, in units of 10^-30."""
        return sum(entry.charge.draw_delta for entry in self.entries)


def charge_of(mechanism: Mechanism) -> Charge:
    """Say what a fit with this mechanism costs.

    Parameters
    ----------
    mechanism : Mechanism
        The private step of the fit.

    Returns
    -------
    Charge
        In whole units, rounded up.

    Raises
    ------
    LedgerError
        If the mechanism is not private: no budget can pay for it.
    """
    if mechanism.name != "exponential":
        raise LedgerError(
            f"a fit with mechanism {mechanism.name!r} is not private, so no ledger can account for "
            "it; leave the ledger out"
        )
    rho = mechanism.n_iter * Fraction(mechanism.eps0_accounted) ** 2 / 8
    return Charge(
        rho=math.ceil(rho * UNITS),
        draw_delta=math.ceil(Fraction(mechanism.sampling_delta) * UNITS),
        epsilon=mechanism.epsilon,
        delta=mechanism.delta,
        n_iter=mechanism.n_iter,
        eps0=mechanism.eps0_accounted,
        neighbors=mechanism.neighbors,
        mechanism=mechanism.name,
    )


def epsilon_total(rho: int, draw_delta: int, delta: float) -> float:
    """Give the epsilon of everything that was spent.

    Parameters
    ----------
    rho, draw_delta : int
        Sums over the charges, in units of 10^-30.
    delta : float
        The delta at which epsilon is reported, in (0, 1).

    Returns
    -------
    float
        At `delta`, of which `draw_delta` is set aside; infinite if nothing of it is left.
    """
    if rho == 0 and draw_delta == 0:
        return 0.0
    left = _rest(delta, draw_delta)
    if left <= 0:
        return math.inf
    return _epsilon_of(_float_up(rho), left)


def capacity(epsilon: float, delta: float, draw_delta: int) -> int:
    """Give the largest total rho within (epsilon, delta).

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    draw_delta : int
        The part of delta spent on the inexactness of draws, in units of 10^-30.

    Returns
    -------
    int
        In units of 10^-30, on the private side of the exact value by less than a part in 10^13;
        a function of the arguments alone, so that everybody compares with the same number.
    """
    left = _rest(delta, draw_delta)
    return 0 if left <= 0 else _capacity(epsilon, left)


@lru_cache(maxsize=4096)
def _capacity(epsilon: float, delta: float) -> int:
    # The classical conversion, epsilon = rho + 2 sqrt(rho log(1/delta)), allows less than the
    # accountant: a place to start.
    log_term = -math.log(delta)
    low = (epsilon / (math.sqrt(log_term + epsilon) + math.sqrt(log_term))) ** 2
    while _epsilon_of(low, delta) > epsilon:
        low /= 2.0
        if low < _SMALLEST_RHO:
            return 0
    high = 2.0 * low
    while _epsilon_of(high, delta) <= epsilon:
        low, high = high, 2.0 * high
    from scipy.optimize import brentq

    root = brentq(
        lambda rho: _epsilon_of(rho, delta) - epsilon,
        low,
        high,
        xtol=_CAPACITY_TOLERANCE / 4 * low,
        rtol=_CAPACITY_TOLERANCE / 4,
    )
    # Only a value that the accountant accepts is granted.
    low = root
    while _epsilon_of(low, delta) > epsilon:
        low *= 1.0 - _CAPACITY_TOLERANCE
    return math.floor(Fraction(low) * UNITS)


def affords(budget: Budget, charge: Charge, count: int = 1) -> bool:
    """Say whether a budget has room for a charge.

    Parameters
    ----------
    budget : Budget
        With all that was charged to it.
    charge : Charge
        What one more fit would cost.
    count : int, default=1
        How many such fits.

    Returns
    -------
    bool
        A comparison of integers.
    """
    draw_delta = budget.draw_delta + count * charge.draw_delta
    allowed = capacity(budget.epsilon, budget.delta, draw_delta)
    return allowed > 0 and budget.rho + count * charge.rho <= allowed


def largest_epsilon(budget: Budget, *, delta: float, n_iter: int, fits: int = 1) -> float:
    """Give the epsilon with which a number of equal fits uses up what is left.

    Parameters
    ----------
    budget : Budget
        With all that was charged to it.
    delta : float
        Of each fit, in (0, 1).
    n_iter : int
        Steps of each fit.
    fits : int, default=1
        How many.

    Returns
    -------
    float
        The largest `epsilon` that each of them can be given, to about 12 digits and never too
        large; 0 if nothing is left.

    Raises
    ------
    ValueError
        If `delta` is too small to cover the inexactness of `n_iter` draws.
    """
    # The draws' part of delta grows with eps0, so a first solution bounds it from above.
    draws = 0.0
    eps0 = epsilon = 0.0
    for _ in range(2):
        spent = budget.draw_delta + fits * math.ceil(Fraction(draws) * UNITS)
        share = (capacity(budget.epsilon, budget.delta, spent) - budget.rho) // fits
        if share <= 0:
            return 0.0
        rho = float(Fraction(share, UNITS))
        eps0 = math.sqrt(8.0 * rho / n_iter)
        epsilon = _epsilon_of(rho, delta)
        if epsilon <= 0:
            return 0.0
        draws = build_mechanism(epsilon=epsilon, delta=delta, n_iter=n_iter).sampling_delta
    epsilon = _epsilon_of(n_iter * eps0**2 / 8.0, delta - draws)
    step = 2.0**-44
    for _ in range(_STEPS_DOWN):
        mechanism = build_mechanism(
            epsilon=epsilon, delta=delta, n_iter=n_iter, neighbors=budget.neighbors
        )
        if affords(budget, charge_of(mechanism), fits):
            return epsilon
        epsilon *= 1.0 - step
        step *= 4.0
    return 0.0


def _rest(delta: float, draw_delta: int) -> float:
    """Give what the draws leave of delta, rounded down."""
    exact = Fraction(delta) - Fraction(draw_delta, UNITS)
    rest = float(exact)
    return math.nextafter(rest, -math.inf) if rest > exact else rest


def _float_up(units: int) -> float:
    """Give a number of units as a double, rounded up."""
    exact = Fraction(units, UNITS)
    value = float(exact)
    return math.nextafter(value, math.inf) if value < exact else value


def _epsilon_of(rho: float, delta: float) -> float:
    """Ask the accountant: the epsilon of rho-zCDP at delta."""
    # dp-accounting takes most of a second to import, so nothing imports it before it is needed.
    from dp_accounting import ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant: Any = RdpAccountant(renyi_orders()).compose(ZCDpEvent(rho=rho))
    return float(accountant.get_epsilon(delta))
