"""What a fit would cost, what it could find and how wide its intervals would be, without data."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from inspect import signature
from typing import Any

from scipy.special import ndtri

from dplasso.errors import ParameterError
from dplasso.estimators.base import PrivateLinearModel
from dplasso.estimators.classifiers import DPLassoClassifier, DPLogisticRegression
from dplasso.estimators.fitting import method_of
from dplasso.estimators.frank_wolfe_classifier import DPFrankWolfeClassifier
from dplasso.estimators.regressors import DPLasso, DPLinearRegression
from dplasso.fit.column_plan import plan_lasso, row_limit
from dplasso.fit.lasso import Lasso
from dplasso.fit.method import MANY_COLUMNS, checked_target_bounds
from dplasso.fit.task import Bounded, Labels, Task
from dplasso.gradient_descent.energies import SCALES_SHARE, pays
from dplasso.gradient_descent.schedule import CONSTANT, SIGNIFICANT, Schedule, schedule_for
from dplasso.phases.count import COUNT_SHARE
from dplasso.phases.inference import Precision, n_coefficients
from dplasso.privacy.budget import Budget
from dplasso.privacy.parameters import check_positive
from dplasso.privacy.statement import PrivacyStatement

# Estimators by the name of their method: of classes, and of numbers.
METHODS: dict[str, tuple[Any, Any]] = {
    "logistic": (DPLogisticRegression, None),
    "linear": (None, DPLinearRegression),
    "lasso": (DPLassoClassifier, DPLasso),
    "frank-wolfe": (DPFrankWolfeClassifier, None),
}


@dataclass(frozen=True)
class Findable:
    """The weakest association of a column with the label that stands out of the noise.

    Attributes
    ----------
    n_weights : int
        Columns that the model will have weights for, about.
    gradient : float
        Size of the column's gradient at the start, a sum over records.
    rows : float
        By how many rows of one class more than of the other the column has to occur; of a
        regression, rows whose residual is at its bound, on one side more than on the other.
    part : float
        That over the number of rows; beyond 1 nothing can be found.
    """

    n_weights: int
    gradient: float
    rows: float
    part: float


def estimator_of(
    method: str, target_bounds: tuple[float, float] | None, **settings: Any
) -> PrivateLinearModel:
    """Return the estimator of a method; ValueError for none of this name, or for such targets."""
    if method not in METHODS:
        raise ParameterError(f"`method` must be one of {', '.join(METHODS)}, got {method!r}")
    of_classes, of_numbers = METHODS[method]
    if target_bounds is None and method == "linear":
        target_bounds = (0.0, 1.0)
    made: Any = of_classes
    if target_bounds is not None:
        if of_numbers is None:
            raise ParameterError(
                f"`target_bounds` does not go with `method={method!r}`, which is for classes"
            )
        made, settings = of_numbers, {**settings, "target_bounds": target_bounds}
    check_settings(made, method, settings)
    estimator: PrivateLinearModel = made(**settings)
    return estimator


def check_settings(estimator: Any, method: str, settings: Iterable[str]) -> None:
    """Raise ParameterError for settings that an estimator of a method does not have."""
    known = signature(estimator).parameters
    for name in settings:
        if name not in known:
            pairs = ((other, kinds) for other, kinds in METHODS.items() if other != method)
            having = [
                f"`method={other}`"
                for other, kinds in pairs
                if any(kind and name in signature(kind).parameters for kind in kinds)
            ]
            only = f", only with {' or '.join(having)}" if having else ""
            raise ParameterError(f"`{name}` does not go with `method={method}`{only}")


def task_of(n_classes: int, target_bounds: Any) -> Task:
    """Return the task that these stand for; ValueError if they do not go together."""
    if n_classes < 2:
        raise ParameterError(f"`n_classes` must be 2 or more, got {n_classes!r}")
    if target_bounds is None:
        return Labels().of_size(n_classes)
    if n_classes != 2:
        raise ParameterError("`n_classes` does not go with `target_bounds`, which are for numbers")
    return Bounded(checked_target_bounds(target_bounds))


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
    """Say what a fit with these settings would spend, without data.

    Parameters
    ----------
    epsilon : float
        Total privacy loss to stay within; infinity for no privacy.
    delta : float, default=1e-6
        In (0, 1).
    method : {"logistic", "linear", "lasso", "frank-wolfe"}, default="logistic"
        `DPLogisticRegression`, `DPLinearRegression`, `DPLassoClassifier` or `DPLasso`, or
        `DPFrankWolfeClassifier`.
    n_classes : int, default=2
        Number of classes, which costs nothing.
    target_bounds : tuple of float, default=None
        The interval of a regression's targets, whose ends cost nothing.
    n_features : int, default=None
        Number of columns D; None for 2^24.
    **settings
        Other parameters of the estimator.

    Returns
    -------
    PrivacyStatement
        What the statement of such a fit says, with operating-system randomness and declared
        classes: ``mu`` is what all releases spend together, ``epsilon`` what that comes to.
        `weakest_association` says what such a fit can find.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of range, or does not go with the method.

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
    task = task_of(n_classes, getattr(estimator, "target_bounds", None))
    size = MANY_COLUMNS // task.n_outputs if n_features is None else n_features
    declared = {} if task.target_bounds else {"classes": task.classes}
    found = method_of(estimator_of(method, target_bounds, **settings | declared))
    return found.statement(task, found.budget(task, size), size)


def weakest_association(
    epsilon: float,
    delta: float,
    n_records: float,
    n_features: int,
    *,
    method: str = "logistic",
    row_entries: float = 1.0,
    n_classes: int = 2,
    target_bounds: tuple[float, float] | None = None,
    **settings: Any,
) -> Findable:
    """Say how strong a column must be to be found among others, from public numbers.

    Noisy gradient descent finds a column whose weight exceeds three standard errors. A LASSO that
    draws columns finds one whose gradient exceeds the largest of 2D noises, 2KD for K classes.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    n_records, n_features : int
        N and D, public.
    row_entries : float, default=1
        Entries of a row, about. Noisy gradient descent finds less in long rows, because it scales
        them; a LASSO draws columns where rows are too long.
    method, n_classes, target_bounds, **settings
        As in `privacy_cost`; not "frank-wolfe".

    Returns
    -------
    Findable

    Raises
    ------
    TypeError, ValueError
        As `privacy_cost`, or if a number is not positive.
    """
    n_records = check_positive("n_records", n_records)
    n_features = int(check_positive("n_features", n_features))
    row_entries = check_positive("row_entries", row_entries)
    settings = {"epsilon": epsilon, "delta": delta, **settings}
    if method == "frank-wolfe":
        raise ParameterError(
            "`method=frank-wolfe` draws columns again and again", advice="take lasso"
        )
    estimator = estimator_of(method, target_bounds, **settings)
    found = method_of(estimator)
    task = task_of(n_classes, getattr(estimator, "target_bounds", None))
    budget = found.budget(task, n_features)
    if budget.leak:
        return Findable(n_features, 0.0, 0.0, 0.0)
    n_weights, n_drawn = n_features, 0
    if isinstance(found, Lasso):
        n_weights, n_drawn, share = _list_of(
            found, budget, task, n_records, n_features, row_entries
        )
    if n_drawn:
        bound = task.residual_bound(private=True)
        moved = budget.moved(settings.get("feature_bound", 1.0) * bound)
        scale = 2.0 * moved / budget.eps0_of(share, n_drawn)
        # The largest of 2D Gumbel noises of scale s is about s ln(2D).
        gradient = scale * math.log(2.0 * task.n_outputs * n_features)
    else:
        bound = task.gradient_bound(private=True) / math.sqrt(row_entries)
        gradient = _weakest_estimated(budget, task, n_records, n_features, row_entries)
    rows = gradient / bound
    return Findable(n_weights, gradient, rows, rows / n_records)


def _list_of(
    method: Lasso,
    budget: Budget,
    task: Task,
    n_records: float,
    n_features: int,
    row_entries: float,
) -> tuple[int, int, float]:
    """Return how many columns a LASSO keeps, how many of them it draws, and the draws' share."""
    shape, left = method.shape(task, n_features), 1.0 - COUNT_SHARE
    rho = left * budget.mu * budget.mu / 2.0
    plan = plan_lasso(shape, rho, n_records, long_rows=True)
    if row_entries <= row_limit(shape, plan.n_vertices):
        plan = plan_lasso(shape, rho, n_records, long_rows=False)
    share = left * (1.0 - plan.refit_share - plan.calibration_share)
    return plan.n_vertices or plan.n_kept or n_features, plan.n_vertices, share


def _weakest_estimated(
    budget: Budget, task: Task, n_records: float, n_features: int, row_entries: float
) -> float:
    """Return the gradient at zero of a column whose weight ends beyond three standard errors.

    The more rows a column is in, the smaller a weight explains the same gradient, and the sooner
    it stops growing: columns are taken to hold alike parts of the unit rows.
    """
    energy = n_records / n_features
    # What released energies are about to say of the curvature.
    largest = n_records
    if pays(n_records, budget.moved(1.0) / budget.mu_of(SCALES_SHARE)):
        largest = min(largest, row_entries * energy + CONSTANT * CONSTANT * n_records)
    schedule = dense_schedule(largest, budget, task)
    # At zero weights: of two classes, half of the residuals are at their bound, and stay there.
    bend, n_classes = task.gradient_loss(1.0).curvature, task.classes.size
    if n_classes:
        bend = bend / 2.0 if n_classes == 2 else (1.0 - 1.0 / n_classes) / n_classes
    return SIGNIFICANT * schedule.standard_error / schedule.reach(bend * energy)


def dense_schedule(n_records: float, budget: Budget, task: Task) -> Schedule:
    """Return the steps of a dense fit by noisy gradient descent."""
    mu = budget.mu_of((1.0 - COUNT_SHARE) * (1.0 - task.calibration))
    loss = task.gradient_loss(task.gradient_bound(private=True))
    moved = budget.moved_by(loss)
    return schedule_for(n_records, mu, moved, None, task.kappa, curvature=loss.curvature)


# Rows are sought up to this number.
_MOST_ROWS = 1e12
_LEVEL = 0.95


@dataclass(frozen=True)
class PlannedIntervals:
    """What intervals of so many rows will be.

    Attributes
    ----------
    identified : bool
        Whether coefficients are likely to be identified.
    standard_error, without_privacy : float
        Standard error of a coefficient, with and without noise.
    width : float
        Of a 95 % interval.
    rows_needed : float or None
        Rows with which `effect` is found with probability `power`; None if no number is enough.
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
        Standard deviation of a regression's residuals, over half of the target interval.
    effect : float, default=None
        A coefficient to be found, in the units of its column and of the target.
    power : float, default=0.8
        Probability of finding it at a p-value below 0.05.
    share : float, default=0.5
        The share of `infer`.
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
        loss,
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
