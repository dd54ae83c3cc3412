"""Audits of privacy claims: lower bounds on epsilon, exact or with a stated confidence.

An audit can refute a claim, never prove one; see docs/audit.md for what each can and cannot show.
"""

from dplasso.audit.black_box import audit_canary, audit_canary_step, collect
from dplasso.audit.bounds import epsilon_at_delta
from dplasso.audit.claims import Claim, Target, claim_of
from dplasso.audit.exact import all_transcripts, audit_exact, log_ratios
from dplasso.audit.one_run import audit_one_run
from dplasso.audit.problems import canary_pair, many_canaries, neighbourhoods
from dplasso.audit.repeats import audit_repeats
from dplasso.audit.report import Report, make_report
from dplasso.audit.suite import METHODS, Outcome, Plan, run_audits

__all__ = [
    "METHODS",
    "Claim",
    "Outcome",
    "Plan",
    "Report",
    "Target",
    "all_transcripts",
    "audit_canary",
    "audit_canary_step",
    "audit_exact",
    "audit_one_run",
    "audit_repeats",
    "canary_pair",
    "claim_of",
    "collect",
    "epsilon_at_delta",
    "log_ratios",
    "make_report",
    "many_canaries",
    "neighbourhoods",
    "run_audits",
]
