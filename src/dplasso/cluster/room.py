"""How many workers a Ray cluster has cores for at a time, and whether strangers reach it."""

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dplasso.errors import ClusterError

# The first version in which a cluster asks for a token.
_ASKS_FOR_TOKENS = (2, 52)
# Clusters that this process made for itself alone, by their addresses.
_own: set[str] = set()


@dataclass(frozen=True)
class Room:
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


def made_here(ray: Any) -> None:
    """Remember that the cluster was made by this process, for itself alone."""
    _own.add(ray.get_runtime_context().gcs_address)


def refuse_open(ray: Any, address: str) -> None:
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
        "reaches its ports can read the rows: set RAY_AUTH_MODE=token (Ray 2.52 and later) or "
        "RAY_USE_TLS=1 on all its machines and here; or, where nobody else reaches it, say so with "
        "open_cluster=True"
    )
