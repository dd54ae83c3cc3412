"""What a fit would cost, and what it could find, answered before there is any data."""

import math
from dataclasses import dataclass, replace
from typing import Any

from dplasso.fit.column_plan import (
    MOST_COLUMNS,
    REFIT_STEPS,
    SCREENING_STEPS,
    most_kept,
    most_vertices,
    plan_lasso,
)
from dplasso.fit.targets import Labels, checked_target_bounds
from dplasso.fit.task import Bounded, Task
from dplasso.gradient_descent.energies import SCALES_SHARE, pays
from dplasso.gradient_descent.plan import CONSTANT, SIGNIFICANT
from dplasso.gradient_descent.schedule import MOST_STEPS, Schedule, schedule_for
from dplasso.privacy.mechanisms import StagedSteps, build_mechanism, build_staged
from dplasso.privacy.mechanisms.gaussian import COUNT_SHARE, GaussianSteps, build_gaussian
from dplasso.privacy.parameters import check_n_iter, check_positive
from dplasso.privacy.statement import Accounted, PrivacyStatement, make_statement, use_of_count

# Assumed where the number of columns is not known.
_MANY_COORDINATES = 2**24
METHODS = ("lasso", "logistic", "linear")


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


def privacy_cost(
    epsilon: float,
    delta: float,
    n_iter: int | None = None,
    neighbors: str = "add-remove",
    feature_bound: float = 1.0,
    *,
    method: str = "lasso",
    residual_bound: float | None = None,
    rows_per_person: int = 1,
    n_records: int | None = None,
    n_classes: int = 2,
    target_bounds: tuple[float, float] | None = None,
    fit_intercept: bool = True,
) -> PrivacyStatement:
    """Say what a fit with these settings would spend, without data.

    Parameters
    ----------
    epsilon : float
        Total privacy loss to stay within; infinity for no privacy.
    delta : float
        In (0, 1).
    n_iter : int, default=None
        Number of steps T. None for the method's own: a LASSO that chooses its settings, or at
        most 400 gradients. Of a LASSO with a number, noisy counts and T vertices.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        The neighbour relation.
    feature_bound : float, default=1.0
        Public bound on the magnitude of an entry; of the LASSO only.
    method : {"lasso", "logistic", "linear"}, default="lasso"
        `DPLassoClassifier` or `DPLasso`, `DPLogisticRegression`, `DPLinearRegression`.
    residual_bound : float, default=None
        Bound C on a residual. None for the method's own in a private fit.
    rows_per_person : int, default=1
        Rows of one person.
    n_records : int, default=None
        The number of rows, where it is public and so need not be counted.
    n_classes : int, default=2
        Number of classes, which costs nothing.
    target_bounds : tuple of float, default=None
        The interval of a regression's targets, whose ends cost nothing; of "linear" 0 to 1 where it
        is not given.
    fit_intercept : bool, default=True
        Of a LASSO with a number of steps, whether it has an intercept: without one, and with
        `n_records`, nothing is counted.

    Returns
    -------
    PrivacyStatement
        What the statement of such a fit says, with operating-system randomness and declared
        classes: ``eps0`` is what one step may spend (or ``mu`` what all gradients do), ``epsilon``
        what all of them do. `weakest_association` says what such a fit can find.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of range, or does not go with the method.

    Examples
    --------
    >>> cost = privacy_cost(epsilon=1.0, delta=1e-6, n_iter=1000)
    >>> round(cost.eps0, 5)
    0.01389
    >>> cost = privacy_cost(epsilon=1.0, delta=1e-6, method="logistic")
    >>> round(cost.mu, 3)
    0.237
    """
    if method != "lasso" and feature_bound != 1.0:
        raise ValueError(f"feature_bound does not go with method={method!r}")
    task = task_of(method, n_classes, target_bounds)
    mechanism = mechanism_for(
        method,
        task,
        n_iter=n_iter,
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
        residual_bound=residual_bound,
        rows_per_person=rows_per_person,
        counted=fit_intercept or n_records is None,
        **({"feature_bound": feature_bound} if method == "lasso" else {}),
    )
    return make_statement(
        mechanism,
        seeded=False,
        classes_declared=True,
        records=use_of_count(mechanism, n_records),
        n_classes=task.classes.size,
        target_bounds=task.target_bounds,
    )


def task_of(method: str, n_classes: int, target_bounds: Any) -> Task:
    """Return the task that these stand for; ValueError if they do not go together."""
    if method not in METHODS:
        raise ValueError(f"method must be lasso, logistic or linear, got {method!r}")
    if n_classes < 2:
        raise ValueError(f"n_classes must be 2 or more, got {n_classes!r}")
    if target_bounds is None and method != "linear":
        return Labels().of_size(n_classes)
    if method == "logistic" or n_classes != 2:
        what = "target_bounds" if method == "logistic" else "n_classes"
        raise ValueError(
            f"{what} does not go with method={method!r}, which is for "
            + ("classes" if method == "logistic" else "numbers")
        )
    low_high = (0.0, 1.0) if target_bounds is None else target_bounds
    return Bounded(checked_target_bounds(low_high))


def mechanism_for(
    method: str,
    task: Task | None = None,
    /,
    *,
    n_iter: int | None = None,
    counted: bool = True,
    **settings: Any,
) -> Accounted:
    """Return the private step of a method, for data of many columns.

    The task is by default that of two classes, or of an interval. `counted` says whether a LASSO
    with a number of steps counts first. Settings are those of `build_mechanism`, `build_staged` or
    `build_gaussian`.
    """
    task = task_of(method, 2, None) if task is None else task
    if settings.get("residual_bound") is None:
        bound = task.residual_bound if method == "lasso" else task.gradient_bound
        settings["residual_bound"] = bound(private=True)
    if method != "lasso":
        known = {"n_iter": MOST_STEPS if n_iter is None else n_iter, "by_class": True}
        return build_gaussian(**(known | settings))
    if n_iter is not None and not counted:
        return build_mechanism(n_iter=n_iter, **settings)
    outputs: dict[str, Any] = {
        "n_outputs": task.n_outputs,
        "norm_bound": task.norm_bound(settings["residual_bound"]),
    }
    if n_iter is not None:
        alone: dict[str, Any] = {"n_gradients": 0, "vertices_alone": True}
        return build_staged(n_vertices=check_n_iter(n_iter), **alone, **outputs, **settings)
    n_features = _MANY_COORDINATES // task.n_outputs
    kept = most_kept(None, None, None, task.n_outputs, n_features)
    return build_staged(
        n_vertices=MOST_COLUMNS,
        n_gradients=REFIT_STEPS,
        n_columns=kept,
        n_screening=SCREENING_STEPS,
        n_features=n_features,
        most_kept=kept,
        **outputs,
        **settings,
    )


def weakest_association(
    epsilon: float,
    delta: float,
    n_records: float,
    n_features: int,
    *,
    method: str = "lasso",
    n_iter: int | None = None,
    row_entries: float = 1.0,
    n_classes: int = 2,
    target_bounds: tuple[float, float] | None = None,
    **settings: Any,
) -> Findable:
    """Say how strong a column must be to be found among others, from public numbers.

    Of the LASSO, a column whose gradient exceeds the largest of 2D noises of one draw, 2KD for K
    classes; of noisy gradient descent, one whose weight exceeds three standard errors.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    n_records, n_features : int
        N and D, public.
    method : {"lasso", "logistic", "linear"}, default="lasso"
        As in `privacy_cost`.
    n_iter : int, default=None
        Number of steps; None for the method's own.
    row_entries : float, default=1
        Entries that a row has, about; of noisy gradient descent, which scales rows to length 1.
    n_classes, target_bounds
        As in `privacy_cost`.
    **settings
        As in `privacy_cost`.

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
    task = task_of(method, n_classes, target_bounds)
    # A LASSO with a number of steps counts and refits like one without.
    steps = None if method == "lasso" else n_iter
    mechanism: Any = mechanism_for(
        method, task, n_iter=steps, epsilon=epsilon, delta=delta, **settings
    )
    if mechanism.name == "none":
        return Findable(n_features, 0.0, 0.0, 0.0)
    if method == "lasso":
        n_weights, gradient = _weakest_drawn(mechanism, task, n_iter, n_records, n_features)
        pull = mechanism.residual_bound
    else:
        n_weights, pull = n_features, mechanism.residual_bound / math.sqrt(row_entries)
        size = n_records, n_features, row_entries
        gradient = _weakest_estimated(mechanism, task, n_iter, *size)
    rows = gradient / pull
    return Findable(n_weights, gradient, rows, rows / n_records)


def _weakest_drawn(
    mechanism: StagedSteps, task: Task, n_iter: int | None, n_records: float, n_features: int
) -> tuple[int, float]:
    """Return how many columns a LASSO draws, and the gradient that stands out of 2D noises."""
    most = most_vertices(n_iter, None, n_features)
    kept = most_kept(n_iter, None, None, mechanism.n_outputs, n_features)
    drawn = replace(mechanism, n_vertices=most, most_kept=kept)
    plan = plan_lasso(task, drawn, n_records, n_features, n_iter=n_iter)
    # With so few columns none is drawn: about as much is learnt about each of them. Gradients that
    # keep columns find what as many draws would find, and more.
    n_weights = plan.n_vertices or plan.n_kept or n_features
    share = 1.0 - plan.refit_share - plan.calibration_share if plan.n_vertices else 1.0
    share = 1.0 - plan.kept_share if plan.n_kept else share
    scale = 2.0 * mechanism.sensitivity / mechanism.vertices(n_weights, share).eps0
    # The largest of 2D Gumbel noises of scale s is about s ln(2D).
    return n_weights, scale * math.log(2.0 * mechanism.n_outputs * n_features)


def _weakest_estimated(
    mechanism: GaussianSteps,
    task: Task,
    n_iter: int | None,
    n_records: float,
    n_features: int,
    row_entries: float,
) -> float:
    """Return the gradient at zero of a column whose weight ends beyond three standard errors.

    The more rows a column is in, the smaller a weight explains the same gradient, and the sooner
    it stops growing: columns are taken to hold alike parts of the unit rows.
    """
    energy = n_records / n_features
    mu = mechanism.mu * math.sqrt((1.0 - COUNT_SHARE) * (1.0 - task.calibration))
    # What released energies are about to say of the curvature.
    largest = n_records
    if pays(n_records, mechanism.unit_sensitivity / (mechanism.mu * math.sqrt(SCALES_SHARE))):
        largest = min(largest, row_entries * energy + CONSTANT * CONSTANT * n_records)
    schedule = dense_schedule(largest, mu, mechanism.sensitivity, n_iter, task.classes.size)
    # At zero weights: of two classes, half of the residuals are at their bound, and stay there.
    bend, n_classes = task.gradient_loss(1.0).curvature, task.classes.size
    if n_classes:
        bend = bend / 2.0 if n_classes == 2 else (1.0 - 1.0 / n_classes) / n_classes
    return SIGNIFICANT * schedule.standard_error / schedule.reach(bend * energy)


def dense_schedule(
    n_records: float, mu: float, sensitivity: float, n_steps: int | None, n_classes: int
) -> Schedule:
    """Return the steps of a dense fit by noisy gradient descent; no classes make a regression."""
    task = Labels().of_size(n_classes) if n_classes else Bounded((0.0, 1.0))
    curvature = task.gradient_loss(1.0).curvature
    return schedule_for(n_records, mu, sensitivity, n_steps, task.kappa, curvature=curvature)
