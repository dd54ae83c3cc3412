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
from dplasso.cluster.engines import Events, Held, Pending, WorkerLost, cores_in_words
from dplasso.cluster.ray_cluster import PRIVATE, Cores, connect, sharing
from dplasso.cluster.worker import Partition, Worker
from dplasso.frank_wolfe.round_part import Changes
from dplasso.runtime.progress import say

# Methods whose answers are parts of a sum. Those of more bytes stay where they are until they are
# added up; smaller ones Ray sends with its own messages.
_SUMMED = ("begin_vertices", "move", "sums")
_SMALL = 100_000
# Seconds between two looks at a worker that is to start, and between two words about it.
_LOOK, _SAY = 2.0, 30.0


class RayWorker(Worker):
    """A worker in a process of its own, whose files nobody else may read."""

    def __init__(self, partition: Partition, n_threads: int) -> None:
        os.umask(PRIVATE)
        if partition.X is not None:
            # What Ray shares cannot be written to, and kernels would be compiled anew for it.
            partition = replace(partition, X=partition.X.copy())
        super().__init__(partition, n_threads)

    def sums(self, *released: Any) -> NDArray[np.int64]:
        """As `Worker.sums`."""
        return super().sums(
            *(one.copy() if isinstance(one, np.ndarray) else one for one in released)
        )

    def part_of_sum(self, method: str, *args: Any) -> tuple[Any, Any]:
        """Call a method; return its answer and None, or None and one that is large and dense."""
        found = getattr(self, method)(*args)
        dense = not isinstance(found, Changes) or found.coordinates is None
        amounts = found.amounts if isinstance(found, Changes) else found
        return (None, found) if dense and amounts.nbytes > _SMALL else (found, None)

    def add(self, *answers: Any) -> Any:
        """Add up answers of several workers, all of them dense."""
        if not isinstance(answers[0], Changes):
            return sum_of(list(answers))
        amounts, counts = ([one[k] for one in answers] for k in (1, 2))
        return Changes(None, sum_of(amounts), sum_of(counts))


@dataclass(frozen=True)
class RayEngine:
    """Every partition is an actor of Ray.

    Parameters
    ----------
    address : str, default="auto"
        The cluster: "auto" for the one that this machine is part of, "local" for the cores of this
        machine alone, otherwise its address.
    threads : int, default=1
        Cores and threads of each worker.
    restarts : int, default=3
        How often a partition's worker may be lost in a fit before the fit is given up.
    patience : float, default=300
        Seconds that a worker waits for cores of its own; then it shares those there are. One that
        has not started after as long again, for each worker that a core has, counts as lost.
    open_cluster : bool, default=False
        Join a cluster that asks for no token and encrypts nothing: say so where nobody else can
        reach it.
    events : Events, default=Events()
        As of `InProcessEngine`.
    """

    address: str = "auto"
    threads: int = 1
    restarts: int = 3
    patience: float = 300.0
    open_cluster: bool = False
    events: Events = field(default_factory=Events, compare=False)

    def gather(self, count: int) -> "RayWorkers":
        """Join the cluster for so many workers; ClusterError if there is none, or it is open."""
        ray = connect(self.address, open_cluster=self.open_cluster)
        cores = Cores(ray, count, self.threads)
        if cores.is_short:
            say(
                f"{count} workers of {cores_in_words(self.threads)} each share the "
                f"cluster's cores, which are enough for {cores.places} at a time"
            )
        return RayWorkers(**vars(self) | {"cores": cores})

    def start(self, partition: Partition) -> "RayHandle":
        """Start an actor, as `RayWorkers.start`."""
        return self.gather(1).start(partition)

    def shared(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Put large arrays into the object store, once for all workers."""
        import ray

        return tuple(
            ray.put(one) if isinstance(one, np.ndarray) and one.nbytes > _SMALL else one
            for one in args
        )


@dataclass(frozen=True)
class RayWorkers(RayEngine):
    """The workers of a fit on a cluster."""

    cores: Cores = field(kw_only=True)

    def start(self, partition: Partition) -> "RayHandle":
        """Start an actor; that it is there is known by its answer to `ready`."""
        kind = self.cores.ray.remote(RayWorker)

        def make(**where: Any) -> Any:
            # Neither actors nor calls are repeated by the engine.
            options = {"max_restarts": 0, "max_task_retries": 0, **where}
            return kind.options(**options).remote(partition, self.threads)

        return RayHandle(make, self, partition.name)


class RayHandle:
    """An actor, which waits for cores of its own for some seconds."""

    def __init__(self, make: Callable[..., Any], workers: RayWorkers, name: str) -> None:
        self._make, self._cores, self._name = make, workers.cores, name
        self._patience, self._events = workers.patience, workers.events
        where = workers.cores.options
        self._shares = not where["num_cpus"]
        self.actor = make(**where)

    def call(self, method: str, *args: Any) -> Pending:
        """Send the call."""
        if method not in _SUMMED:
            # Other calls have no time limit: Ray says when an actor is lost.
            pending = getattr(self.actor, method).remote(*args)
            # All workers wait at once, whoever's answer is asked for first.
            arrived = partial(self._arrived, pending, time.monotonic())
            return arrived if method == "ready" else _answer_of(pending)
        small, large = self.actor.part_of_sum.options(num_returns=2).remote(method, *args)

        def result() -> Any:
            found = _answer_of(small)()
            return self._held(large) if found is None else found

        return result

    def _arrived(self, pending: Any, began: float) -> Any:
        """Wait until the actor answers `ready`; one that waits for cores is not lost."""
        told = 0.0
        while not self._cores.ray.wait([pending], timeout=_LOOK)[0]:
            waited = time.monotonic() - began
            over = waited > self._patience
            if self._shares and waited > self._patience * self._cores.turns:
                raise WorkerLost(f"it did not start within {waited:.0f} seconds")
            # A machine may have been lost, and cores with it.
            if not self._shares and (over or self._cores.is_short):
                self._say(f"the worker of {self._name} shares cores: {self._cores.told()}")
                self.end()
                self.actor, self._shares = self._make(**sharing()), True
                pending, began = self.actor.ready.remote(), time.monotonic()
            elif waited > told + _SAY:
                told = waited
                self._say(
                    f"waiting for the worker of {self._name} to start, {waited:.0f} s so far: "
                    f"{self._cores.told()}"
                )
        return _answer_of(pending)()

    def _say(self, line: str) -> None:
        say(line)
        self._events.tell("waiting", partition=self._name, told=line)

    def _held(self, reference: Any) -> Held:
        def add(others: Sequence[Held]) -> Held:
            return self._held(self.actor.add.remote(reference, *(one.reference for one in others)))

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
