"""Make docs/assurance.md: run all the evidence and write its figures on one page.

    python -m evidence.assurance.report                    # everything: make assurance
    python -m evidence.assurance.report --only fuzz        # one part again; the others as they were
    python -m evidence.assurance.report --quick --out DIR  # a small version, elsewhere

Each part is a command of its own, whose JSON is kept in evidence/results/assurance. Two run at a
time. What was made before is not made again with `--resume`. The exit code is 1 if a part failed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evidence.assurance.parts import PARTS, Part, counts_of
from evidence.benchmarks.machine import describe_machine, installed

ROOT = Path(__file__).resolve().parents[2]
# The longest first, so that no core is left with it at the end.
_LONGEST = ("mutants", "fuzz", "replay", "load")
_PACKAGES = ("numba", "numpy", "scipy", "scikit-learn", "dp-accounting")


def run_part(part: Part, *, quick: bool) -> dict[str, Any]:
    """Run a part and return what is kept of it."""
    began = time.perf_counter()
    places = [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}
    with tempfile.TemporaryDirectory() as folder:
        given = part.quick if quick else part.command
        command = [sys.executable, *(word.replace("{folder}", folder) for word in given)]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    figures: dict[str, Any] = {}
    if part.pytest:
        figures = counts_of(done.stdout)
    elif done.stdout.strip():
        try:
            figures = json.loads(done.stdout)
        except ValueError:
            done.stderr += done.stdout[-500:]
    ended_well = done.returncode == part.exit_code and bool(figures)
    kept = {
        "part": part.name,
        "command": part.shown,
        "passed": bool(ended_well and figures.get("passed", True)),
        "date": datetime.now(UTC).date().isoformat(),
        "version": installed("dplasso"),
        "machine": machine(),
        "seconds": round(time.perf_counter() - began, 1),
        "figures": figures,
    }
    if not kept["passed"]:
        # Of what went wrong only the last line is kept: it names no folder of this machine's.
        print((done.stderr or done.stdout)[-2000:], file=sys.stderr)
        kept["failure"] = f"exit code {done.returncode}"
    return kept


def machine() -> dict[str, Any]:
    """Describe processor, cores, memory and versions; nothing that names the machine."""
    about = describe_machine()
    kept = {name: about[name] for name in ("processor", "cores", "memory_gib", "python")}
    return kept | {"versions": {name: installed(name) for name in _PACKAGES}}


def page(results: dict[str, dict[str, Any]]) -> str:
    """Write the page from the results of all parts; what is missing is said."""
    lines = [
        "# Assurance",
        "",
        "Figures of one run of `make assurance`, which writes this page. What each part means is",
        "in [assurance-cases.md](assurance-cases.md), [audit.md](audit.md),",
        "[checkpoints.md](checkpoints.md), [ledger.md](ledger.md) and",
        "[threat-model.md](threat-model.md). None of it proves privacy: it shows what was tried,",
        "and that what is broken on purpose is noticed.",
        "",
    ]
    if results:
        lines += [_summary(results), ""]
    section = ""
    for part in PARTS:
        if part.section != section:
            section = part.section
            lines += [f"## {section}", "", "| what | figures | command |", "|---|---|---|"]
        kept = results.get(part.name)
        words = "not run" if kept is None else _words(part, kept)
        lines.append(f"| {part.about} | {words} | `{part.shown}` |")
        if part is PARTS[-1] or PARTS[PARTS.index(part) + 1].section != section:
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _words(part: Part, kept: dict[str, Any]) -> str:
    try:
        words = part.words(kept["figures"])
    except (KeyError, TypeError, ValueError):
        words = kept.get("failure", "no figures")
    return words if kept["passed"] else f"**FAILED**: {words}"


def _summary(results: dict[str, dict[str, Any]]) -> str:
    """Say when and on what; parts made at other times or elsewhere are not hidden."""
    passed = sum(kept["passed"] for kept in results.values())
    dates = sorted({kept["date"] for kept in results.values()})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    machines = []
    for kept in results.values():
        about = kept["machine"]
        versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
        line = (
            f"{about['processor']}, {about['cores']} cores, {about['memory_gib']} GiB; dplasso "
            f"{kept['version']}, Python {about['python']}, {versions}"
        )
        if line not in machines:
            machines.append(line)
    missing = f", {len(PARTS) - len(results)} not run yet" if len(results) < len(PARTS) else ""
    minutes = sum(kept["seconds"] for kept in results.values()) / 60
    return (
        f"**{passed} of {len(PARTS)} parts passed{missing}.** {when}; {'; also '.join(machines)}. "
        f"{minutes:.0f} minutes of work, two parts at a time."
    )


def read_results(folder: Path) -> dict[str, dict[str, Any]]:
    """Read what was kept of each part."""
    found = {}
    for part in PARTS:
        path = folder / f"{part.name}.json"
        if path.exists():
            found[part.name] = json.loads(path.read_text())
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code is 1 if a part that was run has failed."""
    parser = argparse.ArgumentParser(
        prog="python -m evidence.assurance.report", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    names = [part.name for part in PARTS]
    parser.add_argument("--only", action="append", choices=names, help="only this part")
    parser.add_argument("--resume", action="store_true", help="leave out what is there and passed")
    parser.add_argument("--quick", action="store_true", help="small; needs --out")
    parser.add_argument("--out", type=Path, metavar="DIR", help="results and page go here")
    parser.add_argument("--jobs", type=int, default=2, help="parts at a time")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    given = parser.parse_args(arguments)
    if given.quick and given.out is None:
        parser.error("--quick needs --out: its figures are too small for the page")
    folder = given.out or ROOT / "assurance" / "results"
    target = given.out / "assurance.md" if given.out else ROOT / "docs" / "assurance.md"
    folder.mkdir(parents=True, exist_ok=True)
    before = read_results(folder)
    chosen = [part for part in PARTS if given.only is None or part.name in given.only]
    if given.resume:
        chosen = [part for part in chosen if not before.get(part.name, {}).get("passed")]
    if given.page:
        chosen = []
    chosen.sort(key=lambda part: _LONGEST.index(part.name) if part.name in _LONGEST else 99)

    def run(part: Part) -> bool:
        print(f"{part.name}: begun", file=sys.stderr, flush=True)
        kept = run_part(part, quick=given.quick)
        (folder / f"{part.name}.json").write_text(json.dumps(kept, indent=1) + "\n")
        verdict = "passed" if kept["passed"] else "FAILED"
        print(f"{part.name}: {verdict}, {kept['seconds']:.0f} s", file=sys.stderr, flush=True)
        return bool(kept["passed"])

    with ThreadPoolExecutor(max(1, given.jobs)) as pool:
        passed = all(list(pool.map(run, chosen)))
    target.write_text(page(read_results(folder)))
    print(f"written: {target.name}", file=sys.stderr)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
