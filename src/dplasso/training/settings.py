"""A fit's settings, checked once, before any data are looked at."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
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
from dplasso.privacy.randomness import check_random_state
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
        params=_for_files(params),
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
        random_state=check_random_state(params["random_state"]),
        ledger=params["ledger"],
        dataset=params["dataset"],
    )
    if settings.l1_radius * settings.feature_bound > _LARGEST_MARGIN:
        raise ValueError(
            f"l1_radius times feature_bound must be at most {_LARGEST_MARGIN:g}, got "
            f"{settings.l1_radius:g} times {settings.feature_bound:g}"
        )
    return settings


@dataclass(frozen=True)
class LogisticSettings:
    """Settings of a fit by noisy gradient descent, valid.

    Attributes
    ----------
    params : mapping
        The estimator's parameters as given, for files.
    epsilon, delta, max_weights, neighbors, fit_intercept, classes, n_records, rows_per_person,
    random_state, ledger, dataset
        As in `DPLogisticRegression`.
    target_bounds : tuple of float or None
        As in `DPLinearRegression`; None for a classification.
    norm_bound : float or None
        None where rows are made unit rows.
    residual_bound : float or None
        Bound C of the loss; None leaves it to the loss.
    n_iter : int or None
        None leaves it to the plan.
    n_threads : int
        What `n_jobs` stands for.
    """

    params: Mapping[str, Any]
    epsilon: float
    delta: float
    max_weights: int | str | None
    norm_bound: float | None
    residual_bound: float | None
    neighbors: str
    fit_intercept: bool
    classes: Any
    n_iter: int | None
    n_records: int | None
    rows_per_person: int
    n_threads: int
    random_state: Any = None
    ledger: Any = None
    dataset: str | None = None
    target_bounds: tuple[float, float] | None = None


def logistic_settings(params: Mapping[str, Any]) -> LogisticSettings:
    """Check the parameters of an estimator, whatever data they meet.

    Parameters
    ----------
    params : mapping
        The parameters of `DPLogisticRegression` or `DPLinearRegression` by name.

    Returns
    -------
    LogisticSettings

    Raises
    ------
    TypeError, ValueError
        One sentence that names the parameter, what was given and what would be right.
    """
    epsilon = check_epsilon(params["epsilon"])
    check_ledger_settings({**params, "mechanism": "gaussian"})
    n_iter = params["n_iter"]
    bounds = None
    if "target_bounds" in params:
        bounds = checked_target_bounds(params["target_bounds"])
    return LogisticSettings(
        params=_for_files(params),
        epsilon=epsilon,
        delta=check_delta(params["delta"]),
        max_weights=_checked_max_weights(params["max_weights"]),
        norm_bound=_checked_row_norm(params["row_norm"]),
        residual_bound=_given_bound(params["residual_bound"], regression=bounds is not None),
        neighbors=check_neighbors(params["neighbors"]),
        fit_intercept=bool(params["fit_intercept"]),
        classes=params.get("classes"),
        n_iter=None if _is_word(n_iter, "auto") else check_n_iter(n_iter),
        n_records=_checked_count("n_records", params["n_records"]),
        rows_per_person=_checked_count("rows_per_person", params["rows_per_person"]) or 1,
        n_threads=_checked_threads(params["n_jobs"]),
        random_state=check_random_state(params["random_state"]),
        ledger=params["ledger"],
        dataset=params["dataset"],
        target_bounds=bounds,
    )


def checked_residual_bound(residual_bound: Any, *, private: bool) -> float:
    """Return the bound C that a parameter stands for.

    Parameters
    ----------
    residual_bound : float or "auto"
        A number in [1/2, 1], or "auto": 1/2 in a private fit, 1 without privacy.
    private : bool
        Whether epsilon is finite.

    Raises
    ------
    ValueError
        If it is neither.
    """
    if _is_word(residual_bound, "auto"):
        return 0.5 if private else 1.0
    if isinstance(residual_bound, Real) and 0.5 <= float(residual_bound) <= 1.0:
        return float(residual_bound)
    raise ValueError(
        f"residual_bound must be 'auto' or a number from 0.5 to 1, got {residual_bound!r}"
    )


def _given_bound(residual_bound: Any, *, regression: bool) -> float | None:
    """Return a bound C that was given; None for "auto", which is the loss's affair."""
    if _is_word(residual_bound, "auto"):
        return None
    if not regression:
        return checked_residual_bound(residual_bound, private=True)
    if isinstance(residual_bound, Real) and 0.01 <= float(residual_bound) <= 2.0:
        return float(residual_bound)
    raise ValueError(
        f"residual_bound must be 'auto' or a number from 0.01 to 2, got {residual_bound!r}"
    )


def checked_target_bounds(bounds: Any) -> tuple[float, float]:
    """Return the interval of a regression's targets.

    Parameters
    ----------
    bounds : pair of float
        Its lower and its upper end.

    Raises
    ------
    ValueError
        If it is missing or no finite interval.
    """
    if bounds is None:
        raise ValueError(
            "target_bounds is missing: give the interval (low, high) that the targets are publicly "
            "known to lie in; it must not be taken from the data"
        )
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(
            f"target_bounds must be two finite numbers (low, high), low < high, got {bounds!r}"
        )
    return low, high


def _for_files(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as a file can hold them: classes may be an Index, a Series or a range."""
    plain = dict(params)
    if params.get("classes") is not None:
        plain["classes"] = np.asarray(params["classes"]).tolist()
    if params.get("target_bounds") is not None:
        plain["target_bounds"] = checked_target_bounds(params["target_bounds"])
    return plain


def _is_word(value: Any, word: str) -> bool:
    return isinstance(value, str) and value == word


def _checked_row_norm(row_norm: Any) -> float | None:
    if _is_word(row_norm, "unit"):
        return None
    if isinstance(row_norm, str):
        raise ValueError(f"row_norm must be 'unit' or a number > 0, got {row_norm!r}")
    return check_positive("row_norm", row_norm)


def _checked_max_weights(max_weights: Any) -> int | str | None:
    if max_weights is None:
        return None
    if _is_word(max_weights, "significant"):
        return "significant"
    if isinstance(max_weights, Integral) and int(max_weights) > 0:
        return int(max_weights)
    raise ValueError(
        f"max_weights must be None, a whole number >= 1 or 'significant', got {max_weights!r}"
    )


def _checked_count(name: str, count: Any) -> int | None:
    if count is None:
        return None
    if isinstance(count, Integral) and int(count) > 0:
        return int(count)
    raise ValueError(f"{name} must be None or a whole number >= 1, got {count!r}")


def _checked_drift_tol(drift_tol: Any) -> float | str | None:
    if drift_tol is None:
        return None
    if _is_word(drift_tol, "auto"):
        return "auto"
    if isinstance(drift_tol, Real) and 0 <= float(drift_tol) < math.inf:
        return float(drift_tol)
    raise ValueError(f"drift_tol must be 'auto', None or a finite number >= 0, got {drift_tol!r}")


def _checked_threads(n_jobs: Any) -> int:
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be None or a whole number other than 0 (-1 for all cores), got {n_jobs!r}"
        )
    return int(effective_n_jobs(n_jobs))
