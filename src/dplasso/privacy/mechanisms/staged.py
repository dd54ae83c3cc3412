"""Columns drawn by the exponential mechanism, then noisy gradients on them: one budget of zCDP.

A fit that chooses its own settings releases, one after another and each by what was released
before: noisy counts of the two classes, vertices, noisy gradients on the columns of the vertices.
Each part is rho_i-zCDP with rho_i set in advance or by what was released, and the rho_i add up to
`rho`: adaptive composition (arXiv 1605.02065, lemma 7). The number of vertices may follow from the
counts, since ``eps0 = sqrt(8 rho_i / T)`` spends the same on any number of them.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dplasso.privacy.accounting import calibrate, epsilon_of_rho, zcdp_event
from dplasso.privacy.gaussian import calibrate_mu
from dplasso.privacy.mechanisms.contract import Mechanism, sensitivity
from dplasso.privacy.mechanisms.exact import ExactStep
from dplasso.privacy.mechanisms.gaussian import (
    CALIBRATION_STEPS,
    COUNT_SHARE,
    LARGEST_EPSILON,
    RATIO_RHO,
    GaussianSteps,
    inexactness,
)
from dplasso.privacy.mechanisms.signed_exponential import (
    EXPONENT_SLACK,
    LEDGER_MARGIN,
    SignedExponential,
    sampling_delta_of,
)
from dplasso.privacy.parameters import check_delta, check_epsilon, check_neighbors


@dataclass(frozen=True)
class StagedSteps:
    """Counts, vertices and gradients; made of public parameters alone.

    `n_vertices`, `n_gradients`: the most that are drawn of each.
    `counted`: whether the records of the classes are counted.
    `ratio_error`: what rounding of Gaussian noise can add to a log-ratio of probabilities.
    """

    epsilon: float
    delta: float
    n_vertices: int
    n_gradients: int
    neighbors: str
    feature_bound: float
    residual_bound: float
    rows_per_person: int
    counted: bool
    rho: float
    epsilon_spent: float
    sampling_delta: float
    ratio_error: float

    eps0 = 0.0

    @property
    def name(self) -> str:
        """The mechanism's name: "exponential and gaussian", or "none" without privacy."""
        return "exponential and gaussian" if math.isfinite(self.rho) else "none"

    @property
    def n_iter(self) -> int:
        """The most steps of both kinds."""
        return self.n_vertices + self.n_gradients

    @property
    def sensitivity(self) -> float:
        """How far a coordinate of the gradient can move between neighbours."""
        return sensitivity(
            self.feature_bound, self.neighbors, self.residual_bound, self.rows_per_person
        )

    @property
    def count_sensitivity(self) -> float:
        """How far the counts of the two classes can move between neighbours, in L2."""
        moved = float(self.rows_per_person)
        return moved if self.neighbors == "add-remove" else math.sqrt(2.0) * moved

    @property
    def count_mu(self) -> float:
        """Gaussian differential privacy of the counts."""
        return math.sqrt(2.0 * COUNT_SHARE * self._exact_rho)

    @property
    def rho_left(self) -> float:
        """What the counts leave of rho for vertices and gradients."""
        return self._exact_rho * (1.0 - COUNT_SHARE if self.counted else 1.0)

    @property
    def _exact_rho(self) -> float:
        return self.rho - RATIO_RHO * self.ratio_error

    def event(self) -> Any:
        """Return the whole fit as an event of ``dp-accounting``."""
        return zcdp_event(self.rho)

    def epsilon_of_rows(self, count: int) -> float:
        """Return the epsilon for somebody with `count` times as many rows as are covered.

        Infinite where the inexactness of the draws, which counts for more then, uses delta up.
        """
        rho = count * count * self.rho
        rest = self.delta - _sampling_delta(rho, self.n_vertices, self.n_gradients)
        return epsilon_of_rho(rho, rest) if rest > self.delta / 2.0 else math.inf

    def vertices(self, n_iter: int, share: float) -> Mechanism:
        """Return the mechanism of `n_iter` vertices for a share of what the counts leave."""
        common: Any = {
            name: getattr(self, name)
            for name in ("epsilon", "delta", "neighbors", "feature_bound", "residual_bound")
        }
        common |= {"n_iter": n_iter, "rows_per_person": self.rows_per_person}
        if self.name == "none":
            return ExactStep(**common)
        accounted = math.sqrt(8.0 * share * self.rho_left / n_iter)
        eps0 = accounted * (1.0 - EXPONENT_SLACK)
        return SignedExponential(
            **common,
            eps0=eps0,
            eps0_accounted=accounted,
            exponent_scale=eps0 / (2.0 * self.sensitivity),
            epsilon_spent=self.epsilon_spent,
            sampling_delta=self.sampling_delta,
        )

    def gradients(self, share: float) -> GaussianSteps:
        """Return the mechanism of the gradients for a share of what the counts leave."""
        return GaussianSteps(
            epsilon=self.epsilon,
            delta=self.delta,
            n_iter=self.n_gradients,
            neighbors=self.neighbors,
            residual_bound=self.residual_bound,
            rows_per_person=self.rows_per_person,
            mu=math.sqrt(2.0 * share * self.rho_left),
            epsilon_spent=self.epsilon_spent,
            sampling_delta=self.sampling_delta,
            ratio_error=self.ratio_error,
        )


def build_staged(
    *,
    epsilon: float,
    delta: float,
    n_vertices: int,
    n_gradients: int,
    neighbors: str = "add-remove",
    feature_bound: float = 1.0,
    residual_bound: float = 0.5,
    rows_per_person: int = 1,
    counted: bool = True,
) -> StagedSteps:
    """Choose rho from public parameters.

    `epsilon`: total privacy loss to stay within; infinity for no noise. No more than 60 is spent.
    `delta`: in (0, 1).
    `n_vertices`, `n_gradients`: the most that are drawn of each.
    `neighbors`, `feature_bound`, `residual_bound`, `rows_per_person`, `counted`: as in
    `StagedSteps`.

    Returns: with ``epsilon_spent <= epsilon``.

    Raises TypeError, ValueError if a parameter is not of its kind or out of range, or `delta` too
    small for the draws.
    """
    steps = StagedSteps(
        epsilon=check_epsilon(epsilon),
        delta=check_delta(delta),
        n_vertices=n_vertices,
        n_gradients=n_gradients,
        neighbors=check_neighbors(neighbors),
        feature_bound=feature_bound,
        residual_bound=residual_bound,
        rows_per_person=rows_per_person,
        counted=counted,
        rho=math.inf,
        epsilon_spent=math.inf,
        sampling_delta=0.0,
        ratio_error=0.0,
    )
    if math.isinf(epsilon):
        return steps
    aim = min(steps.epsilon, LARGEST_EPSILON)
    # Gaussian noise of this much is exactly (aim, delta), so no rho that the accountant allows is
    # larger, and what the draws need there is enough.
    largest = calibrate_mu(aim, delta) ** 2 / 2.0
    sampling = _sampling_delta(largest, n_vertices, n_gradients)
    draws = _gaussian_draws(n_vertices, n_gradients)
    ratio = inexactness(draws, math.sqrt(2.0 * largest), aim)[1]
    if not (sampling < delta / 2.0 and RATIO_RHO * ratio < largest / 100.0):
        raise ValueError(
            f"epsilon={epsilon:g} or delta={delta:g} is too small to cover the rounding of "
            f"{draws + n_vertices:.3g} random draws"
        )
    rho = _calibrated(aim, delta - sampling) * (1.0 - LEDGER_MARGIN)
    spent = min(steps.epsilon, epsilon_of_rho(rho, delta - sampling))
    return replace(steps, rho=rho, epsilon_spent=spent, sampling_delta=sampling, ratio_error=ratio)


@lru_cache(maxsize=256)
def _calibrated(epsilon: float, delta: float) -> float:
    # rho + 2 sqrt(rho log(1/delta)) = epsilon, never below what the accountant reports.
    root = epsilon / (math.sqrt(epsilon - math.log(delta)) + math.sqrt(-math.log(delta)))
    return calibrate(zcdp_event, epsilon, delta, start=root * root)


def _gaussian_draws(n_vertices: int, n_gradients: int) -> float:
    """Return how many Gaussian variates a fit draws.

    A constant entry and two counts besides, and slope and constant of the calibration.
    """
    return n_gradients * (n_vertices + 1.0) + 2.0 + 2.0 * CALIBRATION_STEPS


def _sampling_delta(rho: float, n_vertices: int, n_gradients: int) -> float:
    """Return the delta that inexact draws cost, for whatever number of vertices is chosen."""
    numbers = {1, n_vertices, *range(1, min(n_vertices, 1000) + 1)} if n_vertices else set()
    vertices = (sampling_delta_of(math.sqrt(8.0 * rho / n), n) for n in numbers)
    loss = rho + 2.0 * math.sqrt(rho * 40.0)
    draws = _gaussian_draws(n_vertices, n_gradients)
    return max(vertices, default=0.0) + inexactness(draws, math.sqrt(2.0 * rho), loss)[0]
