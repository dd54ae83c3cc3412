"""Clocks: runs that take turns, and training loops that are stopped and scaled."""

import contextlib
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any, TypeVar

import numpy as np

from dplasso import DPFrankWolfeClassifier
from dplasso.errors import PrivacyLeakWarning
from dplasso.estimators.fitting import fit_estimator
from dplasso.fit.run import Hooks

Result = TypeVar("Result")
Clock = Callable[[], float]
# A loop that is stopped has been timed on at least this many steps after its first.
_FEWEST_STEPS = 2


@dataclass(frozen=True)
class LoopTime:
    """One training run."""

    setup: float  # Seconds before the first step
    # Seconds of all `n_steps` steps. Those after a stop are taken to cost what the second half of
    # the timed ones did: steps become cheaper, the first are the dearest.
    loop: float
    # timed_steps, n_steps: steps timed (the first, which is cold, is not) and steps of the whole
    # run.
    timed_steps: int
    n_steps: int


class _EnoughError(Exception):
    """Ends a run whose time is up."""


class StepClock:
    """Notes when steps were done; ends the run when its time is up.

    An instance is the `progress` callable of a training run, called with steps done and in all.
    """

    def __init__(self, limit: float, clock: Clock = time.perf_counter) -> None:
        self.limit = limit
        self.clock = clock
        self.marks: list[tuple[int, float]] = []
        self.began = clock()

    def __call__(self, done: int, total: int) -> None:
        """Note that `done` of `total` steps are done."""
        now = self.clock()
        self.marks.append((done, now))
        first, started = self.marks[0]
        if done < total and done - first >= _FEWEST_STEPS and now - started > self.limit:
            raise _EnoughError

    def result(self, n_steps: int) -> LoopTime:
        """Sum up, once the run has ended."""
        (first, started), (last, ended) = self.marks[0], self.marks[-1]
        timed = last - first
        if timed == 0:
            # A run of one chunk: nothing to tell set-up and steps apart.
            return LoopTime(0.0, started - self.began, first, n_steps)
        step = (ended - started) / timed
        half, since = next(mark for mark in self.marks if 2 * mark[0] >= first + last)
        late = (ended - since) / (last - half) if last > half else step
        setup = max(0.0, started - self.began - first * step)
        return LoopTime(setup, step * last + late * (n_steps - last), timed, n_steps)


def time_steps(
    n_steps: int,
    limit: float,
    run: Callable[[StepClock], Result],
    clock: Clock = time.perf_counter,
) -> tuple[LoopTime, Result | None]:
    """Time a training run; the second value is None if it was stopped."""
    steps = StepClock(limit, clock)
    result = None
    with contextlib.suppress(_EnoughError):
        result = run(steps)
    return steps.result(n_steps), result


def time_fit(
    X: Any, y: Any, limit: float, clock: Clock = time.perf_counter, **parameters: Any
) -> tuple[LoopTime, DPFrankWolfeClassifier | None]:
    """Time a fit of `DPFrankWolfeClassifier`, set-up and steps apart."""
    model = DPFrankWolfeClassifier(**parameters)

    def run(steps: StepClock) -> DPFrankWolfeClassifier:
        return fit_estimator(model, X, y, Hooks(progress=steps))

    return time_steps(model.n_iter, limit, run, clock)


def seconds(work: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    """Time one call."""
    began = clock()
    work()
    return clock() - began


def clocks(work: Callable[[], object], times: int = 1) -> tuple[float, float]:
    """Return wall and processor seconds, of all threads, of one call: the mean of some."""
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(times):
        work()
    return (time.perf_counter() - wall) / times, (time.process_time() - processor) / times


def interleave(runs: Mapping[str, Callable[[], Result]], repeats: int) -> dict[str, list[Result]]:
    """Let the runs take turns, `repeats` times, so that none has a quieter machine."""
    found: dict[str, list[Result]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            found[name].append(run())
    return found


def race(
    methods: Mapping[str, Mapping[str, Any]],
    X: Any,
    y: Any,
    limit: float,
    repeats: int,
    advance: Callable[[float], None] = lambda _: None,
) -> dict[str, dict[str, Any]]:
    """Time fits that take turns: the estimator's parameters by name; `middle` of each."""
    few = X[: min(50, X.shape[0])]
    done = 0

    def run(parameters: Mapping[str, Any]) -> LoopTime:
        nonlocal done
        found = time_fit(X, y, limit, **parameters)[0]
        done += 1
        advance(done / (len(methods) * repeats))
        return found

    with warnings.catch_warnings():
        # The paper's mechanism warns.
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        for parameters in methods.values():
            # Compiles what is needed.
            time_fit(few, np.arange(few.shape[0]) % 2, 0.0, **{**parameters, "n_iter": 4})
        runs = {name: partial(run, parameters) for name, parameters in methods.items()}
        timed = interleave(runs, repeats)
    return {name: middle(times) for name, times in timed.items()}


def middle(times: Iterable[LoopTime]) -> dict[str, Any]:
    """Summarise the runs of one competitor: medians, and the loops they come from."""
    times = list(times)
    whole = LoopTime(
        median(t.setup for t in times),
        median(t.loop for t in times),
        min(t.timed_steps for t in times),
        times[0].n_steps,
    )
    return {**asdict(whole), "loops": [t.loop for t in times]}
