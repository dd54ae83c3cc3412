"""Plant bugs in a copy of the package, and see that the named tests catch them.

    python -m evidence assurance/mutants                 # all of them
    python -m evidence assurance/mutants --fast          # those that take seconds together
    python -m evidence assurance/mutants --only WORDS    # those whose name contains WORDS

Each mutant is a piece of a function and what replaces it (``planted.toml``). The function is found
by its name in whatever file it stands, and the piece in it whatever its layout; together they must
fit exactly one place of the package. The package is copied to a temporary folder, the piece is
replaced there, and the named test runs against the copy in a process of its own. The mutant is
*caught* if the test fails by an assertion, *missed* if it passes, and *broken* if anything else
happens: a mutant that merely stops the program proves nothing about the test. The same tests must
pass on an unchanged copy.

The broken implementations of ``tests/audit/mutants.py`` are in the same count: each is audited, and
caught if its test sees the audit refute the claim.
"""

import ast
import contextlib
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import textwrap
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy

from evidence.items import ROOT

SOURCE = ROOT / "src" / "dplasso"
TITLE = "caught out of planted"
QUICK = {"fast": True}
_PLANTED = tomllib.loads(Path(__file__).with_name("planted.toml").read_text())
LIMIT_SECONDS = 300.0
# Imported before processes fork off, since they take most of a second each.
_HEAVY = ("numba", "scipy.stats", "scipy.sparse", "sklearn.utils.validation", "pytest")
_HEAVY += ("joblib", "dp_accounting.rdp")


@dataclass(frozen=True)
class Mutant:
    """A bug to plant; planted.toml says what the fields are."""

    name: str
    area: str
    planted: str
    within: str
    find: str
    replace: str
    test: str
    compiled: bool = False
    fast: bool = False


SOUND: tuple[str, ...] = tuple(_PLANTED.pop("sound"))
AUDITED: tuple[dict[str, Any], ...] = tuple(
    {"name": name, **entry} for name, entry in _PLANTED.pop("audit").items()
)
MUTANTS = tuple(
    Mutant(name, area, **entry)
    for area, entries in _PLANTED.items()
    for name, entry in entries.items()
)
# What takes longest begins first; a selection is all that the small version plants.
WEIGHTS = {"step": 4.0, "selection": 4.0, "leak": 3.0, "audit": 2.0}


@dataclass
class Outcome:
    """How the named test ended on one copy of the package: caught, missed or broken, and why."""

    verdict: str
    seconds: float = 0.0
    words: str = ""


@dataclass(eq=False)  # pytest hashes plugins
class _Watch:
    """A pytest plugin that notes how tests fail."""

    passed: int = 0
    asserted: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            self.passed += 1

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        import pytest

        # What follows the first line may name folders of this machine.
        first = call.excinfo.exconly().partition("\n")[0]
        words = f"{node.name}: {first}"[:400]
        by_assertion = call.excinfo.errisinstance((AssertionError, pytest.fail.Exception))
        if getattr(report, "when", "collect") == "call" and by_assertion:
            self.asserted.append(words)
        else:
            self.other.append(words)

    def verdict(self) -> tuple[str, str]:
        if self.other:
            return "broken", self.other[0]
        if self.asserted:
            return "caught", self.asserted[0]
        return ("missed", "") if self.passed else ("broken", "no test ran")


def named_parts(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the names of a module with their first and last lines: a constant, f, C and C.f."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, *_lines(node)
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", *_lines(inner)
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, *_lines(node)


def _lines(node: Any) -> tuple[int, int]:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)]), node.end_lineno


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


@cache
def _package() -> dict[str, list[tuple[Path, int, int]]]:
    """Return where each name of the package stands: in which files, from offset to offset."""
    places = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for name, first, last in named_parts(text):
            places[name].append((path, starts[first - 1], starts[last]))
    return dict(places)


def mutated(mutant: Mutant) -> tuple[str, str]:
    """Return a file of the package and its text with the bug in it.

    Raises ValueError if the bug does not fit exactly one place.
    """
    # Whole words and signs, whatever white space there is between them.
    pieces = re.findall(r"\w+|[^\w\s]", mutant.find)
    pattern = re.compile(
        r"\s*".join(
            rf"\b{one}\b" if one[0].isalnum() or one[0] == "_" else re.escape(one) for one in pieces
        )
    )
    found = [
        (path, match)
        for path, first, last in _package().get(mutant.within, [])
        for match in pattern.finditer(path.read_text(), first, last)
    ]
    if len(found) != 1:
        raise ValueError(
            f"mutant {mutant.name!r}: its text occurs {len(found)} times in {mutant.within} "
            "of the package, not once"
        )
    ((path, match),) = found
    text = path.read_text()
    line = text[text.rfind("\n", 0, match.start()) + 1 :]
    put_in = textwrap.dedent(mutant.replace.strip("\n"))
    indent = _indent(line) - _indent(put_in)
    changed = text[: match.start()] + put_in.lstrip().replace("\n", "\n" + " " * indent)
    changed += text[match.end() :]
    return str(path.relative_to(SOURCE)), changed


@contextlib.contextmanager
def copied_package(mutant: Mutant | None) -> Iterator[Path]:
    """Copy the package to a folder that can stand first on the path, with the bug if given."""
    with tempfile.TemporaryDirectory(prefix="dplasso-mutant-") as folder:
        target = Path(folder) / "dplasso"
        # Bytecode is of its source's time and size; kernels, which are not, are compiled anew.
        shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("*.nb[ci]", "*.stamp"))
        if mutant is not None:
            path, text = mutated(mutant)
            (target / path).write_text(text)
        yield Path(folder)


def _run_tests(folder: Path, scratch: Path, tests: list[str], compiled: bool, answer: Any) -> None:
    """Run tests against the package in `folder`; the body of a forked process."""
    log = os.open(scratch / "log.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(ROOT)
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = str(folder)
    # Failing examples found in a mutant are not worth keeping.
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(scratch / "hypothesis")
    os.environ["NUMBA_CACHE_DIR"] = str(scratch / "kernels")
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
        os.environ.pop(name, None)
    import pytest

    watch = _Watch()
    try:
        if not compiled:
            # Compiling a solver takes tens of seconds, a test on 18 rows of plain Python one.
            os.environ["NUMBA_DISABLE_JIT"] = "1"
            import numba

            numba.config.DISABLE_JIT = True
            # Kernels wrap around and cast in silence.
            numpy.seterr(over="ignore", invalid="ignore")
        import dplasso

        assert Path(dplasso.__file__).is_relative_to(folder), dplasso.__file__
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
        pytest.main([*options, *tests], plugins=[watch])
        answer.send(watch.verdict())
    except BaseException as error:
        answer.send(("broken", repr(error)))
    # Not sys.exit: what the parent had set up is not this process's to tear down.
    os._exit(0)


def run_tests(mutant: Mutant | None, tests: Iterable[str], compiled: bool) -> Outcome:
    """Run tests on a copy of the package, with a bug or without; kernels as plain Python or not."""
    with copied_package(mutant) as folder:
        return _in_fork(folder, folder, list(tests), compiled)


def _in_fork(folder: Path, scratch: Path, tests: list[str], compiled: bool) -> Outcome:
    for name in _HEAVY:
        import_module(name)
    began = time.perf_counter()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    given = (folder, scratch, tests, compiled, sender)
    process = context.Process(target=_run_tests, args=given)
    process.start()
    sender.close()
    verdict, words = "broken", f"no answer in {LIMIT_SECONDS:.0f} seconds"
    if receiver.poll(LIMIT_SECONDS):
        with contextlib.suppress(EOFError):
            verdict, words = receiver.recv()
    process.join(5.0)
    if process.is_alive():
        process.kill()
        process.join()
    return Outcome(verdict, round(time.perf_counter() - began, 2), words)


def run_audit(test: str) -> Outcome:
    """Run a test of an audit on the package as it is: "missed" if it passes."""
    with tempfile.TemporaryDirectory() as scratch:
        return _in_fork(SOURCE.parent, Path(scratch), [test], compiled=True)


def run_controls(mutants: Iterable[Mutant]) -> dict[str, Outcome]:
    """Run the mutants' tests on an unchanged copy; all of them should come out "missed"."""
    outcomes = {}
    chosen = list(mutants)
    for compiled in (False, True):
        tests = sorted({mutant.test for mutant in chosen if mutant.compiled == compiled})
        if tests:
            outcomes["compiled" if compiled else "interpreted"] = run_tests(None, tests, compiled)
    return outcomes


def split(*, fast: bool = False, only: str = "", area: str = "") -> dict[str, dict[str, Any]]:
    """Return one cell for each area, or one for a selection."""
    if fast or only or area:
        return {"selection": {"fast": fast, "only": only, "area": area}}
    areas = [*dict.fromkeys(mutant.area for mutant in MUTANTS), "audit"]
    return {area: {"fast": False, "only": "", "area": area} for area in areas}


def measure(*, fast: bool, only: str, area: str) -> dict[str, Any]:
    """Plant mutants of an area, or all, and run their tests."""
    began = time.perf_counter()
    chosen = [
        mutant
        for mutant in MUTANTS
        if (mutant.fast or not fast) and only in mutant.name and area in ("", mutant.area)
    ]
    audited = [
        entry
        for entry in AUDITED
        if (entry.get("fast") or not fast) and only in entry["name"] and area in ("", "audit")
    ]
    controls = run_controls(chosen)
    entries = []
    for mutant in chosen:
        outcome = run_tests(mutant, [mutant.test], mutant.compiled)
        about = {key: getattr(mutant, key) for key in ("name", "area", "planted", "test")}
        entries.append(about | vars(outcome))
    # A broken thing is caught where the test passes that sees it refuted.
    turned = {"missed": "caught", "caught": "missed"}
    for entry in audited:
        about = {key: entry[key] for key in ("name", "planted", "test")} | {"area": "audit"}
        outcome = run_audit(entry["test"])
        entries.append(about | vars(outcome) | {"verdict": turned.get(outcome.verdict, "broken")})
    if audited and not fast:
        controls |= {test: run_audit(test) for test in SOUND}
    clean = all(outcome.verdict == "missed" for outcome in controls.values())
    caught = [entry["verdict"] for entry in entries].count("caught")
    return {
        "planted": len(entries),
        "caught": caught,
        "unchanged_copy_passes": clean,
        "controls": {name: vars(outcome) for name, outcome in controls.items()},
        "passed": clean and caught == len(entries) > 0,
        "seconds": round(time.perf_counter() - began, 1),
        "mutants": entries,
    }


def section(results: list[dict[str, Any]]) -> list[str]:
    """Return the counts, and what was not caught."""
    clean = "passes" if all(one["unchanged_copy_passes"] for one in results) else "FAILS"
    parts = [
        f"{sum(one['caught'] for one in results)} of {sum(one['planted'] for one in results)} "
        "caught, each by its named test or audit; "
        f"the unchanged code {clean} all of them"
    ]
    for one in results:
        for name, told in one["controls"].items():
            if told["verdict"] != "missed":
                parts.append(f"unchanged, {name}: {told['verdict']} {told['words']}")
        parts += [
            f"{entry['verdict']}: {entry['name']}: {entry['words']}"
            for entry in one["mutants"]
            if entry["verdict"] != "caught"
        ]
    return parts
