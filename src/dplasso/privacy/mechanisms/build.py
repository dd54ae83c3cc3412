"""From public parameters to the mechanism of a fit."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from dplasso.privacy import parameters
from dplasso.privacy.accounting import epsilon_of_rho
from dplasso.privacy.gaussian import gaussian_epsilon
from dplasso.privacy.mechanisms.gaussian import GaussianSteps, build_gaussian
from dplasso.privacy.mechanisms.signed_exponential import SignedExponential, calibrated
from dplasso.privacy.mechanisms.staged import StagedSteps, build_staged
from dplasso.privacy.mechanisms.unbounded import ExactStep, PaperStep, paper_scales
from dplasso.privacy.wording import STAGED

MECHANISMS = ("exponential", "paper")
Mechanism = SignedExponential | PaperStep | ExactStep
Accounted = Mechanism | GaussianSteps | StagedSteps


def check_mechanism(mechanism: Any) -> str:
    """Return the name of a mechanism of vertices."""
    return parameters.check_choice("mechanism", mechanism, MECHANISMS)


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
    """Return the mechanism that spends at most `epsilon`; the exact one where that is infinite.

    "paper" takes the scales as printed in arXiv 2310.19978 and is not private; it alone needs the
    radius and the number of rows. `plain_sum` says whether few steps may be accounted by the plain
    sum of their eps0, which no ledger adds up. Parameters are checked, and `delta` has to cover the
    inexactness of the draws.
    """
    name = check_mechanism(mechanism)
    common: dict[str, Any] = {
        "epsilon": parameters.check_epsilon(epsilon),
        "delta": parameters.check_delta(delta),
        "n_iter": parameters.check_n_iter(n_iter),
        "neighbors": parameters.check_neighbors(neighbors),
        "feature_bound": parameters.check_feature_bound(feature_bound),
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


class LedgerFit(NamedTuple):
    """A fit of n_iter steps (of both kinds, where it has two) as a ledger plans it.

    `build`: takes the steps and what else its mechanism is built from.
    `epsilon_of_rho`: takes the rho and delta of one fit; exact for Gaussian noise alone.
    """

    build: Callable[..., Accounted]
    epsilon_of_rho: Callable[[float, float], float] = epsilon_of_rho


LEDGER_FITS = {
    "exponential": LedgerFit(
        lambda n_iter, **asked: build_mechanism(n_iter=n_iter, plain_sum=False, **asked)
    ),
    "gaussian": LedgerFit(
        lambda n_iter, **asked: build_gaussian(n_iter=n_iter, **asked),
        lambda rho, delta: gaussian_epsilon(math.sqrt(2.0 * rho), delta),
    ),
    STAGED: LedgerFit(
        lambda n_iter, **asked: build_staged(n_vertices=n_iter, n_gradients=n_iter, **asked)
    ),
}
