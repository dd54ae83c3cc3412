"""The parts of `make assurance`: which command makes each, and how its figures read on the page."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Figures = dict[str, Any]
# Counts of a part that is a run of tests, from pytest's last line.
_HOUSEKEEPING = ("--json", "-q", "-p", "no:cacheprovider", "-n", "0")
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed)")


@dataclass(frozen=True)
class Part:
    """One piece of evidence.

    Attributes
    ----------
    name : str
        For `--only` and the file of results.
    section : str
        Heading on the page.
    about : str
        What is counted, in a few words.
    command : tuple of str
        Arguments after the interpreter.
    quick : tuple of str
        The same, made small.
    words : callable
        Takes the figures; gives what the page says.
    exit_code : int
        With which the command ends where the part passes.
    pytest : bool
        Whether the command is a run of tests, whose figures are their numbers.
    """

    name: str
    section: str
    about: str
    command: tuple[str, ...]
    quick: tuple[str, ...]
    words: Callable[[Figures], str]
    exit_code: int = 0
    pytest: bool = False

    @property
    def shown(self) -> str:
        """The command as a reader types it."""
        if self.command[:2] == ("-m", "dplasso"):
            return " ".join(self.command[1:])
        words = [word for word in self.command if word not in _HOUSEKEEPING]
        shown = [f"'{word}'" if " " in word else word.replace("{folder}", "DIR") for word in words]
        return " ".join(("python", *shown))


def counts_of(text: str) -> Figures:
    """Read pytest's last line."""
    lines = text.strip().splitlines()
    found = {kind: int(number) for number, kind in _COUNTS.findall(lines[-1] if lines else "")}
    return {"tests": found.get("passed", 0), "passed": set(found) == {"passed"}}


def _randomness(figures: Figures) -> str:
    return (
        f"{figures['words']:,} words from the system's entropy, {figures['tests']} tests; "
        f"smallest p-value {figures['smallest_p_value']:.2g} (alarm below {figures['alarm']:g})"
    )


def _draws(figures: Figures) -> str:
    cases = sum(found["cases"] for found in figures["structures"].values())
    power = max(
        found["p_value_of_an_exponent_a_tenth_off"] for found in figures["structures"].values()
    )
    return (
        f"{figures['draws']:,} vertices by {len(figures['structures'])} structures on {cases} sets "
        f"of gradients; smallest p-value {figures['smallest_p_value']:.2g} (alarm below "
        f"{figures['alarm']:g}). An exponent 10 % off: p below {max(power, 1e-300):.0e}"
    )


def _audit(figures: Figures) -> str:
    def largest(kind: str) -> str:
        found = [f for f in figures["findings"] if f["name"].startswith(kind)]
        if not found:
            return "not run"
        numbers = [(_number(f["audited"]), _number(f["claimed"])) for f in found]
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


def _number(value: Any) -> float:
    """Read a number of the report, where infinity and NaN are words or null."""
    if value is None:
        return math.inf
    return float(value)


def _crashes(figures: Figures) -> str:
    ledger = (
        f", {figures['at_charges']} at a charge; {figures['charged']} fits charged, each once"
        if figures["at_charges"]
        else ""
    )
    return (
        f"{figures['kills']} processes killed, {figures['during_writes']} at a step of a write or "
        f"charge{ledger}; {figures['survived']} of {figures['trials']} fits ended as they should"
    )


def _conversions(figures: Figures) -> str:
    return (
        f"killed at each of {figures['calls']} system calls: {figures['old']} times the old store "
        f"whole, {figures['new']} times the new one, {figures['refused']} times none yet"
    )


def _fuzz(figures: Figures) -> str:
    targets = ", ".join(f"{name} {tally['inputs']:,}" for name, tally in figures["targets"].items())
    refused = sum(tally["refused"] for tally in figures["targets"].values())
    return (
        f"{figures['inputs']:,} spoilt inputs ({figures['by_coverage']:,} by coverage), "
        f"{figures['failed']} failures, {refused:,} refused in one sentence, the others read "
        f"rightly: {targets}"
    )


def _load(figures: Figures) -> str:
    return "; ".join(
        f"{case['about']}, {case['n_rows']:,} rows, {case.get('entries', 0):,} entries: peak "
        f"{case.get('peak_mib', math.inf):,} MiB of {case.get('promised_mib', math.nan):,} promised"
        for case in figures["cases"].values()
    )


def _mutants(figures: Figures) -> str:
    clean = "passes" if figures["unchanged_copy_passes"] else "FAILS"
    return (
        f"{figures['caught']} of {figures['planted']} caught, each by its named test or audit; "
        f"the unchanged code {clean} all of them"
    )


def _tests(figures: Figures) -> str:
    return f"{figures['tests']} tests" + ("" if figures["passed"] else ", not all passed")


_AUDIT = ("-m", "dplasso", "audit", "--json")
_PAPER = (*_AUDIT, "--mechanism", "paper", "--epsilon", "0.1")
_SMALL = ("--runs", "400", "--canaries", "50")
_LEDGER = ("--fit", "charged to a ledger")
_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0")
_STEPS = "tests/evidence/assurance/test_replay.py"
_KILLED = "tests/data/store/killed_conversions.py"


def _run(module: str, *options: str) -> tuple[str, ...]:
    return ("-m", f"assurance.{module}", "--json", *options)


# In the order of the page.
PARTS = (
    Part(
        "randomness",
        "Randomness",
        "random words",
        _run("randomness"),
        _run("randomness", "--words", "65536", "--streams", "16384"),
        _randomness,
    ),
    Part(
        "draws",
        "Randomness",
        "selection distributions",
        _run("draws"),
        _run("draws", "--draws", "20000"),
        _draws,
    ),
    Part(
        "audit-default",
        "Audited bounds against claims",
        "the default, add-remove",
        _AUDIT,
        (*_AUDIT, *_SMALL),
        _audit,
    ),
    Part(
        "audit-replace-one",
        "Audited bounds against claims",
        "the default, replace-one",
        (*_AUDIT, "--neighbors", "replace-one"),
        (*_AUDIT, "--neighbors", "replace-one", *_SMALL),
        _audit,
    ),
    Part(
        "audit-paper",
        "Audited bounds against claims",
        "the paper's mechanism, which must be refuted",
        _PAPER,
        (*_PAPER, *_SMALL),
        _audit,
        exit_code=3,
    ),
    Part(
        "replay",
        "Replay on neighbours",
        "every solver, structure, form, layout and thread count",
        (
            *_PYTEST,
            _STEPS,
            "tests/evidence/assurance/test_refusals.py",
            "tests/training/test_neighbours.py",
        ),
        (*_PYTEST, _STEPS, "-k", "all_neighbours or exact_sum"),
        _tests,
        pytest=True,
    ),
    Part(
        "crashes",
        "Faults injected and survived",
        "fits with checkpoints",
        _run("crashes", "--kills", "200"),
        _run("crashes", "--kills", "5", "--fit", "system entropy"),
        _crashes,
    ),
    Part(
        "ledger-crashes",
        "Faults injected and survived",
        "fits charged to a ledger",
        _run("crashes", "--kills", "200", *_LEDGER),
        _run("crashes", "--kills", "5", *_LEDGER),
        _crashes,
    ),
    Part(
        "ledger-processes",
        "Faults injected and survived",
        "20 processes on one ledger, and killed ones",
        (*_PYTEST, "tests/privacy/ledger/test_processes.py"),
        (*_PYTEST, "tests/privacy/ledger/test_processes.py", "-k", "last_drop"),
        _tests,
        pytest=True,
    ),
    Part(
        "store-crashes",
        "Faults injected and survived",
        "conversions over an old store",
        (_KILLED, "{folder}", "replace"),
        (_KILLED, "{folder}", "new"),
        _conversions,
    ),
    Part(
        "fuzz",
        "Malformed inputs",
        "everything that reads files or arguments",
        _run("fuzz", "--inputs", "100000"),
        _run("fuzz", "--inputs", "300", "--no-coverage"),
        _fuzz,
    ),
    Part(
        "load",
        "Longest and widest runs",
        "to the end, in stated memory",
        _run("load"),
        _run("load", "--case", "longest"),
        _load,
    ),
    Part(
        "mutants",
        "Planted bugs",
        "caught out of planted",
        _run("mutants", "--jobs", "2"),
        _run("mutants", "--fast", "--jobs", "2"),
        _mutants,
    ),
)
