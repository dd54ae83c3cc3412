"""The exponential mechanism over signed vertices: how a column is drawn, and what a draw costs.

The mechanism draws one of the 2D signed vertices,

    P(-radius e_j) proportional to exp(+c alpha_j),  P(+radius e_j) proportional to exp(-c alpha_j),

where ``alpha`` is the gradient summed over records. A neighbouring data set moves every
``alpha_j`` by at most the sensitivity s, the utilities ``+alpha_j`` and ``-alpha_j`` in opposite
directions, so the log-probabilities move within [-c s, c s] and the step is bounded range with
``eps0 = 2 c s``. The number of records enters nowhere.

Rounding
--------
Two things separate a computed draw from the ideal one, and both are paid for.

*The exponent.* ``c alpha`` is rounded to a double. With fewer than 2^31 records its error is below
2^-22 of eps0 for each of two outcomes on each of two data sets; `EXPONENT_SLACK` of eps0 is
withheld from the mechanism.

*The draw.* A selection structure leaves out candidates far behind the best and rounds its weights:
its distribution is within `SAMPLING_ERROR` (total variation) of the exponential mechanism's. Let
P, Q be the ideal and P', Q' the real distributions of a step on neighbours, and
``r = min(1, P'/P, Q'/Q)``. Then ``r P <= P'`` and ``r Q <= Q'`` have the same ratios as P and Q,
and what they lack is at most ``SAMPLING_ERROR (1 + exp(eps0))``. So the step is approximately zCDP
with that much delta (arXiv 1605.02065, section 8), and the delta of T steps adds up. Charging the
total variation alone would be too little: a lost outcome can be ``exp(eps0)`` times likelier on
the neighbour.
"""

import math
from dataclasses import dataclass
from typing import Any

from dplasso.privacy.parameters import check_choice, check_positive

MECHANISMS = ("exponential", "paper")
# Total variation between a selection structure's draw and the exponential mechanism's.
SAMPLING_ERROR = 2.0**-42
# Relative part of eps0 withheld for the rounding of c * alpha, for fewer than 2^31 records.
EXPONENT_SLACK = 2.0**-20
# Why a fit with the published step is not private.
TRUE_SIGN = (
    "the step published in arXiv 2310.19978 moves along the true sign of a gradient entry, "
    "which is a noiseless bit of the data"
)


@dataclass(frozen=True)
class SelectionRule:
    """The distribution that a selection structure has to draw from.

    `mechanism`: signed exponential mechanism; the paper's true-sign variant; plain argmax.
    `exponent`: log-weight per fixed-point unit of alpha; infinity for the argmax.
    `laplace`: scale of the paper's Laplace noise in fixed-point units; 0 unless
    ``mechanism="paper"``.
    `spread`: by what factor weights may differ that a structure does not tell apart at once; it
    decides how a draw is made, not what is drawn from.
    """

    mechanism: str
    exponent: float
    laplace: float
    spread: float = 2.0


@dataclass(frozen=True)
class VertexMechanism:
    """How the vertices of a fit are drawn.

    `name`: "exponential"; "paper", the published step, which is not differentially private; "none"
    for the exact argmax.
    `sensitivity`: how far one coordinate of the summed gradient can move between neighbours.
    `exponent_scale`: c, the log-weight per unit of alpha; infinite without privacy.
    `laplace_scale`: of the published step alone.
    """

    name: str
    sensitivity: float
    exponent_scale: float
    laplace_scale: float = 0.0

    def rule(self, unit: float, spread: float = 2.0) -> SelectionRule:
        """Return what a structure draws from, with so many fixed-point units per unit of alpha."""
        return SelectionRule(
            self.name, self.exponent_scale / unit, self.laplace_scale * unit, spread
        )


def vertex_mechanism(eps0: float, sensitivity: float) -> VertexMechanism:
    """Return the mechanism whose draws are accounted as `eps0`-bounded-range; infinite: exact."""
    if math.isinf(eps0):
        return VertexMechanism("none", sensitivity, math.inf)
    scale = eps0 * (1.0 - EXPONENT_SLACK) / (2.0 * sensitivity)
    return VertexMechanism("exponential", sensitivity, scale)


def paper_mechanism(
    epsilon: float,
    delta: float,
    n_iter: int,
    l1_radius: float,
    n_records: int,
    sensitivity: float,
) -> VertexMechanism:
    """Return the scales published in arXiv 2310.19978, with Lipschitz constant L = 1.

    Algorithm 2, line 5: N epsilon / (2 lambda sqrt(8 T log(1/delta))). Algorithm 1, line 8:
    lambda sqrt(8 T log(1/delta)) / (N epsilon). Radius and number of rows enter both, which is one
    more reason why the step is not private.
    """
    radius = check_positive("l1_radius", l1_radius)
    rows = check_positive("n_records", n_records)
    root = math.sqrt(8.0 * n_iter * -math.log(delta))
    scales = rows * epsilon / (2.0 * radius * root), radius * root / (rows * epsilon)
    return VertexMechanism("paper", sensitivity, *scales)


def sampling_delta_of(eps0: float, n_iter: int) -> float:
    """Return the delta that `n_iter` inexact draws cost (see the module's notes)."""
    # Beyond e^700 a double overflows; any delta is exceeded long before.
    return n_iter * SAMPLING_ERROR * (1.0 + math.exp(min(eps0, 700.0)))


def check_mechanism(mechanism: Any) -> str:
    """Return the name of a mechanism of vertices."""
    return check_choice("mechanism", mechanism, MECHANISMS)
