"""The private step and its price: the one place that pairs a mechanism with an accountant.

The exponential mechanism draws one of the 2D signed vertices,

    P(-radius e_j) proportional to exp(+c alpha_j),  P(+radius e_j) proportional to exp(-c alpha_j),

where ``alpha`` is the gradient summed over records. A neighbouring data set moves every
``alpha_j`` by at most the sensitivity s (`sensitivity`), the utilities ``+alpha_j`` and
``-alpha_j`` in opposite directions, so the log-probabilities move within [-c s, c s] and the step
is bounded range with ``eps0 = 2 c s``. The number of records enters nowhere.

Rounding
--------
Two things separate a computed draw from the ideal one, and both are paid for.

*The exponent.* ``c alpha`` is rounded to a double. With fewer than 2^31 records its error is below
2^-22 of eps0 for each of two outcomes on each of two data sets; `EXPONENT_SLACK` of eps0 is
withheld from the mechanism.

*The draw.* A selection structure leaves out candidates far behind the best and rounds its weights:
its distribution is within `DRAW_ERROR` (total variation) of the exponential mechanism's. Let P, Q
be the ideal and P', Q' the real distributions of a step on neighbours, and
``r = min(1, P'/P, Q'/Q)``. Then ``r P <= P'`` and ``r Q <= Q'`` have the same ratios as P and Q,
and what they lack is at most ``DRAW_ERROR (1 + exp(eps0))``. So the step is approximately zCDP
with that much delta (arXiv 1605.02065, section 8), and the delta of T steps adds up. Charging the
total variation alone would be too little: a lost outcome can be ``exp(eps0)`` times likelier on
the neighbour.
"""

import math
from dataclasses import dataclass
from typing import Any

from dplasso.privacy.accounting import calibrate_eps0, epsilon_spent
from dplasso.privacy.parameters import (
    NEIGHBOR_RELATIONS,
    check_delta,
    check_epsilon,
    check_feature_bound,
    check_n_iter,
    check_neighbors,
    check_positive,
)

__all__ = [
    "DRAW_ERROR",
    "EXPONENT_SLACK",
    "LEDGER_MARGIN",
    "MECHANISMS",
    "NEIGHBOR_RELATIONS",
    "Mechanism",
    "account",
    "build_mechanism",
    "check_mechanism",
    "sensitivity",
]

MECHANISMS = ("exponential", "paper")

# Total variation between a selection structure's draw and the exponential mechanism's.
DRAW_ERROR = 2.0**-42
# Relative part of eps0 withheld for the rounding of c * alpha, for fewer than 2^31 records.
EXPONENT_SLACK = 2.0**-20
# Relative part of eps0 given away so that the last drop of a budget can be spent: a ledger adds up
# the same steps in another order, and its last bits must not turn "just fits" into "too much".
LEDGER_MARGIN = 2.0**-40
# The draws may use up at most this part of delta.
_LARGEST_DRAW_SHARE = 0.95


@dataclass(frozen=True)
class Mechanism:
    """How vertices are drawn, and what that costs; made of public parameters alone.

    Attributes
    ----------
    name : {"exponential", "paper", "none"}
        The paper's published step is not differentially private; "none" is the exact argmax.
    epsilon, delta : float
        The guarantee asked for.
    n_iter : int
        Number of steps T.
    neighbors : {"add-remove", "replace-one"}
        The neighbour relation.
    feature_bound : float
        Bound B on the magnitude of an entry.
    sensitivity : float
        How far one coordinate of the summed gradient can move between neighbours.
    eps0 : float
        Bounded-range parameter of a step, natural logarithm units; infinite if not private.
    eps0_accounted : float
        What the accountant takes a step for: `eps0` with the part that rounding may use up.
    exponent_scale : float
        c, the log-weight per unit of alpha; infinite for "none".
    laplace_scale : float or None
        Only for "paper": the scale of its Algorithm 1's noise on alpha.
    epsilon_spent : float
        What the accountant reports, at most `epsilon`; infinite if not private.
    delta_accounted : float
        The delta given to the accountant: `delta` less `draw_error`.
    draw_error : float
        The part of `delta` set aside for the inexactness of T draws.
    """

    name: str
    epsilon: float
    delta: float
    n_iter: int
    neighbors: str
    feature_bound: float
    sensitivity: float
    eps0: float
    eps0_accounted: float
    exponent_scale: float
    laplace_scale: float | None
    epsilon_spent: float
    delta_accounted: float
    draw_error: float


def sensitivity(feature_bound: float, neighbors: str) -> float:
    """Say how far one coordinate of the summed gradient can move between neighbours.

    One record's share of ``alpha_j`` is ``q_i x_ij`` with ``|q_i| < 1`` and ``|x_ij| <= B``:
    adding or removing it moves the sum by at most B, replacing it by at most 2B.

    Parameters
    ----------
    feature_bound : float
        Bound B on the magnitude of an entry.
    neighbors : {"add-remove", "replace-one"}
        The neighbour relation.

    Returns
    -------
    float
        B or 2B, in units of the summed gradient.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of range.
    """
    bound = check_feature_bound(feature_bound)
    return bound if check_neighbors(neighbors) == "add-remove" else 2.0 * bound


def check_mechanism(mechanism: Any) -> str:
    """Check the name of a mechanism.

    Parameters
    ----------
    mechanism : {"exponential", "paper"}
        The name given.

    Returns
    -------
    str
        The same value.

    Raises
    ------
    TypeError
        If it is not a string.
    ValueError
        If there is no mechanism of that name.
    """
    if not isinstance(mechanism, str):
        raise TypeError(f"mechanism must be a string, got {mechanism!r}.")
    if mechanism not in MECHANISMS:
        names = " or ".join(repr(name) for name in MECHANISMS)
        raise ValueError(f"mechanism must be {names}, got {mechanism!r}.")
    return mechanism


def account(mechanism: str, eps0: float, n_iter: int, delta: float) -> float:
    """Give the epsilon of a whole run, for a mechanism that has an accountant.

    Parameters
    ----------
    mechanism : str
        Name of the mechanism that made every step.
    eps0 : float
        Bounded-range parameter of one step.
    n_iter : int
        Number of steps.
    delta : float
        The delta at which epsilon is reported.

    Returns
    -------
    float
        The epsilon spent.

    Raises
    ------
    ValueError
        If the mechanism is not the exponential one: the bounded-range bound is false for others.
    """
    if mechanism != "exponential":
        raise ValueError(
            "The bounded-range accountant holds for the exponential mechanism only, "
            f"not for {mechanism!r}."
        )
    return epsilon_spent(eps0, n_iter, delta)


def build_mechanism(
    *,
    epsilon: float,
    delta: float,
    n_iter: int,
    neighbors: str = "add-remove",
    feature_bound: float = 1.0,
    mechanism: str = "exponential",
    l1_radius: float | None = None,
    n_samples: int | None = None,
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
    mechanism : {"exponential", "paper"}, default="exponential"
        "paper" takes the scales as printed in arXiv 2310.19978 and is not private.
    l1_radius : float, optional
        The radius lambda; "paper" only.
    n_samples : int, optional
        The number of rows N; "paper" only (one more reason why it is not private).

    Returns
    -------
    Mechanism
        With ``epsilon_spent <= epsilon``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of range, or if `delta` is too small to cover the
        inexactness of `n_iter` draws.
    """
    name = check_mechanism(mechanism)
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    n_iter = check_n_iter(n_iter)
    moved = sensitivity(feature_bound, neighbors)
    laplace_scale = None
    eps0 = accounted = spent = math.inf
    draw_error = 0.0
    if math.isinf(epsilon):
        name = "none"
        exponent_scale = math.inf
    elif name == "paper":
        exponent_scale, laplace_scale = _paper_scales(epsilon, delta, n_iter, l1_radius, n_samples)
    else:
        accounted, draw_error = _calibrate_with_draws(epsilon, delta, n_iter)
        accounted *= 1.0 - LEDGER_MARGIN
        spent = account(name, accounted, n_iter, delta - draw_error)
        eps0 = accounted * (1.0 - EXPONENT_SLACK)
        exponent_scale = eps0 / (2.0 * moved)
    return Mechanism(
        name=name,
        epsilon=epsilon,
        delta=delta,
        n_iter=n_iter,
        neighbors=neighbors,
        feature_bound=float(feature_bound),
        sensitivity=moved,
        eps0=eps0,
        eps0_accounted=accounted,
        exponent_scale=exponent_scale,
        laplace_scale=laplace_scale,
        epsilon_spent=spent,
        delta_accounted=delta - draw_error,
        draw_error=draw_error,
    )


def _draw_share(eps0: float, n_iter: int) -> float:
    """Give the delta that `n_iter` inexact draws cost (see the module's notes)."""
    # Beyond e^700 a double overflows; any delta is exceeded long before.
    return n_iter * DRAW_ERROR * (1.0 + math.exp(min(eps0, 700.0)))


def _calibrate_with_draws(epsilon: float, delta: float, n_iter: int) -> tuple[float, float]:
    """Find eps0 such that the accountant's epsilon holds at what the draws leave of delta."""
    allowed = _LARGEST_DRAW_SHARE * delta
    if _draw_share(0.0, n_iter) >= allowed:
        least = _draw_share(0.0, n_iter) / _LARGEST_DRAW_SHARE
        raise ValueError(
            f"delta must be above {least:.3g} for n_iter={n_iter}, to cover the rounding of that "
            f"many random draws; got {delta!r}."
        )
    # At the whole delta eps0 comes out too large, so its share bounds the share really needed.
    share = _draw_share(calibrate_eps0(epsilon, delta, n_iter), n_iter)
    if share <= allowed:
        return calibrate_eps0(epsilon, delta - share, n_iter), share
    # Only a very large epsilon over very few steps comes here: the draws are then not exact enough
    # for the whole of it, and less is spent.
    largest = math.log(allowed / (n_iter * DRAW_ERROR) - 1.0)
    eps0 = min(calibrate_eps0(epsilon, delta - allowed, n_iter), largest)
    return eps0, allowed


def _paper_scales(
    epsilon: float, delta: float, n_iter: int, l1_radius: float | None, n_samples: int | None
) -> tuple[float, float]:
    """Give the scales printed in arXiv 2310.19978, with its Lipschitz constant L = 1.

    Algorithm 2, line 5: scale = N epsilon / (2 lambda sqrt(8 T log(1/delta))).
    Algorithm 1, line 8: Laplace scale lambda sqrt(8 T log(1/delta)) / (N epsilon).
    """
    if l1_radius is None or n_samples is None:
        raise ValueError("mechanism='paper' needs l1_radius and n_samples.")
    radius = check_positive("l1_radius", l1_radius)
    rows = check_positive("n_samples", n_samples)
    root = math.sqrt(8.0 * n_iter * -math.log(delta))
    return rows * epsilon / (2.0 * radius * root), radius * root / (rows * epsilon)
