"""A record that must not count changes nothing, to the last bit: `python tests/isolated_rows.py N`.

Every trial is a random data set, random options and a record that must not count: its weight is 0,
or its person has as many rows before it as may enter. With and without it, every statistic before
its noise, every release, the model file, the statement, the checkpoint of a store, warnings and
predictions for the other rows must be the same bits. Scores and edges know no weights: what a
record adds to their statistics must be what it is by itself.

    python tests/isolated_rows.py N [FIRST] [KINDS]              trials FIRST to FIRST + N - 1
    python tests/isolated_rows.py --trial NUMBER [KINDS] [free:NAME ...]
                                         one; all choices but those named have the simplest value

KINDS are "gradients", "draws", "scores" and "edges"; by default all. A trial that fails is made
simpler, choice by choice, and printed with the command that repeats it. Printed at the end is how
much was compared, as JSON; the exit code is 1 if anything was not the same.
"""

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numba import config

from dplasso.gradient_descent import noisy_descent
from dplasso.matrix import tiles, unit_rows
from dplasso.privacy import wording
from isolated_fits import KINDS, THREADS, Trial, trial_of
from isolated_records import Choices, Records
from recorder import Recorder, recording

# Trials that are made simpler and printed, of those that fail.
_MOST_SHOWN = 3
_STOPPED = "it stopped"


@dataclass
class Outcome:
    """What one run showed and returned; `parts` are compared byte by byte."""

    recorder: Recorder
    parts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Found:
    """What came of many trials.

    `runs`: fits, scores and releases of edges.
    `statistics`: numbers that were compared before their noise.
    `parts`: texts and files that were.
    """

    trials: int = 0
    runs: int = 0
    statistics: int = 0
    parts: int = 0
    failed: int = 0


def _numbers(recorder: Recorder) -> int:
    drawn = sum(one.alphas().size for one in recorder.draws)
    return drawn + sum(one.statistic.size for one in recorder.releases)


def differences(one: Outcome, other: Outcome) -> Iterator[str]:
    """Say what is not the same in two runs, statistics in their order first."""
    pairs = zip(one.recorder.releases, other.recorder.releases, strict=False)
    for number, (left, right) in enumerate(pairs):
        if left.statistic.shape != right.statistic.shape:
            yield f"statistic {number} has another shape"
        elif not np.array_equal(left.statistic, right.statistic):
            # In Python's integers: 64 bits might overflow.
            whole = zip(left.statistic.tolist(), right.statistic.tolist(), strict=True)
            moved = float(sum((a - b) ** 2 for a, b in whole)) ** 0.5
            part = f", {moved / left.sensitivity:.3g} times its sensitivity"
            yield f"statistic {number} moved by {moved:.6g}" + part * (left.sensitivity > 0)
        if (left.sensitivity, left.scale) != (right.sensitivity, right.scale):
            yield f"the noise of statistic {number} is of another scale"
        if not np.array_equal(left.answer, right.answer):
            yield f"release {number} is another"
    counts = [(len(run.recorder.releases), len(run.recorder.draws)) for run in (one, other)]
    if counts[0] != counts[1]:
        yield f"releases and draws are {counts[0]} and {counts[1]}"
    for number, (p, q) in enumerate(zip(one.recorder.draws, other.recorder.draws, strict=False)):
        if not np.array_equal(p.alphas(), q.alphas()):
            yield f"the gradients of draws {number} are others"
        if (p.sensitivity, p.exponent) != (q.sensitivity, q.exponent):
            yield f"draws {number} are by another exponent"
    for name in dict.fromkeys((*one.parts, *other.parts)):
        if one.parts.get(name) != other.parts.get(name):
            yield f"{name}: not the same"


# --- Trials --------------------------------------------------------------------------------------


def _sizes(choices: Choices) -> ExitStack:
    """Cut rows, columns and noise into smaller blocks than so few would be cut into."""
    stack, blocks = ExitStack(), choices.pick("blocks", ("as they are", "small", "smallest"))
    if blocks != "as they are":
        rows = (16, 64) if blocks == "small" else (2, 3)
        limits = {"_FEW_ROWS": rows, "_MOST_ENTRIES": 50, "COLUMN_BITS": 4}
        stack.enter_context(patch.multiple(tiles, **limits))
        if blocks == "smallest":
            # Loops of our own lay out the rows, as they do with many entries.
            for module in (tiles, unit_rows):
                stack.enter_context(patch.object(module, "FEW", 0))
        if choices.pick("threads", THREADS) == 1:
            # Several threads release blocks of columns in no certain order.
            stack.enter_context(patch.object(noisy_descent, "BLOCK", 5))
    return stack


def _outcome(trial: Trial, records: Records, earlier: Recorder | None = None) -> Outcome:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if config.DISABLE_JIT:
            # Kernels wrap around and cast in silence.
            warnings.simplefilter("ignore", RuntimeWarning)
        # What is said once in a process is said in each run.
        with recording(earlier) as recorder, patch.object(wording, "_said", set()):
            try:
                parts = trial.run(records, Path(folder))
            except Exception as error:
                parts = {"error": f"{type(error).__name__}: {error}".replace(folder, "")}
    told = sorted({(one.category.__name__, str(one.message)) for one in warned})
    return Outcome(recorder, parts | {"warnings": told})


def compare(choices: Choices, kinds: tuple[str, ...], found: Found) -> list[str]:
    """Run a trial; return what is not the same."""
    trial = trial_of(choices, kinds)
    with _sizes(choices):
        one, other = (_outcome(trial, records) for records in (trial.one, trial.other))
        if one.recorder.draws:
            # The gradients are seen where what was drawn is drawn again.
            first = one.recorder
            one, other = (_outcome(trial, some, first) for some in (trial.one, trial.other))
            found.runs += 2
        if trial.adds and "error" not in one.parts:
            alone = _outcome(trial, trial.other.alone())
            found.runs += 1
            if "error" in alone.parts:
                return [f"{_STOPPED} by the record alone: {alone.parts['error']}"]
            both = zip(one.recorder.releases, alone.recorder.releases, strict=True)
            for left, own in both:
                left.statistic[:] += own.statistic
            # It counts: what follows from the sums is another thing.
            for run in (one, other):
                run.parts = {}
                for release in run.recorder.releases:
                    release.answer[:] = 0
    found.trials, found.runs = found.trials + 1, found.runs + 2
    found.statistics += _numbers(one.recorder)
    found.parts += len(one.parts)
    if "error" in one.parts:
        return [f"{_STOPPED}: {one.parts['error']}; with the record: {other.parts.get('error')}"]
    return list(differences(one, other))


def simpler(choices: Choices, kinds: tuple[str, ...]) -> Choices:
    """Take the simplest value of as many choices as a trial still fails with."""
    free = frozenset(choices.made)
    for name in choices.made:
        wrong = compare(Choices(choices.number, free - {name}), kinds, Found())
        if wrong and not wrong[0].startswith(_STOPPED):
            free -= {name}
    return Choices(choices.number, free)


def run(count: int, kinds: tuple[str, ...] = KINDS, first: int = 0) -> Found:
    """Run so many trials, and print those that fail with the command that repeats them."""
    found, began = Found(), time.perf_counter()
    for number in range(first, first + count):
        choices = Choices(number)
        if wrong := compare(choices, kinds, found):
            found.failed += 1
            if found.failed <= _MOST_SHOWN:
                after = f"trial {number} fails after {time.perf_counter() - began:.1f} s"
                print(f"{after}: {_told(choices, kinds, wrong)}", file=sys.stderr)
    return found


def _told(choices: Choices, kinds: tuple[str, ...], wrong: list[str]) -> str:
    """Return what goes wrong in the simplest such trial, what it is, and how to repeat it."""
    least = simpler(choices, kinds)
    wrong = compare(least, kinds, Found()) or wrong
    words = (*kinds, *(f"free:{name}" for name in sorted(least.free or ())))
    command = f"python tests/isolated_rows.py --trial {choices.number} {' '.join(words)}"
    return f"{'; '.join(wrong[:3])}\n  {_made(least)}\n  {command}"


def _made(choices: Choices) -> str:
    drawn = choices.made if choices.free is None else choices.made.keys() & choices.free
    named = ((name, choices.made[name]) for name in choices.made if name in drawn)
    return ", ".join(f"{name}: {getattr(value, '__name__', value)}" for name, value in named)


def main(arguments: list[str]) -> int:
    """Run as a script."""
    kinds = tuple(word for word in arguments if word in KINDS) or KINDS
    numbers = [int(word) for word in arguments if word.isdecimal()]
    if arguments[0] == "--trial":
        free = frozenset(word[5:] for word in arguments if word.startswith("free:"))
        choices = Choices(numbers[0], free or None)
        wrong = compare(choices, kinds, Found())
        print("\n".join([_made(choices), *(wrong[:20] or ["the same"])]))
        return int(bool(wrong))
    found = run(numbers[0], kinds, *numbers[1:])
    print(json.dumps(vars(found)))
    return int(found.failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
