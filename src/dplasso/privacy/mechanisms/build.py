"""From public parameters to the mechanism of a fit."""

import math
from typing import Any

from dplasso.privacy.mechanisms.contract import Mechanism
from dplasso.privacy.mechanisms.exact import ExactStep
from dplasso.privacy.mechanisms.paper import PaperStep, paper_scales
from dplasso.privacy.mechanisms.signed_exponential import calibrated
from dplasso.privacy.parameters import (
    check_choice,
    check_delta,
    check_epsilon,
    check_feature_bound,
    check_n_iter,
    check_neighbors,
)

MECHANISMS = ("exponential", "paper")


def check_mechanism(mechanism: Any) -> str:
    """Check the name of a mechanism.

    Returns: the same value.

    Raises TypeError if it is not a string; ValueError if there is no mechanism of that name.
    """
    return check_choice("mechanism", mechanism, MECHANISMS)


def build_mechanism(
    *,
    epsilon: float,
    delta: float,
    n_iter: int,
    neighbors: str = "add-remove",
    feature_bound: float = 1.0,
    residual_bound: float = 1.0,
    rows_per_person: int = 1,
    mechanism: str = "exponential",
    l1_radius: float | None = None,
    n_samples: int | None = None,
    plain_sum: bool = True,
) -> Mechanism:
    """Choose the scale of the private step from public parameters.

    Parameters
    ----------
    epsilon : float
        Total privacy loss to stay within; infinity gives the mechanism "none".
    delta : float
        In (0, 1).
    n_iter : int
        Number of steps T.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        The neighbour relation.
    feature_bound : float, default=1.0
        Bound B on the magnitude of an entry.
    residual_bound : float, default=1.0
        Bound C on the magnitude of a residual, that of the loss.
    rows_per_person : int, default=1
        Rows of one person, at most, that may change between neighbours.
    mechanism : {"exponential", "paper"}, default="exponential"
        "paper" takes the scales as printed in arXiv 2310.19978 and is not private.
    l1_radius : float, optional
        The radius lambda; "paper" only.
    n_samples : int, optional
        The number of rows N; "paper" only (one more reason why it is not private).
    plain_sum : bool, default=True
        Whether few steps may be accounted by the plain sum of their eps0; not with a ledger.

    Returns
    -------
    Mechanism
        With ``epsilon_spent <= epsilon`` where it is private.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of range, or if `delta` is too small to cover the
        inexactness of `n_iter` draws.
    """
    name = check_mechanism(mechanism)
    common: dict[str, Any] = {
        "epsilon": check_epsilon(epsilon),
        "delta": check_delta(delta),
        "n_iter": check_n_iter(n_iter),
        "neighbors": check_neighbors(neighbors),
        "feature_bound": check_feature_bound(feature_bound),
        "residual_bound": residual_bound,
        "rows_per_person": rows_per_person,
    }
    if math.isinf(common["epsilon"]):
        return ExactStep(**common)
    if name == "paper":
        budget = common["epsilon"], common["delta"], common["n_iter"]
        exponent_scale, laplace_scale = paper_scales(*budget, l1_radius, n_samples)
        return PaperStep(**common, exponent_scale=exponent_scale, laplace_scale=laplace_scale)
    return calibrated(**common, plain_sum=plain_sum)
