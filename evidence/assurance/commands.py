"""Parts that are commands of their own: runs of tests, audits."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from evidence.cells import Cell, failed
from evidence.items import ROOT, Item, Recipe, Settings

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0")
AUDIT = ("-m", "evidence.audit")
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed)")
_KEPT_FROM_ERRORS = 2000
Figures = dict[str, Any]


@dataclass(frozen=True)
class Command:
    """A command: arguments after the interpreter, and how what it prints reads on the page.

    `exit_code` is the one with which it ends where the part passes. ``{folder}`` among the
    arguments stands for an empty folder.
    """

    name: str
    about: str
    arguments: tuple[str, ...]
    quick: tuple[str, ...]
    words: Callable[[Figures], str]
    exit_code: int = 0
    weight: float = 1.0


def run_command(arguments: tuple[str, ...], exit_code: int) -> Figures:
    """Run a command and return the figures it printed: one JSON object, or pytest's last line."""
    places = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, *(word.replace("{folder}", folder) for word in arguments)]
        ways: dict[str, Any] = {"cwd": ROOT, "env": environment, "check": False}
        done = subprocess.run(words, capture_output=True, text=True, **ways)
    try:
        figures = counts_of(done.stdout) if "pytest" in arguments else json.loads(done.stdout)
    except ValueError:
        figures = {}
    right = done.returncode == exit_code and figures.get("passed", True)
    if right and figures:
        return {**figures, "passed": True}
    # Only the exit code is kept: the text may name folders of this machine.
    print((done.stderr or done.stdout)[-_KEPT_FROM_ERRORS:], file=sys.stderr)
    if figures:
        return {**figures, "passed": False}
    return {"failure": f"exit code {done.returncode}"}


def counts_of(text: str) -> Figures:
    """Read pytest's last line."""
    lines = text.strip().splitlines()
    found = {kind: int(number) for number, kind in _COUNTS.findall(lines[-1] if lines else "")}
    return {"tests": found.get("passed", 0), "passed": set(found) == {"passed"}}


def _cells(command: Command, settings: Settings) -> list[Cell]:
    arguments = command.quick if settings.quick else command.arguments
    measure = partial(run_command, arguments, command.exit_code)
    parameters = {"command": " ".join(arguments)}
    cell = Cell(command.name, "", measure, parameters, weight=command.weight, apart=True)
    return [cell]


def _present(command: Command, _settings: Settings, results: list[Any]) -> Item:
    (found,) = results
    words = found.get("failure") or command.words(found)
    return Item(command.name, command.about, ("FAILED.", words) if failed(found) else (words,))


def recipe_of(command: Command) -> Recipe:
    return Recipe(partial(_cells, command), partial(_present, command))


def audit_words(figures: Figures) -> str:
    """Return an audit's verdict and its largest bounds."""

    def largest(kind: str) -> str:
        found = [f for f in figures["findings"] if f["name"].startswith(kind)]
        if not found:
            return "not run"
        # Infinity and NaN are words or null.
        numbers = [
            tuple(float("inf" if f[key] is None else f[key]) for key in ("audited", "claimed"))
            for f in found
        ]
        audited, claimed = max(numbers, key=lambda pair: pair[0] / pair[1])
        return f"{audited:.4g} of {claimed:.4g}"

    bounds = ", ".join(
        f"{label} {largest(kind)}"
        for label, kind in (
            ("exact step", "exact step"),
            ("exact fit", "exact fit"),
            ("black box", "canary: whole fits"),
            ("public estimator", "canary: public"),
            ("one step", "canary: one step"),
            ("one run", "one"),
        )
    )
    return f"**{figures['verdict']}**; audited of claimed: {bounds}"


def conversion_words(figures: Figures) -> str:
    return (
        f"killed at each of {figures['calls']} system calls: {figures['old']} times the old store "
        f"whole, {figures['new']} times the new one, {figures['refused']} times none yet"
    )


def recorder_words(figures: Figures) -> str:
    """Return how much was compared, and how near to its sensitivity a statistic moved."""
    return (
        f"{figures['cases']} cases, {figures['pairs']:,} pairs, {figures['fits']:,} fits, "
        f"{figures['statistics']:,} statistics compared: {figures['violations']} moved further "
        f"than their sensitivity; the largest part of it: {figures['largest']:.4f}"
    )


def isolation_words(figures: Figures) -> str:
    """Return how much was compared, to the last bit."""
    return (
        f"{figures['trials']} random configurations, {figures['runs']:,} fits, scores and releases "
        f"of edges, {figures['statistics']:,} numbers before their noise and {figures['parts']:,} "
        f"files and texts compared to the bit: {figures['failed']} configurations differ"
    )


def tests_words(figures: Figures) -> str:
    return f"{figures['tests']} tests" + ("" if figures["passed"] else ", not all passed")


def round_trips_words(figures: Figures) -> str:
    """Return how many generated schemas and tables were encoded and predicted alike."""
    return (
        f"{figures['check_matrices']:,} schemas and tables encoded alike, however they are read; "
        f"{figures['check_predictions']:,} predicted alike from raw and from encoded rows"
    )
