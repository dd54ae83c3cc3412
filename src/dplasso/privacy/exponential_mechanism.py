"""The exponential mechanism over signed vertices: how a column is drawn, and what a draw costs.

It draws vertex -radius e_j in proportion to exp(c alpha_j), and +radius e_j to exp(-c alpha_j),
where ``alpha`` is the gradient summed over records. A neighbour moves every ``alpha_j`` by at most
s, so the step is bounded range with ``eps0 = 2 c s``.

Two kinds of rounding are paid for. ``c alpha`` is rounded to a double: with fewer than 2^31 records
the error is below 2^-22 of eps0, and `EXPONENT_SLACK` of eps0 is withheld. The draw's distribution
P' is within `SAMPLING_ERROR` (total variation) of the mechanism's P, and Q' of Q on the neighbour.
With ``r = min(1, P'/P, Q'/Q)``, ``r P <= P'`` and ``r Q <= Q'`` have the ratios of P and Q and lack
at most ``SAMPLING_ERROR (1 + exp(eps0))``, which is charged to delta (arXiv 1605.02065, section 8).
The total variation alone would not be enough: a lost outcome can be ``exp(eps0)`` times likelier on
the neighbour.
"""

import math
from dataclasses import dataclass

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
    """How vertices are drawn: "exponential", "paper", which is not private, or "none", exact.

    `exponent`: c, the log-weight per unit of alpha, infinite for the argmax. `laplace`: scale of
    the paper's noise. `sensitivity`: how far a record moves alpha. `spread`: how much weights in
    one group may differ.
    """

    mechanism: str
    exponent: float
    laplace: float = 0.0
    sensitivity: float = 0.0
    spread: float = 2.0

    def in_units(self, unit: float, spread: float = 2.0) -> "SelectionRule":
        """Return the rule for alpha in fixed point, `unit` to one."""
        scales = self.exponent / unit, self.laplace * unit, self.sensitivity * unit
        return SelectionRule(self.mechanism, *scales, spread)


def vertex_mechanism(eps0: float, sensitivity: float) -> SelectionRule:
    """Return the rule whose draws are accounted as `eps0`-bounded-range; infinite: exact."""
    if math.isinf(eps0):
        return SelectionRule("none", math.inf, sensitivity=sensitivity)
    scale = eps0 * (1.0 - EXPONENT_SLACK) / (2.0 * sensitivity)
    return SelectionRule("exponential", scale, sensitivity=sensitivity)


def paper_mechanism(
    epsilon: float,
    delta: float,
    n_iter: int,
    l1_radius: float,
    n_records: int,
    sensitivity: float,
) -> SelectionRule:
    """Return the scales published in arXiv 2310.19978, with Lipschitz constant L = 1.

    Algorithm 2, line 5: N epsilon / (2 lambda sqrt(8 T log(1/delta))). Algorithm 1, line 8: lambda
    sqrt(8 T log(1/delta)) / (N epsilon).
    """
    root, loss = math.sqrt(8.0 * n_iter * -math.log(delta)), n_records * epsilon
    exponent, laplace = loss / (2.0 * l1_radius * root), l1_radius * root / loss
    return SelectionRule("paper", exponent, laplace, sensitivity)


def sampling_delta_of(eps0: float, n_iter: int) -> float:
    """Return the delta that `n_iter` inexact draws cost (see the module's notes)."""
    # Beyond e^700 a double overflows; any delta is exceeded long before.
    return n_iter * SAMPLING_ERROR * (1.0 + math.exp(min(eps0, 700.0)))
