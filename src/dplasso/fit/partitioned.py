"""Records in partitions: what a fit asks of them is asked of their workers."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dplasso.cluster import Engine
from dplasso.cluster.frank_wolfe import PartitionedFrankWolfe, PartitionedRows, problem_of
from dplasso.cluster.gradients import PartitionedRecords
from dplasso.cluster.partitions import Partitions
from dplasso.cluster.storage import checked_address
from dplasso.cluster.worker import Partition, VertexSteps
from dplasso.data.people import number_groups
from dplasso.data.source_files import is_address
from dplasso.encoding.origin import Origin, check_same_origin, origin_from_json
from dplasso.errors import DataError
from dplasso.fit.groups import rows_within_limit
from dplasso.fit.method import Method
from dplasso.fit.records import LocalRecords, local_records, store_of
from dplasso.fit.task import Task
from dplasso.fit.vertices import vertex_selector
from dplasso.fit.weights import checked_weights
from dplasso.frank_wolfe.round_part import RoundSteps
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.ledger import data_fingerprint
from dplasso.losses.weighted import weighted
from dplasso.privacy.mechanisms import Mechanism
from dplasso.privacy.parameters import check_records, share_bits
from dplasso.privacy.randomness import RandomStream
from dplasso.runtime.threads import Threads


@dataclass(frozen=True)
class ClusterRecords:
    """Records that workers hold: as `LocalRecords`, by asking them.

    `every_step`: workers hear of a step only once it is on the disk.
    `workers`: the rows, and a context: close it.
    `task`: what is learnt, once it is known.
    """

    workers: Partitions
    feature_names: NDArray[np.object_] | None
    origin: Origin | None
    weighted: bool
    task: Task | None = None

    every_step: ClassVar[bool] = True

    @property
    def carried(self) -> bool:
        """Whether some records count for less than 1."""
        return self.weighted

    @property
    def labels(self) -> NDArray[Any]:
        """The different labels of all partitions.

        Raises DataError where there are too many to be classes.
        """
        labels = self.workers.labels
        if not labels.size:
            raise DataError("the labels are not classes: declare them with the parameter classes")
        return labels

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        return self.workers.shape

    def encoded(self, task: Task) -> "ClusterRecords":
        """Have the workers turn their labels into targets."""
        # A label that was not declared is found where it is, so that the partition is named.
        self.workers.tell("encode", task)
        return replace(self, task=task)

    def fingerprint(self) -> str:
        """Return the fingerprint of the labels of all partitions, in order."""
        return data_fingerprint(np.concatenate(self.workers.call("label_bits")))

    def check(self, n_threads: int) -> None:
        """Do nothing: workers looked at their entries when they opened them."""

    def _loss(self, loss: Any) -> Any:
        assert self.task is not None
        regression = self.task.target_bounds is not None
        return weighted(loss, regression=regression) if self.weighted else loss

    def counts(self, loss: Any) -> tuple[list[int], int]:
        """Add up the workers' counts of the records of the classes."""
        assert self.task is not None
        regression = self.task.target_bounds is not None
        asked = self._loss(loss), max(2, loss.n_outputs), regression
        found = self.workers.call("count", *asked)
        return [sum(one) for one in zip(*(counts for counts, _ in found), strict=True)], found[0][1]

    def sum_of_weights(self, loss: Any) -> float:
        """Return the sum of the weights; not private."""
        return float(np.concatenate(self.workers.call("weights", self._loss(loss))).sum())

    def laid_out(self, method: Any, n_steps: int, intercept: bool) -> "ClusterRecords":  # noqa: ARG002
        """Refuse a run of Frank-Wolfe that partitions cannot make; nothing is computed.

        Raises ValueError for what only one process can do; DataError for too many records.
        """
        assert self.task is not None
        if self.task.n_outputs > 1:
            raise DataError(
                "a LASSO of more than two classes runs in one process: leave engine out, or take "
                "DPLogisticRegression"
            )
        if not n_steps:
            return self
        for name, value, one_process in (
            ("solver", method.algorithm, "standard"),
            ("selector", method.selector, "big-little"),
        ):
            if value == one_process:
                raise ValueError(
                    f"{name}={value!r} runs in one process; leave engine or {name} out"
                )
        if method.step == "paper" and method.is_private:
            raise ValueError("mechanism='paper' runs in one process; leave engine out")
        n_records = self.shape[0]
        check_records(n_records, share_bits(method.n_records or n_records))
        return self

    def vertices(
        self,
        method: Any,
        steps: VertexSteps,
        mechanism: Mechanism,
        stream: RandomStream,
        threads: Threads,  # noqa: ARG002
        *,
        prefix: Transcript | None = None,
        replay: Transcript | None = None,
        recorded: bool = False,  # noqa: ARG002
    ) -> PartitionedFrankWolfe:
        """Return the coordinator of a run of Frank-Wolfe."""
        self.laid_out(method, steps.n_steps, steps.intercept)
        check_records(self.shape[0], steps.share_bits)
        if replay is not None:
            raise ValueError("a replay runs in one process; leave engine out")
        steps = replace(steps, loss=self._loss(steps.loss))
        problem = problem_of(self.workers, steps)
        selector = vertex_selector(method.selector, mechanism, problem)
        return PartitionedFrankWolfe(self.workers, steps, problem, selector, stream, prefix=prefix)

    def rows(self, steps: RoundSteps, threads: Threads) -> PartitionedRows:  # noqa: ARG002
        """Return the workers' rows for a run in rounds."""
        check_records(self.shape[0], steps.share_bits)
        return PartitionedRows(self.workers, replace(steps, loss=self._loss(steps.loss)))

    def gradients(
        self,
        loss: Any,
        threads: Threads,  # noqa: ARG002
        kept: NDArray[np.int64] | None = None,
    ) -> PartitionedRecords:
        """Return the records for gradient descent, in the columns that are kept or in all."""
        whole = kept is None or kept.size == self.shape[1]
        return PartitionedRecords(self.workers, self._loss(loss), None if whole else kept)


Records = LocalRecords | ClusterRecords


def cluster_records(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    engine: Engine,
    method: Method,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> ClusterRecords:
    """Start a worker for every partition and see that they make one data set.

    `estimator`: for the messages; left as it is.
    `X`: a list of stores, of their paths on the workers' machines, of addresses on object storage,
    or of matrices; or one of them.
    `y`: with matrices, the labels of each.
    `engine`: what runs the workers.
    `groups`, `sample_weight`: of the rows of each partition, as `y`; the first with matrices alone.
    `progress`: called with the bytes copied from object storage, and those to be copied.

    Raises DataError for partitions that do not go together; ClusterError if a worker cannot be
    had.
    """
    given = _each(X, X, 1)
    labels = [None] * len(given) if y is None else _each(y, X, len(given), "labels")
    parts, names = [], None
    for number, (some, targets) in enumerate(zip(given, labels, strict=True), 1):
        part, its_names = _partition(estimator, some, targets, number)
        parts.append(part)
        names = its_names if number == 1 else names
        if number > 1 and not _same_names(names, its_names):
            raise DataError(f"{part.name} does not have the column names of partition 1")
    _refuse_twice(parts, given)
    if sample_weight is not None:
        each = _checked(_each(sample_weight, X, len(given), "weights"), method)
        parts = [replace(part, weights=own) for part, own in zip(parts, each, strict=True)]
    if groups is not None:
        people = _each(groups, X, len(given), "groups")
        parts = _limited(parts, people, method.rows_per_person)
    workers = Partitions(engine, parts, progress)
    try:
        origins = [origin_from_json(one.origin) for one in workers.descriptions]
        for part, origin in zip(parts, origins, strict=True):
            check_same_origin(origins[0], origin, part.name)
    except BaseException:
        workers.close()
        raise
    return ClusterRecords(workers, names, origins[0], sample_weight is not None)


def _each(some: Any, X: Any, n_partitions: int, kind: str = "") -> list[Any]:
    """Return what is given of each partition.

    Raises DataError if it is not given of each.
    """
    each = [some] if not isinstance(X, list | tuple) else list(some)
    if kind and len(each) != n_partitions:
        raise DataError(f"there are {n_partitions} partitions, but {kind} of {len(each)}")
    return each


def _checked(given: Sequence[Any], method: Method) -> list[NDArray[np.float64]]:
    """Return the weights of every partition in [0, 1]; the largest of all may be their scale."""
    try:
        each = [np.asarray(some, dtype=np.float64) for some in given]
    except (TypeError, ValueError):
        each = []
    if not each or any(some.ndim != 1 for some in each):
        raise DataError("the weights of a partition are one number for each of its rows")
    flat = np.concatenate(each)
    weights = checked_weights(flat, flat.size, method.weight_bound, private=method.is_private)
    return np.split(weights, np.cumsum([some.size for some in each])[:-1])


def _limited(
    parts: Sequence[Partition], people: Sequence[Any], rows_per_person: int
) -> list[Partition]:
    """Leave out all but the first rows of each person, wherever they lie.

    Raises DataError for stores, and as `number_groups`.
    """
    found, named = [], []
    for part, own in zip(parts, people, strict=True):
        if part.y is None:
            raise DataError(
                f"{part.name} is a store, and groups are of rows in memory; fit it in one process"
            )
        named.append((f"groups of {part.name}", own, part.y.size))
    within = rows_within_limit(number_groups(named), rows_per_person)
    kept = np.split(within, np.cumsum([n_rows for _, _, n_rows in named])[:-1])
    for part, rows in zip(parts, kept, strict=True):
        assert part.y is not None
        weights = None if part.weights is None else part.weights[rows]
        if rows.any():
            found.append(replace(part, X=part.X[rows], y=part.y[rows], weights=weights))
    return found


def _partition(
    estimator: BaseEstimator, X: Any, y: Any, number: int
) -> tuple[Partition, NDArray[np.object_] | None]:
    """Return a partition and the names of its columns, if it has any."""
    store = store_of(X)
    if store is not None or isinstance(X, str | os.PathLike):
        path = os.fspath(store.path if store is not None else X)
        path = checked_address(path) if is_address(path) else os.path.realpath(path)
        if y is not None:
            raise DataError(f"{path} has its own labels; leave y out")
        return Partition(path, path=path), None
    checked = local_records(estimator, X, y)
    return Partition(f"partition {number}", X=checked.X, y=checked.y), checked.feature_names


def _same_names(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    return (None if one is None else one.tolist()) == (None if other is None else other.tolist())


def _refuse_twice(parts: list[Partition], given: list[Any]) -> None:
    """Refuse a partition that is given twice: its records would count twice."""
    paths = [part.path for part in parts if part.path is not None]
    twice = {path for path in paths if paths.count(path) > 1}
    objects = [id(some) for some, part in zip(given, parts, strict=True) if part.path is None]
    if twice or len(set(objects)) < len(objects):
        name = min(twice) if twice else "a matrix"
        raise DataError(
            f"{name} is given twice; each record may be in one partition only, or it counts twice"
        )
