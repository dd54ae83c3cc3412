"""Audits of privacy claims: lower bounds on epsilon, exact or with a stated confidence.

An audit can refute a claim, never prove one; see docs/audit.md for what each can and cannot show.
"""

# isort: off
from dplasso.audit.black_box import (
    audit_canary as audit_canary,
    audit_canary_step as audit_canary_step,
    audit_repeats as audit_repeats,
)
from dplasso.audit.bounds import epsilon_at_delta as epsilon_at_delta
from dplasso.audit.claims import Claim as Claim, Target as Target, claim_of as claim_of
from dplasso.audit.exact import all_transcripts as all_transcripts, audit_exact as audit_exact
from dplasso.audit.one_run import audit_one_run as audit_one_run
from dplasso.audit.problems import canary_pair as canary_pair, neighbourhoods as neighbourhoods
from dplasso.audit.report import Report as Report
from dplasso.audit.suite import (
    METHODS as METHODS,
    Outcome as Outcome,
    Plan as Plan,
    run_audits as run_audits,
)
