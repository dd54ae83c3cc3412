"""``dplasso audit``: try to refute the privacy claim, and say how hard it was tried."""

import json
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dplasso.audit import (
    METHODS,
    AuditSettings,
    Outcome,
    Plan,
    Report,
    audit_weights,
    builder,
    run_audits,
    weights_target,
)
from dplasso.audit.black_box import Roc
from dplasso.audit.claims import Finding, allowed_power
from dplasso.cli import output
from dplasso.errors import ParameterError, missing
from dplasso.privacy.wording import rounded_up
from dplasso.report.bars import BLUE, QUIET, RED, png_of, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Not 1, which is any failure to audit at all, and not 2, which is a misspelt command line.
VIOLATION_FOUND = 3
FILES = {"report": "audit.json", "picture": "audit.png"}
# Rates from fewer runs than this are mostly chance; the logarithmic axes end there.
_FEWEST_RUNS_SHOWN = 30


def audit(
    epsilon: float = 1.0,
    delta: float = 1e-6,
    neighbors: str = "add-remove",
    feature_bound: float = 1.0,
    mechanism: str = "exponential",
    n_iter: int = 10,
    selector: str = "bucket",
    solver: str = "sparse",
    method: str = "all",
    runs: int = 4_000,
    canaries: int = 1000,
    false_alarm: float = 5e-4,
    out: Path | None = None,
) -> output.Result:
    """Try to refute the privacy claim by attacking the implementation.

    Exit code 3 if the claim is refuted, 0 if not.

    Model
    -----
    n_iter : T
        Steps of the whole fits that are attacked.

    Audit
    -----
    method : NAME
        canary (many fits on two neighbours), one-run (many canaries in one fit) or all. lasso,
        logistic: a canary in whole fits of that method that release noisy gradients.
    runs : N
        Fits on each of the canary's two data sets.
    canaries : M
        Canaries of the one-run audit.
    false_alarm : A
        Probability of calling a true claim violated, all audits together.

    Output
    ------
    out : DIR
        Write audit.json and the attack's ROC curve, audit.png, here.

    Examples
    --------
    dplasso audit
    dplasso audit --epsilon 0.5 --neighbors replace-one --out audit
    dplasso audit --mechanism paper --epsilon 0.1
    dplasso audit --method canary --selector big-little --json
    dplasso audit --method logistic --epsilon 1

    Exit code: 0 if nothing refutes the claim, 3 if an audit refutes it, 1 if the audit could not be
    run. An audit can refute a claim, never prove one.
    """
    promised = {"mechanism": mechanism, "epsilon": epsilon, "delta": delta, "neighbors": neighbors}
    drawn = {"feature_bound": feature_bound, "selector": selector, "solver": solver}
    settings = AuditSettings(**promised, **drawn)  # type: ignore[arg-type]
    whole = method in ("lasso", "logistic")
    methods = METHODS if method == "all" or whole else (method,)
    plan = Plan(methods, n_iter, runs, canaries, false_alarm)
    build = builder(settings)
    build(n_iter)
    attack = _weights_attack(settings, plan, method) if whole else partial(run_audits, build, plan)
    if out is not None:
        output.check_directory(out, FILES.values())
    started = time.perf_counter()
    with output.progress_bars() as bars, bars.stages() as progress:
        outcome = attack(progress)
    seconds = time.perf_counter() - started
    document = {**outcome.report.to_dict(), "settings": vars(settings), "seconds": seconds}
    files = {} if out is None else _write(out, outcome, document)
    show = partial(_print, outcome.report, files, seconds)
    exit_code = VIOLATION_FOUND if outcome.report.violated else 0
    return output.Result({**document, "files": files}, show, exit_code)


def _weights_attack(
    settings: AuditSettings, plan: Plan, method: str
) -> Callable[[Callable[[str, int, int], None]], Outcome]:
    """Return the audit of whole fits by a weight; refuse what only vertices have."""
    for name in ("mechanism", "selector", "solver", "feature_bound"):
        if getattr(settings, name) != getattr(AuditSettings, name):
            raise ParameterError(f"`{name}` does not go with `method={method}`")
    asked = {name: getattr(settings, name) for name in ("epsilon", "delta", "neighbors")}
    claim, fit = weights_target(**asked, method=method)
    # These fits take longer.
    runs = max(200, plan.runs // 8)
    return lambda progress: audit_weights(
        claim, fit, runs, plan.false_alarm, partial(progress, "canary: noisy gradients")
    )


def _write(directory: Path, outcome: Outcome, document: dict[str, Any]) -> dict[str, Path]:
    report = json.dumps(output.json_safe(document), indent=2, allow_nan=False) + "\n"
    contents: dict[str, str | bytes] = {"report": report}
    if outcome.roc is not None and outcome.attack is not None:
        if undrawn := missing("matplotlib", "The picture"):
            output.note(undrawn)
        else:
            contents["picture"] = audit_picture(outcome.roc, outcome.attack)
    files = {name: directory / FILES[name] for name in contents}
    with output.uninterrupted():
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            output.write_file(files[name], content)
    return files


def _print(report: Report, files: dict[str, Path], seconds: float) -> None:
    def claimed(one: Any) -> str:
        name = "eps0" if one.about == "step" else "epsilon"
        return "-" if one.about == "randomness" else f"{name} {rounded_up(one.claimed)}"

    def verdict(one: Any) -> str:
        consistent = "nothing found" if one.audited == 0 else "consistent"
        return "VIOLATION" if one.violated else consistent

    columns: dict[str, Callable[[Any], str]] = {
        "audit": lambda one: one.name,
        ">claimed": claimed,
        ">at least": lambda one: "-" if math.isnan(one.audited) else f"{one.audited:.4g}",
        "verdict": verdict,
    }
    found = {i: "bold red" for i, finding in enumerate(report.findings) if finding.violated}
    output.listing(columns, report.findings, strong=found)
    for finding in report.findings:
        if finding.violated:
            output.text(f"{finding.name}: {finding.detail}.")
    output.text(report.text())
    written = f" Written: {', '.join(map(str, files.values()))}" if files else ""
    output.text(f"Done in {seconds:.0f} s.{written}")


def audit_picture(roc: Roc, finding: Finding) -> bytes:
    """Return a PNG image of an attack's ROC curve and the region that the claim rules out."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 7.4), layout="constrained")
    verdict = "VIOLATION" if finding.violated else "consistent with the claim"
    found = f"audited at least {finding.audited:.3g}: {verdict}"
    if finding.audited == 0:
        found = "the attack found nothing"
    figure.suptitle(
        f"{finding.name}: claimed epsilon {finding.claimed:g} (delta {finding.delta:g}), {found}",
        fontsize=15,
        fontweight="bold",
    )
    left, right = figure.subplots(1, 2)
    _draw(left, roc, finding, np.linspace(0.0, 1.0, 1001))
    left.set_aspect("equal", anchor="N")
    left.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    left.legend(loc="lower right", fontsize=10.5)
    least = _FEWEST_RUNS_SHOWN / min(finding.figures["trials"])
    _draw(right, roc, finding, np.geomspace(least, 1.0, 1001))
    right.set(xscale="log", yscale="log", xlim=(least, 1.1), ylim=(least, 1.1))
    titles = (
        f"{finding.figures['runs']:,} fits; the event was chosen on other runs than these",
        f"the same, logarithmic, down to {_FEWEST_RUNS_SHOWN} runs",
    )
    for axes, title in zip((left, right), titles, strict=True):
        axes.set_title(title, fontsize=12, loc="left")
        axes.set_xlabel("false positive rate (unlikely data set)")
        axes.set_ylabel("true positive rate (likely data set)")
        tidy(axes)
    return png_of(figure)


def _draw(axes: "Axes", roc: Roc, finding: Finding, rate: NDArray[np.float64]) -> None:
    allowed = allowed_power(rate, finding.claimed, finding.delta)
    axes.fill_between(rate, allowed, 1.0, color=BLUE, alpha=0.12, linewidth=0)
    axes.plot(rate, allowed, color=BLUE, linewidth=2, label="most that the claim allows")
    axes.plot(rate, rate, color=QUIET, linewidth=1, linestyle=":", label="guessing")
    if finding.audited > 0:
        bound = allowed_power(rate, finding.audited, finding.delta)
        label = f"epsilon {finding.audited:.3g}, the audited bound"
        axes.plot(rate, bound, color=RED, linewidth=1.2, linestyle="--", label=label)
    attack = roc.false_positive_rate, roc.true_positive_rate
    axes.plot(*attack, color=RED, linewidth=2.2, label="the attack")
    chosen = roc.chosen
    axes.errorbar(
        [chosen["rate"]],
        [chosen["power"]],
        xerr=[[0.0], [chosen["rate_bound"] - chosen["rate"]]],
        yerr=[[chosen["power"] - chosen["power_bound"]], [0.0]],
        color="black",
        marker="o",
        markersize=6,
        capsize=4,
        linewidth=1.4,
        label="the event tested, with its bounds",
        zorder=5,
    )
