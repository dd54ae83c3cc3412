"""What several fits on one data set cost together, in integers.

A fit is charged with two numbers: its zCDP parameter rho, and the part of delta that covers what
its draws lack of the distribution that has this rho. T steps that are each eps0-bounded-range have
``rho = T eps0^2 / 8``; Gaussian noise gives rho itself. So a fit is delta_i-approximately
rho_i-zCDP (arXiv 1605.02065, section 8). Epsilons are never added.

The privacy filter
------------------
Whoever looks at one model before choosing the next fit also chooses how much the next one costs,
and composition theorems for costs fixed in advance do not cover that. A *filter* does: for a limit
of rho and a limit of delta that were fixed beforehand, adaptively chosen fits with adaptively
chosen costs, stopped before either sum passes its limit, are together delta-approximately rho-zCDP
with the two limits as parameters (Whitehouse, Ramdas, Rogers and Wu 2023, arXiv 2203.05481, the
filter for approximate zCDP; for each single Renyi order Feldman and Zrnic 2021, arXiv 2008.11193,
and Lecuyer 2021, arXiv 2103.01379). It costs nothing over fixed costs.

So a budget (epsilon, delta) fixes both limits when it is created: `Budget.draw_delta_limit` of
delta for the draws, and for rho the `capacity` of epsilon at the rest of delta. Neither depends on
what is charged later. One exception, before anything was released: a first fit that is within
(epsilon, delta) by itself may take the whole budget, and then nothing is left for another.

Both numbers are held as whole numbers of 10^-30, rounded up when they are spent and down when they
are granted. A double has 53 bits, so the rounding is far below its last one, and sums and
comparisons are exact: k equal parts of a budget are the budget.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from dplasso.errors import LedgerError
from dplasso.privacy.accounting import epsilon_of_rho
from dplasso.privacy.gaussian import gaussian_epsilon
from dplasso.privacy.mechanisms import build_mechanism, build_staged
from dplasso.privacy.mechanisms.gaussian import RATIO_RHO, build_gaussian

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
    eps0 : float or None
        Bounded-range parameter of a step as it was accounted; None for a mechanism that is not
        made of such steps.
    neighbors : {"add-remove", "replace-one"}
        The neighbour relation.
    mechanism : str
        The mechanism's name.
    purpose : str or None
        What the model is for, in the curator's words.
    fingerprint : str or None
        Of the records, from `data_fingerprint`.
    """

    rho: int
    draw_delta: int
    epsilon: float
    delta: float
    n_iter: int
    eps0: float | None
    neighbors: str
    mechanism: str
    purpose: str | None = None
    fingerprint: str | None = None


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
    release : str or None
        Digest of what the fit released (`dplasso.model.release.digest_of`), once it is known.
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
    draw_delta_limit : int or None
        The part of `delta` that all draws together may use, in units of 10^-30. None for a budget
        made by dplasso 0.1.0: what its draws leave of delta sets the limit of rho, which so moves
        with what is charged.
    """

    name: str | None
    epsilon: float
    delta: float
    neighbors: str
    entries: tuple[Entry, ...] = field(default=())
    draw_delta_limit: int | None = None

    @property
    def rho(self) -> int:
        """The zCDP parameter spent, in units of 10^-30."""
        return sum(entry.charge.rho for entry in self.entries)

    @property
    def draw_delta(self) -> int:
        """The delta spent on the inexactness of draws, in units of 10^-30."""
        return sum(entry.charge.draw_delta for entry in self.entries)


class Accounted(Protocol):
    """What the ledger asks of a mechanism besides its cost (see `charge_of`)."""

    @property
    def name(self) -> str:
        """The mechanism's name."""

    @property
    def epsilon(self) -> float:
        """What was asked for."""

    @property
    def delta(self) -> float:
        """What was asked for."""

    @property
    def n_iter(self) -> int:
        """Number of steps T."""

    @property
    def neighbors(self) -> str:
        """The neighbour relation."""

    @property
    def sampling_delta(self) -> float:
        """The delta that its draws need."""


def charge_of(
    mechanism: Accounted, *, purpose: str | None = None, fingerprint: str | None = None
) -> Charge:
    """Return what a fit with this mechanism costs.

    Parameters
    ----------
    mechanism : Accounted
        The private step of the fit. Its cost is read off `eps0_accounted`, the bounded-range
        parameter of each of `n_iter` steps, where it has one, and otherwise off `rho`, the zCDP
        parameter of the whole fit; and off `sampling_delta`, the delta that its draws need.
    purpose, fingerprint : str, optional
        As in `Charge`.

    Returns
    -------
    Charge
        In whole units, rounded up.

    Raises
    ------
    LedgerError
        If the mechanism is not private: no budget can pay for it.
    """
    known: Any = mechanism
    eps0 = getattr(known, "eps0_accounted", None)
    draws = mechanism.sampling_delta
    cost = known.rho if eps0 is None else eps0
    if not (math.isfinite(cost) and cost >= 0 and 0 <= draws < 1):
        raise LedgerError(
            f"a fit with mechanism {mechanism.name!r} is not private, so no ledger can account for "
            "it; leave the ledger out"
        )
    rho = Fraction(cost) if eps0 is None else mechanism.n_iter * Fraction(eps0) ** 2 / 8
    return Charge(
        rho=math.ceil(rho * UNITS),
        draw_delta=math.ceil(Fraction(draws) * UNITS),
        epsilon=mechanism.epsilon,
        delta=mechanism.delta,
        n_iter=mechanism.n_iter,
        eps0=eps0,
        neighbors=mechanism.neighbors,
        mechanism=mechanism.name,
        purpose=purpose,
        fingerprint=fingerprint,
    )


def epsilon_total(rho: int, draw_delta: int, delta: float) -> float:
    """Return the epsilon of everything that was spent.

    `rho`, `draw_delta`: sums over the charges, in units of 10^-30.
    `delta`: the delta at which epsilon is reported, in (0, 1).

    Returns: at `delta`, of which `draw_delta` is set aside; infinite if nothing of it is left.
    """
    if rho == 0 and draw_delta == 0:
        return 0.0
    left = _rest(delta, draw_delta)
    if left <= 0:
        return math.inf
    return epsilon_of_rho(_float_up(rho), left)


def capacity(epsilon: float, delta: float, draw_delta: int) -> int:
    """Return the largest total rho within (epsilon, delta).

    `epsilon`, `delta`: the budget.
    `draw_delta`: the part of delta spent on the inexactness of draws, in units of 10^-30.

    Returns: in units of 10^-30, on the private side of the exact value by less than a part in
    10^13; a function of the arguments alone, so that everybody compares with the same number.
    """
    left = _rest(delta, draw_delta)
    return 0 if left <= 0 else _capacity(epsilon, left)


@lru_cache(maxsize=4096)
def _capacity(epsilon: float, delta: float) -> int:
    # The classical conversion, epsilon = rho + 2 sqrt(rho log(1/delta)), allows less than the
    # accountant: a place to start.
    log_term = -math.log(delta)
    low = (epsilon / (math.sqrt(log_term + epsilon) + math.sqrt(log_term))) ** 2
    while epsilon_of_rho(low, delta) > epsilon:
        low /= 2.0
        if low < _SMALLEST_RHO:
            return 0
    high = 2.0 * low
    while epsilon_of_rho(high, delta) <= epsilon:
        low, high = high, 2.0 * high
    from scipy.optimize import brentq

    root = brentq(
        lambda rho: epsilon_of_rho(rho, delta) - epsilon,
        low,
        high,
        xtol=_CAPACITY_TOLERANCE / 4 * low,
        rtol=_CAPACITY_TOLERANCE / 4,
    )
    # Only a value that the accountant accepts is granted.
    low = root
    while epsilon_of_rho(low, delta) > epsilon:
        low *= 1.0 - _CAPACITY_TOLERANCE
    return math.floor(Fraction(low) * UNITS)


def rho_limit(budget: Budget, draw_delta: int = 0, count: int = 0) -> int:
    """Return what the charges to a budget may come to in all.

    `budget`: with all that was charged to it.
    `draw_delta`: what the draws of further fits would use of delta, in units of 10^-30.
    `count`: the number of these fits.

    Returns: the largest sum of rho, with that of the further fits, in units of 10^-30; 0 if the
    draws use up too much of delta.
    """
    draws = budget.draw_delta + draw_delta
    if budget.draw_delta_limit is None:
        return capacity(budget.epsilon, budget.delta, draws)
    limit = 0
    if draws <= budget.draw_delta_limit:
        limit = capacity(budget.epsilon, budget.delta, budget.draw_delta_limit)
    if count == 1 and not budget.entries:
        limit = max(limit, capacity(budget.epsilon, budget.delta, draws))
    return limit


def affords(budget: Budget, charge: Charge, count: int = 1) -> bool:
    """Return whether a budget has room for a charge.

    `budget`: with all that was charged to it.
    `charge`: what one more fit would cost.
    `count`: how many such fits.

    Returns: a comparison of integers.
    """
    allowed = rho_limit(budget, count * charge.draw_delta, count)
    return allowed > 0 and budget.rho + count * charge.rho <= allowed


def fits_left(budget: Budget, charge: Charge) -> int:
    """Return how many more fits of the same cost a budget has room for."""
    if charge.rho <= 0:
        return 0
    low, high = 0, max(0, rho_limit(budget, charge.draw_delta, 1) - budget.rho) // charge.rho
    while low < high:
        count = (low + high + 1) // 2
        low, high = (count, high) if affords(budget, charge, count) else (low, count - 1)
    return low


def largest_epsilon(
    budget: Budget,
    *,
    delta: float,
    n_iter: int,
    fits: int = 1,
    mechanism: str = "exponential",
) -> float:
    """Return the epsilon with which a number of equal fits uses up what is left.

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
    mechanism : {"exponential", "gaussian", "exponential and gaussian"}, default="exponential"
        How a step is private: vertices, noisy gradients, or both.

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
    build: Any = build_gaussian if mechanism == "gaussian" else build_mechanism
    settings: dict[str, Any] = {"delta": delta, "n_iter": n_iter, "neighbors": budget.neighbors}
    if mechanism == "exponential":
        settings["plain_sum"] = False
    if mechanism == "exponential and gaussian":
        build = build_staged
        settings |= {"n_vertices": n_iter, "n_gradients": settings.pop("n_iter")}
    # The draws' part of delta grows with eps0, so a first solution bounds it from above.
    draws = ratio = 0.0
    rho = epsilon = 0.0
    for _ in range(2):
        needed = fits * math.ceil(Fraction(draws) * UNITS)
        part = (rho_limit(budget, needed, fits) - budget.rho) // fits
        rho = float(Fraction(part, UNITS)) - RATIO_RHO * ratio
        if part <= 0 or rho <= 0:
            return 0.0
        epsilon = _epsilon_alone(rho, delta - draws, mechanism) + ratio
        if epsilon <= 0:
            return 0.0
        built = build(epsilon=epsilon, **settings)
        draws, ratio = built.sampling_delta, getattr(built, "ratio_error", 0.0)
    epsilon = _epsilon_alone(rho, delta - draws, mechanism) + ratio
    step = 2.0**-44
    for _ in range(_STEPS_DOWN):
        if affords(budget, charge_of(build(epsilon=epsilon, **settings)), fits):
            return epsilon
        epsilon *= 1.0 - step
        step *= 4.0
    return 0.0


def _epsilon_alone(rho: float, delta: float, mechanism: str) -> float:
    """Return the epsilon of one fit that costs rho: exact for Gaussian noise alone."""
    if mechanism == "gaussian":
        return gaussian_epsilon(math.sqrt(2.0 * rho), delta)
    return epsilon_of_rho(rho, delta)


def _rest(delta: float, draw_delta: int) -> float:
    """Return what the draws leave of delta, rounded down."""
    exact = Fraction(delta) - Fraction(draw_delta, UNITS)
    rest = float(exact)
    return math.nextafter(rest, -math.inf) if rest > exact else rest


def _float_up(units: int) -> float:
    """Return a number of units as a double, rounded up."""
    exact = Fraction(units, UNITS)
    value = float(exact)
    return math.nextafter(value, math.inf) if value < exact else value
