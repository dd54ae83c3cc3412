"""``--cluster``: stores as the partitions of one data set, on many machines or in threads."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from numpy.typing import NDArray

from dplasso.errors import DataError

if TYPE_CHECKING:
    from dplasso.cli import output
    from dplasso.cli.reading import ReadingOptions
    from dplasso.cluster import Engine
    from dplasso.data.files import Dataset
    from dplasso.data.store import Store


@dataclass(frozen=True)
class ClusterOptions:
    """Where partitions are worked on.

    Data
    ----
    cluster : ADDRESS|threads
        DATA are stores, or folders of stores, or addresses of either on object storage
        (s3://bucket/stores/), each store worked on by itself: on a Ray cluster at this address
        (auto; local for the cores of this machine), or in threads of this process.
    worker_threads : N >= 1
        Cores of each worker.
    """

    cluster: str | None = None
    worker_threads: int = 1

    def engine(self) -> "Engine | None":
        """Return what runs the workers; None without ``--cluster``."""
        from dplasso.cluster import RayEngine, ThreadEngine
        from dplasso.cluster.tasks import THREADS

        if self.cluster is None:
            return None
        if self.cluster == THREADS:
            return ThreadEngine(self.worker_threads)
        return RayEngine(self.cluster, self.worker_threads)


@dataclass
class Stores:
    """Stores that are one data set.

    They are opened in the order of the rows; of those on object storage, header and labels alone.
    `store` is the first, for what all have in common.
    """

    stores: "list[Store]"
    places: list[str]
    shape: tuple[int, int] = field(init=False)
    nnz: int = field(init=False)
    store: "Store" = field(init=False)

    def __post_init__(self) -> None:
        from dplasso.encoding.origin import origin_of, with_origin

        self.store = self.stores[0]
        self.shape = sum(one.shape[0] for one in self.stores), self.store.shape[1]
        self.nnz = sum(one.nnz for one in self.stores)
        with_origin(self, origin_of(self.store))


def open_stores(data: Sequence[str]) -> tuple[Stores, NDArray[Any]]:
    """Open the stores that names, patterns, folders and addresses mean; return all, with labels."""
    from dplasso.cluster.storage import header_and_labels, stores_at
    from dplasso.data.source_files import is_address, natural_order
    from dplasso.data.store import open_store
    from dplasso.data.store.reader import is_store

    stores: list[Store] = []
    places: list[str] = []
    for name in data:
        if is_address(name):
            away = stores_at(name)
            stores += map(header_and_labels, away)
            places += away
            continue
        path = Path(name)
        named = [path] if path.exists() else sorted(Path().glob(name), key=natural_order)
        for place in named:
            inside = [] if is_store(place) or not place.is_dir() else list(place.iterdir())
            inside = sorted(filter(is_store, inside), key=natural_order)
            here = [open_store(path) for path in inside or [place]]
            stores += here
            places += [str(store.path) for store in here]
        if not named:
            raise DataError(f"{name}: there is no such store, and no folder of stores")
    for at, store in zip(places, stores, strict=True):
        if store.shape[1] != stores[0].shape[1]:
            raise DataError(
                f"{at} has {store.shape[1]:,} columns and {places[0]} has "
                f"{stores[0].shape[1]:,}; convert all files with the same --features"
            )
    return Stores(stores, places), np.concatenate([store.y for store in stores])


def read_partitions(
    data: Sequence[str], reading: "ReadingOptions", n_features: int | None
) -> "tuple[Dataset, list[str]]":
    """Return stores as one data set, for what a command says of it, and where they lie."""
    from dplasso.data.files import Dataset

    refuse_beside(
        {
            "--binarize": reading.binarize,
            "--label-map": reading.label_map is not None,
            "--schema": reading.schema is not None,
        }
    )
    found, labels = open_stores(data)
    if n_features is not None and found.shape[1] != n_features:
        raise DataError(
            f"the stores have {found.shape[1]:,} columns, not {n_features:,}; leave --features out"
        )
    return Dataset(found, labels, f"{len(found.places)} stores"), found.places


@dataclass(frozen=True)
class OverStores:
    """A fitted model, from the file `path`, that is applied to every store by a task of its own."""

    fitted: Any
    path: Path
    address: str
    threads: int
    bars: "output.Bars"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fitted, name)

    def decision_function(self, X: Stores) -> NDArray[Any]:
        """Return the margins of all rows."""
        return self._apply("decision_function", X)

    def predict(self, X: Stores) -> NDArray[Any]:
        """Return the predictions for all rows."""
        return self._apply("predict", X)

    def predict_proba(self, X: Stores) -> NDArray[Any]:
        """Return the probabilities of all rows."""
        return self._apply("predict_proba", X)

    def _apply(self, method: str, X: Stores) -> NDArray[Any]:
        from dplasso.cluster.tasks import run_tasks

        pieces = [(self.path.resolve(), method, place) for place in X.places]
        with self.bars.task("predicting") as progress:
            found = run_tasks(self.address, apply_model, pieces, progress, threads=self.threads)
        return np.concatenate(found)


def apply_model(model: Path, method: str, place: str) -> NDArray[Any]:
    """Apply a model file to a store, where it lies, or to a copy of one on object storage."""
    import dplasso
    from dplasso.cluster.storage import opened_store

    with opened_store(place) as store:
        found: NDArray[Any] = getattr(dplasso.load(model), method)(store)
    return found


def over_stores(
    fitted: Any, path: Path, data: Sequence[str], options: ClusterOptions, bars: "output.Bars"
) -> "tuple[OverStores, Dataset]":
    """Return a model as it is applied to stores, and the stores as one data set."""
    from dplasso.data.files import Dataset
    from dplasso.encoding.origin import check_same_origin, origin_of

    assert options.cluster is not None
    rows, labels = open_stores(data)
    for place, store in zip(rows.places, rows.stores, strict=True):
        check_same_origin(fitted.model_.origin, origin_of(store), place)
    model = OverStores(fitted, path, options.cluster, options.worker_threads, bars)
    return model, Dataset(rows, labels, f"{len(rows.places)} stores")


def refuse_beside(options: dict[str, bool]) -> None:
    """Refuse options that do not go with ``--cluster``; those that are true were given."""
    for name, given in options.items():
        if given:
            raise typer.BadParameter(f"{name} does not go with --cluster; leave one of them out")


def store_name(path: str | os.PathLike[str]) -> str:
    """Return how the store of a file is called: by its name up to the first dot."""
    return Path(path).name.split(".")[0] + ".store"
