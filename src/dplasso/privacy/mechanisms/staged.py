"""Columns drawn by the exponential mechanism, then noisy gradients on them: one budget of zCDP.

A fit that chooses its own settings releases, one after another and each by what was released
before: noisy counts of the classes, vertices, noisy gradients on the columns of the vertices.
Each part is rho_i-zCDP with rho_i set in advance or by what was released, and the rho_i add up to
`rho`: adaptive composition (arXiv 1605.02065, lemma 7). The number of vertices may follow from the
counts, since ``eps0 = sqrt(8 rho_i / T)`` spends the same on any number of them.
"""

import math
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from dplasso.privacy.accounting import calibrate, epsilon_of_rho, library, root_rho, zcdp_event
from dplasso.privacy.gaussian import calibrate_mu
from dplasso.privacy.mechanisms.contract import Promise, Words, left_of
from dplasso.privacy.mechanisms.gaussian import (
    COUNT_SHARE,
    ENERGY_DRAWS,
    LARGEST_EPSILON,
    RATIO_RHO,
    GaussianSteps,
    calibrated_words,
    calibration_draws,
    check_rounding,
    earlier_tails,
    inexactness,
)
from dplasso.privacy.mechanisms.signed_exponential import (
    LEDGER_MARGIN,
    SignedExponential,
    sampling_delta_of,
    vertex_words,
    with_eps0,
)
from dplasso.privacy.mechanisms.unbounded import ExactStep
from dplasso.privacy.parameters import (
    check_delta,
    check_epsilon,
    check_feature_bound,
    check_neighbors,
)
from dplasso.privacy.wording import STAGED, counts_of_classes, rounded_up


def _words(statement: Any) -> str:
    before = f"{counts_of_classes(statement)}, then " if statement.counted else ""
    if statement.eps0:
        return (
            f"{before}{vertex_words(statement)}; of the budget, {COUNT_SHARE:.0%} is for the "
            f"counts (together {rounded_up(statement.rho)}-zCDP)"
        )
    return (
        f"{before}"
        f"at most {statement.steps:,} steps: columns drawn by the exponential mechanism or kept "
        "by noisy gradients, sums of squared entries, and gradients over all records, each with "
        f"Gaussian noise{calibrated_words(statement)} (together {rounded_up(statement.rho)}-zCDP)"
    )


WORDS = Words(_words)


@dataclass(frozen=True, kw_only=True)
class StagedSteps(Promise):
    """Counts, vertices and gradients.

    `n_vertices`, `n_gradients`: the most that are drawn of each.
    `n_columns`: columns that the gradients are of, at most.
    `n_screening`: gradients before, of all `n_features` columns, which keep at most `most_kept`.
    `n_outputs`: margins of a record, K.
    `residual_bound`: bound C on every residual; a vertex is a coordinate of one margin, so its
    sensitivity is the same for every K.
    `norm_bound`: bound on the L2 norm of a record's residuals, for the gradients.
    `counted`: whether the records of the classes are counted; each record is in one.
    `from_prior`: whether the slope of a public start is found, for the vertices and for the
    gradients.
    `vertices_alone`: whether all that the counts leave is for `n_vertices` vertices.
    """

    n_vertices: int
    n_gradients: int
    n_columns: int
    n_outputs: int
    norm_bound: float
    counted: bool
    from_prior: bool = False
    n_screening: int = 0
    n_features: int = 0
    most_kept: int = 0
    vertices_alone: bool = False
    rho: float = math.inf
    epsilon_spent: float = math.inf
    sampling_delta: float = 0.0
    ratio_error: float = 0.0

    eps0_accounted = None
    release_kind = "staged"

    @property
    def name(self) -> str:
        return STAGED if math.isfinite(self.rho) else "none"

    @property
    def eps0(self) -> float:
        return self.vertices(self.n_vertices, 1.0).eps0 if self.vertices_alone else 0.0

    @property
    def accountant(self) -> str:
        return f"RDP of zCDP ({library()})"

    @property
    def stated(self) -> dict[str, Any]:
        return {"rho": self.whole, "counted": self.counted}

    @property
    def whole(self) -> float:
        """Return the zCDP of the fit together with what was released before."""
        return self.rho + self.before * self.before / 2.0

    def after(self, mu: float) -> "StagedSteps":
        if self.leak:
            return self
        left = left_of(self.rho, mu * mu / 2.0, f"epsilon={self.epsilon:g}")
        sampling = self.sampling_delta + earlier_tails(self.epsilon)
        steps = replace(self, rho=left, before=mu, sampling_delta=sampling)
        spent = epsilon_of_rho(steps.whole, self.delta - sampling)
        return replace(steps, epsilon_spent=min(self.epsilon, spent))

    @property
    def n_iter(self) -> int:
        return self.n_vertices + self.n_screening + self.n_gradients

    @property
    def count_sensitivity(self) -> float:
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
        return zcdp_event(self.whole)

    def epsilon_of_rows(self, count: int) -> float:
        rho = count * count * self.whole
        rest = self.delta - _sampling_delta(rho, self.n_vertices, self._gaussian_draws)
        return epsilon_of_rho(rho, rest) if rest > self.delta / 2.0 else math.inf

    @property
    def _gaussian_draws(self) -> float:
        """How many Gaussian variates a fit draws.

        Constant entries, energies and the counts besides, and slopes and constants of the
        calibration.
        """
        n_outputs, drawn = self.n_outputs, max(2.0, self.n_outputs)
        for n_gradients, n_columns in (
            (self.n_gradients, self.n_columns),
            (self.n_screening, self.n_features),
        ):
            drawn += n_gradients * n_outputs * (n_columns + 1.0)
            drawn += ENERGY_DRAWS * (n_columns + 64.0) if n_gradients else 0.0
        return drawn + calibration_draws(n_outputs, self.from_prior)

    def vertices(self, n_iter: int, share: float) -> SignedExponential | ExactStep:
        """Return the mechanism of `n_iter` vertices for a share of what the counts leave."""
        known = self._asked | {"n_iter": n_iter}
        if self.name == "none":
            return ExactStep(**known)
        accounted = math.sqrt(8.0 * share * self.rho_left / n_iter)
        return with_eps0(accounted, **self._spent, **known)

    def gradients(self, share: float) -> GaussianSteps:
        """Return the mechanism of the gradients for a share of what the counts leave."""
        return GaussianSteps(
            **self._asked | {"residual_bound": self.norm_bound, "feature_bound": 1.0},
            n_iter=self.n_screening + self.n_gradients,
            mu=math.sqrt(2.0 * share * self.rho_left),
            ratio_error=self.ratio_error,
            **self._spent,
        )

    @property
    def _asked(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(Promise)}

    @property
    def _spent(self) -> dict[str, Any]:
        return {"epsilon_spent": self.epsilon_spent, "sampling_delta": self.sampling_delta}


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
    n_columns: int | None = None,
    n_outputs: int = 1,
    norm_bound: float | None = None,
    from_prior: bool = False,
    n_screening: int = 0,
    n_features: int = 0,
    most_kept: int = 0,
    vertices_alone: bool = False,
) -> StagedSteps:
    """Return the mechanism that spends at most `epsilon`, and no more than `LARGEST_EPSILON`.

    By default there are as many columns as vertices, and `norm_bound` is `residual_bound`, as of
    one output. Raises ValueError if `epsilon` or `delta` is too small to cover the rounding of the
    draws.
    """
    steps = StagedSteps(
        epsilon=check_epsilon(epsilon),
        delta=check_delta(delta),
        n_vertices=n_vertices,
        n_gradients=n_gradients,
        n_columns=n_vertices if n_columns is None else n_columns,
        n_outputs=n_outputs,
        neighbors=check_neighbors(neighbors),
        feature_bound=check_feature_bound(feature_bound),
        residual_bound=residual_bound,
        norm_bound=residual_bound if norm_bound is None else norm_bound,
        rows_per_person=rows_per_person,
        counted=counted,
        from_prior=from_prior,
        n_screening=n_screening,
        n_features=n_features,
        most_kept=most_kept,
        vertices_alone=vertices_alone,
    )
    if math.isinf(epsilon):
        return steps
    aim = min(steps.epsilon, LARGEST_EPSILON)
    # Gaussian noise of this much is exactly (aim, delta), so no rho that the accountant allows is
    # larger, and what the draws need there is enough.
    largest = calibrate_mu(aim, delta) ** 2 / 2.0
    draws = steps._gaussian_draws
    sampling = _sampling_delta(largest, n_vertices, draws)
    ratio = inexactness(draws, math.sqrt(2.0 * largest), aim)[1]
    paid_for = sampling < delta / 2.0 and RATIO_RHO * ratio < largest / 100.0
    check_rounding(paid_for, epsilon, delta, draws + n_vertices)
    rho = _calibrated(aim, delta - sampling) * (1.0 - LEDGER_MARGIN)
    spent = min(steps.epsilon, epsilon_of_rho(rho, delta - sampling))
    return replace(steps, rho=rho, epsilon_spent=spent, sampling_delta=sampling, ratio_error=ratio)


@lru_cache(maxsize=256)
def _calibrated(epsilon: float, delta: float) -> float:
    root = root_rho(epsilon, delta)
    return calibrate(zcdp_event, epsilon, delta, start=root * root)


def _sampling_delta(rho: float, n_vertices: int, draws: float) -> float:
    """Return the delta that inexact draws cost, for whatever number of vertices is chosen."""
    numbers = {1, n_vertices, *range(1, min(n_vertices, 1000) + 1)} if n_vertices else set()
    vertices = (sampling_delta_of(math.sqrt(8.0 * rho / n), n) for n in numbers)
    loss = rho + 2.0 * math.sqrt(rho * 40.0)
    return max(vertices, default=0.0) + inexactness(draws, math.sqrt(2.0 * rho), loss)[0]
