"""``fit --cluster``: stores as the partitions of one data set, on many machines or in threads."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


class Stores:
    """Stores that are one data set; header and labels only, if they are on object storage."""

    def __init__(self, stores: list[Store], places: list[str], labels: NDArray[Any]) -> None:
        self.stores, self.places, self.labels = stores, places, labels
        self.store = stores[0]
        self.shape = sum(store.shape[0] for store in stores), self.store.shape[1]
        self.nnz = sum(store.nnz for store in stores)
        with_origin(self, origin_of(self.store))


def open_stores(data: Sequence[str]) -> Dataset:
    """Open stores, patterns, folders and addresses of stores as one data set."""
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
        for place in named:
            inside = stores_in(place) if place.is_dir() and not is_store(place) else []
            here = [open_store(path) for path in inside or [place]]
            stores += here
            places += [str(store.path) for store in here]
        if not named:
            raise DataError(f"{name}: no store or folder of stores exists there")
    for at, store in zip(places, stores, strict=True):
        if store.shape[1] != stores[0].shape[1]:
            raise DataError(
                f"{at} has {store.shape[1]:,} columns and {places[0]} has "
                f"{stores[0].shape[1]:,}; convert all files with the same --features"
            )
    labels = np.concatenate([store.y for store in stores])
    return Dataset(Stores(stores, places, labels), labels, f"{len(places)} stores")


def read_partitions(
    data: Sequence[str], reading: ReadingOptions, n_features: int | None
) -> tuple[Dataset, list[str]]:
    """Return stores as one data set, and their places."""
    refuse({"--binarize": reading.binarize, "--schema": reading.schema}, BESIDE_CLUSTER)
    rows = open_stores(data)
    columns = rows.X.shape[1]
    if n_features is not None and columns != n_features:
        raise DataError(
            f"the stores have {columns:,} columns, not {n_features:,}; leave --features out"
        )
    return rows, rows.X.places
