"""The private step: the exponential mechanism over signed vertices, and its price.

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

from dplasso.privacy import accounting
from dplasso.privacy.mechanisms.contract import SelectionRule, VertexSteps, Words, sensitivity


def vertex_words(statement: Any) -> str:
    """Return the steps that a statement is of, in words."""
    return (
        f"{statement.steps:,} steps, each a random choice by the exponential "
        f"mechanism (a step is bounded range with eps0 = {statement.eps0:.4g})"
    )


WORDS = Words(vertex_words, count_sets="how exactly gradients are kept")

# Total variation between a selection structure's draw and the exponential mechanism's.
SAMPLING_ERROR = 2.0**-42
# Relative part of eps0 withheld for the rounding of c * alpha, for fewer than 2^31 records.
EXPONENT_SLACK = 2.0**-20
# Relative part of eps0 given away so that the last drop of a budget can be spent: a ledger adds up
# the same steps in another order, and its last bits must not turn "just fits" into "too much".
LEDGER_MARGIN = 2.0**-40
# The draws may use up at most this part of delta.
_LARGEST_SAMPLING_PART = 0.95


@dataclass(frozen=True, kw_only=True)
class SignedExponential(VertexSteps):
    """T draws of the exponential mechanism over the 2D signed vertices.

    `exponent_scale`: c, the log-weight per unit of alpha.
    """

    eps0: float
    eps0_accounted: float
    exponent_scale: float
    epsilon_spent: float
    sampling_delta: float

    name = "exponential"

    @property
    def accountant(self) -> str:
        return f"RDP of zCDP, eps0^2/8 for each eps0-bounded-range step ({accounting.library()})"

    @property
    def rho(self) -> float:
        return self.n_iter * accounting.rho_of_bounded_range(self.eps0_accounted)

    def epsilon_of_rows(self, count: int) -> float:
        eps0 = count * self.eps0_accounted
        rest = self.delta - sampling_delta_of(eps0, self.n_iter)
        return accounting.epsilon_of_steps(eps0, self.n_iter, rest) if rest > 0.0 else math.inf

    def event(self) -> Any:
        return accounting.steps_event(self.eps0_accounted, self.n_iter)

    def rule(self, unit: float) -> SelectionRule:
        return SelectionRule(self.name, self.exponent_scale / unit, 0.0)


def calibrated(*, plain_sum: bool = True, **asked: Any) -> SignedExponential:
    """Return the mechanism whose T steps cost at most (epsilon, delta).

    Over few steps the plain sum ``T eps0`` allows more than zCDP does; `plain_sum` says whether it
    may be used. A ledger adds up zCDP, so it may not where there is one.
    """
    epsilon, delta, n_iter = asked["epsilon"], asked["delta"], asked["n_iter"]
    accounted, sampling = _calibrate_with_draws(epsilon, delta, n_iter)
    plain = epsilon / n_iter
    if plain_sum and plain > accounted and sampling_delta_of(plain, n_iter) <= delta / 2.0:
        accounted, sampling = plain, sampling_delta_of(plain, n_iter)
    accounted *= 1.0 - LEDGER_MARGIN
    bound = accounting.epsilon_of_steps if plain_sum else accounting.epsilon_spent
    spent = bound(accounted, n_iter, delta - sampling)
    return with_eps0(accounted, epsilon_spent=spent, sampling_delta=sampling, **asked)


def with_eps0(accounted: float, **known: Any) -> SignedExponential:
    """Return the mechanism whose steps are accounted as `accounted`-bounded-range."""
    eps0 = accounted * (1.0 - EXPONENT_SLACK)
    names = ("feature_bound", "neighbors", "residual_bound", "rows_per_person")
    moved = sensitivity(**{name: known[name] for name in names})
    return SignedExponential(
        eps0=eps0, eps0_accounted=accounted, exponent_scale=eps0 / (2.0 * moved), **known
    )


def sampling_delta_of(eps0: float, n_iter: int) -> float:
    """Return the delta that `n_iter` inexact draws cost (see the module's notes)."""
    # Beyond e^700 a double overflows; any delta is exceeded long before.
    return n_iter * SAMPLING_ERROR * (1.0 + math.exp(min(eps0, 700.0)))


def _calibrate_with_draws(epsilon: float, delta: float, n_iter: int) -> tuple[float, float]:
    """Find eps0 such that the accountant's epsilon holds at what the draws leave of delta."""
    allowed = _LARGEST_SAMPLING_PART * delta
    if sampling_delta_of(0.0, n_iter) >= allowed:
        least = sampling_delta_of(0.0, n_iter) / _LARGEST_SAMPLING_PART
        raise ValueError(
            f"delta must be above {least:.3g} for n_iter={n_iter}, to cover the rounding of that "
            f"many random draws; got {delta!r}."
        )
    # At the whole delta eps0 comes out too large, so its part bounds the part really needed.
    part = sampling_delta_of(accounting.calibrate_eps0(epsilon, delta, n_iter), n_iter)
    if part <= allowed:
        return accounting.calibrate_eps0(epsilon, delta - part, n_iter), part
    # Only a very large epsilon over very few steps comes here: the draws are then not exact enough
    # for the whole of it, and less is spent.
    largest = math.log(allowed / (n_iter * SAMPLING_ERROR) - 1.0)
    eps0 = min(accounting.calibrate_eps0(epsilon, delta - allowed, n_iter), largest)
    return eps0, allowed
