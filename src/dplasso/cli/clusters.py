"""``fit --cluster``: stores as the partitions of one data set, on many machines or in threads."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dplasso.cli.inputs import BESIDE_CLUSTER, ReadingOptions, refuse
from dplasso.cluster import Engine, RayEngine, ThreadEngine
from dplasso.cluster.storage import header_and_labels, stores_at
from dplasso.data.formats import Dataset
from dplasso.data.source_files import is_address, places_of
from dplasso.data.store import Store, open_store
from dplasso.data.store.opening import is_store, stores_in
from dplasso.encoding.origin import origin_of, with_origin
from dplasso.errors import DataError

# An address of a cluster that stands for threads of this process.
THREADS = "threads"


@dataclass(frozen=True)
class ClusterOptions:
    """Options for a fit on partitions.

    Data
    ----
    cluster : ADDRESS|threads
        DATA are stores, or folders of stores, or addresses of either on object storage
        (s3://bucket/stores/), each store separately: on a Ray cluster at this address
        (auto; local for the cores of this machine), or in threads of this process.
    worker_threads : N >= 1
        Cores of each worker.
    open_cluster
        Allow a Ray cluster without token and encryption. Use it only if nobody else can reach the
        cluster.
    restarts : N >= 0
        With --cluster: how often a store's worker may be lost before the fit is given up.
    patience : SECONDS
        With --cluster: seconds within which a worker must start; the one that replaces it shares
        cores.
    """

    cluster: str | None = None
    worker_threads: int = 1
    open_cluster: bool = False
    restarts: int = RayEngine.restarts
    patience: float = RayEngine.patience

    @property
    def engine(self) -> Engine | None:
        """The engine that runs the workers; None without ``--cluster``."""
        if self.cluster is None:
            return None
        if self.cluster == THREADS:
            return ThreadEngine(self.worker_threads)
        waiting = self.restarts, self.patience, self.open_cluster
        return RayEngine(self.cluster, self.worker_threads, *waiting)


@dataclass
class Stores:
    """Stores that are one data set, of which header and labels were read."""

    places: list[str]
    shape: tuple[int, int]
    nnz: int


def read_partitions(
    data: Sequence[str], reading: ReadingOptions, n_features: int | None
) -> Dataset:
    """Open stores, patterns, folders and addresses of stores as one data set.

    The workers compare the columns of all stores.
    """
    refuse({"--binarize": reading.binarize, "--schema": reading.schema}, BESIDE_CLUSTER)
    stores: list[Store] = []
    places: list[str] = []
    for name in data:
        if is_address(name):
            away = stores_at(name)
            stores += map(header_and_labels, away)
            places += away
            continue
        path = Path(name)
        named = [path] if path.exists() else places_of(name)
        if not named:
            raise DataError(f"{name}: no store or folder of stores exists there")
        for place in named:
            inside = stores_in(place) if place.is_dir() and not is_store(place) else []
            here = [open_store(path) for path in inside or [place]]
            stores += here
            places += [str(store.path) for store in here]
    columns = stores[0].shape[1]
    if n_features is not None and columns != n_features:
        raise DataError(
            f"the stores have {columns:,} columns, not {n_features:,}; leave --features out"
        )
    labels = np.concatenate([store.y for store in stores])
    rows = Stores(places, (len(labels), columns), sum(store.nnz for store in stores))
    return Dataset(with_origin(rows, origin_of(stores[0])), labels, f"{len(places)} stores")
