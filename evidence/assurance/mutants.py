"""Plant bugs in a copy of the package, and see that the named tests catch them.

    python -m evidence.assurance.mutants                 # all of them
    python -m evidence.assurance.mutants --fast --json   # those that take seconds together
    python -m evidence.assurance.mutants --list

Each mutant is a piece of source text and what replaces it (`assurance.mutant_list`). The package is
copied to a temporary folder, the text is replaced there (it must occur exactly once), and the named
test runs against the copy in a process of its own. The mutant is *caught* if the test fails by an
assertion, *missed* if it passes, and *broken* if anything else happens: a mutant that merely stops
the program proves nothing about the test. The same tests must pass on an unchanged copy.

The broken implementations of `assurance.audit_mutants` are in the same count: each is audited, and
caught if the audit refutes its claim.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "dplasso"
LIMIT_SECONDS = 300.0
# Imported before processes fork off, since they take most of a second each.
_HEAVY = ("numba", "scipy.stats", "scipy.sparse", "sklearn.utils.validation", "pytest")
_HEAVY += ("joblib", "dp_accounting.rdp")


@dataclass(frozen=True)
class Mutant:
    """A bug to plant.

    Attributes
    ----------
    name : str
        In a few words.
    area : {"step", "leak", "accounting", "randomness", "selection", "integrity"}
        What it breaks.
    planted : str
        What the code then does.
    file : str
        Below `src/dplasso`.
    find, replace : str
        Source text, which occurs exactly once, and what stands there instead.
    test : str
        The pytest node that has to fail.
    compiled : bool
        Run the test with compiled kernels: slow, for tests of very many draws.
    fast : bool
        Belongs to the selection that every run of the test suite makes.
    """

    name: str
    area: str
    planted: str
    file: str
    find: str
    replace: str
    test: str
    compiled: bool = False
    fast: bool = False


@dataclass
class Outcome:
    """How the named test ended on one copy of the package.

    Attributes
    ----------
    verdict : {"caught", "missed", "broken"}
        See the module's text; on an unchanged copy "missed" is what should come out.
    seconds : float
        Wall-clock time.
    words : str
        The first error.
    """

    verdict: str
    seconds: float = 0.0
    words: str = ""


@dataclass
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

        words = f"{node.name}: {call.excinfo.exconly()}"[:400]
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


def mutate(text: str, mutant: Mutant) -> str:
    """Return the source text with the bug in it.

    Raises
    ------
    ValueError
        If what the mutant replaces does not occur exactly once.
    """
    found = text.count(mutant.find)
    if found != 1:
        raise ValueError(
            f"mutant {mutant.name!r}: its text occurs {found} times in {mutant.file}, not once"
        )
    return text.replace(mutant.find, mutant.replace)


@contextlib.contextmanager
def copied_package(mutant: Mutant | None) -> Iterator[Path]:
    """Copy the package to a folder that can stand first on the path, with the bug if given."""
    with tempfile.TemporaryDirectory(prefix="dplasso-mutant-") as folder:
        target = Path(folder) / "dplasso"
        shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            path = target / mutant.file
            path.write_text(mutate(path.read_text(), mutant))
        yield Path(folder)


def _run_tests(folder: str, tests: list[str], compiled: bool, answer: Any) -> None:
    """Run tests against the package in `folder`; the body of a forked process."""
    log = os.open(Path(folder) / "log.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(ROOT)
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = folder
    # Failing examples found in a mutant are not worth keeping.
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(Path(folder) / "hypothesis")
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "NUMBA_CACHE_DIR"):
        os.environ.pop(name, None)
    import pytest

    watch = _Watch()
    try:
        if not compiled:
            os.environ["NUMBA_DISABLE_JIT"] = "1"
            from evidence.assurance.interpreted import interpret

            interpret()
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
    """Run tests on a copy of the package, with a bug or without.

    Parameters
    ----------
    mutant : Mutant or None
        The bug; None for an unchanged copy.
    tests : iterable of str
        Pytest nodes.
    compiled : bool
        With compiled kernels, or as plain Python.

    Returns
    -------
    Outcome
    """
    for name in _HEAVY:
        import_module(name)
    began = time.perf_counter()
    context = multiprocessing.get_context("fork")
    with copied_package(mutant) as folder:
        receiver, sender = context.Pipe(duplex=False)
        given = (str(folder), list(tests), compiled, sender)
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


def run_controls(mutants: Iterable[Mutant]) -> dict[str, Outcome]:
    """Run the mutants' tests on an unchanged copy; all of them should come out "missed"."""
    outcomes = {}
    chosen = list(mutants)
    for compiled in (False, True):
        tests = sorted({mutant.test for mutant in chosen if mutant.compiled == compiled})
        if tests:
            outcomes["compiled" if compiled else "interpreted"] = run_tests(None, tests, compiled)
    return outcomes


def main(arguments: list[str] | None = None) -> int:
    """Plant the mutants and report; the exit code is 1 unless every one is caught."""
    from evidence.assurance.mutant_list import MUTANTS

    parser = argparse.ArgumentParser(
        prog="python -m evidence.assurance.mutants", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--fast", action="store_true", help="only those that take seconds")
    parser.add_argument("--list", action="store_true", help="only say what would be planted")
    parser.add_argument("--area", metavar="NAME", help="those of this area, or audit")
    parser.add_argument("--jobs", type=int, default=1, help="areas at a time")
    parser.add_argument("--only", metavar="WORDS", help="those whose name contains WORDS")
    given = parser.parse_args(arguments)

    def wanted(mutant: Any) -> bool:
        return (
            (mutant.fast or not given.fast)
            and (not given.only or given.only in mutant.name)
            and (not given.area or given.area == getattr(mutant, "area", "audit"))
        )

    chosen = list(filter(wanted, MUTANTS))
    if given.list:
        from evidence.assurance.audit_mutants import AUDIT_MUTANTS

        for mutant in chosen:
            print(f"{mutant.name} [{mutant.area}]\n    {mutant.planted}\n    {mutant.test}")
        for other in filter(wanted, AUDIT_MUTANTS):
            print(f"{other.name} [audit]\n    {other.planted}\n    {other.test}")
        return 0
    began = time.perf_counter()
    if given.jobs > 1:
        passed_on = ["--fast"] if given.fast else []
        passed_on += ["--only", given.only] if given.only else []
        areas = [given.area] if given.area else [*dict.fromkeys(m.area for m in MUTANTS), "audit"]
        return _tell_all(
            side_by_side(areas, passed_on, given.jobs), began, fast=given.fast, as_json=given.json
        )
    controls = run_controls(chosen)
    entries: list[dict[str, Any]] = []

    def tell(entry: dict[str, Any]) -> None:
        entries.append(entry)
        if given.json:
            return
        print(f"{entry['verdict']:7} {entry['seconds']:6.1f} s  {entry['name']}", flush=True)
        if entry["verdict"] != "caught":
            print(f"        {entry['test']}\n        {entry['words']}")

    for mutant in chosen:
        outcome = run_tests(mutant, [mutant.test], mutant.compiled)
        tell(
            {
                "name": mutant.name,
                "area": mutant.area,
                "planted": mutant.planted,
                "test": mutant.test,
                "verdict": outcome.verdict,
                "seconds": outcome.seconds,
                "words": outcome.words,
            }
        )
    # After the forks: a process that has imported the package cannot import a copy of it.
    from evidence.assurance.audit_mutants import AUDIT_MUTANTS, run_audit, run_audit_controls

    audited = list(filter(wanted, AUDIT_MUTANTS))
    if audited:
        start = time.perf_counter()
        verdict, words = run_audit_controls(audited)
        spent = round(time.perf_counter() - start, 2)
        controls["audits of the sound implementation"] = Outcome(verdict, spent, words)
    for other in audited:
        tell(run_audit(other))
    told = {name: vars(outcome) for name, outcome in controls.items()}
    found = {"controls": told, "mutants": entries}
    return _tell_all([found], began, fast=given.fast, as_json=given.json)


def side_by_side(areas: list[str], options: list[str], jobs: int) -> list[dict[str, Any]]:
    """Try the mutants of several areas at a time, each area by a command of its own."""

    def run(area: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "assurance.mutants", "--json", "--area", area, *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        try:
            report: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            words = done.stderr[-500:]
            report = {"controls": {"command": vars(Outcome("broken", 0.0, words))}, "mutants": []}
        named = {f"{area}, {name}": told for name, told in report["controls"].items()}
        return {"controls": named, "mutants": report["mutants"]}

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(run, areas))


def _tell_all(found: list[dict[str, Any]], began: float, *, fast: bool, as_json: bool) -> int:
    """Report on all mutants; the exit code is 1 unless every one is caught."""
    controls = {name: told for part in found for name, told in part["controls"].items()}
    entries = [entry for part in found for entry in part["mutants"]]
    clean = all(told["verdict"] == "missed" for told in controls.values())
    verdicts = [entry["verdict"] for entry in entries]
    report = {
        "command": "python -m evidence.assurance.mutants" + (" --fast" if fast else ""),
        "planted": len(entries),
        "caught": verdicts.count("caught"),
        "missed": verdicts.count("missed"),
        "broken": verdicts.count("broken"),
        "unchanged_copy_passes": clean,
        "controls": controls,
        "passed": clean and bool(entries) and verdicts.count("caught") == len(entries),
        "seconds": round(time.perf_counter() - began, 1),
        "mutants": entries,
    }
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        for name, told in controls.items():
            if told["verdict"] != "missed":
                print(f"unchanged, {name}: {told['verdict']} {told['words']}")
        if len(found) > 1:
            for entry in entries:
                if entry["verdict"] != "caught":
                    print(f"{entry['verdict']}: {entry['name']}\n        {entry['words']}")
        print(f"{report['caught']} of {report['planted']} caught in {report['seconds']} s")
    return 0 if report["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
