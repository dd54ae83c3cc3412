"""What the best of a random number of tries costs, and what that leaves each try.

One try draws settings, fits on some rows and scores on the others. A record is in one of the two
parts, whatever the data (`dplasso.tuning.search`), so between neighbours either the fit or the
score moves, and a try costs the larger of the two, not their sum: with both at most rho-zCDP its
Renyi divergence of order a is at most ``a rho``. Of K tries the best is released. With m = E[K] and
the laws below (arXiv 2110.03620, theorems 2 and 6; e is the bound of one try):

    logarithmic (eta = 0), geometric (eta = 1):
        e'(a) = e(a) + (1 + eta) min_b [(1 - 1/b) e(b) + ln(1/g) / b] + ln(m) / (a - 1)
    poisson:
        e'(a) = e(a) + m delta(ln(a / (a - 1))) + ln(m) / (a - 1),   delta: curve of one try

For a ledger, which adds zCDP, orders near 1 matter too. There the divergence is also at most that
of releasing all tries, ``ln E[exp((a - 1) K e(a))] / (a - 1)``, and the better of the two is taken.

Draws that are not exact move each try by at most some total variation; over the search that is m
times as much, and it is charged to delta with the factor ``1 + e^epsilon``.

The laws of the number of tries K:

    poisson       P(K = k) = e^-m m^k / k!,                       k >= 0, mean m
    geometric     P(K = k) = g (1 - g)^(k - 1),                   k >= 1, mean 1/g
    logarithmic   P(K = k) = (1 - g)^k / (k ln(1/g)),             k >= 1, mean (1/g - 1) / ln(1/g)

A draw compares an integer of 128 random bits with cumulative probabilities in integers, computed to
60 digits: its law differs from the exact one by less than `DRAW_ERROR` in total variation.
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

LAWS = ("poisson", "geometric", "logarithmic")
DRAW_ERROR = 2.0**-90
# From so many tries on, the logarithmic law leaves each of them more than Poisson's does.
_LOGARITHMIC_FROM = 4.5
LARGEST_MEAN = 1000.0
_BITS = 128

_TOLERANCE = 1e-9
# Relative part withheld from a try's rho, so that rounding never lands beyond it.
_MARGIN = 2.0**-40
# The accountant's conversion is not defined for orders below.
_SMALLEST_CONVERTED = 1.01


@dataclass(frozen=True)
class Tries:
    """The law of the number of tries; public. The parameter g is 0 for Poisson's law."""

    law: str
    mean: float
    gamma: float


def tries_of(mean: float, law: str = "auto") -> Tries:
    """Return the law with an expected number of tries.

    "auto" takes the law that leaves a try the most: Poisson's below 4.5, the logarithmic from
    there.

    Raises TypeError, ValueError if a parameter is not of its kind or out of range.
    """
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
    if law == "geometric":
        return Tries(law, mean, 1.0 / mean)
    low, high = 1e-6, 1.0 - 2.0**-30
    for _ in range(200):
        middle = 0.5 * (low + high)
        if _logarithmic_mean(middle) > mean:
            low = middle
        else:
            high = middle
    return Tries(law, mean, high)


def _logarithmic_mean(gamma: float) -> float:
    return -(1.0 / gamma - 1.0) / math.log(gamma)


def draw_tries(tries: Tries, stream: RandomStream) -> int:
    """Draw the number of tries; 0 only by Poisson's law."""
    first, thresholds = _cumulative(tries)
    point = (int(random_word(stream)) << 64) | int(random_word(stream))
    return first + min(bisect_right(thresholds, point), len(thresholds) - 1)


@lru_cache(maxsize=16)
def _cumulative(tries: Tries) -> tuple[int, list[int]]:
    """Return the smallest K and, for it and each larger one, 2^128 P(not larger)."""
    with localcontext() as context:
        context.prec = 60
        mean, gamma = Decimal(tries.mean), Decimal(tries.gamma)
        if tries.law == "poisson":
            first, mass = 0, (-mean).exp()
        elif tries.law == "geometric":
            first, mass = 1, gamma
        else:
            first, mass = 1, (1 - gamma) / -gamma.ln()
        total, thresholds, number = Decimal(0), [], first
        # The law's tail is at most 1000 times its last mass here, and goes to the last K.
        while total < Decimal("0.5") or mass > Decimal(2) ** -105:
            total += mass
            thresholds.append(int(total * 2**_BITS))
            number += 1
            if tries.law == "poisson":
                mass *= mean / number
            elif tries.law == "geometric":
                mass *= 1 - gamma
            else:
                mass *= (1 - gamma) * (number - 1) / number
        return first, thresholds


@dataclass(frozen=True)
class SearchCost:
    """What a search may spend and does spend; made of public parameters alone.

    `epsilon`, `delta`: the guarantee asked for.
    `try_rho`: zCDP that one try may have.
    `epsilon_spent`: what the accountant reports for the whole, at most `epsilon`.
    `sampling_delta`: the part of `delta` set aside for the inexactness of all draws.
    `rho`: zCDP of the whole, for a ledger.
    """

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
        """Expected number of tries, rounded up: what a ledger shows as iterations."""
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
    """Return what one try may spend, so that the whole search stays within (epsilon, delta).

    It spends more than 99.9 % of epsilon. A try as it is drawn differs from a try as it is
    accounted by at most `draw_variation` in total variation.
    """
    epsilon, delta = check_positive("epsilon", check_epsilon(epsilon)), check_delta(delta)
    moved = tries.mean * draw_variation + DRAW_ERROR
    sampling = moved * (1.0 + math.exp(min(epsilon, 700.0)))
    if not sampling < delta / 2.0:
        raise ParameterError(
            f"`delta={delta:g}` is too small to cover the rounding of the draws of "
            f"{tries.mean:g} tries at `epsilon={epsilon:g}`"
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
    """Return the epsilon of a search whose tries are each rho-zCDP.

    By the conversion of arXiv 2004.00010, proposition 12, at the best Renyi order.
    """
    orders = np.array(renyi_orders())
    divergence = search_divergence(rho, tries, orders)
    converted = (
        divergence + np.log1p(-1.0 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1.0)
    )
    return max(0.0, float(np.min(converted[orders > _SMALLEST_CONVERTED])))


def search_divergence(rho: float, tries: Tries, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a bound on the Renyi divergence of a search whose tries are each rho-zCDP.

    For increasing orders above 1; the bounds do not decrease (see the module's notes).
    """
    single = rho * orders
    total = single + math.log(tries.mean) / (orders - 1.0)
    if tries.law == "poisson":
        total += tries.mean * _delta_of_try(rho, np.log1p(1.0 / (orders - 1.0)), orders)
    else:
        extra = np.min((1.0 - 1.0 / orders) * single - math.log(tries.gamma) / orders)
        total += (2.0 if tries.law == "geometric" else 1.0) * extra
    return _not_decreasing(total)


def _not_decreasing(divergence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return better bounds: a divergence grows with its order, so a larger one's bound holds."""
    return np.asarray(np.minimum.accumulate(divergence[::-1])[::-1])


def _delta_of_try(
    rho: float, epsilons: NDArray[np.float64], orders: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the delta of rho-zCDP at each epsilon, at the best of some orders."""
    some = orders[(orders > _SMALLEST_CONVERTED) & (orders < 1e7)][::4]
    # (b - 1)(b rho - epsilon + ln(1 - 1/b)) - ln b, for all pairs at once.
    fixed = (some - 1.0) * (rho * some + np.log1p(-1.0 / some)) - np.log(some)
    exponent = fixed[None, :] - np.outer(epsilons, some - 1.0)
    return np.asarray(np.exp(np.minimum(exponent.min(axis=1), 0.0)))


@lru_cache(maxsize=256)
def _largest_rho(epsilon: float, delta: float, tries: Tries) -> float:
    """Return the largest zCDP of a try, a little below rather than above."""
    low = high = (epsilon / (2.0 * math.sqrt(-math.log(delta)) + math.sqrt(epsilon))) ** 2
    while epsilon_of_search(low, tries, delta) > epsilon:
        low, high = low / 2.0, low
        if low < 1e-30:
            raise ParameterError(
                f"no try, however private, keeps a search within `epsilon={epsilon!r}`."
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
    """Return the least zCDP that a search is known to have."""
    orders = np.array(renyi_orders())
    best = np.minimum(search_divergence(rho, tries, orders), _all_tries(rho, tries, orders))
    return _rho_of(_not_decreasing(best)) * (1.0 + _MARGIN)


def _all_tries(rho: float, tries: Tries, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bound the divergence of releasing every try: ``ln E[exp(K s)] / (a - 1)``, s = (a - 1) a rho.

    Given K, the tries together are K rho-zCDP, and all K outcomes tell K.
    """
    s = (orders - 1.0) * orders * rho
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if tries.law == "poisson":
            log_mean = tries.mean * np.expm1(s)
        else:
            # In the terms of q = (1 - g) e^s, below 1 where the mean is finite.
            q = np.exp(s + math.log1p(-tries.gamma))
            if tries.law == "geometric":
                log_mean = s + math.log(tries.gamma) - np.log1p(-q)
            else:
                log_mean = np.log(np.log1p(-q) / math.log(tries.gamma))
            log_mean = np.where(q < 1.0, log_mean, np.inf)
        return np.asarray(log_mean / (orders - 1.0))


def rho_of_event(event: Any) -> float:
    """Return the zCDP of an event of ``dp-accounting``, over the Renyi orders that are used."""
    from dp_accounting.rdp import RdpAccountant

    accountant: Any = RdpAccountant(renyi_orders()).compose(event)
    return _rho_of(np.asarray(accountant.rdp))


def _rho_of(divergence: NDArray[np.float64]) -> float:
    """Return the largest ratio of the divergences of our orders and the orders; infinite if one is.

    Between two orders the divergence is at most that of the larger; below the first, its own.
    """
    orders = np.array(renyi_orders())
    return float(np.max(divergence / np.concatenate([[1.0], orders[:-1]])))
