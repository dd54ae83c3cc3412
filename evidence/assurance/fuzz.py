"""Feed spoilt inputs to everything that reads files or arguments, and judge what comes back.

    python -m evidence.assurance.fuzz --inputs 100000 --json

Every target runs in a process of its own, watched: a signal (a crash of compiled code) or an input
that takes too long is a failure like an unexpected exception or a misreading. Half the inputs are
made by spoiling valid ones by number, so that any of them can be made again from seed and number;
the other half by atheris, guided by the branches they reach, where it is installed
(``pip install dplasso[fuzz]``). Failing inputs are kept in a folder with ``--keep``.
"""

import argparse
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evidence.assurance.fuzz_modules import COVERED
from evidence.assurance.fuzz_targets import Target, input_of, targets

_PATIENCE = 120.0  # seconds for one input, which may have to compile on a busy machine
_WARM_UP = 180.0  # seconds for the first one, which may wait for the compiler
_MEMORY = 12 << 30
_ENOUGH_FAILURES = 50


@dataclass
class Tally:
    """What became of a target's inputs.

    Attributes
    ----------
    inputs, accepted, refused, failed : int
        Inputs read, and their outcomes.
    by_coverage : int
        Those of them that the coverage-guided fuzzer made.
    failures : dict of str to int
        Kinds of failure and how often.
    examples : list of dict
        The first inputs that failed: number (or none) and what happened.
    seconds : float
        Wall clock.
    """

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
    command = [sys.executable, "-m", "assurance.fuzz_coverage", target.name]
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


def fuzz(
    inputs: int, seed: int, names: list[str], *, coverage: bool, keep: Path | None = None
) -> dict[str, Tally]:
    """Fuzz targets.

    Parameters
    ----------
    inputs : int
        Of all targets together, dealt by their shares.
    seed : int
        Of the inputs.
    names : list of str
        Targets.
    coverage : bool
        Whether half the inputs of targets with modules to cover are made by atheris.
    keep : Path, optional
        Folder for the inputs that failed.

    Returns
    -------
    dict of str to Tally
    """
    chosen = [target for name, target in targets().items() if name in names]
    shares = sum(target.share for target in chosen)
    tallies = {}
    home = Path("/dev/shm")
    scratch = Path(tempfile.mkdtemp(dir=home if os.access(home, os.W_OK) else None))
    try:
        for target in chosen:
            count = -(-inputs * target.share // shares)
            guided = count // 2 if coverage and target.name in COVERED else 0
            tally = by_number(target, seed, count - guided, scratch)
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                for example in tally.examples:
                    name = f"{target.name.replace(' ', '-')}-{seed}-{example['input']}"
                    (keep / name).write_bytes(input_of(target, seed, example["input"]))
            if guided:
                tally = _together(tally, by_coverage(target, seed, guided, scratch))
                if keep is not None:
                    for path in scratch.glob("*-coverage/failed-*"):
                        shutil.copy(path, keep / f"{target.name.replace(' ', '-')}-{path.name}")
            tallies[target.name] = tally
    finally:
        shutil.rmtree(scratch)
    return tallies


def side_by_side(
    inputs: int, seed: int, names: list[str], jobs: int, *, coverage: bool, keep: Path | None
) -> dict[str, Tally]:
    """Fuzz as `fuzz` does, several targets at a time, each by a command of its own."""
    chosen = [target for name, target in targets().items() if name in names]
    shares = sum(target.share for target in chosen)

    def run(target: Target) -> Tally:
        count = -(-inputs * target.share // shares)
        command = [sys.executable, "-m", "assurance.fuzz", "--json", "--target", target.name]
        command += ["--inputs", str(count), "--seed", str(seed), "--jobs", "1"]
        command += [] if coverage else ["--no-coverage"]
        command += [] if keep is None else ["--keep", str(keep)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.stdout:
            return Tally(inputs=1, failed=1, examples=[{"input": None, "failure": done.stderr}])
        return Tally(**json.loads(done.stdout)["targets"][target.name])

    # The slowest first: those with the most inputs, and commands.
    order = sorted(chosen, key=lambda target: (target.name != "command line", -target.share))
    with ThreadPoolExecutor(jobs) as pool:
        tallies = dict(zip([t.name for t in order], pool.map(run, order), strict=True))
    return {target.name: tallies[target.name] for target in chosen}


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code is 1 if an input failed."""
    parser = argparse.ArgumentParser(
        prog="python -m evidence.assurance.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = list(targets())
    parser.add_argument("--inputs", type=int, default=100_000, help="of all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", choices=known, help="default: all")
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time")
    parser.add_argument("--no-coverage", action="store_true", help="leave atheris out")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder for inputs that failed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    coverage = not given.no_coverage and importlib.util.find_spec("atheris") is not None
    began = time.perf_counter()
    names = given.target or known
    if given.jobs > 1 and len(names) > 1:
        tallies = side_by_side(
            given.inputs, given.seed, names, given.jobs, coverage=coverage, keep=given.keep
        )
    else:
        tallies = fuzz(given.inputs, given.seed, names, coverage=coverage, keep=given.keep)
    failed = sum(tally.failed for tally in tallies.values())
    report = {
        "command": f"python -m evidence.assurance.fuzz --inputs {given.inputs} --seed {given.seed}",
        "seed": given.seed,
        "inputs": sum(tally.inputs for tally in tallies.values()),
        "by_coverage": sum(tally.by_coverage for tally in tallies.values()),
        "failed": failed,
        "passed": failed == 0,
        "targets": {name: asdict(tally) for name, tally in tallies.items()},
        "seconds": round(time.perf_counter() - began, 1),
    }
    if given.json:
        print(json.dumps(report))
    else:
        for name, tally in tallies.items():
            print(
                f"{name:13} {tally.inputs:7,} inputs: {tally.accepted:,} accepted, "
                f"{tally.refused:,} refused, {tally.failed:,} failed, {tally.seconds:.0f} s"
            )
            for example in tally.examples:
                print(f"    input {example['input']}: {example['failure']}")
    return 0 if report["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
