"""Steps without privacy: the exact argmax (``epsilon=inf``), and the step as published."""

import math
from dataclasses import dataclass
from typing import Any

from dplasso.privacy.mechanisms.contract import SelectionRule, VertexSteps
from dplasso.privacy.parameters import check_positive


@dataclass(frozen=True, kw_only=True)
class UnboundedSteps(VertexSteps):
    """Vertices whose choice nothing hides."""

    eps0 = math.inf
    eps0_accounted = None
    epsilon_spent = math.inf
    sampling_delta = 0.0
    rho = math.inf

    def epsilon_of_rows(self, count: int) -> float:  # noqa: ARG002
        return math.inf


@dataclass(frozen=True, kw_only=True)
class ExactStep(UnboundedSteps):
    """Every step chosen exactly."""

    name = "none"

    def event(self) -> Any:
        raise ValueError("a fit with infinite epsilon has no privacy to account for")

    def rule(self, unit: float) -> SelectionRule:  # noqa: ARG002
        return SelectionRule(self.name, math.inf, 0.0)


@dataclass(frozen=True, kw_only=True)
class PaperStep(UnboundedSteps):
    """The scales published in arXiv 2310.19978, with Lipschitz constant L = 1: for reproduction.

    `exponent_scale`: algorithm 2, line 5: N epsilon / (2 lambda sqrt(8 T log(1/delta))).
    `laplace_scale`: algorithm 1, line 8: lambda sqrt(8 T log(1/delta)) / (N epsilon).
    """

    exponent_scale: float
    laplace_scale: float

    name = "paper"

    @property
    def leak(self) -> str:
        return (
            "the step published in arXiv 2310.19978 moves along the true sign of a gradient entry, "
            "which is a noiseless bit of the data"
        )

    def event(self) -> Any:
        # The true sign that the step releases has no price.
        raise ValueError(
            "the bounded-range accountant holds for the exponential mechanism only, not for 'paper'"
        )

    def rule(self, unit: float) -> SelectionRule:
        return SelectionRule(self.name, self.exponent_scale / unit, self.laplace_scale * unit)


def paper_scales(
    epsilon: float, delta: float, n_iter: int, l1_radius: float | None, n_samples: int | None
) -> tuple[float, float]:
    """Return `exponent_scale` and `laplace_scale` as printed.

    Radius and number of rows enter both (one more reason why the step is not private).
    """
    if l1_radius is None or n_samples is None:
        raise ValueError("mechanism='paper' needs l1_radius and n_samples.")
    radius = check_positive("l1_radius", l1_radius)
    rows = check_positive("n_samples", n_samples)
    root = math.sqrt(8.0 * n_iter * -math.log(delta))
    return rows * epsilon / (2.0 * radius * root), radius * root / (rows * epsilon)
