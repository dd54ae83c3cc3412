"""Engines: what runs the workers. All are behind one call, `call(method, *args)` of a worker.

An engine starts a worker for a partition, passes calls on, and says when a worker is lost. It
repeats nothing by itself: which steps a fit takes is for the coordinator alone, since a step or a
draw that an engine made twice would be a second release.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from dplasso.cluster.events import Events
from dplasso.cluster.worker import Partition, Worker

# Gives the result of a call, waiting for it; raises `WorkerLost`, or what the worker raised.
Pending = Callable[[], Any]


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

    Parameters
    ----------
    threads : int, default=1
        Threads of each worker besides.
    restarts, events
        As of `InProcessEngine`.
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
