"""The settings that a search chooses among, and what each may spend on one try."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from dplasso.estimators.fitting import method_of
from dplasso.tuning.cost import rho_of_event

# What the search sets itself, or what must be the same for all tries.
_NOT_TUNED = (
    *("epsilon", "delta", "neighbors", "rows_per_person", "classes"),
    *("random_state", "ledger", "dataset", "purpose", "verbose"),
)
_ATTEMPTS = 40
# At least this part of what is allowed is used.
_ENOUGH = 1.0 - 1e-6


@dataclass(frozen=True)
class Candidate:
    """Settings that a try may draw.

    `params`: as the grid names them.
    `estimator`: with these settings and the epsilon of one try; not fitted.
    """

    params: dict[str, Any]
    estimator: Any


def list_candidates(estimator: Any, grid: Any, delta: float) -> list[Candidate]:
    """List the settings of a grid.

    `estimator`: copied, with what the search sets itself left out.
    `grid`: as in scikit-learn's `ParameterGrid`; public.
    `delta`: of every try, which sets its noise together with its epsilon.

    Raises TypeError, ValueError if the grid is none, names a parameter that cannot be tuned, or
    the estimator has no epsilon.
    """
    base = clone(estimator)
    known = base.get_params(deep=False)
    if "epsilon" not in known:
        raise TypeError(f"{type(base).__name__} has no parameter epsilon: it is not a private fit")
    if known.get("random_state") is not None:
        raise ValueError("give random_state to PrivateSearch, which sets that of every try")
    if known.get("ledger") is not None:
        raise ValueError("give the ledger to PrivateSearch, which makes one charge for all tries")
    ours = {"delta": delta, "verbose": 0, "dataset": None, "purpose": None}
    base.set_params(**{name: value for name, value in ours.items() if name in known})
    grids: Sequence[Any] = [grid] if isinstance(grid, Mapping) else grid
    found = []
    for params in ParameterGrid(grids):
        if fixed := [name for name in params if name in _NOT_TUNED]:
            raise ValueError(f"{fixed[0]} cannot be tuned: it is the same for every try")
        found.append(Candidate(dict(params), clone(base).set_params(**params)))
    if not found:
        raise ValueError("the grid holds no settings; give at least one")
    return found


def cost_of_try(estimator: Any, n_features: int) -> tuple[float, float]:
    """Return what a fit with an estimator's parameters costs.

    `estimator`: of this package, or any with a method ``privacy_event()`` that states the cost of
    a fit with its parameters as an event of ``dp-accounting``.
    `n_features`: columns of the data.

    Returns `rho`: zCDP of the fit.
    `variation`: total variation between the fit's draws and those accounted, at most.

    Raises TypeError, ValueError for settings out of range, a fit that is not private, or an
    estimator that does not state its cost.
    """
    if hasattr(estimator, "privacy_event"):
        rho, variation = rho_of_event(estimator.privacy_event()), 0.0
    elif type(estimator).__module__.startswith("dplasso."):
        mechanism = method_of(estimator).cost(n_features)
        # Its part of delta is the variation times 1 + e^x for some x >= 0.
        rho, variation = mechanism.rho, mechanism.sampling_delta / 2.0
    else:
        raise TypeError(
            f"{type(estimator).__name__} does not say what a fit costs: it needs a method "
            "privacy_event() that returns an event of dp-accounting"
        )
    if not math.isfinite(rho):
        raise ValueError(f"a fit with {estimator!r} is not private, so no search can count it")
    return rho, variation


def give_epsilon(candidate: Candidate, rho: float, delta: float, n_features: int) -> None:
    """Set the largest epsilon with which a candidate's fit stays within a zCDP cost.

    `candidate`: its estimator is changed.
    `rho`: what one try may cost.
    `delta`: of a try.
    `n_features`: columns of the data.

    Raises ValueError if no epsilon is small enough.
    """
    estimator = candidate.estimator

    def cost(epsilon: float) -> float:
        estimator.set_params(epsilon=epsilon)
        return cost_of_try(estimator, n_features)[0]

    best = largest_within(cost, rho, delta)
    if best == 0.0:
        raise ValueError(f"no epsilon keeps a fit with {estimator!r} within a try's budget")
    estimator.set_params(epsilon=best)


def largest_within(cost: Callable[[float], float], allowed: float, delta: float) -> float:
    """Return about the largest epsilon whose cost is allowed, never one whose cost is not.

    `cost`: increasing, about with the square of epsilon.
    `allowed`: the largest cost, in zCDP.
    `delta`: at which epsilon is told; says where to begin.

    Returns: to a millionth of the cost; 0 if none was found.
    """
    epsilon, best = allowed + 1.9 * math.sqrt(-allowed * math.log(delta)), 0.0
    for _ in range(_ATTEMPTS):
        spent = cost(epsilon)
        if spent <= allowed:
            best = max(best, epsilon)
            if spent >= _ENOUGH * allowed:
                break
        aim = 0.5 * (1.0 + _ENOUGH) * allowed
        epsilon *= min(max(math.sqrt(aim / spent), 0.25), 2.0) if spent > 0.0 else 2.0
    return best
