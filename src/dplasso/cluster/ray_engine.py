"""Workers as Ray actors: on the cores of this machine, or on a cluster (docs/cluster.md)."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.coordinators import sum_of
from dplasso.cluster.engines import Held, Pending, WorkerLost, cores_in_words
from dplasso.cluster.ray_cluster import PRIVATE, Cores, connect, sharing
from dplasso.cluster.worker import Partition, Worker
from dplasso.frank_wolfe.round_part import Changes
from dplasso.runtime.progress import say

# Methods whose answers are parts of a sum. Larger answers stay on the workers until they are added
# up; Ray sends smaller ones with its own messages.
_SUMMED = ("begin_vertices", "move", "sums")
_SMALL = 100_000
# Seconds between two checks whether a worker has started, and between two messages about it.
_LOOK, _SAY = 2.0, 30.0


class RayWorker(Worker):
    """A worker in its own process, whose files other users cannot read."""

    def __init__(self, partition: Partition, n_threads: int) -> None:
        os.umask(PRIVATE)
        if partition.X is not None:
            # Arrays shared by Ray are read-only, and kernels would be compiled again for them.
            partition = replace(partition, X=partition.X.copy())
        super().__init__(partition, n_threads)

    def sums(self, *released: Any) -> NDArray[np.int64]:
        """Return `Worker.sums` for writable copies of the arrays."""
        return super().sums(
            *(value.copy() if isinstance(value, np.ndarray) else value for value in released)
        )

    def part_of_sum(self, method: str, *args: Any) -> tuple[Any, Any]:
        """Call a method; return (answer, None), or (None, answer) if it is large and dense."""
        answer = getattr(self, method)(*args)
        dense = not isinstance(answer, Changes) or answer.coordinates is None
        amounts = answer.amounts if isinstance(answer, Changes) else answer
        return (None, answer) if dense and amounts.nbytes > _SMALL else (answer, None)

    def add(self, *answers: Any) -> Any:
        """Add up dense answers of several workers."""
        if not isinstance(answers[0], Changes):
            return sum_of(list(answers))
        return Changes(None, sum_of([answer.amounts for answer in answers]))


@dataclass(frozen=True)
class RayEngine:
    """Run every partition as a Ray actor.

    Parameters
    ----------
    address : str, default="auto"
        The cluster: "auto" for the one that this machine belongs to, "local" for the cores of this
        machine, otherwise its address.
    threads : int, default=1
        Cores and threads of each worker.
    restarts : int, default=3
        How often the worker of a partition may be lost before the fit ends.
    patience : float, default=300
        Seconds that a worker waits for its own cores before it shares cores. A worker that shares
        cores is lost if it does not start within this time for each worker in its place.
    open_cluster : bool, default=False
        Whether to join a cluster without tokens and encryption. Only use it if nobody else can
        reach the cluster.
    """

    address: str = "auto"
    threads: int = 1
    restarts: int = 3
    patience: float = 300.0
    open_cluster: bool = False

    def gather(self, count: int) -> "RayWorkers":
        """Join the cluster for `count` workers; `ClusterError` if there is none, or it is open."""
        ray = connect(self.address, open_cluster=self.open_cluster)
        cores = Cores(ray, count, self.threads)
        if cores.is_short:
            say(
                f"{count} workers of {cores_in_words(self.threads)} each share the "
                f"cluster's cores, which suffice for {cores.places} at a time"
            )
        return RayWorkers(**vars(self) | {"cores": cores})

    def start(self, partition: Partition) -> "RayHandle":
        """Start an actor; see `RayWorkers.start`."""
        return self.gather(1).start(partition)

    def shared(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Put large arrays into the object store, once for all workers."""
        import ray

        return tuple(
            ray.put(value) if isinstance(value, np.ndarray) and value.nbytes > _SMALL else value
            for value in args
        )


@dataclass(frozen=True)
class RayWorkers(RayEngine):
    """The workers of a fit on a cluster."""

    cores: Cores = field(kw_only=True)

    def start(self, partition: Partition) -> "RayHandle":
        """Start an actor, which answers `ready` when it runs."""
        kind = self.cores.ray.remote(RayWorker)

        def make(**where: Any) -> Any:
            # Ray must not repeat actors or calls.
            options = {"max_restarts": 0, "max_task_retries": 0, **where}
            return kind.options(**options).remote(partition, self.threads)

        return RayHandle(make, self, partition.name)


class RayHandle:
    """A handle to an actor, which waits for its own cores for some time."""

    def __init__(self, make: Callable[..., Any], workers: RayWorkers, name: str) -> None:
        self._make, self._cores, self._name = make, workers.cores, name
        self._patience = workers.patience
        where = workers.cores.options
        self._shares = not where["num_cpus"]
        self.actor = make(**where)

    def call(self, method: str, *args: Any) -> Pending:
        """Send the call."""
        if method not in _SUMMED:
            # Other calls have no time limit, because Ray reports a lost actor.
            pending = getattr(self.actor, method).remote(*args)
            # The waiting time counts from now, even if other answers are fetched first.
            arrived = partial(self._arrived, pending, time.monotonic())
            return arrived if method == "ready" else _answer_of(pending)
        small, large = self.actor.part_of_sum.options(num_returns=2).remote(method, *args)

        def result() -> Any:
            answer = _answer_of(small)()
            return self._held(large) if answer is None else answer

        return result

    def _arrived(self, pending: Any, began: float) -> Any:
        """Wait until the actor answers `ready`; an actor that waits for cores is not lost."""
        reported = 0.0
        while not self._cores.ray.wait([pending], timeout=_LOOK)[0]:
            waited = time.monotonic() - began
            over = waited > self._patience
            if self._shares and waited > self._patience * self._cores.turns:
                raise WorkerLost(f"it did not start within {waited:.0f} seconds")
            # The cores may have become too few, because a machine was lost.
            if not self._shares and (over or self._cores.is_short):
                say(f"the worker of {self._name} shares cores: {self._cores.described()}")
                self.end()
                self.actor, self._shares = self._make(**sharing()), True
                pending, began = self.actor.ready.remote(), time.monotonic()
            elif waited > reported + _SAY:
                reported = waited
                say(
                    f"waiting for the worker of {self._name} to start, {waited:.0f} s so far: "
                    f"{self._cores.described()}"
                )
        return _answer_of(pending)()

    def _held(self, reference: Any) -> Held:
        def add(others: Sequence[Held]) -> Held:
            references = (other.reference for other in others)
            return self._held(self.actor.add.remote(reference, *references))

        return Held(_answer_of(reference), add, reference)

    def end(self) -> None:
        """Kill the actor."""
        import ray

        ray.kill(self.actor)


def _answer_of(reference: Any) -> Pending:
    import ray

    lost = (
        ray.exceptions.RayActorError,
        ray.exceptions.WorkerCrashedError,
        ray.exceptions.ObjectLostError,
        ray.exceptions.OutOfMemoryError,
    )

    def result() -> Any:
        try:
            return ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except lost as error:
            raise WorkerLost(str(error).splitlines()[0]) from None

    return result
