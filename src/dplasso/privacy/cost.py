"""What a fit would cost, answered before there is any data."""

from typing import Any

from dplasso.privacy.mechanisms import build_mechanism
from dplasso.privacy.mechanisms.gaussian import build_gaussian
from dplasso.privacy.statement import Accounted, PrivacyStatement, make_statement
from dplasso.privacy.wording import COUNT_PRIVATE, COUNT_UNUSED

# Steps of each method by default.
DEFAULT_STEPS = {"lasso": 100, "logistic": 300}


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
) -> PrivacyStatement:
    """Say what a fit with these settings would spend, without data.

    Parameters
    ----------
    epsilon : float
        Total privacy loss to stay within; infinity for no privacy.
    delta : float
        In (0, 1).
    n_iter : int, default=None
        Number of steps T; None for the method's own: 100 or 300.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        The neighbour relation.
    feature_bound : float, default=1.0
        Public bound on the magnitude of an entry; of the LASSO only.
    method : {"lasso", "logistic"}, default="lasso"
        `DPLassoClassifier` or `DPLogisticRegression`.
    residual_bound : float, default=0.5
        Bound C on a residual, from 1/2 to 1; of noisy gradient descent only.
    rows_per_person : int, default=1
        Rows of one person; of noisy gradient descent only.

    Returns
    -------
    PrivacyStatement
        What the statement of such a fit says, with operating-system randomness and declared
        classes: ``eps0`` is what one step may spend (or ``mu`` what all gradients do), ``epsilon``
        what all of them do.

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
    steps = DEFAULT_STEPS.get(method, 1) if n_iter is None else n_iter
    given = {
        "lasso": {"feature_bound": (feature_bound, 1.0)},
        "logistic": {
            "residual_bound": (residual_bound, 0.5),
            "rows_per_person": (rows_per_person, 1),
        },
    }
    bounds = {}
    for owner, entries in given.items():
        for name, (value, default) in entries.items():
            if owner == method:
                bounds[name] = value
            elif value != default:
                raise ValueError(f"{name} does not go with method={method!r}")
    mechanism = mechanism_for(
        method, epsilon=epsilon, delta=delta, n_iter=steps, neighbors=neighbors, **bounds
    )
    counted = mechanism.name == "gaussian" and neighbors == "add-remove"
    return make_statement(
        mechanism,
        seeded=False,
        classes_declared=True,
        records=COUNT_PRIVATE if counted else COUNT_UNUSED,
    )


def mechanism_for(method: str, **settings: Any) -> Accounted:
    """Return the private step of a method.

    `method`: `DPLassoClassifier` or `DPLogisticRegression`.
    `**settings`: of `build_mechanism` or `build_gaussian`.

    Raises ValueError if there is no such method.
    """
    if method == "lasso":
        return build_mechanism(**settings)
    if method == "logistic":
        return build_gaussian(**settings)
    raise ValueError(f"method must be lasso or logistic, got {method!r}")
