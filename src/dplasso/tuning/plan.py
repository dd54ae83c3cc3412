"""Divide a privacy budget between a fit and a score of it.

The parts are shares of the zCDP that a ledger with this budget grants.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from dplasso.errors import ParameterError
from dplasso.estimators.cost import DEAREST, estimator_of, planned_fit
from dplasso.fit.method import MANY_COLUMNS
from dplasso.ledger import UNITS, charge_of, new_budget, rho_limit
from dplasso.privacy.budget import Budget
from dplasso.tuning.candidates import largest_within
from dplasso.tuning.estimates import NUMBERS_ALONE, score_budget
from dplasso.tuning.metrics import METRICS


@dataclass(frozen=True)
class Part:
    """A part of a plan with its share of the budget's zCDP; epsilon is 0 if that is too small.

    `noise`: standard deviation, in records, of the sums of a score.
    """

    name: str
    share: float
    epsilon: float
    delta: float
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
) -> tuple[Part, ...]:
    """Divide a budget into a fit and a score that a ledger with this budget can pay for.

    The fit gets what the share `score` leaves.
    """
    if not 0.0 <= score < 1.0:
        raise ParameterError(f"`score` must be a share of the budget, from 0 to 1, got {score!r}")
    limit = rho_limit(new_budget(None, epsilon, delta, neighbors, rows_per_person))
    common: dict[str, Any] = {
        "delta": delta,
        "neighbors": neighbors,
        "rows_per_person": rows_per_person,
    }
    is_regression = target_bounds is not None or method == "linear"
    metric = METRICS["mae" if is_regression else "accuracy"]

    def fit(part: float) -> Budget:
        own = common | DEAREST.get(method, {})
        estimator = estimator_of(method, target_bounds, epsilon=part, **own)
        fitted, task = planned_fit(estimator, n_classes)
        return fitted.budget(task, MANY_COLUMNS // task.n_outputs)

    def scored(part: float) -> Budget:
        return score_budget(metric, epsilon=part, **common)[0]

    def rho(make: Callable[[float], Budget], epsilon: float) -> float:
        return float(Fraction(charge_of(make(epsilon)).rho, UNITS))

    parts = []
    for name, make, share in (("fit", fit, 1.0 - score), ("score", scored, score)):
        if share == 0.0:
            continue
        allowed = Fraction(share) * limit / UNITS * (1 - Fraction(1, 10**9))
        part = largest_within(partial(rho, make), float(allowed), delta)
        noise = 0.0
        if part and name == "score":
            budget = make(part)
            noise = budget.moved(metric.bound(NUMBERS_ALONE, neighbors)) / budget.mu
        parts.append(Part(name, share, part, delta, noise))
    return tuple(parts)
