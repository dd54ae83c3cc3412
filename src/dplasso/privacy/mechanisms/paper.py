"""The step as published in arXiv 2310.19978, for reproduction: not differentially private."""

import math
from dataclasses import dataclass
from typing import Any

from dplasso.privacy.mechanisms.contract import SelectionRule, sensitivity
from dplasso.privacy.parameters import check_positive


@dataclass(frozen=True)
class PaperStep:
    """The published scales, with Lipschitz constant L = 1.

    `exponent_scale`: algorithm 2, line 5: N epsilon / (2 lambda sqrt(8 T log(1/delta))).
    `laplace_scale`: algorithm 1, line 8: lambda sqrt(8 T log(1/delta)) / (N epsilon).
    """

    epsilon: float
    delta: float
    n_iter: int
    neighbors: str
    feature_bound: float
    residual_bound: float
    rows_per_person: int
    exponent_scale: float
    laplace_scale: float

    name = "paper"
    eps0 = math.inf
    epsilon_spent = math.inf
    sampling_delta = 0.0
    rho = math.inf

    @property
    def sensitivity(self) -> float:
        """How far a coordinate of the gradient can move between neighbours."""
        return sensitivity(
            self.feature_bound, self.neighbors, self.residual_bound, self.rows_per_person
        )

    def event(self) -> Any:
        """Raise: the true sign that the step releases has no price."""
        raise ValueError(
            "the bounded-range accountant holds for the exponential mechanism only, not for 'paper'"
        )

    def epsilon_of_rows(self, count: int) -> float:  # noqa: ARG002
        """Return infinity."""
        return math.inf

    def rule(self, unit: float) -> SelectionRule:
        """Return the published distribution."""
        return SelectionRule(self.name, self.exponent_scale / unit, self.laplace_scale * unit)


def paper_scales(
    epsilon: float, delta: float, n_iter: int, l1_radius: float | None, n_samples: int | None
) -> tuple[float, float]:
    """Return `exponent_scale` and `laplace_scale` as printed.

    Raises ValueError without the radius or the number of rows, which enter both (one more reason
    why the step is not private).
    """
    if l1_radius is None or n_samples is None:
        raise ValueError("mechanism='paper' needs l1_radius and n_samples.")
    radius = check_positive("l1_radius", l1_radius)
    rows = check_positive("n_samples", n_samples)
    root = math.sqrt(8.0 * n_iter * -math.log(delta))
    return rows * epsilon / (2.0 * radius * root), radius * root / (rows * epsilon)
