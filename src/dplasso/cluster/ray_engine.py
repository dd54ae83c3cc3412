"""Workers as Ray actors: on the cores of this machine, or on a cluster (docs/cluster.md)."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.coordinators import sum_of
from dplasso.cluster.engines import Held, Pending, WorkerLost
from dplasso.cluster.ray_cluster import PRIVATE, Cores, connect
from dplasso.cluster.worker import Partition, Worker
from dplasso.frank_wolfe.round_part import Changes
from dplasso.runtime.progress import say

# Methods whose answers are parts of a sum. Larger answers stay on the workers until they are added
# up; Ray sends smaller ones with its own messages.
_SUMMED = ("begin_vertices", "move", "sums")
_SMALL = 100_000
# Seconds between two messages that a worker has not started.
_SAY = 30.0


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
        Seconds within which a worker must start, or else it is lost. The worker that replaces a
        lost one shares the cores of others, and all do if the cluster has too few cores.
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
                f"{count} workers of {self.threads} core{'s' * (self.threads > 1)} each share the "
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
    started: set[str] = field(default_factory=set, kw_only=True)

    def start(self, partition: Partition) -> "RayHandle":
        """Start an actor, which answers `ready` when it runs."""
        shares = self.cores.is_short or partition.name in self.started
        where = {"num_cpus": 0, "scheduling_strategy": "SPREAD"}
        # Ray must not repeat actors or calls.
        options: dict[str, Any] = {"max_restarts": 0, "max_task_retries": 0}
        options |= where if shares else {"num_cpus": self.threads}
        self.started.add(partition.name)
        kind = self.cores.ray.remote(RayWorker).options(**options)
        return RayHandle(kind.remote(partition, self.threads), self, partition.name)


class RayHandle:
    """A handle to an actor."""

    def __init__(self, actor: Any, workers: RayWorkers, name: str) -> None:
        self.actor, self._workers, self._name = actor, workers, name

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
        cores, patience = self._workers.cores, self._workers.patience
        while not cores.ray.wait([pending], timeout=min(_SAY, patience))[0]:
            waited = time.monotonic() - began
            if waited >= patience:
                raise WorkerLost(f"it did not start within {waited:.0f} seconds")
            say(
                f"waiting for the worker of {self._name} to start, {waited:.0f} s so far: "
                f"{cores.described()}"
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
