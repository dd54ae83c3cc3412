"""Ray clusters: joining one, or making one for this process alone, and work in pieces on it.

A piece of work draws nothing, unlike a step of a fit, so an engine may repeat it.
"""

import atexit
import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from dplasso.errors import ClusterError
from dplasso.files.disk import hold
from dplasso.runtime.progress import say

# The first version in which a cluster asks for a token.
_ASKS_FOR_TOKENS = (2, 52)
# Clusters that this process made for itself alone, by their addresses.
_own: set[str] = set()
# Nothing that is private may be read by other users of a machine.
PRIVATE = 0o077
_FOLDERS = "dplasso-"
# Held, by a file beside it, as long as the process lives.
_HELD = "ray"
# Pieces one after the other, in this process.
THREADS = "threads"
# Seconds without a piece done after which it is said what is waited for.
_PATIENCE = 60.0


@dataclass(frozen=True)
class Cores:
    """What workers of `threads` cores each find on a cluster, of whom there are `count`."""

    ray: Any
    count: int
    threads: int

    @property
    def places(self) -> int:
        """How many of them run at a time with cores of their own, other work apart."""
        return sum(cores // self.threads for cores in self._machines())

    @property
    def turns(self) -> int:
        """How many of them share a place."""
        return -(-self.count // max(1, self.places))

    @property
    def largest(self) -> int:
        """How many cores one of them can have, on a machine of its own."""
        return max(1, min(self.threads, max(self._machines(), default=0)))

    def _machines(self) -> list[int]:
        machines = (one["Resources"] for one in self.ray.nodes() if one["Alive"])
        return [int(one.get("CPU", 0)) for one in machines]

    @property
    def is_short(self) -> bool:
        """Whether there are too few cores for all of them, and no autoscaler that adds machines."""
        return self.places < self.count and coming(self.ray) is None

    @property
    def options(self) -> dict[str, Any]:
        """How a worker is started: with cores of its own, or sharing those there are."""
        return sharing() if self.is_short else {"num_cpus": self.threads}

    def told(self) -> str:
        """Word what there is, and what is being added."""
        total, free = self.ray.cluster_resources(), self.ray.available_resources()
        there = f"{free.get('CPU', 0):g} of the cluster's {total.get('CPU', 0):g} cores are free"
        more = coming(self.ray)
        if more is None:
            return there
        starting = f"is starting {more}" if more else "has not started any"
        return f"{there}; its autoscaler {starting} more {'machine' if more == 1 else 'machines'}"


def coming(ray: Any) -> int | None:
    """Return how many machines an autoscaler is starting; None if the cluster has none."""
    # Clusters of other versions may not know the call, or not answer now.
    with suppress(Exception):
        from ray.autoscaler.v2.sdk import get_cluster_status

        found = get_cluster_status(ray.get_runtime_context().gcs_address)
        if found.stats.autoscaler_version not in (None, "0"):
            launched = sum(int(one.count) for one in found.pending_launches)
            return len(found.pending_nodes) + launched
    return None


def sharing() -> dict[str, Any]:
    """Return how a worker is started that takes turns with others on whatever cores there are."""
    return {"num_cpus": 0, "scheduling_strategy": "SPREAD"}


def _made_here(ray: Any) -> None:
    """Remember that the cluster was made by this process, for itself alone."""
    _own.add(ray.get_runtime_context().gcs_address)


def _refuse_open(ray: Any, address: str) -> None:
    """Raise ClusterError for a cluster of others, unless it asks for a token or encrypts.

    Whoever reaches an open cluster can run code on it, and read the rows.
    """
    token = os.environ.get("RAY_AUTH_MODE", "").lower() == "token"
    version = tuple(int(part) for part in ray.__version__.split(".")[:2])
    encrypted = os.environ.get("RAY_USE_TLS", "").lower() in ("1", "true")
    if encrypted or (token and version >= _ASKS_FOR_TOKENS):
        return
    if ray.is_initialized() and ray.get_runtime_context().gcs_address in _own:
        return
    raise ClusterError(
        f"the Ray cluster at {address!r} asks for no token and encrypts nothing, so whoever "
        "reaches its ports can read the rows. Set RAY_AUTH_MODE=token (Ray 2.52 and later) or "
        "RAY_USE_TLS=1 on all its machines and here. If nobody else can reach it, pass "
        "open_cluster=True"
    )


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
        _refuse_open(ray, address)
    if ray.is_initialized():
        return ray
    with ExitStack() as meanwhile:
        meanwhile.callback(os.umask, os.umask(PRIVATE))
        closed = _closed(ray, cores, meanwhile) if address == "local" else {}
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **closed)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ClusterError(
                f"there is no Ray cluster at {address!r}: {str(error).splitlines()[0]}"
            ) from None
    if closed:
        _refuse_reachable(ray)
        _made_here(ray)
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


def own_folder() -> Path:
    """Make a folder that is closed to others, and is removed with the process.

    A process that is killed cannot remove its folder: the next one that makes one does, and says
    so.
    """
    _remove_orphans()
    kept = ExitStack()
    # Ray opens its folders to everybody, so the folder around them is closed.
    folder = Path(tempfile.mkdtemp(prefix=_FOLDERS))
    kept.enter_context(hold(folder / _HELD, BlockingIOError(f"{folder} is in use")))
    kept.callback(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(kept.close)
    return folder


def _remove_orphans() -> None:
    for mark in Path(tempfile.gettempdir()).glob(f"{_FOLDERS}*/.{_HELD}.lock"):
        folder = mark.parent
        # A folder that somebody else owns, or that the owner's process still holds, stays.
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with hold(folder / _HELD, BlockingIOError()):
                shutil.rmtree(folder)
                say(f"removed {folder}, with the token of a cluster whose process was killed")


def run_tasks(
    address: str,
    work: Callable[..., Any],
    pieces: Sequence[tuple[Any, ...]],
    progress: Callable[[int, int], None] | None = None,
    *,
    threads: int = 1,
    open_cluster: bool = False,
) -> list[Any]:
    """Return what comes of each piece: of `work`, from an importable module, called with it.

    `address`: of a cluster, as of `RayEngine`; "threads" for this process.
    `threads`: cores that a piece uses on a cluster, at most those of its largest machine.
    """
    tell = progress or (lambda *_: None)
    found = []
    if address == THREADS:
        for piece in pieces:
            found.append(work(*piece))
            tell(len(found), len(pieces))
        return found
    ray = connect(address, open_cluster=open_cluster)
    there = Cores(ray, len(pieces), threads)
    task = ray.remote(work).options(num_cpus=there.largest, max_retries=3)
    references = [task.remote(*piece) for piece in pieces]
    waiting = list(references)
    try:
        while waiting:
            done, waiting = ray.wait(waiting, timeout=_PATIENCE)
            tell(len(pieces) - len(waiting), len(pieces))
            if not done:
                say(f"waiting for {len(waiting)} of {len(pieces)} pieces: {there.told()}")
        return list(ray.get(references))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"a piece of the work could not be done: {str(error).splitlines()[0]}"
        ) from None
