"""How a step is drawn, and what that costs: one class for each mechanism.

The one place that pairs a mechanism with an accountant: `build_mechanism`.
"""

# isort: off
from dplasso.privacy.mechanisms.build import (
    Accounted as Accounted,
    Mechanism as Mechanism,
    build_mechanism as build_mechanism,
    check_mechanism as check_mechanism,
)
from dplasso.privacy.mechanisms.contract import (
    SelectionRule as SelectionRule,
    sensitivity as sensitivity,
)
from dplasso.privacy.mechanisms.signed_exponential import (
    EXPONENT_SLACK as EXPONENT_SLACK,
    SAMPLING_ERROR as SAMPLING_ERROR,
)
from dplasso.privacy.mechanisms.staged import (
    StagedSteps as StagedSteps,
    build_staged as build_staged,
)
