"""No mechanism: the exact argmax of a fit without privacy (``epsilon=inf``)."""

import math
from dataclasses import dataclass
from typing import Any

from dplasso.privacy.mechanisms.contract import SelectionRule, UnboundedSteps


@dataclass(frozen=True, kw_only=True)
class ExactStep(UnboundedSteps):
    """Every step chosen exactly."""

    name = "none"

    def event(self) -> Any:
        """Raise, since nothing bounds what an exact step reveals."""
        raise ValueError("a fit with infinite epsilon has no privacy to account for")

    def rule(self, unit: float) -> SelectionRule:  # noqa: ARG002
        """Return the argmax."""
        return SelectionRule(self.name, math.inf, 0.0)
