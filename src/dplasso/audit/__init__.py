"""Black-box audits of privacy claims: lower bounds on epsilon with a stated confidence.

An audit can refute a claim, never prove one; see docs/audit.md for what each can and cannot show.
"""

# isort: off
from dplasso.audit.black_box import (
    audit_canary as audit_canary,
    audit_canary_step as audit_canary_step,
    audit_repeats as audit_repeats,
)
from dplasso.audit.claims import (
    Claim as Claim,
    Report as Report,
    Target as Target,
    canary_pair as canary_pair,
    claim_of as claim_of,
)
from dplasso.audit.suite import (
    AuditSettings as AuditSettings,
    Plan as Plan,
    audit_weights as audit_weights,
    estimator_target as estimator_target,
    run_audits as run_audits,
    weights_target as weights_target,
)
