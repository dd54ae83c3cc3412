"""A fit's settings, checked once, before any data are looked at."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from joblib import effective_n_jobs

from dplasso.frank_wolfe.drift import tolerance_of
from dplasso.frank_wolfe.solve import SOLVERS
from dplasso.privacy.ledger import check_ledger_settings
from dplasso.privacy.mechanisms import check_mechanism
from dplasso.privacy.parameters import (
    check_delta,
    check_epsilon,
    check_feature_bound,
    check_n_iter,
    check_neighbors,
    check_positive,
)
from dplasso.selection.registry import check_selector

# Margins are sums of radius times entry: beyond this product they would not be finite.
_LARGEST_MARGIN = 1e100


@dataclass(frozen=True)
class LassoSettings:
    """Settings of a fit by Frank-Wolfe, valid.

    Attributes
    ----------
    params : mapping
        The estimator's parameters as given, for files.
    epsilon, delta, l1_radius, n_iter, feature_bound, neighbors, fit_intercept, classes, mechanism,
    solver, selector, random_state, ledger, dataset
        As in `DPLassoClassifier`.
    residual_bound : float
        Bound C of the loss.
    drift_tol : float or None
        What the parameter stands for.
    n_threads : int
        What `n_jobs` stands for.
    """

    params: Mapping[str, Any]
    epsilon: float
    delta: float
    l1_radius: float
    n_iter: int
    feature_bound: float
    neighbors: str
    fit_intercept: bool
    classes: Any
    mechanism: str
    solver: str
    selector: str
    drift_tol: float | None
    n_threads: int
    random_state: Any = None
    ledger: Any = None
    dataset: str | None = None
    residual_bound: float = 1.0


def lasso_settings(params: Mapping[str, Any]) -> LassoSettings:
    """Check the parameters of an estimator, whatever data they meet.

    Parameters
    ----------
    params : mapping
        The parameters of `DPLassoClassifier` by name.

    Returns
    -------
    LassoSettings

    Raises
    ------
    TypeError, ValueError
        One sentence that names the parameter, what was given and what would be right.
    """
    epsilon = check_epsilon(params["epsilon"])
    mechanism = check_mechanism(params["mechanism"])
    private = not math.isinf(epsilon)
    check_selector(params["selector"], mechanism if private else "none")
    if params["solver"] not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {params['solver']!r}")
    check_ledger_settings(params)
    settings = LassoSettings(
        params=params,
        epsilon=epsilon,
        delta=check_delta(params["delta"]),
        l1_radius=check_positive("l1_radius", params["l1_radius"]),
        n_iter=check_n_iter(params["n_iter"]),
        feature_bound=check_feature_bound(params["feature_bound"]),
        neighbors=check_neighbors(params["neighbors"]),
        fit_intercept=bool(params["fit_intercept"]),
        classes=params["classes"],
        mechanism=mechanism,
        solver=params["solver"],
        selector=params["selector"],
        drift_tol=tolerance_of(_checked_drift_tol(params["drift_tol"]), private=private),
        n_threads=_checked_threads(params["n_jobs"]),
        random_state=params["random_state"],
        ledger=params["ledger"],
        dataset=params["dataset"],
    )
    if settings.l1_radius * settings.feature_bound > _LARGEST_MARGIN:
        raise ValueError(
            f"l1_radius times feature_bound must be at most {_LARGEST_MARGIN:g}, got "
            f"{settings.l1_radius:g} times {settings.feature_bound:g}"
        )
    return settings


def _checked_drift_tol(drift_tol: Any) -> float | str | None:
    if drift_tol is None or (isinstance(drift_tol, str) and drift_tol == "auto"):
        return drift_tol
    if isinstance(drift_tol, Real) and 0 <= float(drift_tol) < math.inf:
        return float(drift_tol)
    raise ValueError(f"drift_tol must be 'auto', None or a finite number >= 0, got {drift_tol!r}")


def _checked_threads(n_jobs: Any) -> int:
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be None or a whole number other than 0 (-1 for all cores), got {n_jobs!r}"
        )
    return int(effective_n_jobs(n_jobs))
