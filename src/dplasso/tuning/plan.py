"""Divide a privacy budget among the tries of a search, or among the parts of a plan.

The parts of a plan are shares of the zCDP that a ledger with this budget grants.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from sklearn.base import clone

from dplasso.errors import ParameterError
from dplasso.estimators.cost import estimator_of, task_of
from dplasso.estimators.fitting import method_of
from dplasso.fit.method import MANY_COLUMNS
from dplasso.fit.records import LocalRecords
from dplasso.ledger import UNITS, Ledger, charge_of, new_budget, rho_limit
from dplasso.privacy.accounting import epsilon_of_rho
from dplasso.privacy.budget import Budget
from dplasso.tuning.candidates import Candidate, give_epsilon, largest_variation, largest_within
from dplasso.tuning.estimates import (
    NUMBERS_ALONE,
    Scorer,
    Target,
    check_noise,
    most_sums,
    score_budget,
)
from dplasso.tuning.metrics import METRICS
from dplasso.tuning.search_cost import SearchCost, search_cost, tries_of

_CONFIDENCE = 0.95
# Relative bound, per 64 sums, on the cost of rounding a score's noise (`dplasso.privacy.budget`).
# The truncation of the noise is covered by `dplasso.tuning.search_cost.DRAW_ERROR`.
_SCORE_MARGIN = 2.0**-40


def divide_budget(
    search: Any,
    candidates: list[Candidate],
    records: LocalRecords,
    neighbors: str,
    rows_per_person: int,
) -> SearchCost:
    """Return the cost of a search, and set each candidate's epsilon to that of a try."""
    cost = search_cost(
        search.epsilon,
        search.delta,
        tries_of(search.tries, search.law),
        draw_variation=largest_variation(candidates, search.epsilon, records),
        neighbors=neighbors,
        rows_per_person=rows_per_person,
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
    """If a search may use a whole unused budget, reduce its zCDP to what the ledger grants."""
    if ledger is None:
        return cost
    budget = ledger.budget()
    if budget.entries or cost.epsilon > budget.epsilon or cost.delta > budget.delta:
        return cost
    limit = Fraction(rho_limit(budget, charge_of(cost).draw_delta, 1), UNITS)
    return replace(cost, rho=limit) if 0 < limit < cost.rho else cost


@dataclass(frozen=True)
class Part:
    """A part of a plan with its share of the budget's zCDP; epsilon is 0 if that is too small.

    `try_epsilon`: of a try of a search. `noise`: standard deviation, in records, of the sums of a
    score.
    """

    name: str
    share: float
    epsilon: float
    delta: float
    try_epsilon: float
    noise: float = 0.0


def plan_budget(
    epsilon: float,
    delta: float = 1e-6,
    *,
    method: str = "logistic",
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
    n_classes: int = 2,
    target_bounds: tuple[float, float] | None = None,
    score: float = 0.1,
    tries: float = 0.0,
) -> tuple[Part, ...]:
    """Divide a budget into a fit and a score that a ledger with this budget can pay for.

    The fit gets what the share `score` leaves. With `tries`, a search by Poisson's law, which costs
    a ledger least, takes its place.
    """
    if not 0.0 <= score < 1.0:
        raise ParameterError(f"`score` must be a share of the budget, from 0 to 1, got {score!r}")
    if tries and rows_per_person > 1:
        raise ParameterError(
            "`rows_per_person` cannot be combined with `tries`: a search protects single rows"
        )
    limit = rho_limit(new_budget(None, epsilon, delta, neighbors, rows_per_person))
    common: dict[str, Any] = {
        "delta": delta,
        "neighbors": neighbors,
        "rows_per_person": rows_per_person,
    }
    estimator = estimator_of(method, target_bounds, **common)
    task = task_of(n_classes, getattr(estimator, "target_bounds", None))
    metric = METRICS["accuracy" if task.classes.size else "mae"]
    n_features = MANY_COLUMNS // task.n_outputs

    def fit(part: float) -> Any:
        return method_of(clone(estimator).set_params(epsilon=part)).budget(task, n_features)

    def search(part: float) -> Any:
        return search_cost(part, tries=tries_of(tries, "poisson"), **common)

    def scored(part: float) -> Any:
        return score_budget(metric, part, **common)[0]

    makers: dict[str, tuple[Callable[[float], Any], float]] = {
        "search" if tries else "fit": (search if tries else fit, 1.0 - score),
        "score": (scored, score),
    }
    bound = metric.bound(NUMBERS_ALONE, neighbors)
    parts = []
    for name, (make, share) in makers.items():
        if share == 0.0:
            continue
        allowed = Fraction(share) * limit / UNITS * (1 - Fraction(1, 10**9))
        epsilon = largest_within(partial(_rho, make), float(allowed), delta)
        made = make(epsilon) if epsilon else None
        try_rho = getattr(made, "try_rho", 0.0)
        try_epsilon = epsilon_of_rho(try_rho, delta) if try_rho else 0.0
        noise = made.moved(bound) / made.mu if made and name == "score" else 0.0
        parts.append(Part(name, share, epsilon, delta, try_epsilon, noise))
    return tuple(parts)


def _rho(make: Callable[[float], Any], epsilon: float) -> float:
    return float(Fraction(charge_of(make(epsilon)).rho, UNITS))
