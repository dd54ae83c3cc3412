"""Join a Ray cluster, or start one for this process only."""

import atexit
import logging
import os
import secrets
import shutil
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from dplasso.errors import ClusterError
from dplasso.files.disk import hold
from dplasso.runtime.progress import say

# The first version of Ray that supports tokens.
_ASKS_FOR_TOKENS = (2, 52)
# Addresses of clusters that this process started for itself.
_own: set[str] = set()
# The umask for private files: no access for other users of the machine.
PRIVATE = 0o077
_FOLDERS = "dplasso-"
# Locked while the process lives.
_HELD = "ray"


@dataclass(frozen=True)
class Cores:
    """The cores of a cluster for `count` workers with `threads` cores each."""

    ray: Any
    count: int
    threads: int

    @property
    def places(self) -> int:
        """Number of workers that can run at a time on their own cores, ignoring other work."""
        machines = (node["Resources"] for node in self.ray.nodes() if node["Alive"])
        return sum(int(resources.get("CPU", 0)) // self.threads for resources in machines)

    @property
    def is_short(self) -> bool:
        """Whether there are too few cores for all workers, and no autoscaler to add machines."""
        return self.places < self.count and not _autoscales(self.ray)

    def described(self) -> str:
        """Say how many cores are free."""
        total, free = self.ray.cluster_resources(), self.ray.available_resources()
        return f"{free.get('CPU', 0):g} of the cluster's {total.get('CPU', 0):g} cores are free"


def _autoscales(ray: Any) -> bool:
    # Clusters of other versions may not support the call, or may not answer.
    with suppress(Exception):
        from ray.autoscaler.v2.sdk import get_cluster_status

        status = get_cluster_status(ray.get_runtime_context().gcs_address)
        return status.stats.autoscaler_version not in (None, "0")
    return False


def _refuse_open(ray: Any, address: str) -> None:
    """Raise `ClusterError` for a shared cluster without token or encryption.

    Anyone who can reach the ports of such a cluster can run code on it and read the rows.
    """
    token = os.environ.get("RAY_AUTH_MODE", "").lower() == "token"
    version = tuple(int(part) for part in ray.__version__.split(".")[:2])
    encrypted = os.environ.get("RAY_USE_TLS", "").lower() in ("1", "true")
    if encrypted or (token and version >= _ASKS_FOR_TOKENS):
        return
    if ray.is_initialized() and ray.get_runtime_context().gcs_address in _own:
        return
    raise ClusterError(
        f"the Ray cluster at {address!r} uses neither tokens nor encryption, so anyone who can "
        "reach its ports can read the rows. Set RAY_AUTH_MODE=token (Ray 2.52 and later) or "
        "RAY_USE_TLS=1 on all its machines and here. If nobody else can reach it, pass "
        "open_cluster=True"
    )


def connect(address: str, cores: int | None = None, *, open_cluster: bool = False) -> Any:
    """Connect to a cluster, and return the module ray; `cores`: of a cluster on this machine.

    The address "local" starts a cluster for this process. It listens on this machine only, requires
    a token (Ray 2.52 and later), has no dashboard, sends no usage statistics, does not spill data
    to the disk, and other users cannot read its folder.
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
        _own.add(ray.get_runtime_context().gcs_address)
    return ray


def _refuse_reachable(ray: Any) -> None:
    """Shut down a cluster that other machines can reach."""
    here = ray.util.get_node_ip_address()
    if not ip_address(here).is_loopback:
        ray.shutdown()
        raise ClusterError(
            f"Ray {ray.__version__} would listen at {here}, where other machines can reach it; "
            "start a cluster yourself (docs/cluster.md), or use another version of Ray"
        )


def _closed(ray: Any, cores: int | None, meanwhile: ExitStack) -> dict[str, Any]:
    """Return Ray's options for a cluster of this process; `meanwhile` ends after its start."""
    folder = own_folder()
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        if not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & set(os.environ):
            token = folder / "token"
            token.write_text(secrets.token_hex(32))
            os.environ["RAY_AUTH_TOKEN_PATH"] = str(token)
        # Read the settings again, because Ray read them at its import.
        ray._raylet.Config.initialize("")
    # Otherwise Ray would use the network address of this machine.
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
    """Make a folder that other users cannot read, and that is removed when the process ends.

    The next process removes the folder of a killed process, with a message.
    """
    _remove_orphans()
    kept = ExitStack()
    # Ray's own folders are open to everybody, so the folder around them must be closed.
    folder = Path(tempfile.mkdtemp(prefix=_FOLDERS))
    kept.enter_context(hold(folder / _HELD, BlockingIOError(f"{folder} is in use")))
    kept.callback(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(kept.close)
    return folder


def _remove_orphans() -> None:
    for mark in Path(tempfile.gettempdir()).glob(f"{_FOLDERS}*/.{_HELD}.lock"):
        folder = mark.parent
        # Keep folders of other users, and of processes that still run.
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with hold(folder / _HELD, BlockingIOError()):
                shutil.rmtree(folder)
                say(f"removed {folder}, the folder of a cluster whose process was killed")
