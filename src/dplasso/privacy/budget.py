"""What a fit may spend, and what its parts cost: the one place where a cost is computed.

The shares of the phases add up to at most 1. Gaussian noise with a share s is ``mu
sqrt(s)``-Gaussian differentially private (arXiv 1905.02383). With it, n draws of the exponential
mechanism are each eps0-bounded-range, ``eps0 = 2 mu sqrt(s / n)``, together ``s mu^2 / 2``-zCDP
(arXiv 2004.07223). Gaussian parts alone add up to mu-GDP exactly, others as zCDP. A share may
follow from earlier releases (a filter, arXiv 2203.05481); the total never does.

Rounding: the mass of every integer is off by a factor of at most ``1 + z``, ``z = TAIL^2 / (24
s^2)``, with s the standard deviation in units. So n draws move log-ratios by at most ``2 n z``,
which is withheld from epsilon. Units are so fine that s is at least ``2^29 / mu``, or half of
`LARGEST_SCALE` over `LARGEST_RATIO`. The mass beyond `TAIL` standard deviations, times ``1 +
exp(epsilon)``, is charged to delta for every draw.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

from dplasso.errors import ParameterError, shown
from dplasso.privacy import accounting
from dplasso.privacy.accounting import LARGEST_SCALE, TAIL, calibrate_mu, gaussian_epsilon
from dplasso.privacy.exponential_mechanism import SAMPLING_ERROR, sampling_delta_of
from dplasso.privacy.parameters import (
    FEWEST_BITS,
    RELATIONS,
    check_delta,
    check_epsilon,
    check_neighbors,
    check_rows_per_person,
)

EXACT = "epsilon is infinite: every step was chosen exactly, without noise"
# Relative part given away so that the last drop of a ledger's budget can be spent: a ledger adds up
# the same costs in another order, and its last bits must not turn "just fits" into "too much".
MARGIN = 2.0**-40
# Of the standard deviations of the noise of two gradients of a run, at most.
LARGEST_RATIO = 8.0
# The tail's charge grows with exp(epsilon): no fit with Gaussian noise spends more than this.
LARGEST_EPSILON = 60.0
# What an error of 1 in a log-ratio adds to rho, at every Renyi order from 1.01.
RATIO_RHO = 200.0
# Draws that a release before a fit has at most.
MOST_EARLIER = 2**20
# Inexact draws may use up at most this part of delta where vertices alone are drawn.
_LARGEST_SAMPLING_PART = 0.95
# Reading it takes a sixth of a small fit.
_version_of = cache(version)


class Draws(NamedTuple):
    """The most random draws of a fit: Gaussian variates, and vertices."""

    gaussian: float = 0.0
    vertices: int = 0


NO_DRAWS = Draws()


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How a fit is private, and what that costs; made of public parameters alone.

    `draws`, `n_iter`: the most random draws and steps. `mu`: of all shares together, infinite
    without privacy. `sampling_delta`: part of `delta` for inexact draws. `ratio_error`: what
    rounding adds to a log-ratio. `leak`: why no fit with it is private. `plain_sum`: whether the
    eps0 of vertices may be summed. `before`: the mu of earlier releases.
    """

    epsilon: float
    delta: float
    neighbors: str = "add-remove"
    rows_per_person: int = 1
    draws: Draws = NO_DRAWS
    n_iter: int = 1
    mu: float = math.inf
    epsilon_spent: float = math.inf
    sampling_delta: float = 0.0
    ratio_error: float = 0.0
    leak: str = ""
    plain_sum: bool = False
    before: float = 0.0

    @property
    def name(self) -> str:
        """What the mechanisms are: "gaussian", "exponential", both, "paper" or "none"."""
        if self.leak:
            return "none" if self.leak == EXACT else "paper"
        kinds = {"exponential": self.draws.vertices, "gaussian": self.draws.gaussian}
        return " and ".join(kind for kind, count in kinds.items() if count)

    def moved(self, bound: float) -> float:
        """Return the sensitivity of a sum to which a record adds at most `bound`."""
        moved = bound * self.rows_per_person
        return RELATIONS[self.neighbors].times * moved

    def moved_by(self, loss: Any) -> float:
        """Return that for a sum of a loss's residuals times rows of unit length, in L2."""
        if RELATIONS[self.neighbors].hides_features:
            return self.moved(loss.residual_bound)
        return float(loss.label_distance * self.rows_per_person)

    @property
    def rounding(self) -> float:
        """The part of `mu` kept back if labels alone differ, for the rounding of contributions.

        Rounded towards zero, none grows, but two may get further apart: by less than a unit for
        each of n variates, which is up to ``sqrt(n) / s`` standard deviations. s is at least ``2^29
        / mu``.
        """
        if RELATIONS[self.neighbors].hides_features:
            return 0.0
        least = max(
            self.mu / 2.0**FEWEST_BITS, self.rows_per_person * 2.0 * LARGEST_RATIO / LARGEST_SCALE
        )
        return math.sqrt(self.draws.gaussian) * least

    def moved_by_features(self, bound: float) -> float:
        """Return what `moved` does, of a sum in which no label enters: 0 if labels alone differ."""
        return self.moved(bound) if RELATIONS[self.neighbors].hides_features else 0.0

    def share_of_features(self, share: float) -> float:
        """Return the share that a release of such a sum needs: none where it does not move."""
        return share if self.moved_by_features(1.0) else 0.0

    def moved_counts(self, by_class: bool) -> float:
        """Return the sensitivity of the number of records, or of the numbers by class, in L2.

        A person has at least one row, so replacing a person moves their number by one less.
        """
        if self.neighbors == "add-remove":
            return float(self.rows_per_person)
        if by_class:
            return self.rows_per_person * math.sqrt(2.0)
        return self.rows_per_person - 1.0 if RELATIONS[self.neighbors].hides_features else 0.0

    def mu_of(self, share: float) -> float:
        """Return the Gaussian differential privacy of a share; infinite without privacy."""
        return math.inf if math.isinf(self.mu) else (self.mu - self.rounding) * math.sqrt(share)

    def eps0_of(self, share: float, n_vertices: int) -> float:
        """Return the bounded-range parameter of each of some vertices that have a share."""
        return 2.0 * self.mu_of(share) / math.sqrt(n_vertices)

    @property
    def eps0(self) -> float:
        """Bounded-range parameter of a step; infinite if not private, 0 without a common one."""
        if self.leak:
            return math.inf
        return self.eps0_accounted or 0.0

    @property
    def eps0_accounted(self) -> float | None:
        """What a ledger takes a step for; None where the cost is `rho`."""
        if self.leak or self.draws.gaussian or self.before:
            return None
        return self.eps0_of(1.0, self.draws.vertices)

    @property
    def rho(self) -> float:
        """The zCDP of the fit, without what was released before, with room for rounding."""
        return self.mu * self.mu / 2.0 + RATIO_RHO * self.ratio_error

    @property
    def whole(self) -> float:
        """The `mu` of the fit together with what was released before."""
        return math.hypot(self.mu, self.before)

    @property
    def accountant(self) -> str:
        """How the costs are added up, in words."""
        if not self.draws.vertices:
            return "the exact curve of Gaussian differential privacy"
        each = "" if self.draws.gaussian else ", eps0^2/8 for each eps0-bounded-range step"
        return f"RDP of zCDP{each} (dp-accounting {_version_of('dp-accounting')})"

    def epsilon_of_rows(self, count: int) -> float:
        """Return the epsilon for somebody with `count` times as many rows as are covered."""
        if self.leak:
            return math.inf
        if not self.draws.vertices:
            largest = gaussian_epsilon(count * self.whole, self.delta / 2.0)
            growth = math.exp(min(700.0, max(0.0, largest - self.epsilon_spent)))
            rest = self.delta - self.sampling_delta * growth
            if rest < self.delta / 2.0:
                return math.inf
            return gaussian_epsilon(count * self.whole, rest) + count * self.ratio_error
        if self.eps0_accounted is not None:
            eps0, n_iter = count * self.eps0_accounted, self.draws.vertices
            rest = self.delta - sampling_delta_of(eps0, n_iter)
            return accounting.epsilon_of_steps(eps0, n_iter, rest) if rest > 0.0 else math.inf
        rho = count * count * (self.rho + self.before * self.before / 2.0)
        rest = self.delta - _sampling_delta(rho, self.draws)
        return accounting.epsilon_of_rho(rho, rest) if rest > self.delta / 2.0 else math.inf

    def after(self, mu: float) -> "Budget":
        """Return the budget that spends its epsilon together with a mu-GDP release before it."""
        if not self.draws.gaussian:
            raise ParameterError(
                "a fit with private edges of bins must count its records; leave `n_records` out"
            )
        tails, _ = _inexactness(MOST_EARLIER, 1.0, min(self.epsilon, LARGEST_EPSILON))
        sampling = self.sampling_delta + tails
        # What is withheld covers what rounding of the earlier release's noise adds to a log-ratio:
        # of at most `MOST_EARLIER` draws in units of 2^-32 that is below 2^-39 of its squared mu,
        # which adds less than 2^-31 of that to rho at every Renyi order.
        left = (self.mu * self.mu - mu * mu) * (1.0 - 2.0**-30)
        if left < self.mu * self.mu / 4.0:
            raise ParameterError(
                f"`epsilon={self.epsilon:g}` is too small: the private edges of bins have already "
                "used most of it"
            )
        budget = replace(self, mu=math.sqrt(left), before=mu, sampling_delta=sampling)
        rest, spent = self.delta - sampling, math.inf
        if rest > 0.0 and self.draws.vertices:
            spent = accounting.epsilon_of_rho(budget.rho + mu * mu / 2.0, rest)
        elif rest > 0.0:
            spent = gaussian_epsilon(budget.whole, rest) + self.ratio_error
        if spent > self.epsilon * (1.0 + MARGIN):
            raise ParameterError(
                f"`delta={self.delta:g}` is too small to cover the rounding of the draws for "
                "private edges of bins; use a larger delta"
            )
        return replace(budget, epsilon_spent=min(self.epsilon, spent))


def build_budget(
    draws: Draws,
    *,
    epsilon: float,
    delta: float,
    n_iter: int,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
    plain_sum: bool = False,
) -> Budget:
    """Return what a fit with at most these draws spends to stay within (epsilon, delta).

    With Gaussian noise no more than `LARGEST_EPSILON` is spent. ValueError for a parameter out of
    range, or too small to cover the rounding of the draws.
    """
    budget = Budget(
        epsilon=check_epsilon(epsilon),
        delta=check_delta(delta),
        neighbors=check_neighbors(neighbors),
        rows_per_person=check_rows_per_person(rows_per_person),
        draws=draws,
        n_iter=n_iter,
        plain_sum=plain_sum,
    )
    if math.isinf(budget.epsilon):
        return replace(budget, leak=EXACT)
    if not draws.gaussian:
        return _of_vertices(budget)
    made = _of_both(budget) if draws.vertices else _of_gaussians(budget)
    _check_rounding(made.rounding < made.mu / 2.0, made)
    return made


def _of_gaussians(budget: Budget) -> Budget:
    aim, delta = min(budget.epsilon, LARGEST_EPSILON), budget.delta
    # With nothing withheld yet, mu is at its largest.
    sampling, ratio = _inexactness(budget.draws.gaussian, calibrate_mu(aim, delta), aim)
    _check_rounding(sampling < delta / 2.0 and ratio < aim / 100.0, budget)
    mu = calibrate_mu(aim - ratio, delta - sampling) * (1.0 - MARGIN)
    spent = min(aim, gaussian_epsilon(mu, delta - sampling) + ratio)
    return replace(budget, mu=mu, epsilon_spent=spent, sampling_delta=sampling, ratio_error=ratio)


def _of_both(budget: Budget) -> Budget:
    aim, delta = min(budget.epsilon, LARGEST_EPSILON), budget.delta
    # Gaussian noise of this much is exactly (aim, delta), so no rho that the accountant allows is
    # larger, and what the draws need there is enough.
    largest = calibrate_mu(aim, delta) ** 2 / 2.0
    sampling = _sampling_delta(largest, budget.draws)
    _, ratio = _inexactness(budget.draws.gaussian, math.sqrt(2.0 * largest), aim)
    _check_rounding(sampling < delta / 2.0 and RATIO_RHO * ratio < largest / 100.0, budget)
    rho = accounting.calibrate_rho(aim, delta - sampling) * (1.0 - MARGIN)
    spent = min(budget.epsilon, accounting.epsilon_of_rho(rho, delta - sampling))
    return replace(
        budget,
        mu=math.sqrt(2.0 * (rho - RATIO_RHO * ratio)),
        epsilon_spent=spent,
        sampling_delta=sampling,
        ratio_error=ratio,
    )


def _of_vertices(budget: Budget) -> Budget:
    epsilon, delta, n_iter = budget.epsilon, budget.delta, budget.draws.vertices
    eps0, sampling = _calibrate_vertices(epsilon, delta, n_iter)
    plain = epsilon / n_iter
    if budget.plain_sum and plain > eps0 and sampling_delta_of(plain, n_iter) <= delta / 2.0:
        eps0, sampling = plain, sampling_delta_of(plain, n_iter)
    eps0 *= 1.0 - MARGIN
    bound = accounting.epsilon_of_steps if budget.plain_sum else accounting.epsilon_spent
    return replace(
        budget,
        mu=eps0 * math.sqrt(n_iter) / 2.0,
        epsilon_spent=bound(eps0, n_iter, delta - sampling),
        sampling_delta=sampling,
    )


def _calibrate_vertices(epsilon: float, delta: float, n_iter: int) -> tuple[float, float]:
    """Find eps0 such that the accountant's epsilon holds at what the draws leave of delta."""
    allowed = _LARGEST_SAMPLING_PART * delta
    if sampling_delta_of(0.0, n_iter) >= allowed:
        least = sampling_delta_of(0.0, n_iter) / _LARGEST_SAMPLING_PART
        raise ParameterError(
            f"`delta` must be above {least:.3g} for `n_iter={n_iter}`, to cover the rounding of "
            f"that many random draws; got {shown(delta)}."
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


def _inexactness(draws: float, mu: float, epsilon: float) -> tuple[float, float]:
    """Return the delta of the tails that are not drawn, and what rounding adds to a log-ratio."""
    scale = min(2.0**FEWEST_BITS / mu, LARGEST_SCALE / 2.0 / LARGEST_RATIO)
    ratio = 2.0 * draws * TAIL * TAIL / (24.0 * scale * scale)
    tails = draws * 2.0 * math.erfc(TAIL / math.sqrt(2.0)) * (1.0 + math.exp(min(epsilon, 700.0)))
    return tails, ratio


def _sampling_delta(rho: float, draws: Draws) -> float:
    """Return the delta that inexact draws cost, for whatever number of vertices is chosen."""
    most = draws.vertices
    numbers = {1, most, *range(1, min(most, 1000) + 1)} if most else set()
    vertices = (sampling_delta_of(math.sqrt(8.0 * rho / n), n) for n in numbers)
    loss = rho + 2.0 * math.sqrt(rho * 40.0)
    tails, _ = _inexactness(draws.gaussian, math.sqrt(2.0 * rho), loss)
    return max(vertices, default=0.0) + tails


def _check_rounding(paid_for: bool, budget: Budget) -> None:
    if not paid_for:
        raise ParameterError(
            f"`epsilon={budget.epsilon:g}` or `delta={budget.delta:g}` is too small to cover the "
            f"rounding of {sum(budget.draws):.3g} random draws"
        )
