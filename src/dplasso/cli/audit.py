"""``dplasso audit``: try to refute the privacy claim, and say how hard it was tried."""

import math
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from dplasso.cli import options
from dplasso.cli.output import Bars, json_safe, out, print_json, progress_bars, uninterrupted

if TYPE_CHECKING:
    from dplasso.audit import Outcome, Report

# Not 1, which is any failure to audit at all, and not 2, which is a misspelt command line.
VIOLATION_FOUND = 3
FILES = {"report": "audit.json", "picture": "audit.png"}
AUDIT = "Audit"

EXAMPLES = options.examples(
    "dplasso audit",
    "dplasso audit --epsilon 0.5 --neighbors replace-one --out audit",
    "dplasso audit --mechanism paper --epsilon 0.1",
    "dplasso audit --method exact --selector big-little --json",
    note="Exit code: 0 if nothing refutes the claim, 3 if an audit refutes it, 1 if the audit could"
    " not be made. An audit can refute a claim, never prove one.",
)


def audit(
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-6,
    neighbors: options.Neighbors = "add-remove",
    feature_bound: options.FeatureBound = 1.0,
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism",
            metavar="NAME",
            help="exponential, or paper: the published step, whose claim does not hold.",
            rich_help_panel=options.PRIVACY,
        ),
    ] = "exponential",
    n_iter: Annotated[
        int,
        typer.Option(
            "--n-iter",
            metavar="T",
            help="Steps of the whole fits that are attacked.",
            rich_help_panel=options.MODEL,
        ),
    ] = 10,
    selector: Annotated[
        str,
        typer.Option(
            "--selector",
            metavar="NAME",
            help="Structure that draws: bucket, big-little or noisy-max.",
            rich_help_panel=options.MODEL,
        ),
    ] = "bucket",
    solver: Annotated[
        str,
        typer.Option(
            "--solver",
            metavar="NAME",
            help="sparse or standard.",
            rich_help_panel=options.MODEL,
        ),
    ] = "sparse",
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="exact (all neighbours and transcripts of small fits), canary (many fits on two "
            "neighbours), one-run (many canaries in one fit) or all.",
            rich_help_panel=AUDIT,
        ),
    ] = "all",
    runs: Annotated[
        int,
        typer.Option(
            "--runs",
            metavar="N",
            help="Fits on each of the canary's two data sets.",
            rich_help_panel=AUDIT,
        ),
    ] = 10_000,
    canaries: Annotated[
        int,
        typer.Option(
            "--canaries",
            metavar="M",
            help="Canaries of the one-run audit.",
            rich_help_panel=AUDIT,
        ),
    ] = 1000,
    false_alarm: Annotated[
        float,
        typer.Option(
            "--false-alarm",
            metavar="A",
            help="Probability of calling a true claim violated, all audits together.",
            rich_help_panel=AUDIT,
        ),
    ] = 5e-4,
    output: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            show_default=False,
            help="Write audit.json and the attack's ROC curve, audit.png, here.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Try to refute the privacy claim by attacking the implementation.

    Exit code 3 if the claim is refuted, 0 if not.
    """
    from dplasso.audit import METHODS, Plan, run_audits
    from dplasso.audit.targets import AuditSettings, builder
    from dplasso.cli.files import check_directory

    settings = AuditSettings(
        mechanism=mechanism,
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
        feature_bound=feature_bound,
        selector=selector,
        solver=solver,
    )
    methods = METHODS if method == "all" else (method,)
    plan = Plan(methods, n_iter, runs, canaries, false_alarm)
    build = builder(settings)
    build(n_iter, public=True)
    if output is not None:
        check_directory(output, FILES.values())
    started = time.perf_counter()
    with progress_bars() as bars, ExitStack() as stack:
        outcome = run_audits(build, plan, _Tasks(bars, stack))
    seconds = time.perf_counter() - started
    document = {**outcome.report.to_dict(), "settings": vars(settings), "seconds": seconds}
    files = {} if output is None else _write(output, outcome, document)
    if as_json:
        print_json({**document, "files": files})
    else:
        _print(outcome.report, files, seconds)
    if outcome.report.violated:
        raise typer.Exit(VIOLATION_FOUND)


class _Tasks:
    """One progress bar per audit, opened when it first reports."""

    def __init__(self, bars: Bars, stack: ExitStack) -> None:
        self._bars = bars
        self._stack = stack
        self._updates: dict[str, Any] = {}

    def __call__(self, name: str, done: int, total: int) -> None:
        if name not in self._updates:
            self._updates[name] = self._stack.enter_context(self._bars.task(name))
        self._updates[name](done, total)


def _write(directory: Path, outcome: "Outcome", document: dict[str, Any]) -> dict[str, Path]:
    import json

    from dplasso.cli.files import write_text
    from dplasso.files.atomic import atomic_write

    picture = None
    if outcome.roc is not None and outcome.attack is not None:
        from dplasso.audit.plot import audit_picture

        picture = audit_picture(outcome.roc, outcome.attack)
    text = json.dumps(json_safe(document), indent=2, allow_nan=False) + "\n"
    with uninterrupted():
        directory.mkdir(parents=True, exist_ok=True)
        files = {"report": directory / FILES["report"]}
        write_text(files["report"], text)
        if picture is not None:
            files["picture"] = directory / FILES["picture"]
            with atomic_write(files["picture"]) as file:
                file.write(picture)
    return files


def _print(report: "Report", files: dict[str, Path], seconds: float) -> None:
    table = Table()
    table.add_column("audit")
    table.add_column("claimed", justify="right")
    table.add_column("at least", justify="right")
    table.add_column("verdict")
    for finding in report.findings:
        audited = "-" if math.isnan(finding.audited) else f"{finding.audited:.4g}"
        if finding.audited == 0:
            audited = "nothing found"
        claimed = "eps0" if finding.about == "step" else "epsilon"
        table.add_row(
            finding.name,
            "-" if finding.about == "randomness" else f"{claimed} {finding.claimed:.4g}",
            audited,
            "VIOLATION" if finding.violated else "consistent",
            style="bold red" if finding.violated else None,
        )
    out.print(table)
    for finding in report.findings:
        if finding.violated:
            out.print(f"{finding.name}: {finding.detail}.", markup=False, highlight=False)
    out.print(report.text(), markup=False, highlight=False)
    written = f" Written: {', '.join(map(str, files.values()))}" if files else ""
    out.print(f"Done in {seconds:.0f} s.{written}", markup=False, highlight=False)
