"""Audit a claim exactly, by the solver in many runs, and by the public estimator; print JSON.

    python -m evidence.audit
    python -m evidence.audit --mechanism paper --epsilon 0.1

The exit code is 3 if an audit refutes the claim, and 0 if none does.
"""

import argparse
import json
import math
import sys
from dataclasses import replace
from typing import Any

from dplasso.audit import (
    AuditSettings,
    Plan,
    Report,
    audit_canary,
    estimator_target,
    run_audits,
)
from evidence.audit.exact import audit_exact, neighbourhoods
from evidence.audit.one_run import audit_one_run
from evidence.audit.solver import solver_target

# Few enough for every transcript to be enumerated, enough for a record's full contribution.
EXACT_STEPS = 3
# The estimator's checks take longer than a small fit: it gets a part of the runs.
_ESTIMATORS_PART, _FEWEST = 20, 200
_STEPS_PER_CANARY = 4
_ALARM = 5e-4 / 5


def audit(settings: AuditSettings, runs: int, canaries: int) -> Report:
    """Run all audits of a claim; at most 5e-4 is the probability that a true one is refuted."""
    exact = solver_target(replace(settings, n_iter=EXACT_STEPS))
    findings = [
        finding for around in neighbourhoods(exact.claim) for finding in audit_exact(exact, around)
    ]
    plan = Plan(settings.n_iter, runs, false_alarm=3 * _ALARM)
    sampled = run_audits(lambda n_iter: solver_target(replace(settings, n_iter=n_iter)), plan)
    findings += sampled.findings
    public = estimator_target(settings)
    few = max(_FEWEST, runs // _ESTIMATORS_PART)
    findings.append(audit_canary(public, few, _ALARM, name="canary: public estimator"))
    steps = _STEPS_PER_CANARY * canaries
    findings.append(
        audit_one_run(estimator_target(replace(settings, n_iter=steps)), canaries, _ALARM)
    )
    return Report(public.claim, tuple(findings))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit code."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("evidence.audit", description=__doc__, formatter_class=form)
    add = parser.add_argument
    for name in ("epsilon", "delta", "mechanism", "neighbors", "selector", "solver"):
        default = getattr(AuditSettings, name)
        add(f"--{name}", type=type(default), default=default)
    add("--runs", type=int, default=10_000, help="fits on each of the canary's two data sets")
    add("--canaries", type=int, default=1000, help="of the one-run audit")
    given = vars(parser.parse_args(arguments))
    runs, canaries = given.pop("runs"), given.pop("canaries")
    report = audit(AuditSettings(**given), runs, canaries)
    print(json.dumps(_plain(report.to_dict()), indent=1))
    return 3 if report.violated else 0


if __name__ == "__main__":
    sys.exit(main())
