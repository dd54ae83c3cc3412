"""How wide intervals will be, and how many rows an effect needs, before there are data."""

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtri

from dplasso.errors import ParameterError
from dplasso.estimators.cost import estimator_of, task_of
from dplasso.estimators.fitting import method_of
from dplasso.phases.inference import Precision, n_coefficients
from dplasso.privacy.parameters import check_positive

# Rows are sought up to this number.
_MOST_ROWS = 1e12
_LEVEL = 0.95


@dataclass(frozen=True)
class PlannedIntervals:
    """What intervals of so many rows will be.

    Attributes
    ----------
    identified : bool
        Whether coefficients are about to be identified.
    standard_error : float
        Of a coefficient, in the units of its column and of the target.
    without_privacy : float
        The same without noise.
    width : float
        Of a 95 % interval.
    rows_needed : float or None
        Rows with which `effect` is found with probability `power`; None without an effect, and
        where no number of rows is enough.
    """

    identified: bool
    standard_error: float
    without_privacy: float
    width: float
    rows_needed: float | None


def plan_intervals(
    epsilon: float,
    delta: float,
    n_records: float,
    n_features: int,
    *,
    row_norm: float | None = None,
    spread: float = 0.5,
    positive: float = 0.5,
    residual: float = 0.25,
    effect: float | None = None,
    power: float = 0.8,
    share: float = 0.5,
    target_bounds: tuple[float, float] | None = None,
    **settings: Any,
) -> PlannedIntervals:
    """Say how wide the intervals of ``infer="all"`` will be, from public numbers.

    Columns are taken as alike and unrelated; related columns have wider intervals.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    n_records, n_features : int
        N and D, public.
    row_norm : float, default=None
        As of the estimators; None for the square root of D, for columns in [-1, 1].
    spread : float, default=0.5
        Standard deviation of a column; 0.5 is that of 0 and 1 in equal parts.
    positive : float, default=0.5
        Part of the records in the second class.
    residual : float, default=0.25
        Standard deviation of the residuals of a regression, over half of the target interval.
    effect : float, default=None
        A coefficient to be found, in the units of its column and of the target.
    power : float, default=0.8
        With what probability it is to be found, at a p-value below 0.05.
    share : float, default=0.5
        What part of the budget goes to intervals: the share of `infer`.
    target_bounds : tuple of float, default=None
        Of a regression.
    **settings
        `neighbors`, `rows_per_person` and `fit_intercept` of the estimator.

    Returns
    -------
    PlannedIntervals

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    for name, part in (("positive", positive), ("power", power)):
        if not 0.0 < part < 1.0:
            raise ParameterError(f"`{name}` must be between 0 and 1, got {part!r}")
    bound = math.sqrt(n_features) if row_norm is None else check_positive("row_norm", row_norm)
    method = "logistic" if target_bounds is None else "linear"
    given = {"epsilon": epsilon, "delta": delta, "row_norm": bound, **settings}
    given |= {"infer": {"columns": "all", "share": share}}
    estimator = estimator_of(method, target_bounds, **given)
    fitted, task = method_of(estimator), task_of(2, target_bounds)
    loss, unit = task.gradient_loss(task.inference_bound), 1.0
    each = squares = positive * (1.0 - positive)
    if target_bounds is not None:
        each, squares = 1.0, check_positive("residual", residual) ** 2
        unit = 0.5 * (target_bounds[1] - target_bounds[0])
    precision = Precision(
        fitted.budget(task, n_features),
        share,
        (loss.residual_bound, loss.curvature),
        n_coefficients(n_features, fitted.fit_intercept),
        bound,
        fitted.fit_intercept,
    )

    def error(n: float, noise: bool = True) -> tuple[float, bool]:
        found, clear = precision.of(n * each, n * squares, spread, noise=noise)
        return unit * found, clear

    def enough(n: float) -> bool:
        found, clear = error(n)
        return clear and (effect is None or reach * found <= abs(effect))

    reach = float(ndtri(0.5 + 0.5 * _LEVEL) + ndtri(power))
    needed = None
    if effect is not None and enough(_MOST_ROWS):
        low, high = 1.0, _MOST_ROWS
        while high > 1.001 * low:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        needed = high
    own, clear = error(check_positive("n_records", n_records))
    width = 2.0 * float(ndtri(0.5 + 0.5 * _LEVEL)) * own
    return PlannedIntervals(clear, own, error(n_records, noise=False)[0], width, needed)
