"""Gaussian noise on gradients bounded in L2: what a whole run costs, exactly.

T gradients with noise of standard deviations ``s_t`` are mu-GDP together, ``mu^2`` the sum of all
``(sensitivity / s_t)^2``, whatever was chosen between them (arXiv 1905.02383); runs with shares of
``mu^2`` add up to it. The
curve of `dplasso.privacy.gaussian` turns mu into (epsilon, delta).

Rounding
--------
The noise is a floored real Gaussian but for two things (`dplasso.privacy.gaussian_noise`). The mass
of every integer is off by a factor of at most ``1 + z``, ``z = TAIL^2 / (24 s^2)``, with s the
standard deviation in units: over n draws, on both data sets, log-ratios of probabilities move by at
most ``2 n z``, which is withheld from epsilon. A unit is ``C / 2^32`` of a gradient and 2^-32 of a
count, so no run and no share of the budget has a smaller s than ``2^32 / mu``; where units are made
coarser for the largest noise of a run, than half of `LARGEST_SCALE` over `LARGEST_RATIO`. And no
mass lies beyond `TAIL` standard deviations: that much total variation, times ``1 + exp(epsilon)``,
is charged to delta for every draw, as for the vertices.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from dplasso.privacy.gaussian import calibrate_mu, gaussian_epsilon
from dplasso.privacy.gaussian_noise import LARGEST_SCALE, TAIL
from dplasso.privacy.mechanisms.contract import MOST_EARLIER, Promise, Words, left_of
from dplasso.privacy.parameters import check_delta, check_epsilon, check_neighbors
from dplasso.privacy.wording import COUNT_BY_CLASS, COUNT_PRIVATE, counts_of_classes, rounded_up

# Relative part of mu withheld, so that the last drop of a ledger's budget can be spent.
_MU_MARGIN = 2.0**-40
# Of the standard deviations of the noise of two gradients of a run, at most.
LARGEST_RATIO = 8.0
# The tail's charge grows with exp(epsilon): no fit spends more than this.
LARGEST_EPSILON = 60.0
# Share of the budget, in mu^2 or rho, of counting the records.
COUNT_SHARE = 0.01
# The same of setting margins right after the last gradient, and the gradients of it, each of a
# slope and a constant for every output.
CALIBRATION_SHARE, CALIBRATION_STEPS = 0.05, 60
# Energies are released at most so often: before the first stage, and for the steps of each of four.
# Each has a number for every column, and fewer than 64 for the rows.
ENERGY_DRAWS = 8
# What an error of 1 in a log-ratio adds to rho, at every Renyi order from 1.01.
RATIO_RHO = 200.0


def _words(statement: Any) -> str:
    counted = ", a noisy count of the records" if statement.records == COUNT_PRIVATE else ""
    labels = f", for all {statement.n_classes:,} labels together" if statement.many_labels else ""
    if statement.records == COUNT_BY_CLASS:
        counted = f", {counts_of_classes(statement)}"
    return (
        f"at most {statement.steps:,} gradients over all records{labels}, each with Gaussian noise"
        f"{counted}"
        ", noisy sums of the squared entries of every column"
        f"{calibrated_words(statement)} (together {rounded_up(statement.mu)}-GDP)"
    )


def calibrated_words(statement: Any) -> str:
    """Say that probabilities are corrected, where a fit has any, or a prior is weighed."""
    if statement.prior:
        again = f"{CALIBRATION_STEPS} such gradients"
        return f", and {again} whenever the public model and what was learnt are weighed"
    if statement.target_bounds is not None:
        return ""
    return f", and {CALIBRATION_STEPS} such gradients that correct the probabilities"


WORDS = Words(_words, clips_entries=False)


@dataclass(frozen=True, kw_only=True)
class GaussianSteps(Promise):
    """T full-batch gradients, over all runs of a fit, of rows of L2 norm at most 1, with noise.

    `mu`: Gaussian differential privacy of everything together; infinite without privacy.
    `by_class`: whether the records of each class are counted, or of both ends of an interval.
    """

    feature_bound: float = 1.0
    n_iter: int
    mu: float = math.inf
    epsilon_spent: float = math.inf
    sampling_delta: float = 0.0
    ratio_error: float = 0.0
    by_class: bool = False

    eps0 = 0.0
    eps0_accounted = None
    accountant = "the exact curve of Gaussian differential privacy"
    release_kind = "gradient state"

    @property
    def name(self) -> str:
        return "gaussian" if math.isfinite(self.mu) else "none"

    @property
    def stated(self) -> dict[str, Any]:
        return {"mu": self.whole}

    @property
    def whole(self) -> float:
        """Gaussian differential privacy of the fit together with what was released before."""
        return math.hypot(self.mu, self.before)

    def after(self, mu: float) -> "GaussianSteps":
        if self.leak:
            return self
        left = math.sqrt(left_of(self.mu * self.mu, mu * mu, f"epsilon={self.epsilon:g}"))
        sampling = self.sampling_delta + earlier_tails(self.epsilon)
        steps = replace(self, mu=left, before=mu, sampling_delta=sampling)
        spent = gaussian_epsilon(steps.whole, self.delta - sampling) + self.ratio_error
        return replace(steps, epsilon_spent=min(self.epsilon, spent))

    @property
    def unit_sensitivity(self) -> float:
        """How far a sum over rows of L2 norm 1 can move between neighbours, in L2."""
        return self.sensitivity / self.residual_bound

    @property
    def count_sensitivity(self) -> float:
        if self.by_class:
            # Each row is in one class, and all of a person may be in another's.
            moved = float(self.rows_per_person)
            return moved if self.neighbors == "add-remove" else math.sqrt(2.0) * moved
        # Everybody has at least one row, so replacing a person moves their number by one less.
        return self.rows_per_person - int(self.neighbors != "add-remove")

    @property
    def rho(self) -> float:
        # With room for `ratio_error` at every Renyi order from 1.01.
        return self.mu * self.mu / 2.0 + RATIO_RHO * self.ratio_error

    def epsilon_of_rows(self, count: int) -> float:
        largest = gaussian_epsilon(count * self.whole, self.delta / 2.0)
        growth = math.exp(min(700.0, max(0.0, largest - self.epsilon_spent)))
        rest = self.delta - self.sampling_delta * growth
        if rest < self.delta / 2.0:
            return math.inf
        return gaussian_epsilon(count * self.whole, rest) + count * self.ratio_error

    def event(self) -> Any:
        from dp_accounting import GaussianDpEvent

        return GaussianDpEvent(noise_multiplier=1.0 / self.whole)


def earlier_tails(epsilon: float) -> float:
    """Return the delta of the tails that no draw of an earlier release has."""
    return inexactness(MOST_EARLIER, 1.0, min(epsilon, LARGEST_EPSILON))[0]


def calibration_draws(n_outputs: int, from_prior: bool, n_slopes: int = 1) -> float:
    """Return how many variates slopes and constants take; from a prior, in the beginning too."""
    once = float(n_outputs + n_slopes)
    return CALIBRATION_STEPS * (2.0 * once + 1.0 if from_prior else once)


def inexactness(draws: float, mu: float, epsilon: float) -> tuple[float, float]:
    """Return the delta of the tails that are not drawn, and what rounding adds to a log-ratio.

    `mu` and `epsilon` are the most that all `draws` cost together.
    """
    scale = min(2.0**32 / mu, LARGEST_SCALE / 2.0 / LARGEST_RATIO)
    ratio = 2.0 * draws * TAIL * TAIL / (24.0 * scale * scale)
    tails = draws * 2.0 * math.erfc(TAIL / math.sqrt(2.0)) * (1.0 + math.exp(min(epsilon, 700.0)))
    return tails, ratio


def check_rounding(paid_for: bool, epsilon: float, delta: float, draws: float) -> None:
    """Raise ValueError unless the inexactness of so many draws is paid for."""
    if not paid_for:
        raise ValueError(
            f"epsilon={epsilon:g} or delta={delta:g} is too small to cover the rounding of "
            f"{draws:.3g} random draws"
        )


def build_gaussian(
    *,
    epsilon: float,
    delta: float,
    n_iter: int,
    n_coordinates: int = 2**24,
    n_outputs: int = 1,
    neighbors: str = "add-remove",
    residual_bound: float = 0.5,
    rows_per_person: int = 1,
    from_prior: bool = False,
    by_class: bool = False,
    many_labels: bool = False,
) -> GaussianSteps:
    """Return the mechanism that spends at most `epsilon`, and no more than `LARGEST_EPSILON`.

    `n_coordinates` says how many variates are drawn, which costs next to nothing: it may be a guess
    before there are data. `from_prior`: whether the slope of a public start is found, too.
    `by_class`: whether the records of each class are counted, if there is noise. `many_labels`:
    whether each output is a label, with a slope of its own in the end. Raises ValueError if
    `epsilon` or `delta` is too small to cover their rounding.
    """
    steps = GaussianSteps(
        epsilon=check_epsilon(epsilon),
        delta=check_delta(delta),
        n_iter=n_iter,
        neighbors=check_neighbors(neighbors),
        residual_bound=residual_bound,
        rows_per_person=rows_per_person,
    )
    if math.isinf(epsilon):
        return steps
    aim = min(steps.epsilon, LARGEST_EPSILON)
    # The energies and the counts of the records besides, and slopes and constants.
    draws = (n_iter + ENERGY_DRAWS) * (n_coordinates + 64.0) + max(2.0, n_outputs)
    draws += calibration_draws(n_outputs, from_prior, n_outputs if many_labels else 1)
    # With nothing withheld yet, mu is at its largest.
    sampling, ratio = inexactness(draws, calibrate_mu(aim, steps.delta), aim)
    paid_for = sampling < steps.delta / 2.0 and ratio < aim / 100.0
    check_rounding(paid_for, epsilon, delta, draws)
    mu = calibrate_mu(aim - ratio, steps.delta - sampling) * (1.0 - _MU_MARGIN)
    spent = min(aim, gaussian_epsilon(mu, steps.delta - sampling) + ratio)
    steps = replace(steps, mu=mu, epsilon_spent=spent, by_class=by_class)
    return replace(steps, sampling_delta=sampling, ratio_error=ratio)
