"""Workers as Ray actors: on the cores of this machine, or on a cluster (docs/cluster.md)."""

import atexit
import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.engines import Held, Pending, WorkerLost
from dplasso.cluster.frank_wolfe import sum_of
from dplasso.cluster.worker import Partition, Worker
from dplasso.errors import ClusterError
from dplasso.frank_wolfe.round_part import Changes

# Nothing that is private may be read by other users of a machine.
_PRIVATE = 0o077
# Methods whose answers are parts of a sum. Those of more bytes stay where they are until they are
# added up; smaller ones Ray sends with its own messages.
_SUMMED = ("begin_vertices", "move", "sums")
_SMALL = 100_000


class RayWorker(Worker):
    """A worker in a process of its own, whose files nobody else may read."""

    def __init__(self, partition: Partition, n_threads: int) -> None:
        os.umask(_PRIVATE)
        if partition.X is not None:
            # What Ray shares cannot be written to, and kernels would be compiled anew for it.
            partition = replace(partition, X=partition.X.copy())
        super().__init__(partition, n_threads)

    def sums(self, released: NDArray[np.float64], *unit: float) -> NDArray[np.int64]:
        """As `Worker.sums`."""
        return super().sums(released.copy(), *unit)

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
        Seconds that a worker may take to start before it counts as lost.
    """

    address: str = "auto"
    threads: int = 1
    restarts: int = 3
    patience: float = 300.0

    def start(self, partition: Partition) -> "RayHandle":
        """Start an actor; that it is there is known by its answer to `ready`.

        Raises ClusterError if Ray is not installed or there is no cluster.
        """
        ray = connect(self.address)
        # Neither actors nor calls are repeated by the engine.
        options = {"num_cpus": self.threads, "max_restarts": 0, "max_task_retries": 0}
        actor = ray.remote(RayWorker).options(**options).remote(partition, self.threads)
        return RayHandle(actor, self.patience)

    def shared(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Put large arrays into the object store, once for all workers."""
        import ray

        return tuple(
            ray.put(one) if isinstance(one, np.ndarray) and one.nbytes > _SMALL else one
            for one in args
        )


@dataclass(frozen=True)
class RayHandle:
    """An actor, and how many seconds it may take to start."""

    actor: Any
    patience: float

    def call(self, method: str, *args: Any) -> Pending:
        """Send the call."""
        if method not in _SUMMED:
            # Other calls have no time limit: Ray says when an actor is lost.
            patience = self.patience if method == "ready" else None
            return _answer_of(getattr(self.actor, method).remote(*args), patience)
        small, large = self.actor.part_of_sum.options(num_returns=2).remote(method, *args)

        def result() -> Any:
            found = _answer_of(small)()
            return self._held(large) if found is None else found

        return result

    def _held(self, reference: Any) -> Held:
        def add(others: Sequence[Held]) -> Held:
            return self._held(self.actor.add.remote(reference, *(one.reference for one in others)))

        return Held(_answer_of(reference), add, reference)

    def end(self) -> None:
        """Kill the actor."""
        import ray

        ray.kill(self.actor)


def _answer_of(reference: Any, patience: float | None = None) -> Pending:
    """Return what waits for an answer, at most so many seconds."""
    import ray

    lost = (
        ray.exceptions.RayActorError,
        ray.exceptions.WorkerCrashedError,
        ray.exceptions.ObjectLostError,
        ray.exceptions.OutOfMemoryError,
        ray.exceptions.GetTimeoutError,
    )

    def result() -> Any:
        try:
            return ray.get(reference, timeout=patience)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except lost as error:
            raise WorkerLost(str(error).splitlines()[0]) from None

    return result


def connect(address: str, cores: int | None = None) -> Any:
    """Return the module ray, connected to a cluster.

    `address`: as of `RayEngine`. A cluster of this machine alone is made for the process: it
    listens to this machine only and to nobody without its token (Ray 2.52 and later), has no
    dashboard, tells nobody of its use, spills nothing to the disk, and its folder is closed to
    other users.
    `cores`: of such a cluster; by default those of the machine.

    Raises ClusterError if Ray is not installed, or there is no such cluster.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ClusterError(
            "a cluster needs Ray, which is not installed: pip install 'dplasso[ray]'"
        ) from None
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
        _refuse_open(ray)
    return ray


def _refuse_open(ray: Any) -> None:
    """End a cluster that other machines reach; raises ClusterError."""
    here = ray.util.get_node_ip_address()
    if not ip_address(here).is_loopback:
        ray.shutdown()
        raise ClusterError(
            f"Ray {ray.__version__} would listen at {here}, where other machines reach it; start a "
            "cluster by hand (docs/cluster.md), or use another version of Ray"
        )


def _closed(ray: Any, cores: int | None, meanwhile: ExitStack) -> dict[str, Any]:
    """Return how Ray is started for this process alone; `meanwhile` lasts until it has."""
    # Ray opens its folders to everybody, so the folder around them is closed.
    folder = Path(tempfile.mkdtemp(prefix="dplasso-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
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
