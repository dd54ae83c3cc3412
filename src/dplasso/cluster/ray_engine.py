"""Workers as Ray actors: on the cores of this machine, or on a cluster (docs/cluster.md)."""

import logging
import os
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import ip_address
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.engines import Held, Pending, WorkerLost
from dplasso.cluster.estimate import cores_in_words
from dplasso.cluster.events import Events
from dplasso.cluster.frank_wolfe import sum_of
from dplasso.cluster.own_folder import own_folder
from dplasso.cluster.room import Room, made_here, refuse_open, sharing
from dplasso.cluster.worker import Partition, Worker
from dplasso.errors import ClusterError
from dplasso.frank_wolfe.round_part import Changes
from dplasso.runtime.progress import say

# Nothing that is private may be read by other users of a machine.
_PRIVATE = 0o077
# Methods whose answers are parts of a sum. Those of more bytes stay where they are until they are
# added up; smaller ones Ray sends with its own messages.
_SUMMED = ("begin_vertices", "move", "sums")
_SMALL = 100_000
# Seconds between two looks at a worker that is to start, and between two words about it.
_LOOK, _SAY = 2.0, 30.0


class RayWorker(Worker):
    """A worker in a process of its own, whose files nobody else may read."""

    def __init__(self, partition: Partition, n_threads: int) -> None:
        os.umask(_PRIVATE)
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
        room = Room(ray, count, self.threads)
        if room.is_short:
            say(
                f"{count} workers of {cores_in_words(self.threads)} each share the "
                f"cluster's cores, which are enough for {room.places} at a time"
            )
        return RayWorkers(**vars(self) | {"room": room})

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

    room: Room = field(kw_only=True)

    def start(self, partition: Partition) -> "RayHandle":
        """Start an actor; that it is there is known by its answer to `ready`."""
        kind = self.room.ray.remote(RayWorker)

        def make(**where: Any) -> Any:
            # Neither actors nor calls are repeated by the engine.
            options = {"max_restarts": 0, "max_task_retries": 0, **where}
            return kind.options(**options).remote(partition, self.threads)

        return RayHandle(make, self, partition.name)


class RayHandle:
    """An actor, which waits for cores of its own for some seconds."""

    def __init__(self, make: Callable[..., Any], workers: RayWorkers, name: str) -> None:
        self._make, self._room, self._name = make, workers.room, name
        self._patience, self._events = workers.patience, workers.events
        where = workers.room.options
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
        while not self._room.ray.wait([pending], timeout=_LOOK)[0]:
            waited = time.monotonic() - began
            over = waited > self._patience
            if self._shares and waited > self._patience * self._room.turns:
                raise WorkerLost(f"it did not start within {waited:.0f} seconds")
            # A machine may have been lost, and cores with it.
            if not self._shares and (over or self._room.is_short):
                self._say(f"the worker of {self._name} shares cores: {self._room.told()}")
                self.end()
                self.actor, self._shares = self._make(**sharing()), True
                pending, began = self.actor.ready.remote(), time.monotonic()
            elif waited > told + _SAY:
                told = waited
                self._say(
                    f"waiting for the worker of {self._name} to start, {waited:.0f} s so far: "
                    f"{self._room.told()}"
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


def connect(address: str, cores: int | None = None, *, open_cluster: bool = False) -> Any:
    """Return the module ray, connected to a cluster; `cores`: of one of this machine alone.

    Such a cluster is made for the process: it listens to this machine only and to nobody without
    its token (Ray 2.52 and later), has no dashboard, tells nobody of its use, spills nothing to the
    disk, and its folder is closed to other users.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ClusterError(
            "a cluster needs Ray, which is not installed: pip install 'dplasso[ray]'"
        ) from None
    if not (open_cluster or (address == "local" and not ray.is_initialized())):
        refuse_open(ray, address)
    if ray.is_initialized():
        return ray
    with ExitStack() as meanwhile:
        meanwhile.callback(os.umask, os.umask(_PRIVATE))
        closed = _closed(ray, cores, meanwhile) if address == "local" else {}
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **closed)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ClusterError(
                f"there is no Ray cluster at {address!r}: {str(error).splitlines()[0]}"
            ) from None
    if closed:
        _refuse_reachable(ray)
        made_here(ray)
    return ray


def _refuse_reachable(ray: Any) -> None:
    """End a cluster that other machines reach."""
    here = ray.util.get_node_ip_address()
    if not ip_address(here).is_loopback:
        ray.shutdown()
        raise ClusterError(
            f"Ray {ray.__version__} would listen at {here}, where other machines reach it; start a "
            "cluster by hand (docs/cluster.md), or use another version of Ray"
        )


def _closed(ray: Any, cores: int | None, meanwhile: ExitStack) -> dict[str, Any]:
    """Return how Ray is started for this process alone; `meanwhile` lasts until it has."""
    folder = own_folder()
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        if not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & set(os.environ):
            token = folder / "token"
            token.write_text(secrets.token_hex(32))
            os.environ["RAY_AUTH_TOKEN_PATH"] = str(token)
        # Ray read its settings when it was imported.
        ray._raylet.Config.initialize("")
    # Otherwise it takes the machine's address on the network for the one of this machine.
    constants = ray._private.ray_constants
    meanwhile.callback(setattr, constants, "ENABLE_RAY_CLUSTER", constants.ENABLE_RAY_CLUSTER)
    constants.ENABLE_RAY_CLUSTER = False
    return {
        "num_cpus": cores,
        "include_dashboard": False,
        "_node_ip_address": "127.0.0.1",
        "_temp_dir": str(folder / "ray"),
        "_system_config": {"automatic_object_spilling_enabled": False},
    }
