"""A fit's settings, checked once, before any data are looked at."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from dplasso.frank_wolfe.drift import tolerance_of
from dplasso.frank_wolfe.solve import SOLVERS
from dplasso.ledger import check_ledger_settings
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
_PAPER_STEPS, _PAPER_RADIUS = 100, 10.0
_MOST_THREADS = 64


@dataclass(frozen=True)
class LassoSettings:
    """Settings of a fit by Frank-Wolfe, valid.

    `params`: the estimator's parameters as given, for files.
    `n_records`, `rows_per_person`, `random_state`, `ledger`, `dataset`, `purpose`: as in
    `DPLassoClassifier`.
    `l1_radius`, `n_iter`, `refit`: None leaves it to the plan.
    `residual_bound`: bound C of the loss.
    `class_weights`: of the classes, of two the negative first; the largest is 1.
    `target_bounds`: as in `DPLasso`; None for a classification.
    `weight_bound`: the largest weight of a record; None where there are none, or no privacy.
    `weighted`: whether records have weights.
    `drift_tol`: what the parameter stands for.
    `n_threads`: what `n_jobs` stands for.
    """

    params: Mapping[str, Any]
    epsilon: float
    delta: float
    l1_radius: float | None
    n_iter: int | None
    refit: float | None
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
    purpose: str | None = None
    residual_bound: float = 1.0
    n_records: int | None = None
    rows_per_person: int = 1
    class_weights: tuple[float, ...] = (1.0, 1.0)
    target_bounds: tuple[float, float] | None = None
    weight_bound: float | None = None
    weighted: bool = False

    @property
    def is_staged(self) -> bool:
        """Whether the fit counts, draws and refits; otherwise it draws T vertices and no more."""
        return self.n_iter is None or self.l1_radius is None or bool(self.refit)


def lasso_settings(params: Mapping[str, Any]) -> LassoSettings:
    """Check the parameters of an estimator, whatever data they meet.

    `params`: the parameters of `DPLassoClassifier` or `DPLasso` by name.

    Raises TypeError, ValueError one sentence that names the parameter, what was given and what
    would be right.
    """
    epsilon = check_epsilon(params["epsilon"])
    mechanism = check_mechanism(params["mechanism"])
    private = not math.isinf(epsilon)
    check_selector(params["selector"], mechanism if private else "none")
    if params["solver"] not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {params['solver']!r}")
    check_ledger_settings(params)
    classes, class_weight = params.get("classes"), params.get("class_weight")
    bounds = _bounds_of(params)
    residual_bound = _given_bound(params["residual_bound"], regression=bounds is not None)
    if residual_bound is None:
        clipped = private and mechanism != "paper"
        residual_bound = default_residual_bound(private=clipped, regression=bounds is not None)
    class_weights = checked_class_weight(class_weight, classes)
    n_iter, l1_radius = _open(params, "n_iter"), _open(params, "l1_radius")
    refit = _checked_refit(params["refit"])
    if mechanism == "paper":
        # Reproduction takes what version 0.1.0 took by default.
        n_iter, l1_radius = n_iter or _PAPER_STEPS, l1_radius or _PAPER_RADIUS
        if refit or class_weight is not None:
            raise ValueError("mechanism='paper' has no refit and no class_weight; leave them out")
    if n_iter is not None and l1_radius is not None and refit is None:
        refit = 0.0
    settings = LassoSettings(
        params=_for_files(params),
        epsilon=epsilon,
        delta=check_delta(params["delta"]),
        l1_radius=None if l1_radius is None else check_positive("l1_radius", l1_radius),
        n_iter=None if n_iter is None else check_n_iter(n_iter),
        refit=refit,
        feature_bound=check_feature_bound(params["feature_bound"]),
        neighbors=check_neighbors(params["neighbors"]),
        fit_intercept=bool(params["fit_intercept"]),
        classes=classes,
        mechanism=mechanism,
        solver=params["solver"],
        selector=params["selector"],
        drift_tol=tolerance_of(_checked_drift_tol(params["drift_tol"]), private=private),
        n_threads=_checked_threads(params["n_jobs"]),
        random_state=check_random_state(params["random_state"]),
        ledger=params["ledger"],
        dataset=params["dataset"],
        purpose=params["purpose"],
        residual_bound=residual_bound,
        n_records=_checked_count("n_records", params["n_records"]),
        rows_per_person=_checked_count("rows_per_person", params["rows_per_person"]) or 1,
        class_weights=class_weights,
        target_bounds=bounds,
        weight_bound=_checked_weight_bound(params),
    )
    if (
        settings.l1_radius is not None
        and settings.l1_radius * settings.feature_bound > _LARGEST_MARGIN
    ):
        raise ValueError(
            f"l1_radius times feature_bound must be at most {_LARGEST_MARGIN:g}, got "
            f"{settings.l1_radius:g} times {settings.feature_bound:g}"
        )
    return settings


@dataclass(frozen=True)
class LogisticSettings:
    """Settings of a fit by noisy gradient descent, valid.

    `params`: the estimator's parameters as given, for files.
    `random_state`, `ledger`, `dataset`, `purpose`: as in `DPLogisticRegression`.
    `target_bounds`: as in `DPLinearRegression`; None for a classification.
    `weight_bound`, `weighted`: as in `LassoSettings`.
    `norm_bound`: None where rows are made unit rows.
    `residual_bound`: bound C of the loss; None leaves it to the loss.
    `n_iter`: None leaves it to the plan.
    `n_threads`: what `n_jobs` stands for.
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
    purpose: str | None = None
    target_bounds: tuple[float, float] | None = None
    weight_bound: float | None = None
    weighted: bool = False


def logistic_settings(params: Mapping[str, Any]) -> LogisticSettings:
    """Check the parameters of an estimator, whatever data they meet.

    `params`: the parameters of `DPLogisticRegression` or `DPLinearRegression` by name.

    Raises TypeError, ValueError one sentence that names the parameter, what was given and what
    would be right.
    """
    epsilon = check_epsilon(params["epsilon"])
    check_ledger_settings({**params, "mechanism": "gaussian"})
    n_iter = params["n_iter"]
    bounds = _bounds_of(params)
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
        purpose=params["purpose"],
        target_bounds=bounds,
        weight_bound=_checked_weight_bound(params),
    )


def default_residual_bound(*, private: bool, regression: bool = False) -> float:
    """Return the bound C that "auto" stands for.

    Of a binary classification 1/2 in a private fit, where no residual is clipped at zero weights,
    and 1 without privacy. Of a regression, in halves of the targets' interval, 1/4 in a private
    fit, measured best at epsilon up to 1 (docs/regression.md), and 2 without privacy, where nothing
    is clipped while predictions stay in the interval.
    """
    if regression:
        return 0.25 if private else 2.0
    return 0.5 if private else 1.0


def _given_bound(residual_bound: Any, *, regression: bool) -> float | None:
    """Return a bound C that was given; None for "auto"."""
    if _is_word(residual_bound, "auto"):
        return None
    least, most = (0.01, 2.0) if regression else (0.5, 1.0)
    if isinstance(residual_bound, Real) and least <= float(residual_bound) <= most:
        return float(residual_bound)
    raise ValueError(
        f"residual_bound must be 'auto' or a number from {least:g} to {most:g}, got "
        f"{residual_bound!r}"
    )


def _bounds_of(params: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the interval of the targets; None for a classification."""
    return checked_target_bounds(params["target_bounds"]) if "target_bounds" in params else None


def checked_target_bounds(bounds: Any) -> tuple[float, float]:
    """Return the interval of a regression's targets.

    `bounds`: its lower and its upper end.

    Raises ValueError if it is missing or no finite interval.
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


def checked_class_weight(class_weight: Any, classes: Any) -> tuple[float, ...]:
    """Return the weights of the classes in their order, the largest of them 1.

    `class_weight`: a positive weight for each label, by name or in the order of the classes; None
    for 1.
    `classes`: the labels, of two the negative first; names without them are 1 until there are data.

    Raises ValueError if it is neither, or names other labels.
    """
    if class_weight is None:
        return 1.0, 1.0
    if isinstance(class_weight, Mapping) and classes is None and len(class_weight) > 1:
        checked_class_weight(list(class_weight.values()), None)
        return 1.0, 1.0
    if isinstance(class_weight, Mapping) and classes is not None:
        labels = list(classes)
        if set(class_weight) != set(labels):
            raise ValueError(
                f"class_weight must have a weight for each label of classes, {labels}, and no "
                f"other; got {class_weight!r}"
            )
        class_weight = [class_weight[label] for label in labels]
    if not isinstance(class_weight, list | tuple) or len(class_weight) < 2:
        raise ValueError(
            "class_weight must be None, weights in the order of the classes, or a mapping of each "
            f"label to a weight; got {class_weight!r}"
        )
    if not all(isinstance(one, Real) and 0.0 < float(one) < math.inf for one in class_weight):
        raise ValueError(f"class_weight must hold positive numbers, got {class_weight!r}")
    weights = [float(one) for one in class_weight]
    return tuple(weight / max(weights) for weight in weights)


def with_class_weights(settings: Any, classes: NDArray[Any]) -> Any:
    """Return a LASSO's settings with the weights of its classes, where they go by name.

    Raises ValueError for settings that are for two classes only.
    """
    weight = settings.params.get("class_weight")
    if classes.size > 2 and settings.params.get("mechanism") == "paper":
        raise ValueError(f"mechanism='paper' is for two classes; there are {classes.size}")
    if weight is not None and len(weight) != classes.size:
        raise ValueError(
            f"class_weight must have a weight for each of the {classes.size} classes, got {weight}"
        )
    if not isinstance(weight, Mapping):
        return settings
    pair = checked_class_weight(weight, classes.tolist())
    params = {**settings.params, "class_weight": tuple(weight[one] for one in classes.tolist())}
    return replace(settings, params=params, class_weights=pair)


def _open(params: Mapping[str, Any], name: str) -> Any:
    """Return a parameter, None for "auto"."""
    if params[name] is None:
        raise TypeError(f"{name} must be 'auto' or a number, got None")
    return None if _is_word(params[name], "auto") else params[name]


def _checked_refit(refit: Any) -> float | None:
    if _is_word(refit, "auto"):
        return None
    if refit is None:
        return 0.0
    if isinstance(refit, Real) and 0.0 <= float(refit) < 1.0:
        return float(refit)
    raise ValueError(f"refit must be 'auto', None or a share of the budget below 1, got {refit!r}")


def _for_files(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as a file can hold them: classes may be an Index, a Series or a range."""
    plain, classes = dict(params), params.get("classes")
    if classes is not None:
        plain["classes"] = np.asarray(classes).tolist()
        if isinstance(params.get("class_weight"), Mapping):
            # In the order of the labels.
            plain["class_weight"] = [params["class_weight"][label] for label in classes]
    if not isinstance(plain.get("class_weight"), Mapping | None):
        plain["class_weight"] = tuple(float(one) for one in plain["class_weight"])
    if params.get("target_bounds") is not None:
        plain["target_bounds"] = checked_target_bounds(params["target_bounds"])
    return plain


def _checked_weight_bound(params: Mapping[str, Any]) -> float | None:
    bound = params.get("weight_bound")
    return None if bound is None else check_positive("weight_bound", bound)


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
    # More would only wait for each other, and each takes memory of its own.
    return min(int(effective_n_jobs(n_jobs)), max(_MOST_THREADS, int(effective_n_jobs(-1))))
