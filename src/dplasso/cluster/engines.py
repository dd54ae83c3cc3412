"""Engines, which run the workers.

An engine never repeats a call, because repeating a step or a draw would be a second release.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from dplasso.cluster.worker import Partition, Worker

# Waits for the result of a call and returns it; raises `WorkerLost`, or the worker's exception.
Pending = Callable[[], Any]


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
    """

    threads: int = 1
    restarts: int = 0

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
