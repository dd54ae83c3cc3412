"""Records in partitions: a fit's questions are passed on to their workers."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dplasso.cluster import Engine
from dplasso.cluster.coordinators import PartitionedRecords, PartitionedRows
from dplasso.cluster.partitions import Partitions
from dplasso.cluster.worker import Partition
from dplasso.data.people import number_groups
from dplasso.data.source_files import checked_address, is_address
from dplasso.data.store import NAMES, Store, names_in
from dplasso.encoding.origin import (
    Origin,
    check_same_origin,
    columns_declared,
    origin_from_json,
)
from dplasso.errors import DataError, ParameterError
from dplasso.fit.method import Method
from dplasso.fit.records import checked_weights, is_text, local_records, rows_within_limit
from dplasso.fit.task import Labels, Task
from dplasso.frank_wolfe.round_part import RoundSteps
from dplasso.losses.targets import Targets
from dplasso.matrix.orientations import check_row_count
from dplasso.matrix.starting import StartingModel
from dplasso.runtime.threads import Threads


@dataclass(frozen=True)
class ClusterRecords:
    """Records that workers hold, with the interface of `LocalRecords`; close `workers`."""

    workers: Partitions
    feature_names: NDArray[np.object_] | None
    origin: Origin | None
    weighted: bool
    by_person: bool
    n_labels: int = 0

    every_step: ClassVar[bool] = True

    @property
    def labels(self) -> NDArray[Any]:
        """The different labels of all partitions; DataError if they are too many for classes."""
        labels = np.unique(np.concatenate([part.labels for part in self.workers.descriptions]))
        if not labels.size:
            raise DataError(
                "there are too many different labels for classes: declare them with `classes`"
            )
        return labels

    @property
    def label_counts(self) -> NDArray[Any]:
        described = self.workers.descriptions
        labels = np.concatenate([part.labels for part in described])
        counts = np.concatenate([part.label_counts for part in described])
        _, number = np.unique(labels, return_inverse=True)
        return np.bincount(number, counts)

    @property
    def shape(self) -> tuple[int, int]:
        return self.workers.shape

    def encoded(self, task: Task) -> "ClusterRecords":
        # Workers refuse an undeclared label themselves, so that the message names the partition.
        self.workers.tell("encode", task)
        return self

    def of_targets(self, question: Callable[[Targets], Any]) -> list[Any]:
        return self.workers.call("of_targets", question)

    def check(self, n_threads: int) -> None:
        """Do nothing: workers looked at their entries when they opened them."""

    def laid_out(self, bound: float, intercept: bool, threads: Threads) -> "ClusterRecords":  # noqa: ARG002
        """Refuse too many records; workers lay them out."""
        check_row_count(self.shape[0])
        return self

    def rows(self, steps: RoundSteps, threads: Threads) -> PartitionedRows:  # noqa: ARG002
        return PartitionedRows(self.workers, steps)

    def gradients(
        self,
        loss: Any,
        threads: Threads,  # noqa: ARG002
        kept: NDArray[np.int64] | None = None,
        prior: StartingModel | None = None,
    ) -> PartitionedRecords:
        return PartitionedRecords(self.workers, loss, kept, prior)


def cluster_records(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    engine: Engine,
    method: Method,
    progress: Callable[[int, int], None] | None,
    *,
    groups: Any,
    sample_weight: Any,
) -> ClusterRecords:
    """Start a worker for every partition, and check that they make one data set.

    `X`: a partition or a list of them, all stores, all paths or addresses of stores, or all
    matrices. `progress` is called with the bytes copied from object storage, and those to be
    copied.
    """
    if method.one_process:
        raise ParameterError(
            f"{method.one_process} needs all records in one process", advice="leave `engine` out"
        )
    partitions = list(X) if isinstance(X, list | tuple) else [X]
    labels = [None] * len(partitions) if y is None else _each(y, X, len(partitions), "labels")
    parts: list[Partition] = []
    for number, (some, targets) in enumerate(zip(partitions, labels, strict=True), 1):
        kind = isinstance(method.targets, Labels)
        parts.append(_partition(estimator, some, targets, number, takes_matrix=kind))
    _refuse_twice(parts, partitions)
    if sample_weight is not None:
        weights = _checked(_each(sample_weight, X, len(partitions), "weights"), method)
        parts = [replace(part, weights=own) for part, own in zip(parts, weights, strict=True)]
    if groups is not None:
        people = _each(groups, X, len(partitions), "groups")
        parts = _limited(parts, people, method.rows_per_person)
    workers = Partitions(engine, parts, progress)
    try:
        described = [description.origin for description in workers.descriptions]
        origins, names = list(map(origin_from_json, described)), names_in(described[0])
        edges = [None if origin is None else origin.edges for origin in origins]
        for part, origin, released, own in zip(parts, origins, edges, described, strict=True):
            check_same_origin(origins[0], origin, part.name)
            if own.get(NAMES) != described[0].get(NAMES):
                raise DataError(f"{part.name} does not have the column names of {parts[0].name}")
            if released != edges[0]:
                # The fit covers what one release cost.
                raise DataError(
                    f"{part.name} has its edges from another private release than {parts[0].name}; "
                    "encode all partitions with the same schema"
                )
        knows_people = workers.descriptions[0].has_people
        if knows_people:
            m = method.rows_per_person
            workers.limit_people(lambda person: rows_within_limit(person, m))
    except BaseException:
        workers.close()
        raise
    first = parts[0].y
    n_labels = 0 if first is None or first.ndim == 1 else int(first.shape[1])
    weighted, by_person = sample_weight is not None, groups is not None or knows_people
    origin = next((one for one in origins if not columns_declared(one)), origins[0])
    return ClusterRecords(workers, names, origin, weighted, by_person, n_labels)


def _each(some: Any, X: Any, n_partitions: int, kind: str) -> list[Any]:
    """Return what is given of each partition; DataError if something is missing."""
    each = list(some) if isinstance(X, list | tuple) else [some]
    if len(each) != n_partitions:
        raise DataError(f"there are {n_partitions} partitions, but {kind} of {len(each)}")
    return each


def _checked(weights_of_each: list[Any], method: Method) -> list[NDArray[np.float64]]:
    """Return the weights of every partition in [0, 1], as `checked_weights` of all of them."""
    try:
        if any(map(is_text, weights_of_each)):
            raise TypeError
        each = [np.asarray(some, dtype=np.float64) for some in weights_of_each]
    except (TypeError, ValueError, OverflowError):
        each = []
    if not each or any(some.ndim != 1 for some in each):
        raise DataError(
            "`sample_weight` must hold, for each partition, one number for each of its rows"
        )
    flat = np.concatenate(each)
    weights = checked_weights(flat, flat.size, method.is_private)
    return np.split(weights, np.cumsum([some.size for some in each])[:-1])


def _limited(parts: list[Partition], people: list[Any], rows_per_person: int) -> list[Partition]:
    """Leave out all but the first rows of each person, in whatever partitions they are."""
    limited, named = [], []
    for part, own in zip(parts, people, strict=True):
        if part.y is None:
            raise DataError(
                f"{part.name} is a store, and `groups` needs rows in memory; fit it in one process"
            )
        named.append((f"groups of {part.name}", own, len(part.y)))
    within = rows_within_limit(number_groups(named), rows_per_person)
    kept = np.split(within, np.cumsum([n_rows for _, _, n_rows in named])[:-1])
    for part, rows in zip(parts, kept, strict=True):
        assert part.y is not None
        weights = None if part.weights is None else part.weights[rows]
        if rows.any():
            limited.append(replace(part, X=part.X[rows], y=part.y[rows], weights=weights))
    return limited


def _partition(
    estimator: BaseEstimator, X: Any, y: Any, number: int, *, takes_matrix: bool
) -> Partition:
    """Return a partition."""
    if isinstance(X, Store | str | os.PathLike):
        path = os.fspath(X.path if isinstance(X, Store) else X)
        path = checked_address(path) if is_address(path) else os.path.realpath(path)
        if y is not None:
            raise DataError(f"{path} has its own labels; leave y out")
        return Partition(path, path=path)
    own = local_records(estimator, X, y, takes_matrix=takes_matrix)
    return Partition(f"partition {number}", X=own.X, y=own.y, origin=own.described())


def _refuse_twice(parts: list[Partition], partitions: list[Any]) -> None:
    """Refuse a partition that is passed twice: its records would count twice."""
    seen = set()
    for part, matrix in zip(parts, partitions, strict=True):
        own = part.path or id(matrix)
        if own in seen:
            raise DataError(
                f"{part.path or 'a matrix'} is given twice; each record may be in one partition "
                "only, or it counts twice"
            )
        seen.add(own)
