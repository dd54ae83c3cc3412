"""What the one path of a fit does with rows in partitions instead of a matrix."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dplasso.cluster import Engine
from dplasso.cluster.frank_wolfe import PartitionedFrankWolfe, problem_of
from dplasso.cluster.partitions import Partitions
from dplasso.cluster.storage import checked_address
from dplasso.cluster.worker import Partition, VertexSteps
from dplasso.data.labels import encode_labels
from dplasso.data.people import number_groups
from dplasso.data.source_files import is_address
from dplasso.encoding.origin import check_same_origin, origin_from_json
from dplasso.errors import DataError
from dplasso.fit.groups import rows_within_limit
from dplasso.fit.inputs import Inputs, check_inputs, store_of
from dplasso.fit.settings import LassoSettings, LogisticSettings
from dplasso.fit.weights import checked_weights
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.privacy.parameters import check_records, share_bits
from dplasso.privacy.randomness import RandomStream


def partitioned_inputs(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    engine: Engine,
    settings: LassoSettings | LogisticSettings,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> Inputs:
    """Start a worker for every partition and see that they make one data set.

    `estimator`: for the messages; left as it is.
    `X`: a list of stores, of their paths on the workers' machines, of addresses on object storage,
    or of matrices; or one of them.
    `y`: with matrices, the labels of each.
    `engine`: what runs the workers.
    `settings`: valid settings.
    `groups`, `sample_weight`: of the rows of each partition, as `y`; the first with matrices alone.
    `progress`: called with the bytes copied from object storage, and those to be copied.

    Returns: inputs whose X are the workers: `close` them.

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
    weights = None
    if sample_weight is not None:
        each = _checked(_each(sample_weight, X, len(given), "weights"), settings)
        parts = [replace(part, weights=own) for part, own in zip(parts, each, strict=True)]
        weights = np.concatenate(each)
    if groups is not None:
        people = _each(groups, X, len(given), "groups")
        parts = _limited(parts, people, settings.rows_per_person)
    workers = Partitions(engine, parts, progress)
    try:
        origins = [origin_from_json(one.origin) for one in workers.descriptions]
        for part, origin in zip(parts, origins, strict=True):
            check_same_origin(origins[0], origin, part.name)
    except BaseException:
        workers.close()
        raise
    n_features = workers.shape[1]
    return Inputs(workers, np.zeros(0), n_features, names, origins[0], weights=weights)


def _each(some: Any, X: Any, n_partitions: int, kind: str = "") -> list[Any]:
    """Return what is given of each partition.

    Raises DataError if it is not given of each.
    """
    each = [some] if not isinstance(X, list | tuple) else list(some)
    if kind and len(each) != n_partitions:
        raise DataError(f"there are {n_partitions} partitions, but {kind} of {len(each)}")
    return each


def _checked(
    given: Sequence[Any], settings: LassoSettings | LogisticSettings
) -> list[NDArray[np.float64]]:
    """Return the weights of every partition in [0, 1]; the largest of all may be their scale."""
    try:
        each = [np.asarray(some, dtype=np.float64) for some in given]
    except (TypeError, ValueError):
        each = []
    if not each or any(some.ndim != 1 for some in each):
        raise DataError("the weights of a partition are one number for each of its rows")
    flat, private = np.concatenate(each), not math.isinf(settings.epsilon)
    weights = checked_weights(flat, flat.size, settings.weight_bound, private=private)
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
    checked = check_inputs(estimator, X, y)
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


def partitioned_targets(
    settings: LassoSettings | LogisticSettings, workers: Partitions
) -> NDArray[Any]:
    """Have the workers turn their labels into targets; return the classes, none for a regression.

    Raises DataError as `dplasso.data.labels.encode_labels`.
    """
    if settings.target_bounds is not None:
        workers.tell("encode", None, settings.target_bounds)
        return np.zeros(0)
    declared, present = settings.classes, workers.labels
    if declared is None and not present.size:
        raise DataError("the labels are not classes: declare them with the parameter classes")
    # Labels that were not declared are found where they are, so that the partition is named.
    classes, _ = encode_labels(present if declared is None else np.asarray(declared), declared)
    if isinstance(settings, LassoSettings) and classes.size > 2:
        raise DataError(
            "a LASSO of more than two classes runs in one process: leave engine out, or take "
            "DPLogisticRegression"
        )
    workers.tell("encode", classes, None)
    return classes


def all_label_bits(workers: Partitions) -> NDArray[np.int8]:
    """Return of every record whether its label is not the first, in order: for the ledger alone."""
    return np.concatenate(workers.call("label_bits"))


def partitioned_solver(
    settings: LassoSettings,
    workers: Partitions,
    loss: Any,
    make_selector: Callable[[Problem], Any],
    stream: RandomStream,
    *,
    radius: float,
    n_steps: int,
    intercept: bool,
    drift_tol: float | None,
    n_records: float | None = None,
    prefix: Transcript | None = None,
) -> PartitionedFrankWolfe:
    """Make the coordinator of a run of Frank-Wolfe.

    `settings`: valid settings.
    `workers`: the rows.
    `loss`, `radius`, `n_steps`: as in `Problem`.
    `make_selector`: makes the selection structure, empty, for a problem without rows.
    `stream`: random words for the draws.
    `intercept`: whether a constant column is drawn like the others.
    `drift_tol`: tolerance; with None no row is refreshed but by a touch.
    `n_records`: N, where it is public or was counted.
    `prefix`: steps already drawn, to be taken again.

    Raises ValueError, DataError as `check_partitions`.
    """
    bits = check_partitions(settings, workers, n_records)
    steps = VertexSteps(
        loss=loss,
        bound=settings.feature_bound,
        intercept=intercept,
        radius=radius,
        n_steps=n_steps,
        drift_tol=drift_tol,
        share_bits=bits,
    )
    problem = problem_of(workers, steps)
    return PartitionedFrankWolfe(
        workers, steps, problem, make_selector(problem), stream, prefix=prefix
    )


def check_partitions(settings: LassoSettings, workers: Partitions, n_records: float | None) -> int:
    """Refuse a run of Frank-Wolfe that partitions cannot make; nothing is computed.

    `n_records`: N, where it is public or was counted.

    Returns the bits of a record's share.

    Raises ValueError for what only one process can do; DataError for too many records.
    """
    for name, one_process in (("solver", "standard"), ("selector", "big-little")):
        if getattr(settings, name) == one_process:
            raise ValueError(
                f"{name}={one_process!r} runs in one process; leave engine or {name} out"
            )
    if settings.mechanism == "paper" and not math.isinf(settings.epsilon):
        raise ValueError("mechanism='paper' runs in one process; leave engine out")
    bits = share_bits(n_records)
    check_records(workers.shape[0], bits)
    return bits
