"""What a search may spend: every candidate's epsilon, the noise of a score, all of a new budget."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dplasso.ledger import UNITS, Ledger, charge_of, rho_limit
from dplasso.privacy.budget import Budget
from dplasso.tuning.candidates import Candidate, give_epsilon, largest_variation
from dplasso.tuning.cost import SearchCost, search_cost
from dplasso.tuning.estimates import Target
from dplasso.tuning.metrics import METRICS
from dplasso.tuning.scorer import Scorer, check_noise, most_sums, share_bound
from dplasso.tuning.tries import tries_of

_CONFIDENCE = 0.95
# The rounding of a score's noise (`dplasso.privacy.budget`) adds less than this part
# of its cost for each 64 sums; beyond the noise's last integer lies less than
# `dplasso.tuning.tries.DRAW_ERROR`.
_SCORE_MARGIN = 2.0**-40


def divide_budget(
    search: Any, candidates: list[Candidate], neighbors: str, rows_per_person: int
) -> SearchCost:
    """Return what a search costs, and give each candidate the epsilon of one try."""
    cost = search_cost(
        search.epsilon,
        search.delta,
        tries_of(search.tries, search.law),
        draw_variation=largest_variation(candidates, search.epsilon),
        neighbors=neighbors,
        rows_per_person=rows_per_person,
    )
    for candidate in candidates:
        give_epsilon(candidate, cost.try_rho, search.delta)
    return cost


def scorer_of(cost: SearchCost, name: str, target: Target) -> Scorer:
    """Return how every try is scored; a score costs as much as a fit may."""
    metric, margin = METRICS[name], _SCORE_MARGIN * (most_sums(target) / 64.0)
    mu = math.sqrt(2.0 * cost.try_rho * (1.0 - margin))
    share = share_bound(metric, target, cost.neighbors)
    sensitivity = Budget(
        epsilon=cost.epsilon,
        delta=cost.delta,
        neighbors=cost.neighbors,
        rows_per_person=cost.rows_per_person,
    ).moved(share)
    check_noise(sensitivity / mu)
    return Scorer(metric, target, sensitivity, sensitivity / mu, _CONFIDENCE)


def whole_budget(cost: SearchCost, ledger: Ledger | None) -> SearchCost:
    """Let a search that is within a budget by itself take all of it, before anything else."""
    if ledger is None:
        return cost
    budget = ledger.budget()
    if budget.entries or cost.epsilon > budget.epsilon or cost.delta > budget.delta:
        return cost
    limit = Fraction(rho_limit(budget, charge_of(cost).draw_delta, 1), UNITS)
    return replace(cost, rho=limit) if 0 < limit < cost.rho else cost
