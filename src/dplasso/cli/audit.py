"""``dplasso audit``: try to refute the privacy claim, and say how hard it was tried."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from dplasso.audit import (
    AuditSettings,
    Plan,
    Report,
    Target,
    audit_weights,
    estimator_target,
    run_audits,
    weights_target,
)
from dplasso.cli import output
from dplasso.errors import ParameterError
from dplasso.privacy.wording import rounded_up

# Not 1, which is any failure to audit at all, and not 2, which is a misspelt command line.
VIOLATION_FOUND = 3


def audit(
    epsilon: float = 1.0,
    delta: float = 1e-6,
    neighbors: str = "add-remove",
    feature_bound: float = 1.0,
    mechanism: str = "exponential",
    n_iter: int = 10,
    selector: str = "bucket",
    solver: str = "sparse",
    method: str = "frank-wolfe",
    runs: int = 4_000,
    false_alarm: float = 5e-4,
) -> output.Result:
    """Try to refute the privacy claim by attacking the implementation.

    The exit code is 3 if an audit refutes the claim, and 0 if none does.

    Model
    -----
    n_iter : T
        Steps of the whole fits that are attacked.

    Audit
    -----
    method : NAME
        frank-wolfe: canaries in whole fits and in one step, and repeated releases. A canary is a
        record made to be noticed. lasso, logistic: a canary in whole fits by noisy gradients.
    runs : N
        Fits on each of the canary's two data sets.
    false_alarm : A
        Probability that all audits together call a true claim violated.

    Examples
    --------
    dplasso audit
    dplasso audit --epsilon 0.5 --neighbors replace-one --json
    dplasso audit --mechanism paper --epsilon 0.1
    dplasso audit --selector big-little --json
    dplasso audit --method logistic --epsilon 1

    Exit code: 0 if nothing refutes the claim, 3 if an audit refutes it, 1 if the audit could not be
    run. An audit can refute a claim, never prove one.
    """
    promised = {"mechanism": mechanism, "epsilon": epsilon, "delta": delta, "neighbors": neighbors}
    drawn = {"feature_bound": feature_bound, "selector": selector, "solver": solver}
    settings = AuditSettings(**promised, **drawn)  # type: ignore[arg-type]
    if method not in (names := ("frank-wolfe", "lasso", "logistic")):
        raise ParameterError(f"`method` must be one of {', '.join(names)}, got {method!r}")
    plan = Plan(n_iter, runs, false_alarm)

    def build(n_iter: int) -> Target:
        return estimator_target(replace(settings, n_iter=n_iter))

    build(n_iter)
    started = time.perf_counter()
    if method == "frank-wolfe":
        with output.progress_bars() as bars, bars.stages() as progress:
            report = run_audits(build, plan, progress)
    else:
        for name in ("mechanism", "selector", "solver", "feature_bound"):
            # Only vertices have these.
            if getattr(settings, name) != getattr(AuditSettings, name):
                raise ParameterError(
                    f"`{name}` is not for `method={method}`", advice="leave it out"
                )
        target = weights_target(epsilon=epsilon, delta=delta, neighbors=neighbors, method=method)
        # These fits take longer.
        fewer = max(200, runs // 8)
        with output.progress_bars() as bars, bars.task("canary: noisy gradients") as progress:
            report = audit_weights(target, fewer, false_alarm, progress)
    seconds = time.perf_counter() - started
    document = {**report.to_dict(), "settings": vars(settings), "seconds": seconds}
    exit_code = VIOLATION_FOUND if report.violated else 0
    return output.Result(document, partial(_print, report, seconds), exit_code)


def _print(report: Report, seconds: float) -> None:
    def claimed(finding: Any) -> str:
        name = "eps0" if finding.about == "step" else "epsilon"
        return "-" if finding.about == "randomness" else f"{name} {rounded_up(finding.claimed)}"

    def verdict(finding: Any) -> str:
        consistent = "nothing found" if finding.audited == 0 else "consistent"
        return "VIOLATION" if finding.violated else consistent

    columns: dict[str, Callable[[Any], str]] = {
        "audit": lambda finding: finding.name,
        ">claimed": claimed,
        ">at least": lambda finding: (
            "-" if math.isnan(finding.audited) else f"{finding.audited:.4g}"
        ),
        "verdict": verdict,
    }
    red = {i: "bold red" for i, finding in enumerate(report.findings) if finding.violated}
    output.listing(columns, report.findings, strong=red)
    for finding in report.findings:
        if finding.violated:
            output.text(f"{finding.name}: {finding.detail}.")
    output.text(report.text())
    output.text(f"Done in {seconds:.0f} s.")
