"""How a step is drawn, and what that costs: one class for each mechanism.

The one place that pairs a mechanism with an accountant: `build_mechanism`.
"""

from dplasso.privacy.mechanisms.build import (
    MECHANISMS,
    build_mechanism,
    check_mechanism,
)
from dplasso.privacy.mechanisms.contract import Accounted, Mechanism, SelectionRule, sensitivity
from dplasso.privacy.mechanisms.exact import ExactStep
from dplasso.privacy.mechanisms.paper import PaperStep
from dplasso.privacy.mechanisms.signed_exponential import (
    EXPONENT_SLACK,
    LEDGER_MARGIN,
    SAMPLING_ERROR,
    SignedExponential,
)
from dplasso.privacy.mechanisms.staged import StagedSteps, build_staged

__all__ = [
    "EXPONENT_SLACK",
    "LEDGER_MARGIN",
    "MECHANISMS",
    "SAMPLING_ERROR",
    "Accounted",
    "ExactStep",
    "Mechanism",
    "PaperStep",
    "SelectionRule",
    "SignedExponential",
    "StagedSteps",
    "build_mechanism",
    "build_staged",
    "check_mechanism",
    "sensitivity",
]
