"""``--cluster``: stores as the partitions of one data set, on many machines or in threads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dplasso
from dplasso.cli import output
from dplasso.cli.inputs import BESIDE_CLUSTER, ReadingOptions, refuse
from dplasso.cluster import Engine, RayEngine, ThreadEngine
from dplasso.cluster.ray_cluster import THREADS, run_tasks
from dplasso.cluster.storage import header_and_labels, opened_store, stores_at
from dplasso.data.formats import Dataset
from dplasso.data.source_files import is_address, places_of
from dplasso.data.store import Store, open_store
from dplasso.data.store.opening import is_store, stores_in
from dplasso.encoding.origin import check_same_origin, origin_of, with_origin
from dplasso.errors import DataError


@dataclass(frozen=True)
class ClusterOptions:
    """Options for the cluster of a command.

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
    """

    cluster: str | None = None
    worker_threads: int = 1
    open_cluster: bool = False

    def run(self, label: str, bars: output.Bars, work: Callable[..., Any], pieces: Any) -> Any:
        """Run a task for each piece under a progress bar; return the results."""
        assert self.cluster is not None
        how: dict[str, Any] = {"threads": self.worker_threads, "open_cluster": self.open_cluster}
        with bars.task(label) as progress:
            return run_tasks(self.cluster, work, pieces, progress, **how)


@dataclass(frozen=True)
class WorkerOptions:
    """Options for the workers of a fit.

    Data
    ----
    restarts : N >= 0
        With --cluster: how often a store's worker may be lost before the fit is given up.
    patience : SECONDS
        With --cluster: how long a worker waits for cores of its own; then it shares those there
        are.
    """

    restarts: int = RayEngine.restarts
    patience: float = RayEngine.patience

    def engine(self, where: ClusterOptions) -> Engine | None:
        """Return the engine that runs the workers; None without ``--cluster``."""
        if where.cluster is None:
            return None
        if where.cluster == THREADS:
            return ThreadEngine(where.worker_threads)
        waiting = self.restarts, self.patience, where.open_cluster
        return RayEngine(where.cluster, where.worker_threads, *waiting)


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


@dataclass(frozen=True)
class OverStores:
    """A fitted model, from the file `path`, that a task applies to each store."""

    fitted: Any
    path: Path
    cluster: ClusterOptions
    bars: output.Bars

    def __getattr__(self, name: str) -> Any:
        if name in ("decision_function", "predict", "predict_proba"):
            return partial(self._apply, name)
        return getattr(self.fitted, name)

    def _apply(self, method: str, X: Stores) -> NDArray[Any]:
        pieces = [(self.path.resolve(), method, place) for place in X.places]
        return np.concatenate(self.cluster.run("predicting", self.bars, apply_model, pieces))


def apply_model(model: Path, method: str, place: str) -> NDArray[Any]:
    """Apply a model file to a store, or to a copy of one on object storage."""
    with opened_store(place) as store:
        predictions: NDArray[Any] = getattr(dplasso.load(model), method)(store)
    return predictions


def over_stores(
    fitted: Any, path: Path, data: Sequence[str], options: ClusterOptions, bars: output.Bars
) -> tuple[OverStores, Dataset]:
    """Return a model that predicts store by store, and the stores as one data set."""
    rows = open_stores(data)
    for place, store in zip(rows.X.places, rows.X.stores, strict=True):
        check_same_origin(fitted.model_.origin, origin_of(store), place)
    return OverStores(fitted, path, options, bars), rows
