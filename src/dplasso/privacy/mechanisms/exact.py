"""No mechanism: the exact argmax of a fit without privacy (``epsilon=inf``)."""

import math
from dataclasses import dataclass
from typing import Any

from dplasso.privacy.mechanisms.contract import SelectionRule, sensitivity


@dataclass(frozen=True)
class ExactStep:
    """Every step chosen exactly; see `dplasso.privacy.mechanisms.contract.Mechanism`."""

    epsilon: float
    delta: float
    n_iter: int
    neighbors: str
    feature_bound: float
    residual_bound: float
    rows_per_person: int

    name = "none"
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
        """Raise, since nothing bounds what an exact step reveals."""
        raise ValueError("a fit with infinite epsilon has no privacy to account for")

    def epsilon_of_rows(self, count: int) -> float:  # noqa: ARG002
        """Return infinity."""
        return math.inf

    def rule(self, unit: float) -> SelectionRule:  # noqa: ARG002
        """Return the argmax."""
        return SelectionRule(self.name, math.inf, 0.0)
