"""Engines: what runs the workers, and a record of what happened.

All are behind one call, `call(method, *args)` of a worker. An engine starts a worker for a
partition, passes calls on, and says when a worker is lost. It repeats nothing by itself: which
steps a fit takes is for the coordinator alone, since a step or a draw that an engine made twice
would be a second release.
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

# The event that a fit begins with.
FIRST = "begin"
# Methods of a worker that are steps of a fit: of columns, and of gradients.
_STEPS = ("move", "sums")

# Gives the result of a call, waiting for it; raises `WorkerLost`, or what the worker raised.
Pending = Callable[[], Any]


@dataclass
class Metrics:
    """What a fit on partitions has taken so far; bytes are those of arrays, seen by the driver."""

    workers: int = 0
    steps: int = 0
    seconds: float = 0.0
    sent: int = 0
    received: int = 0
    restarts: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return them by name, with the seconds of a step."""
        return {**asdict(self), "seconds_a_step": self.seconds / max(1, self.steps)}


@dataclass(frozen=True)
class Events:
    """Count what fits on partitions do, and write it down; for the curator, not for release.

    Parameters
    ----------
    place : str, default=None
        File that a line of JSON is added to for each event, closed to others; "-" for standard
        error; None for nowhere.
    metrics : Metrics
        The totals so far, with the attributes `workers`, `steps`, `seconds`, `sent` and `received`
        (bytes of arrays) and `restarts`.

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
        """Write one event; OSError if the first of a fit cannot be written, which ends no other."""
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
            # By now the fit may be paid for.
            if event == FIRST:
                raise

    def answered(self, method: str, began: float, sent: tuple[Any, ...], found: list[Any]) -> None:
        """Count a call of all workers."""
        if method not in _STEPS:
            return
        metrics, seconds = self.metrics, time.perf_counter() - began
        there, back = _bytes(sent) * metrics.workers, _bytes(found)
        metrics.steps, metrics.seconds = metrics.steps + 1, metrics.seconds + seconds
        metrics.sent, metrics.received = metrics.sent + there, metrics.received + back
        facts = {"number": metrics.steps, "method": method, "seconds": round(seconds, 6)}
        self.tell("step", **facts, sent=there, received=back)


def _bytes(given: Any) -> int:
    """Return the bytes of arrays, in tuples and lists too."""
    if isinstance(given, tuple | list):
        return sum(map(_bytes, given))
    return int(getattr(given, "nbytes", 0))


class WorkerLost(Exception):  # noqa: N818
    """A worker is gone, and what it knew with it; the message says how."""


@dataclass(frozen=True)
class Held:
    """A part of a sum that stays where it was computed; `add` begins to add others to it, there."""

    fetch: Pending
    add: "Callable[[Sequence[Held]], Held]"
    reference: Any = None


class Handle(Protocol):
    """A worker that runs somewhere."""

    def call(self, method: str, *args: Any) -> Pending:
        """Begin a call; never wait for it. An answer to be summed may be `Held`."""

    def end(self) -> None:
        """Stop the worker, whatever it is doing."""


class Engine(Protocol):
    """What a fit on partitions is given."""

    @property
    def restarts(self) -> int:
        """How often a partition's worker may be lost in a fit."""

    @property
    def events(self) -> Events:
        """Where it is told what happens."""

    def gather(self, count: int) -> "Engine":
        """Return what starts so many workers of a fit."""

    def start(self, partition: Partition) -> Handle:
        """Start a worker; raises WorkerLost if it cannot be had."""

    def shared(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of a call of all workers as each is given them."""


@dataclass(frozen=True)
class InProcessEngine:
    """One partition after the other, in this process.

    Parameters
    ----------
    threads : int, default=1
        Threads of each worker.
    restarts : int, default=0
        None is ever lost.
    events : Events, default=Events()
        Counts steps, seconds and bytes; ``Events("FILE")`` also writes a line of JSON for each.
    """

    threads: int = 1
    restarts: int = 0
    events: Events = field(default_factory=Events, compare=False)

    def gather(self, count: int) -> Engine:  # noqa: ARG002
        """Return the engine: there is room for any number."""
        return self

    def start(self, partition: Partition) -> Handle:
        """Make a worker."""
        return LocalHandle(Worker(partition, self.threads))

    def shared(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return them: workers share the memory of this process."""
        return args


@dataclass(frozen=True)
class ThreadEngine(InProcessEngine):
    """Every partition in a thread of its own, in this process.

    The parameters are those of `InProcessEngine`.
    """

    def start(self, partition: Partition) -> Handle:
        """Make a worker and its thread."""
        return LocalHandle(Worker(partition, self.threads), ThreadPoolExecutor(1))


@dataclass(frozen=True)
class LocalHandle:
    """A worker in this process, perhaps in a thread of its own."""

    worker: Worker
    pool: ThreadPoolExecutor | None = None

    def call(self, method: str, *args: Any) -> Pending:
        """Call at once, or hand the call to the thread."""
        asked = getattr(self.worker, method)
        if self.pool is not None:
            return self.pool.submit(asked, *args).result
        found = asked(*args)
        return lambda: found

    def end(self) -> None:
        """End the threads once they are idle."""
        if self.pool is not None:
            self.pool.shutdown()
        self.worker.close()


def cores_in_words(count: int) -> str:
    """Word how many cores a worker has."""
    return f"{count} {'core' if count == 1 else 'cores'}"
