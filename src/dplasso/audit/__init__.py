"""Audits of privacy claims: lower bounds on epsilon, exact or with a stated confidence.

An audit can refute a claim, never prove one; see docs/audit.md for what each can and cannot show.
"""

from dplasso.audit.black_box import (
    Roc,
    Runs,
    audit_canary,
    audit_canary_step,
    collect,
)
from dplasso.audit.bounds import (
    binomial_lower,
    binomial_upper,
    epsilon_at_delta,
    epsilon_lower_bound,
    hockey_stick,
    odds_p_value,
    one_run_epsilon,
    one_run_p_value,
    range_lower_bound,
)
from dplasso.audit.claims import Claim, Data, Finding, Release, Target, claim_of
from dplasso.audit.exact import all_transcripts, audit_exact, log_ratios
from dplasso.audit.one_run import audit_one_run
from dplasso.audit.problems import (
    Neighbourhood,
    blank_data,
    canary_pair,
    many_canaries,
    neighbourhoods,
)
from dplasso.audit.repeats import audit_repeats
from dplasso.audit.report import Report, make_report
from dplasso.audit.suite import METHODS, Builder, Outcome, Plan, run_audits

__all__ = [
    "METHODS",
    "Builder",
    "Claim",
    "Data",
    "Finding",
    "Neighbourhood",
    "Outcome",
    "Plan",
    "Release",
    "Report",
    "Roc",
    "Runs",
    "Target",
    "all_transcripts",
    "audit_canary",
    "audit_canary_step",
    "audit_exact",
    "audit_one_run",
    "audit_repeats",
    "binomial_lower",
    "binomial_upper",
    "blank_data",
    "canary_pair",
    "claim_of",
    "collect",
    "epsilon_at_delta",
    "epsilon_lower_bound",
    "hockey_stick",
    "log_ratios",
    "make_report",
    "many_canaries",
    "neighbourhoods",
    "odds_p_value",
    "one_run_epsilon",
    "one_run_p_value",
    "range_lower_bound",
    "run_audits",
]
