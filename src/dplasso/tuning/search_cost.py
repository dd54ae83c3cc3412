"""The privacy cost of the best of a random number of tries, and the budget of each try.

A try draws settings, fits on some rows and scores on the others. A record is in only one of the two
parts (`dplasso.tuning.search`), so neighbours differ either in the fit or in the score. A try costs
the larger of the two, not their sum: if both are at most rho-zCDP, its Renyi divergence of order a
is at most ``a rho``. The best of K tries is released. K has the logarithmic law,

    P(K = k) = (1 - g)^k / (k ln(1/g)),   k >= 1,   m = E[K] = (1/g - 1) / ln(1/g),

so there is always a try. With e the bound of one try (arXiv 2110.03620, theorem 2):

    e'(a) = e(a) + min_b [(1 - 1/b) e(b) + ln(1/g) / b] + ln(m) / (a - 1)

A ledger adds up zCDP, for which orders near 1 matter too. There we use the smaller of this bound
and the divergence of releasing all tries, ``ln E[exp((a - 1) K e(a))] / (a - 1)``.

Inexact draws change the distribution of a try by some total variation, and that of the search by m
times as much. Delta includes this with the factor ``1 + e^epsilon``.

To draw K, an integer of 128 random bits is compared with integer cumulative probabilities that are
computed to 60 digits. The total variation from the exact law is below `DRAW_ERROR`.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.errors import ParameterError
from dplasso.fit.records import LocalRecords
from dplasso.ledger import UNITS, Ledger, charge_of, rho_limit
from dplasso.privacy.accounting import bracket, renyi_orders, root_rho
from dplasso.privacy.budget import Budget
from dplasso.privacy.parameters import check_delta, check_epsilon, check_neighbors, check_positive
from dplasso.privacy.randomness import RandomStream, random_word
from dplasso.tuning.candidates import Candidate, cost_of_try, give_epsilon
from dplasso.tuning.estimates import Scorer, Target, check_noise, most_sums
from dplasso.tuning.metrics import METRICS

DRAW_ERROR = 2.0**-90
LARGEST_MEAN = 1000.0
_BITS = 128

_TOLERANCE = 1e-9
# Relative safety margin of a try's rho for rounding errors.
_MARGIN = 2.0**-40
_CONFIDENCE = 0.95
# Relative bound, per 64 sums, on the cost of rounding a score's noise (`dplasso.privacy.budget`).
# `DRAW_ERROR` covers the truncation of the noise.
_SCORE_MARGIN = 2.0**-40
# The accountant converts only orders above this.
_SMALLEST_CONVERTED = 1.01


class Tries(NamedTuple):
    """The public mean and parameter g of the law of the number of tries."""

    mean: float
    gamma: float


def tries_of(mean: float) -> Tries:
    """Return the law with this mean; ValueError if there is none."""
    mean = check_positive("tries", mean)
    if not 1.0 + 2.0**-20 <= mean <= LARGEST_MEAN:
        raise ParameterError(f"`tries` must be above 1 and at most {LARGEST_MEAN:g}, got {mean!r}")
    # The mean falls with g.
    _, gamma = bracket(lambda g: (1.0 - 1.0 / g) / math.log(g) > mean, 1e-6)
    return Tries(mean, gamma)


def draw_tries(tries: Tries, stream: RandomStream) -> int:
    """Draw the number of tries."""
    thresholds = _cumulative(tries)
    point = (int(random_word(stream)) << 64) | int(random_word(stream))
    return 1 + min(bisect_right(thresholds, point), len(thresholds) - 1)


@lru_cache(maxsize=16)
def _cumulative(tries: Tries) -> list[int]:
    """Return 2^128 P(K <= k) for each k from 1."""
    with localcontext() as context:
        context.prec = 60
        gamma = Decimal(tries.gamma)
        mass, total, thresholds = (1 - gamma) / -gamma.ln(), Decimal(0), list[int]()
        # The remaining tail is at most 1000 times the last mass, and is added to the last K.
        while total < Decimal("0.5") or mass > Decimal(2) ** -105:
            total += mass
            thresholds.append(int(total * 2**_BITS))
            number = len(thresholds)
            mass *= (1 - gamma) * number / (number + 1)
        return thresholds


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


def divide_budget(
    search: Any, candidates: list[Candidate], records: LocalRecords, tries: Tries
) -> SearchCost:
    """Return the cost of a search, and set each candidate's epsilon to that of a try."""
    for candidate in candidates:
        candidate.estimator.set_params(epsilon=float(search.epsilon))
    # At the smaller epsilon of a try, the variation is not larger.
    variation = max(cost_of_try(each.estimator, records)[1] for each in candidates)
    cost = search_cost(
        search.epsilon,
        search.delta,
        tries,
        draw_variation=variation,
        neighbors=candidates[0].estimator.neighbors,
        rows_per_person=candidates[0].estimator.rows_per_person,
    )
    for candidate in candidates:
        give_epsilon(candidate.estimator, cost.try_rho, search.delta, records)
    return cost


def scorer_of(cost: SearchCost, name: str, target: Target) -> Scorer:
    """Return the scorer of the tries; a score may cost as much as the fit of a try."""
    metric, margin = METRICS[name], _SCORE_MARGIN * (most_sums(target) / 64.0)
    mu = math.sqrt(2.0 * cost.try_rho * (1.0 - margin))
    sensitivity = Budget(
        epsilon=cost.epsilon,
        delta=cost.delta,
        neighbors=cost.neighbors,
        rows_per_person=cost.rows_per_person,
    ).moved(metric.bound(target, cost.neighbors))
    check_noise(sensitivity / mu)
    return Scorer(metric, target, sensitivity, sensitivity / mu, _CONFIDENCE)


def whole_budget(cost: SearchCost, ledger: Ledger | None) -> SearchCost:
    """Return what a ledger is charged: a search may use a whole unused budget.

    Its epsilon and delta are within that budget even if its zCDP is not. Then the charge has the
    zCDP of the budget, which is not that of the search.
    """
    if ledger is None:
        return cost
    budget = ledger.budget()
    if budget.entries or cost.epsilon > budget.epsilon or cost.delta > budget.delta:
        return cost
    limit = Fraction(rho_limit(budget, charge_of(cost).draw_delta, 1), UNITS)
    return replace(cost, rho=limit) if 0 < limit < cost.rho else cost


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
    total += np.min((1.0 - 1.0 / orders) * single - math.log(tries.gamma) / orders)
    return _not_decreasing(total)


def _not_decreasing(divergence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Tighten bounds: a divergence grows with its order, so bounds of larger orders hold too."""
    return np.asarray(np.minimum.accumulate(divergence[::-1])[::-1])


@lru_cache(maxsize=256)
def _largest_rho(epsilon: float, delta: float, tries: Tries) -> float:
    """Return the largest zCDP of a try, rounded down."""
    start = root_rho(epsilon, delta) ** 2
    try:
        low, _ = bracket(
            lambda rho: epsilon_of_search(rho, tries, delta) <= epsilon, start, _TOLERANCE
        )
    except ValueError:
        raise ParameterError(
            f"`epsilon={epsilon!r}` is too small for a search with this expected number of tries; "
            "use fewer tries"
        ) from None
    return low


def _search_rho(rho: float, tries: Tries) -> float:
    """Return the smallest zCDP bound of a search that we can prove.

    Between two orders a divergence is at most that of the larger one.
    """
    orders = np.array(renyi_orders())
    best = np.minimum(search_divergence(rho, tries, orders), _all_tries(rho, tries, orders))
    below = np.concatenate([[1.0], orders[:-1]])
    return float(np.max(_not_decreasing(best) / below)) * (1.0 + _MARGIN)


def _all_tries(rho: float, tries: Tries, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bound the divergence of releasing all tries: ``ln E[exp(K s)] / (a - 1)``, s = (a - 1) a rho.

    For a fixed K, the tries together are K rho-zCDP. Releasing all outcomes reveals K.
    """
    s = (orders - 1.0) * orders * rho
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # The mean is finite if q = (1 - g) e^s is below 1.
        q = np.exp(s + math.log1p(-tries.gamma))
        log_mean = np.log(np.log1p(-q) / math.log(tries.gamma))
        return np.where(q < 1.0, log_mean, np.inf) / (orders - 1.0)
