"""How a step is drawn, and what that costs: one class for each mechanism.

The one place that pairs a mechanism with an accountant: `build_mechanism`.
"""

from dplasso.privacy.mechanisms.build import (
    Accounted,
    Mechanism,
    build_mechanism,
    check_mechanism,
)
from dplasso.privacy.mechanisms.contract import SelectionRule, sensitivity
from dplasso.privacy.mechanisms.signed_exponential import EXPONENT_SLACK, SAMPLING_ERROR
from dplasso.privacy.mechanisms.staged import StagedSteps, build_staged

__all__ = [
    "EXPONENT_SLACK",
    "SAMPLING_ERROR",
    "Accounted",
    "Mechanism",
    "SelectionRule",
    "StagedSteps",
    "build_mechanism",
    "build_staged",
    "check_mechanism",
    "sensitivity",
]
