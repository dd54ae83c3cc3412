"""The privacy cost of the best of a random number of tries, and the budget of each try.

A try draws settings, fits on some rows and scores on the others. A record is in only one of the two
parts (`dplasso.tuning.search`), so neighbours differ either in the fit or in the score. A try costs
the larger of the two, not their sum: if both are at most rho-zCDP, its Renyi divergence of order a
is at most ``a rho``. The best of K tries is released. With m = E[K] and the laws below (arXiv
2110.03620, theorems 2 and 6; e is the bound of one try):

    logarithmic:
        e'(a) = e(a) + min_b [(1 - 1/b) e(b) + ln(1/g) / b] + ln(m) / (a - 1)
    poisson:
        e'(a) = e(a) + m delta(ln(a / (a - 1))) + ln(m) / (a - 1),   delta: curve of one try

A ledger adds up zCDP, for which orders near 1 matter too. There we use the smaller of this bound
and the divergence of releasing all tries, ``ln E[exp((a - 1) K e(a))] / (a - 1)``.

Inexact draws change the distribution of a try by some total variation, and that of the search by m
times as much. Delta includes this with the factor ``1 + e^epsilon``.

The laws of the number of tries K:

    poisson       P(K = k) = e^-m m^k / k!,                       k >= 0, mean m
    logarithmic   P(K = k) = (1 - g)^k / (k ln(1/g)),             k >= 1, mean (1/g - 1) / ln(1/g)

To draw K, an integer of 128 random bits is compared with integer cumulative probabilities that are
computed to 60 digits. The total variation from the exact law is below `DRAW_ERROR`.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.errors import ParameterError
from dplasso.privacy.accounting import renyi_orders
from dplasso.privacy.parameters import (
    check_choice,
    check_delta,
    check_epsilon,
    check_neighbors,
    check_positive,
)
from dplasso.privacy.randomness import RandomStream, random_word

LAWS = ("poisson", "logarithmic")
DRAW_ERROR = 2.0**-90
# From this expected number on, the logarithmic law leaves a try more budget than Poisson's law.
_LOGARITHMIC_FROM = 4.5
LARGEST_MEAN = 1000.0
_BITS = 128

_TOLERANCE = 1e-9
# Relative safety margin of a try's rho for rounding errors.
_MARGIN = 2.0**-40
# The accountant converts only orders above this.
_SMALLEST_CONVERTED = 1.01


@dataclass(frozen=True)
class Tries:
    """The public law of the number of tries; `gamma` (g) is 0 for Poisson's law."""

    law: str
    mean: float
    gamma: float


def tries_of(mean: float, law: str = "auto") -> Tries:
    """Return the law with this mean; "auto" chooses the one that leaves a try the most budget."""
    check_choice("law", law, ("auto", *LAWS))
    mean = check_positive("tries", mean)
    if law == "auto":
        law = "poisson" if mean < _LOGARITHMIC_FROM else "logarithmic"
    if not (1.0 if law == "poisson" else 1.0 + 2.0**-20) <= mean <= LARGEST_MEAN:
        raise ParameterError(
            f"`tries` must lie between 1 and {LARGEST_MEAN:g} (above 1 unless `law=poisson`), "
            f"got {mean!r}"
        )
    if law == "poisson":
        return Tries(law, mean, 0.0)
    low, high = 1e-6, 1.0 - 2.0**-30
    for _ in range(200):
        middle = 0.5 * (low + high)
        if -(1.0 / middle - 1.0) / math.log(middle) > mean:
            low = middle
        else:
            high = middle
    return Tries(law, mean, high)


def draw_tries(tries: Tries, stream: RandomStream) -> int:
    """Draw the number of tries, which is 0 only under Poisson's law."""
    first, thresholds = _cumulative(tries)
    point = (int(random_word(stream)) << 64) | int(random_word(stream))
    return first + min(bisect_right(thresholds, point), len(thresholds) - 1)


@lru_cache(maxsize=16)
def _cumulative(tries: Tries) -> tuple[int, list[int]]:
    """Return the smallest K, and 2^128 P(K <= k) for this and each larger k."""
    with localcontext() as context:
        context.prec = 60
        mean, gamma = Decimal(tries.mean), Decimal(tries.gamma)
        if tries.law == "poisson":
            first, mass = 0, (-mean).exp()
        else:
            first, mass = 1, (1 - gamma) / -gamma.ln()
        total, thresholds, number = Decimal(0), [], first
        # The remaining tail is at most 1000 times the last mass, and is added to the last K.
        while total < Decimal("0.5") or mass > Decimal(2) ** -105:
            total += mass
            thresholds.append(int(total * 2**_BITS))
            number += 1
            if tries.law == "poisson":
                mass *= mean / number
            else:
                mass *= (1 - gamma) * (number - 1) / number
        return first, thresholds


@dataclass(frozen=True)
class SearchCost:
    """The privacy cost of a search: `try_rho` is the zCDP of a try, `rho` that of the search."""

    epsilon: float
    delta: float
    neighbors: str
    tries: Tries
    try_rho: float
    epsilon_spent: float
    sampling_delta: float
    rho: float | Fraction
    rows_per_person: int = 1

    name = "search"
    eps0_accounted = None

    @property
    def n_iter(self) -> int:
        """Expected number of tries, rounded up; a ledger shows it as iterations."""
        return math.ceil(self.tries.mean)


def search_cost(
    epsilon: float,
    delta: float,
    tries: Tries,
    *,
    neighbors: str = "add-remove",
    draw_variation: float = 0.0,
    rows_per_person: int = 1,
) -> SearchCost:
    """Return the cost of a search with the largest tries that stay within (epsilon, delta).

    `draw_variation` bounds the total variation of a try from its accounted distribution.
    """
    epsilon, delta = check_positive("epsilon", check_epsilon(epsilon)), check_delta(delta)
    moved = tries.mean * draw_variation + DRAW_ERROR
    sampling = moved * (1.0 + math.exp(min(epsilon, 700.0)))
    if not sampling < delta / 2.0:
        raise ParameterError(
            f"`delta={delta:g}` is too small to cover the rounding of random draws in "
            f"{tries.mean:g} tries at `epsilon={epsilon:g}`; use fewer tries or a larger delta"
        )
    rho = _largest_rho(epsilon, delta - sampling, tries)
    return SearchCost(
        epsilon=epsilon,
        delta=delta,
        neighbors=check_neighbors(neighbors),
        tries=tries,
        try_rho=rho * (1.0 - _MARGIN),
        epsilon_spent=epsilon_of_search(rho, tries, delta - sampling),
        sampling_delta=sampling,
        rho=_search_rho(rho, tries),
        rows_per_person=rows_per_person,
    )


def epsilon_of_search(rho: float, tries: Tries, delta: float) -> float:
    """Return the epsilon of a search of rho-zCDP tries, by arXiv 2004.00010, proposition 12."""
    orders = np.array(renyi_orders())
    divergence = search_divergence(rho, tries, orders)
    converted = (
        divergence + np.log1p(-1.0 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1.0)
    )
    return max(0.0, float(np.min(converted[orders > _SMALLEST_CONVERTED])))


def search_divergence(rho: float, tries: Tries, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return non-decreasing bounds on the Renyi divergence of a search of rho-zCDP tries."""
    single = rho * orders
    total = single + math.log(tries.mean) / (orders - 1.0)
    if tries.law == "poisson":
        total += tries.mean * _delta_of_try(rho, np.log1p(1.0 / (orders - 1.0)), orders)
    else:
        total += np.min((1.0 - 1.0 / orders) * single - math.log(tries.gamma) / orders)
    return _not_decreasing(total)


def _not_decreasing(divergence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Tighten bounds: a divergence grows with its order, so bounds of larger orders hold too."""
    return np.asarray(np.minimum.accumulate(divergence[::-1])[::-1])


def _delta_of_try(
    rho: float, epsilons: NDArray[np.float64], orders: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the delta of rho-zCDP at each epsilon, for the best of some orders."""
    some = orders[(orders > _SMALLEST_CONVERTED) & (orders < 1e7)][::4]
    # (b - 1)(b rho - epsilon + ln(1 - 1/b)) - ln b, for all pairs at once.
    fixed = (some - 1.0) * (rho * some + np.log1p(-1.0 / some)) - np.log(some)
    exponent = fixed[None, :] - np.outer(epsilons, some - 1.0)
    return np.asarray(np.exp(np.minimum(exponent.min(axis=1), 0.0)))


@lru_cache(maxsize=256)
def _largest_rho(epsilon: float, delta: float, tries: Tries) -> float:
    """Return the largest zCDP of a try, rounded down."""
    low = high = (epsilon / (2.0 * math.sqrt(-math.log(delta)) + math.sqrt(epsilon))) ** 2
    while epsilon_of_search(low, tries, delta) > epsilon:
        low, high = low / 2.0, low
        if low < 1e-30:
            raise ParameterError(
                f"`epsilon={epsilon!r}` is too small for a search with this expected number of "
                "tries; use fewer tries"
            )
    while epsilon_of_search(high, tries, delta) <= epsilon:
        low, high = high, 2.0 * high
    while high - low > _TOLERANCE * high:
        middle = 0.5 * (low + high)
        if epsilon_of_search(middle, tries, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def _search_rho(rho: float, tries: Tries) -> float:
    """Return the smallest zCDP bound of a search that we can prove."""
    orders = np.array(renyi_orders())
    best = np.minimum(search_divergence(rho, tries, orders), _all_tries(rho, tries, orders))
    return _rho_of(_not_decreasing(best)) * (1.0 + _MARGIN)


def _all_tries(rho: float, tries: Tries, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bound the divergence of releasing all tries: ``ln E[exp(K s)] / (a - 1)``, s = (a - 1) a rho.

    For a fixed K, the tries together are K rho-zCDP. Releasing all outcomes reveals K.
    """
    s = (orders - 1.0) * orders * rho
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if tries.law == "poisson":
            log_mean = tries.mean * np.expm1(s)
        else:
            # The mean is finite if q = (1 - g) e^s is below 1.
            q = np.exp(s + math.log1p(-tries.gamma))
            log_mean = np.log(np.log1p(-q) / math.log(tries.gamma))
            log_mean = np.where(q < 1.0, log_mean, np.inf)
        return np.asarray(log_mean / (orders - 1.0))


def rho_of_event(event: Any) -> float:
    """Return the zCDP of an event of ``dp-accounting`` at our Renyi orders."""
    from dp_accounting.rdp import RdpAccountant

    accountant: Any = RdpAccountant(renyi_orders()).compose(event)
    return _rho_of(np.asarray(accountant.rdp))


def _rho_of(divergence: NDArray[np.float64]) -> float:
    """Return the largest ratio of a divergence and the order below its own.

    Between two orders the divergence is at most that of the larger one.
    """
    orders = np.array(renyi_orders())
    return float(np.max(divergence / np.concatenate([[1.0], orders[:-1]])))
