"""Engines, which run the workers, and a log of events.

An engine never repeats a call, because repeating a step or a draw would be a second release.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dplasso.cluster.worker import Partition, Worker
from dplasso.files.disk import open_private

# The first event of a fit.
FIRST = "begin"
# Methods of a worker that are steps of a fit.
_STEPS = ("move", "sums")

# Waits for the result of a call and returns it; raises `WorkerLost`, or the worker's exception.
Pending = Callable[[], Any]


@dataclass
class Metrics:
    """Time and traffic of a fit on partitions so far; bytes are those of arrays at the driver."""

    workers: int = 0
    steps: int = 0
    seconds: float = 0.0
    sent: int = 0
    received: int = 0
    restarts: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics by name, with the seconds of a step."""
        return {**asdict(self), "seconds_a_step": self.seconds / max(1, self.steps)}


@dataclass(frozen=True)
class Events:
    """Count and log the events of fits on partitions. For the curator only: do not release.

    Parameters
    ----------
    place : str, default=None
        File to which each event appends a line of JSON, readable for the owner only; "-" for
        standard error; None for no log.
    metrics : Metrics
        The totals so far: `workers`, `steps`, `seconds`, `sent` and `received` (bytes of arrays)
        and `restarts`.

    Examples
    --------
    >>> from dplasso.cluster import Events, ThreadEngine
    >>> engine = ThreadEngine(events=Events("fit.events"))
    >>> engine.events.metrics.steps
    0
    """

    place: str | None = None
    metrics: Metrics = field(default_factory=Metrics)

    def tell(self, event: str, **facts: Any) -> None:
        """Log an event; raise OSError only if the first event of a fit cannot be written."""
        if self.place is None:
            return
        line = json.dumps({"time": round(time.time(), 3), "event": event, **facts}) + "\n"
        try:
            if self.place == "-":
                sys.stderr.write(line)
                return
            with open_private(Path(self.place), "a") as file:
                file.write(line)
        except OSError:
            # The ledger may have been charged for the fit already, so a later failure is ignored.
            if event == FIRST:
                raise

    def answered(
        self, method: str, began: float, sent: tuple[Any, ...], answers: list[Any]
    ) -> None:
        """Count a call to all workers."""
        if method not in _STEPS:
            return
        metrics, seconds = self.metrics, time.perf_counter() - began
        there, back = _bytes(sent) * metrics.workers, _bytes(answers)
        metrics.steps, metrics.seconds = metrics.steps + 1, metrics.seconds + seconds
        metrics.sent, metrics.received = metrics.sent + there, metrics.received + back
        facts = {"number": metrics.steps, "method": method, "seconds": round(seconds, 6)}
        self.tell("step", **facts, sent=there, received=back)


def _bytes(arrays: Any) -> int:
    """Return the bytes of an array, or of arrays in nested tuples and lists."""
    if isinstance(arrays, tuple | list):
        return sum(map(_bytes, arrays))
    return int(getattr(arrays, "nbytes", 0))


class WorkerLost(Exception):  # noqa: N818
    """A worker and its state are lost; the message describes how."""


@dataclass(frozen=True)
class Held:
    """A part of a sum that stays on its machine; `add` starts to add other parts to it there."""

    fetch: Pending
    add: "Callable[[Sequence[Held]], Held]"
    reference: Any = None


class Handle(Protocol):
    """A handle to a worker."""

    def call(self, method: str, *args: Any) -> Pending:
        """Start a call without waiting for it. A part of a sum may be returned as `Held`."""

    def end(self) -> None:
        """Stop the worker, even in the middle of a call."""


class Engine(Protocol):
    """The contract of an engine."""

    @property
    def restarts(self) -> int:
        """How often the worker of a partition may be lost in a fit."""

    @property
    def events(self) -> Events:
        """The log of events."""

    def gather(self, count: int) -> "Engine":
        """Return an engine that is ready to start `count` workers of a fit."""

    def start(self, partition: Partition) -> Handle:
        """Start a worker; raise `WorkerLost` if it cannot be started."""

    def shared(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return arguments in the form in which a call sends them to all workers."""


@dataclass(frozen=True)
class InProcessEngine:
    """Run one partition after the other in this process.

    Parameters
    ----------
    threads : int, default=1
        Threads of each worker.
    restarts : int, default=0
        Has no effect, because workers in this process are never lost.
    events : Events, default=Events()
        Counts steps, seconds and bytes; ``Events("FILE")`` also logs each event to a file.
    """

    threads: int = 1
    restarts: int = 0
    events: Events = field(default_factory=Events, compare=False)

    def gather(self, count: int) -> Engine:  # noqa: ARG002
        """Return the engine itself, which can start any number of workers."""
        return self

    def start(self, partition: Partition) -> Handle:
        """Start a worker."""
        return LocalHandle(Worker(partition, self.threads))

    def shared(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments unchanged, because workers share the memory of this process."""
        return args


@dataclass(frozen=True)
class ThreadEngine(InProcessEngine):
    """Run every partition in its own thread of this process.

    The parameters are those of `InProcessEngine`.
    """

    def start(self, partition: Partition) -> Handle:
        """Start a worker and its thread."""
        return LocalHandle(Worker(partition, self.threads), ThreadPoolExecutor(1))


@dataclass(frozen=True)
class LocalHandle:
    """A worker in this process, with or without its own thread."""

    worker: Worker
    pool: ThreadPoolExecutor | None = None

    def call(self, method: str, *args: Any) -> Pending:
        """Call the worker at once, or in its thread."""
        asked = getattr(self.worker, method)
        if self.pool is not None:
            return self.pool.submit(asked, *args).result
        result = asked(*args)
        return lambda: result

    def end(self) -> None:
        """Stop the threads when they are idle."""
        if self.pool is not None:
            self.pool.shutdown()
        self.worker.close()


def cores_in_words(count: int) -> str:
    """Word how many cores a worker has."""
    return f"{count} {'core' if count == 1 else 'cores'}"
