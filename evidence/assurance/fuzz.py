"""Feed corrupted inputs to everything that reads files or arguments, and judge what comes back.

    python -m evidence assurance/fuzz --inputs 100000

Every target runs in a process of its own, watched: a signal (a crash of compiled code) or an input
that takes too long is a failure like an unexpected exception or a misreading. Half the inputs are
made by corrupting valid ones by number, so that any of them can be made again from seed and number;
the other half by atheris, guided by the branches they reach, where it is installed
(``pip install dplasso[fuzz]``). Failing inputs are kept in a folder with ``--keep``.
"""

import contextlib
import importlib.util
import json
import mmap
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evidence.assurance.fuzz_coverage import COVERED
from evidence.assurance.fuzz_targets import Target, input_of, targets

_PATIENCE = 120.0  # seconds for one input, which may have to compile on a busy machine
_WARM_UP = 180.0  # seconds for the first one, which may wait for the compiler
_MEMORY = 12 << 30
_ENOUGH_FAILURES = 50


@dataclass
class Tally:
    """What became of a target's inputs, `by_coverage` of them made by the guided fuzzer."""

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    failed: int = 0
    by_coverage: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    examples: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def judge(target: Target, data: bytes, folder: Path) -> tuple[str, str]:
    """Read one input; return its outcome and, where it failed, why."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        return target.check(data, folder), ""
    except Exception as error:
        return "failed", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _work(target: Target, seed: int, first: int, last: int, shared: Any, folder: Path) -> None:
    """Go through a range of inputs; the parent reads what is going on from shared memory."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    for data in target.seeds()[:1]:
        judge(target, data, folder / "warm-up")
    for index in range(first, last):
        shared[0] = index
        shared[4] += 1  # a sign of life
        data = input_of(target, seed, index)
        outcome, why = judge(target, data, folder / "input")
        shared[{"accepted": 1, "refused": 2, "failed": 3}[outcome]] += 1
        if why:
            with (folder / "failures").open("a") as file:
                file.write(json.dumps([index, why]) + "\n")
    shared[0] = last


def by_number(target: Target, seed: int, count: int, scratch: Path) -> Tally:
    """Run a target on its inputs 0 to `count` - 1, starting a process anew where one is lost."""
    tally, began = Tally(), time.perf_counter()
    folder = scratch / target.name.replace(" ", "-")
    folder.mkdir()
    memory = mmap.mmap(-1, 8 * 5)
    shared = np.frombuffer(memory, np.int64)
    found: list[tuple[int, str]] = []
    first = 0
    while first < count and len(found) < _ENOUGH_FAILURES:
        shared[0] = first
        shared[4] = 0
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                _work(target, seed, first, count, shared, folder)
                code = 0
            os._exit(code)
        end = _watch(child, shared)
        if end == "":
            break
        found.append((int(shared[0]), end))
        first = int(shared[0]) + 1
    tally.accepted, tally.refused = int(shared[1]), int(shared[2])
    log = folder / "failures"
    if log.exists():
        found += [(index, why) for index, why in map(json.loads, log.read_text().splitlines())]
    tally.failed = len(found)
    tally.inputs = tally.accepted + tally.refused + tally.failed
    _count_failures(tally, found)
    tally.seconds = time.perf_counter() - began
    return tally


def _watch(child: int, shared: Any) -> str:
    """Wait for a process; return what went wrong, "" if nothing."""
    alive, since = -1, time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if os.WIFSIGNALED(status):
                return f"crash: {signal.Signals(os.WTERMSIG(status)).name}"
            return "" if os.WEXITSTATUS(status) == 0 else "crash: the process ended"
        if shared[4] != alive:
            alive, since = int(shared[4]), time.monotonic()
        elif time.monotonic() - since > (_PATIENCE if alive else _WARM_UP):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"hang: over {_PATIENCE:.0f} s"
        time.sleep(0.02)


def _count_failures(tally: Tally, found: list[tuple[int, str]]) -> None:
    tally.failures = dict(Counter(why.split(":")[0] for _, why in found))
    tally.examples = [{"input": index, "failure": why} for index, why in sorted(found)[:10]]


def by_coverage(target: Target, seed: int, count: int, scratch: Path) -> Tally:
    """Run the coverage-guided fuzzer in a process of its own."""
    began = time.perf_counter()
    folder = scratch / f"{target.name.replace(' ', '-')}-coverage"
    command = [sys.executable, "-m", "evidence.assurance.fuzz_coverage", target.name]
    done = subprocess.run(
        [*command, str(count), str(seed), str(folder)], capture_output=True, text=True, check=False
    )
    report = folder / "report.json"
    tally = Tally(**json.loads(report.read_text())) if report.exists() else Tally()
    crashed = sorted(folder.glob("artifact-*"))
    if done.returncode or crashed or not tally.inputs:
        tally.failed += 1
        tally.inputs += 1
        kind = crashed[0].name.split("-")[1] if crashed else "ended early"
        tally.failures[kind] = tally.failures.get(kind, 0) + 1
        tally.examples.append({"input": None, "failure": done.stderr[-500:]})
    tally.by_coverage = tally.inputs
    tally.seconds = time.perf_counter() - began
    return tally


def _together(one: Tally, other: Tally) -> Tally:
    failures = Counter(one.failures) + Counter(other.failures)
    return Tally(
        one.inputs + other.inputs,
        one.accepted + other.accepted,
        one.refused + other.refused,
        one.failed + other.failed,
        one.by_coverage + other.by_coverage,
        dict(failures),
        one.examples + other.examples,
        one.seconds + other.seconds,
    )


TITLE = "everything that reads files or arguments"
QUICK = {"inputs": 300, "coverage": False}
# The slowest first: commands, and those with the most inputs.
WEIGHTS = {"command line": 50.0, "svmlight": 40.0, "npz": 20.0}


def split(
    *,
    inputs: int = 100_000,
    seed: int = 0,
    target: list[str] | None = None,
    coverage: bool = True,
    keep: Path | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the targets, all or some; `inputs` of all together are dealt by their shares."""
    chosen = [one for name, one in targets().items() if target is None or name in target]
    shares = sum(one.share for one in chosen)
    given = {"seed": seed, "coverage": coverage, "keep": keep}
    return {
        one.name: {"target": one.name, "inputs": -(-inputs * one.share // shares), **given}
        for one in chosen
    }


def measure(
    *, target: str, inputs: int, seed: int, coverage: bool, keep: Path | None
) -> dict[str, Any]:
    """Fuzz a target; inputs that failed go to the folder `keep`."""
    chosen = targets()[target]
    coverage = coverage and importlib.util.find_spec("atheris") is not None
    guided = inputs // 2 if coverage and target in COVERED else 0
    home = Path("/dev/shm")
    scratch = Path(tempfile.mkdtemp(dir=home if os.access(home, os.W_OK) else None))
    stem = target.replace(" ", "-")
    try:
        tally = by_number(chosen, seed, inputs - guided, scratch)
        numbers = [example["input"] for example in tally.examples]
        if guided:
            tally = _together(tally, by_coverage(chosen, seed, guided, scratch))
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for number in numbers:
                (keep / f"{stem}-{seed}-{number}").write_bytes(input_of(chosen, seed, number))
            for path in scratch.glob("*-coverage/failed-*"):
                shutil.copy(path, keep / f"{stem}-{path.name}")
    finally:
        shutil.rmtree(scratch)
    return {"passed": tally.failed == 0, "target": target, **asdict(tally)}


def section(results: list[dict[str, Any]]) -> list[str]:
    """Return the counts, in words, and the first failures."""
    inputs, coverage, failed, refused = (
        sum(one[key] for one in results) for key in ("inputs", "by_coverage", "failed", "refused")
    )
    each = ", ".join(f"{one['target']} {one['inputs']:,}" for one in results)
    return [
        f"{inputs:,} corrupted inputs ({coverage:,} by coverage), {failed} failures, {refused:,} "
        f"refused in one sentence, the others read rightly: {each}",
        *(f"{one['target']}: {example}" for one in results for example in one["examples"]),
    ]
