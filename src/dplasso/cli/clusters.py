"""``--cluster``: stores as the partitions of one data set, on many machines or in threads.

What a fit on them is going to take is said before it is charged: from sizes alone. The parts were
measured by ``python -m evidence.cluster.parts``; docs/cluster.md has the formula.
"""

import math
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
from dplasso.cluster import Engine, Events, RayEngine, ThreadEngine
from dplasso.cluster.engines import cores_in_words
from dplasso.cluster.ray_cluster import THREADS, run_tasks
from dplasso.cluster.storage import header_and_labels, opened_store, stores_at
from dplasso.data.formats import Dataset
from dplasso.data.source_files import is_address, places_of
from dplasso.data.store import Store, open_store
from dplasso.data.store.opening import is_store, stores_in
from dplasso.encoding.origin import check_same_origin, origin_of, with_origin
from dplasso.errors import DataError
from dplasso.estimators.base import PrivateLinearModel
from dplasso.estimators.fitting import method_of
from dplasso.runtime.progress import duration
from dplasso.runtime.threads import usable_cores

# Answers that the driver fetches at most; of more workers they are added up in a tree before.
_FAN_IN = 4
# Of a worker: its process, and what it holds of a row and of a column besides the store.
_PROCESS, _ROW, _COLUMN = 150e6, 48.0, 32.0
# Of the driver, for a row: its label, twice while they are put together.
_LABELS = 17.0
# Bytes of an entry in a store, by rows and by columns.
_ENTRY = 16.0
# Of an entry in the tiles that gradients are computed from.
_TILED = 8.0
# Seconds of one core for an entry, a row and a column of a step.
_ENTRY_SECONDS, _ROW_SECONDS, _COLUMN_SECONDS = 7e-9, 1e-8, 1e-8
# A call and its answer; of the driver's time for each worker; for a column of the driver's sums,
# noise and weights.
_CALL, _CALLS, _DRIVER_COLUMN = 1e-3, 2e-4, 6e-8


@dataclass(frozen=True)
class Estimate:
    """Time and memory of a fit of `steps` gradients or rounds over all rows.

    `places`: workers that have cores at a time; the others take turns. 0 for all.
    `bandwidth`: bytes a second between two machines.
    """

    rows: float
    columns: float
    entries: float
    workers: int
    steps: int
    threads: int = 1
    outputs: int = 1
    places: int = 0
    bandwidth: float = 1.25e9

    @property
    def worker_bytes(self) -> float:
        """Memory that a worker has for itself, without the store."""
        columns = self.columns * self.outputs
        return _PROCESS + _ROW * self.rows / self.workers + _COLUMN * columns

    @property
    def worker_seconds(self) -> float:
        """Seconds of a step over all rows of a worker."""
        rows = _ENTRY_SECONDS * self.entries * self.outputs + _ROW_SECONDS * self.rows
        columns = _COLUMN_SECONDS * self.columns * self.outputs
        return (rows / self.workers + columns) / self.threads

    @property
    def store_bytes(self) -> float:
        """What a worker reads at every step: in memory as far as there is room, else from disk."""
        return _ENTRY * self.entries / self.workers

    @property
    def disk_bytes(self) -> float:
        """Room on a worker's disk that a fit by gradients needs while it lasts, for its tiles."""
        return _TILED * self.entries / self.workers

    @property
    def answer_bytes(self) -> float:
        """Memory of one worker's answer, and of the weights that each is sent."""
        return 8.0 * self.columns * self.outputs

    @property
    def step_seconds(self) -> float:
        """Seconds of a gradient: the slowest worker, calls, answers, the driver's own work."""
        columns, workers = self.columns * self.outputs, self.workers
        levels = math.ceil(math.log(workers, _FAN_IN)) - 1 if workers > _FAN_IN else 0
        fetched = (_FAN_IN - 1) * max(0, levels) + min(workers, _FAN_IN)
        own = self.worker_seconds * math.ceil(workers / (self.places or workers))
        # Weights go out once for each machine, which pass them on.
        sent = (fetched + 1) * self.answer_bytes / self.bandwidth if workers > 1 else 0.0
        return own + _CALL + _CALLS * workers + sent + _DRIVER_COLUMN * columns

    @property
    def seconds(self) -> float:
        """Seconds of all steps, and of reading every row once before the first."""
        return (self.steps + 2.0) * self.step_seconds

    @property
    def driver_bytes(self) -> float:
        """Memory that the driver of a command needs: labels of all rows, answers, column sums."""
        held = (min(self.workers, _FAN_IN) + 5.0) * self.answer_bytes
        return _PROCESS + _LABELS * self.rows + held

    def to_dict(self) -> dict[str, float]:
        """Return it as JSON holds it."""
        names = ["seconds", "step_seconds", "worker_bytes", "store_bytes", "disk_bytes"]
        names.append("driver_bytes")
        return {"steps": self.steps, **{name: getattr(self, name) for name in names}}

    def text(self) -> str:
        """Word it for one who decides whether to begin."""
        return (
            f"about {duration(self.seconds)} for at most {self.steps} passes over the rows, "
            f"{duration(self.step_seconds)} each, with {cores_in_words(self.threads)} a worker; "
            f"a worker needs {_size(self.worker_bytes)} of memory, and {_size(self.store_bytes)} "
            "more for its store to stay in memory; a fit by gradients takes "
            f"{_size(self.disk_bytes)} of a worker's disk while it lasts; the driver needs about "
            f"{_size(self.driver_bytes)}"
        )


def _size(amount: float) -> str:
    for size, name in ((1e12, "TB"), (1e9, "GB")):
        if amount >= size:
            return f"{amount / size:.2g} {name}"
    return f"{amount / 1e6:.0f} MB"


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
        """Do all pieces of some work under a progress bar; return what came of each."""
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
    events : FILE
        With --cluster: add a line of JSON to this file for each event (workers begun, waiting,
        lost and replaced; steps with seconds and bytes); - for standard error.
    """

    restarts: int = RayEngine.restarts
    patience: float = RayEngine.patience
    events: str | None = None

    def estimate(
        self, where: ClusterOptions, X: "Stores", estimator: PrivateLinearModel
    ) -> Estimate:
        """Return what a fit takes, from the sizes of its stores."""
        params, labels = estimator.get_params(), X.labels
        n_classes = len(params["classes"] or np.unique(labels)) if "classes" in params else 0
        cost = method_of(estimator).cost(X.shape[1], n_classes or None)
        here = where.cluster == THREADS
        return Estimate(
            *X.shape,
            entries=X.nnz,
            workers=len(X.places),
            steps=cost.n_iter,
            threads=where.worker_threads,
            outputs=max(1, n_classes if n_classes > 2 else 1),
            places=max(1, usable_cores() // where.worker_threads) if here else 0,
        )

    def engine(self, where: ClusterOptions) -> Engine | None:
        """Return what runs the workers; None without ``--cluster``."""
        if where.cluster is None:
            return None
        if where.cluster == THREADS:
            return ThreadEngine(where.worker_threads, events=Events(self.events))
        waiting = self.restarts, self.patience, where.open_cluster, Events(self.events)
        return RayEngine(where.cluster, where.worker_threads, *waiting)


class Stores:
    """Stores that are one data set; of those on object storage, header and labels only."""

    def __init__(self, stores: list[Store], places: list[str], labels: NDArray[Any]) -> None:
        self.stores, self.places, self.labels = stores, places, labels
        self.store = stores[0]
        self.shape = sum(one.shape[0] for one in stores), self.store.shape[1]
        self.nnz = sum(one.nnz for one in stores)
        with_origin(self, origin_of(self.store))


def open_stores(data: Sequence[str]) -> Dataset:
    """Open the stores that names, patterns, folders and addresses mean, as one data set."""
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
    """Return stores as one data set, for what a command says of it, and where they lie."""
    given = {"--binarize": reading.binarize, "--label-map": reading.label_map}
    refuse(given | {"--schema": reading.schema}, BESIDE_CLUSTER)
    rows = open_stores(data)
    columns = rows.X.shape[1]
    if n_features is not None and columns != n_features:
        raise DataError(
            f"the stores have {columns:,} columns, not {n_features:,}; leave --features out"
        )
    return rows, rows.X.places


@dataclass(frozen=True)
class OverStores:
    """A fitted model, from the file `path`, that is applied to every store by a task of its own."""

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
    """Apply a model file to a store, where it lies, or to a copy of one on object storage."""
    with opened_store(place) as store:
        found: NDArray[Any] = getattr(dplasso.load(model), method)(store)
    return found


def over_stores(
    fitted: Any, path: Path, data: Sequence[str], options: ClusterOptions, bars: output.Bars
) -> tuple[OverStores, Dataset]:
    """Return a model as it is applied to stores, and the stores as one data set."""
    rows = open_stores(data)
    for place, store in zip(rows.X.places, rows.X.stores, strict=True):
        check_same_origin(fitted.model_.origin, origin_of(store), place)
    return OverStores(fitted, path, options, bars), rows
