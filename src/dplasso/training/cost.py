"""What a fit would cost, and what it could find, answered before there is any data."""

import math
from dataclasses import dataclass, replace
from typing import Any

from dplasso.gradient_descent.run import SIGNIFICANT
from dplasso.gradient_descent.schedule import STEPS, schedule_for
from dplasso.privacy.mechanisms import StagedSteps, build_mechanism, build_staged
from dplasso.privacy.mechanisms.gaussian import (
    CALIBRATION_SHARE,
    COUNT_SHARE,
    GaussianSteps,
    build_gaussian,
)
from dplasso.privacy.parameters import check_positive
from dplasso.privacy.statement import (
    Accounted,
    PrivacyStatement,
    make_statement,
    use_of_count,
)
from dplasso.training.lasso_plan import MOST_COLUMNS, REFIT_STEPS, most_vertices, plan_lasso

METHODS = ("lasso", "logistic")


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
        By how many rows of one class more than of the other the column has to occur.
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
    residual_bound: float = 0.5,
    rows_per_person: int = 1,
    n_records: int | None = None,
) -> PrivacyStatement:
    """Say what a fit with these settings would spend, without data.

    Parameters
    ----------
    epsilon : float
        Total privacy loss to stay within; infinity for no privacy.
    delta : float
        In (0, 1).
    n_iter : int, default=None
        Number of steps T. None for the method's own: a LASSO that chooses its settings, or 300
        gradients. Of a LASSO with a number, T vertices and nothing else.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        The neighbour relation.
    feature_bound : float, default=1.0
        Public bound on the magnitude of an entry; of the LASSO only.
    method : {"lasso", "logistic"}, default="lasso"
        `DPLassoClassifier` or `DPLogisticRegression`.
    residual_bound : float, default=0.5
        Bound C on a residual, from 1/2 to 1.
    rows_per_person : int, default=1
        Rows of one person.
    n_records : int, default=None
        The number of rows, where it is public and so need not be counted.

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
    0.01396
    >>> cost = privacy_cost(epsilon=1.0, delta=1e-6, method="logistic")
    >>> round(cost.mu, 3)
    0.237
    """
    if method == "logistic" and feature_bound != 1.0:
        raise ValueError("feature_bound does not go with method='logistic'")
    bounds: dict[str, Any] = {"residual_bound": residual_bound, "rows_per_person": rows_per_person}
    if method == "lasso":
        bounds["feature_bound"] = feature_bound
    mechanism = mechanism_for(
        method, epsilon=epsilon, delta=delta, n_iter=n_iter, neighbors=neighbors, **bounds
    )
    counted = use_of_count(mechanism, n_records)
    return make_statement(mechanism, seeded=False, classes_declared=True, records=counted)


def mechanism_for(method: str, *, n_iter: int | None = None, **settings: Any) -> Accounted:
    """Return the private step of a method, for data of many columns.

    Parameters
    ----------
    method : {"lasso", "logistic"}
        `DPLassoClassifier` or `DPLogisticRegression`.
    n_iter : int, default=None
        As in `privacy_cost`.
    **settings
        Of `build_mechanism`, `build_staged` or `build_gaussian`.

    Raises
    ------
    ValueError
        If there is no such method.
    """
    if method == "logistic":
        return build_gaussian(n_iter=STEPS if n_iter is None else n_iter, **settings)
    if method != "lasso":
        raise ValueError(f"method must be lasso or logistic, got {method!r}")
    if n_iter is None:
        return build_staged(n_vertices=MOST_COLUMNS, n_gradients=REFIT_STEPS, **settings)
    return build_mechanism(n_iter=n_iter, **settings)


def weakest_association(
    epsilon: float,
    delta: float,
    n_records: float,
    n_features: int,
    *,
    method: str = "lasso",
    n_iter: int | None = None,
    row_entries: float = 1.0,
    **settings: Any,
) -> Findable:
    """Say how strong a column must be to be found among others, from public numbers.

    Of the LASSO, a column whose gradient exceeds the largest of 2D noises of one draw; of noisy
    gradient descent, one whose weight exceeds three standard errors.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    n_records, n_features : int
        N and D, public.
    method : {"lasso", "logistic"}, default="lasso"
        `DPLassoClassifier` or `DPLogisticRegression`.
    n_iter : int, default=None
        Number of steps; None for the method's own.
    row_entries : float, default=1
        Entries that a row has, about; of noisy gradient descent, which scales rows to length 1.
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
    # A LASSO with a number of steps counts and refits like one without.
    mechanism = mechanism_for(
        method,
        epsilon=epsilon,
        delta=delta,
        n_iter=n_iter if method == "logistic" else None,
        **settings,
    )
    n_weights, pull = n_features, mechanism.residual_bound / math.sqrt(row_entries)
    gradient = 0.0
    if mechanism.name == "none":
        return Findable(n_weights, 0.0, 0.0, 0.0)
    if isinstance(mechanism, GaussianSteps):
        mu = mechanism.mu * math.sqrt((1.0 - COUNT_SHARE) * (1.0 - CALIBRATION_SHARE))
        schedule = schedule_for(n_records, mu, mechanism.sensitivity, mechanism.n_iter)
        gradient = SIGNIFICANT * schedule.standard_error / schedule.reach
    elif isinstance(mechanism, StagedSteps):
        most = most_vertices(n_iter, None, n_features)
        plan = plan_lasso(
            replace(mechanism, n_vertices=most),
            n_iter=n_iter,
            l1_radius=None,
            refit=None,
            n_records=n_records,
            n_features=n_features,
            offset=0.0,
            calibrated=True,
        )
        # With as few columns as that none is drawn: about as much is told of each.
        n_weights = plan.n_vertices or n_features
        share = 1.0 - plan.refit_share - plan.calibration_share if most else 1.0
        step = mechanism.vertices(n_weights, share)
        scale = 2.0 * mechanism.sensitivity / step.eps0
        # The largest of 2D Gumbel noises of scale s is about s ln(2D).
        gradient, pull = scale * math.log(2.0 * n_features), mechanism.residual_bound
    rows = gradient / pull
    return Findable(n_weights, gradient, rows, rows / n_records)
