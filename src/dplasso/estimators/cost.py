"""Plan a fit without data: its privacy cost, its weakest detectable effect, its intervals."""

import math
from dataclasses import dataclass
from inspect import signature
from typing import Any

from scipy.special import ndtri
from sklearn.base import is_regressor

from dplasso.errors import ParameterError, shown
from dplasso.estimators.base import PrivateLinearModel
from dplasso.estimators.classifiers import DPLassoClassifier, DPLogisticRegression
from dplasso.estimators.fitting import method_of
from dplasso.estimators.frank_wolfe_classifier import DPFrankWolfeClassifier
from dplasso.estimators.regressors import DPLasso, DPLinearRegression
from dplasso.fit.lasso import Lasso, plan_lasso, row_limit
from dplasso.fit.method import MANY_COLUMNS, Method
from dplasso.fit.task import Task
from dplasso.gradient_descent.energies import SCALES_SHARE, pays
from dplasso.gradient_descent.schedule import CONSTANT, SIGNIFICANT, schedule_for
from dplasso.phases.intervals import Precision
from dplasso.privacy.accounting import bracket
from dplasso.privacy.parameters import check_positive
from dplasso.privacy.statement import PrivacyStatement

# The classifier and the regressor of each method.
METHODS: dict[str, tuple[Any, Any]] = {
    "logistic": (DPLogisticRegression, None),
    "linear": (None, DPLinearRegression),
    "lasso": (DPLassoClassifier, DPLasso),
    "frank-wolfe": (DPFrankWolfeClassifier, None),
}


@dataclass(frozen=True)
class Findable:
    """The weakest association of a column with the label that exceeds the noise.

    Attributes
    ----------
    n_weights : int
        Approximate number of columns with a weight in the model.
    gradient : float
        Size of the column's gradient at zero weights, a sum over records.
    rows : float
        Excess of one class among the rows with the column; of a regression, of residuals at the
        upper bound.
    part : float
        `rows` divided by the number of records; above 1 no column can be found.
    """

    n_weights: int
    gradient: float
    rows: float
    part: float


def estimator_of(
    method: str, target_bounds: tuple[float, float] | None, **settings: Any
) -> PrivateLinearModel:
    """Return the estimator of a method; ValueError if it does not exist for such targets."""
    if method not in METHODS:
        raise ParameterError(f"`method` must be one of {', '.join(METHODS)}, got {shown(method)}")
    of_classes, of_numbers = METHODS[method]
    if target_bounds is None and method == "linear":
        target_bounds = (0.0, 1.0)
    made: Any = of_classes
    if target_bounds is not None:
        if of_numbers is None:
            raise ParameterError(
                f"`target_bounds` cannot be combined with `method={method!r}`: it predicts classes",
                advice="use linear or lasso",
            )
        made, settings = of_numbers, {**settings, "target_bounds": target_bounds}
    parameters = signature(made).parameters
    for name in settings:
        if name not in parameters:
            having = [
                f"`method={other}`"
                for other, kinds in METHODS.items()
                if other != method
                and any(kind and name in signature(kind).parameters for kind in kinds)
            ]
            only = f", only with {' or '.join(having)}" if having else ""
            raise ParameterError(f"`{name}` cannot be combined with `method={method}`{only}")
    estimator: PrivateLinearModel = made(**settings)
    return estimator


# Parameters with which a fit may cost a ledger more, by method: without a ledger and counts, the
# eps0 of few steps may be epsilon over their number, and a list of all columns draws none.
DEAREST: dict[str, dict[str, Any]] = {
    "frank-wolfe": {"fit_intercept": False, "n_records": 1},
    "lasso": {"max_weights": 2**62},
}


def planned_fit(estimator: PrivateLinearModel, n_classes: int) -> tuple[Method, Task]:
    """Return the method and task of a fit without data; ValueError if they cannot be combined."""
    if n_classes < 2:
        raise ParameterError(f"`n_classes` must be 2 or more, got {shown(n_classes)}")
    fitted = method_of(estimator)
    task = fitted.targets.of_size(n_classes)
    if task.target_bounds and n_classes != 2:
        raise ParameterError("`n_classes` cannot be combined with `target_bounds` of a regression")
    return fitted, task


def privacy_cost(
    epsilon: float,
    delta: float = 1e-6,
    *,
    method: str = "logistic",
    n_classes: int = 2,
    target_bounds: tuple[float, float] | None = None,
    n_features: int | None = None,
    **settings: Any,
) -> PrivacyStatement:
    """Return the privacy statement of a fit with these settings, without data.

    Parameters
    ----------
    epsilon : float
        Privacy budget of the whole fit; infinity for no privacy.
    delta : float, default=1e-6
        In (0, 1).
    method : {"logistic", "linear", "lasso", "frank-wolfe"}, default="logistic"
        `DPLogisticRegression`, `DPLinearRegression`, `DPLassoClassifier` or `DPLasso`, or
        `DPFrankWolfeClassifier`.
    n_classes : int, default=2
        Number of classes; it does not change the cost.
    target_bounds : tuple of float, default=None
        Interval of a regression's targets; it does not change the cost.
    n_features : int, default=None
        Number of columns D; None for 2^24.
    **settings
        Other parameters of the estimator.

    Returns
    -------
    PrivacyStatement
        The statement of such a fit with declared classes.

    Raises
    ------
    TypeError, ValueError
        For an invalid parameter, or one that the method does not have.

    Examples
    --------
    >>> cost = privacy_cost(epsilon=1.0)
    >>> round(cost.mu, 3)
    0.237
    >>> cost = privacy_cost(epsilon=1.0, method="frank-wolfe", n_iter=1000)
    >>> round(cost.number("eps0"), 5)
    0.01389
    """
    settings = {"epsilon": epsilon, "delta": delta, **settings}
    estimator = estimator_of(method, target_bounds, **settings)
    if not is_regressor(estimator):
        estimator.set_params(classes=range(n_classes))
    fitted, task = planned_fit(estimator, n_classes)
    size = MANY_COLUMNS // task.n_outputs if n_features is None else n_features
    return fitted.statement(task, fitted.budget(task, size), size)


def weakest_association(
    epsilon: float,
    delta: float,
    n_records: float,
    n_features: int,
    *,
    method: str = "logistic",
    row_entries: float = 30.0,
    n_classes: int = 2,
    target_bounds: tuple[float, float] | None = None,
    **settings: Any,
) -> Findable:
    """Return the weakest association of a column that a fit can find, from public numbers.

    Noisy gradient descent finds a column if its weight exceeds three standard errors; a LASSO that
    draws columns, if its gradient exceeds the largest of all noises. Columns are taken to be in
    one unit, as those of a schema: for other columns, a part of the budget finds their units.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    n_records, n_features : int
        Public numbers of records N and columns D.
    row_entries : float, default=30
        Approximate number of non-zero entries in a row. In long rows, a column must be stronger to
        be found.
    method, n_classes, target_bounds, **settings
        As in `privacy_cost`; not "frank-wolfe".

    Returns
    -------
    Findable

    Raises
    ------
    TypeError, ValueError
        As in `privacy_cost`, or if a number is not positive.
    """
    n_records = check_positive("n_records", n_records)
    n_features = int(check_positive("n_features", n_features))
    row_entries = check_positive("row_entries", row_entries)
    settings = {"epsilon": epsilon, "delta": delta, **settings}
    if method == "frank-wolfe":
        raise ParameterError(
            "`method=frank-wolfe` may draw a column several times", advice="use lasso"
        )
    estimator = estimator_of(method, target_bounds, **settings)
    fitted, task = planned_fit(estimator, n_classes)
    budget = fitted.budget(task, n_features)
    if budget.leak:
        return Findable(n_features, 0.0, 0.0, 0.0)
    n_weights, n_drawn, left = n_features, 0, fitted.fitted_share(task)
    if isinstance(fitted, Lasso):
        shape = fitted.shape(task, n_features)
        rho = left * budget.mu * budget.mu / 2.0
        plan = plan_lasso(shape, rho, n_records, long_rows=True)
        if row_entries <= row_limit(shape, plan.n_vertices):
            plan = plan_lasso(shape, rho, n_records, long_rows=False)
        share = left * plan.vertex_share
        n_drawn, n_weights = plan.n_vertices, plan.n_vertices or plan.n_kept or n_features
    if n_drawn:
        bound = task.bound
        moved = budget.moved(settings.get("feature_bound", 1.0) * bound)
        scale = 2.0 * moved / budget.eps0_of(share, n_drawn)
        # The largest of 2D Gumbel noises of scale s is about s ln(2D).
        gradient = scale * math.log(2.0 * task.n_outputs * n_features)
    else:
        bound = task.gradient_bound / math.sqrt(row_entries)
        # This assumes that all columns have the same share of the unit rows.
        energy = n_records / n_features
        # Estimate of the curvature that the fit will compute from released energies.
        largest = n_records
        if pays(n_records, budget.moved(1.0) / budget.mu_of(SCALES_SHARE)):
            largest = min(largest, row_entries * energy + CONSTANT * CONSTANT * n_records)
        loss = task.gradient_loss(task.gradient_bound)
        mu, moved = budget.mu_of(left * (1.0 - task.calibration)), budget.moved_by(loss)
        schedule = schedule_for(largest, mu, moved, None, task.kappa, curvature=loss.curvature)
        # With two classes, half of the residuals stay at their bound, where the curvature is zero.
        bend = task.gradient_loss(1.0).curvature
        if classes := task.classes.size:
            bend = bend / 2.0 if classes == 2 else (1.0 - 1.0 / classes) / classes
        gradient = SIGNIFICANT * schedule.standard_error / schedule.reach(bend * energy)
    rows = gradient / bound
    return Findable(n_weights, gradient, rows, rows / n_records)


# Upper limit of the search for the number of rows.
_MOST_ROWS = 1e12
_LEVEL = 0.95


@dataclass(frozen=True)
class PlannedIntervals:
    """The expected 95 % intervals of a fit; `rows_needed` is None if no number suffices."""

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
    """Return the expected intervals of ``infer="all"`` of uncorrelated columns.

    Entries lie in [-1, 1] unless `row_norm` is given. `spread`: their standard deviation.
    `positive`: share of the second class. `residual`: standard deviation of a regression's
    residuals over half of the target interval. `effect`: a coefficient to find with probability
    `power` at a p-value below 0.05.
    """
    for name, part in (("positive", positive), ("power", power)):
        if not 0.0 < part < 1.0:
            raise ParameterError(f"`{name}` must be between 0 and 1, got {shown(part)}")
    bound = math.sqrt(n_features) if row_norm is None else check_positive("row_norm", row_norm)
    method = "logistic" if target_bounds is None else "linear"
    options = {"epsilon": epsilon, "delta": delta, "row_norm": bound, **settings}
    options |= {"infer": {"columns": "all", "share": share}}
    fitted, task = planned_fit(estimator_of(method, target_bounds, **options), 2)
    loss, unit = task.gradient_loss(task.inference_bound), 1.0
    each = squares = positive * (1.0 - positive)
    if target_bounds is not None:
        each, squares = 1.0, check_positive("residual", residual) ** 2
        unit = 0.5 * (target_bounds[1] - target_bounds[0])
    precision = Precision(
        fitted.budget(task, n_features),
        share,
        loss,
        n_features,
        bound,
        fitted.fit_intercept,
    )

    def error(n: float, noise: bool = True) -> tuple[float, bool]:
        std_error, clear = precision.of(n * each, n * squares, spread, noise=noise)
        return unit * std_error, clear

    def enough(n: float) -> bool:
        std_error, clear = error(n)
        return clear and (effect is None or reach * std_error <= abs(effect))

    reach = float(ndtri(0.5 + 0.5 * _LEVEL) + ndtri(power))
    needed = None
    if effect is not None and enough(_MOST_ROWS):
        _, needed = bracket(lambda n: n < 1.0 or not enough(n), 1.0, 0.001)
    own, clear = error(check_positive("n_records", n_records))
    width = 2.0 * float(ndtri(0.5 + 0.5 * _LEVEL)) * own
    return PlannedIntervals(clear, own, error(n_records, noise=False)[0], width, needed)
