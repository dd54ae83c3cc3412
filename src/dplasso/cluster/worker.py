"""A worker: the rows of one partition, wherever it runs.

It computes exact sums of its own rows' shares, from what has been released and from nothing else:
it has no randomness and no clock, and knows nothing of the other workers. Whoever coordinates calls
its methods by name (`dplasso.cluster.engines`).

A worker takes a step once: it accepts the step after the last one, answers that one again with the
reply that it kept, and refuses any other. One that starts anew is empty: it counts again once
`catch_up` has brought its rows to where the others are, without adding to any sum.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.storage import copy_store, showing
from dplasso.data.source_files import is_address
from dplasso.data.store import Store, check_entries, open_store
from dplasso.errors import DataError
from dplasso.frank_wolfe.round_part import Changes, RoundRows, RoundSteps
from dplasso.frank_wolfe.row_part import RowPart, VertexSteps
from dplasso.gradient_descent.gradient_rows import GradientRows, build_gradient_rows
from dplasso.gradient_descent.margins import LinearModel
from dplasso.losses.targets import Targets, count_classes, targets_of
from dplasso.matrix.compressed import compress
from dplasso.matrix.scaling import Scaling
from dplasso.matrix.starting import StartingModel
from dplasso.runtime.threads import Threads, thread_pool

# A partition with more different labels does not list them; they are not classes.
MOST_LABELS = 10_000

Sums = Callable[..., NDArray[np.int64]]


@dataclass(frozen=True)
class Partition:
    """Where the rows of a worker come from.

    `path`: of a store, as the worker's machine names it, or its address on object storage; None
    for rows in memory.
    `X`, `y`: rows in memory and their labels, checked.
    `weights`: how much each row counts, in [0, 1]; None for 1 each.
    `origin`: how the columns of rows in memory were made, as JSON values; None if nobody knows.
    """

    name: str
    path: str | None = None
    X: Any = None
    y: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None
    origin: Any = None


@dataclass(frozen=True)
class Description:
    """What a partition is; for the coordinator, since some of it depends on private data."""

    shape: tuple[int, int]
    n_entries: int
    labels: NDArray[Any]
    label_counts: NDArray[np.int64]
    origin: Any
    content: str | None
    has_people: bool

    @property
    def rows(self) -> tuple[Any, ...]:
        """What tells one data set's rows from another's."""
        return self.shape, self.n_entries, self.content


@dataclass(frozen=True)
class SumSteps:
    """What sums over the records are asked for with.

    `ask`: returns what gives the sums, from the records.
    `columns`, `prior`: as of `build_gradient_rows`.
    """

    loss: Any
    ask: Callable[[GradientRows], Sums]
    columns: NDArray[np.int64] | None = None
    prior: StartingModel | None = None

    def sums(self, X: Any, targets: Targets, threads: Threads) -> Sums:
        """Return what gives the sums."""
        known = X, self.loss, targets, threads, self.columns
        return self.ask(build_gradient_rows(*known, prior=self.prior))


def gradients_at(scaling: Scaling, unit: float, start: StartingModel | None, rows: Any) -> Sums:
    """Return what gives the sums of the gradients at some weights."""
    whole: Sums = rows.part(scaling, unit, start).whole
    return whole


def calibrating(model: LinearModel, start: StartingModel | None, rows: Any) -> Sums:
    """Return what gives the gradient in slope and constants of a released model's margins."""
    sums: Sums = rows.margins(model, start).sums
    return sums


def known_now(method: str, asked: tuple[Any, ...], rows: Any) -> Sums:
    """Return what gives the sums of a method that needs nothing more."""
    return lambda: getattr(rows, method)(*asked)


class Worker:
    """The rows of one partition."""

    def __init__(self, partition: Partition, n_threads: int = 1) -> None:
        self._partition = partition
        self._open = ExitStack()
        self._threads = self._open.enter_context(thread_pool(n_threads))
        self._X, self._y = partition.X, partition.y
        self._targets = targets_of(np.zeros(0))
        self._within: NDArray[np.bool_] | None = None
        self._vertices: RowPart | RoundRows | None = None
        self._sums: Sums | None = None
        self._done = 0
        self._reply: Changes | None = None
        self._folder: Path | None = None
        self._away = self._open.enter_context(ExitStack())
        self._copying: Iterator[tuple[int, int]] = iter(())
        self._copied = 0, 0

    def ready(self) -> None:
        """Answer: the worker is there."""

    def copy(self, whole: bool = False) -> tuple[int, int]:
        """Copy a piece of a store that is away, or the whole rest; say how far that is."""
        path = self._partition.path
        if self._folder is None and path is not None and is_address(path):
            made = TemporaryDirectory(prefix="dplasso-", ignore_cleanup_errors=True)
            self._folder = Path(self._away.enter_context(made)).resolve()
            self._copying = copy_store(path, self._folder)
        for copied in self._copying:
            self._copied = copied
            if copied[0] < copied[1] and not whole:
                break
        return self._copied

    def describe(self) -> Description:
        """Open the partition, read all of it once, and say what it is."""
        partition = self._partition
        content, origin = None, partition.origin
        if partition.path is not None:
            with showing(partition.path, self._folder):
                self._X = open_store(self._folder or partition.path)
                self._y = self._X.y
                check_entries(self._X, n_threads=self._threads.count)
            digest = sha256()
            for name, entry in sorted(self._X.header.arrays.items()):
                digest.update(f"{name} {entry.size} {list(entry.pieces)}\n".encode())
            content, origin = digest.hexdigest(), self._X.header.origin
            # Mapped files stay readable, and a killed worker leaves none behind.
            self._away.close()
            n_entries = self._X.nnz
        else:
            n_entries = compress(self._X)[0].indices.size
        assert self._y is not None
        n_rows, weights = int(self._X.shape[0]), partition.weights
        if weights is not None and weights.size != n_rows:
            raise DataError(
                f"{partition.name} has {n_rows:,} rows, but {weights.size:,} weights; one for each "
                "is needed"
            )
        labels, counts = np.unique(self._y, return_counts=True)
        if labels.size > MOST_LABELS:
            labels, counts = labels[:0], counts[:0]
        return Description(
            shape=(n_rows, int(self._X.shape[1])),
            n_entries=n_entries,
            labels=labels,
            label_counts=counts,
            origin=origin,
            content=content,
            has_people=isinstance(self._X, Store) and self._X.knows_people,
        )

    def person_hashes(self) -> NDArray[np.int64]:
        """Return the hash of each row's person, two numbers: for the coordinator alone."""
        return np.array(self._X.person_hashes)

    def limit(self, within: Mapping[str, NDArray[np.uint8]]) -> None:
        """Leave out rows, by a bit for each row of every partition."""
        bits, size = within[self._partition.name], self._X.shape[0]
        self._within = np.unpackbits(bits, count=size) != 0

    def encode(self, task: Any) -> None:
        """Turn the labels into the targets of a task; DataError for one that has no class."""
        try:
            labels = task.encode(self._y)
        except DataError as error:
            raise DataError(f"{self._partition.name}: {error}") from None
        self._targets = targets_of(labels, self._partition.weights, self._within)

    def count(self, loss: Any) -> tuple[list[int], int]:
        """Count the records of the classes; see `count_classes`."""
        return count_classes(loss, self._targets)

    def count_rows(self, weighing: bool) -> int:
        """Count the records that are not left out; see `Targets.count_rows`."""
        return self._targets.count_rows(weighing=weighing)

    def weights(self) -> NDArray[np.float64]:
        """Return how much each record counts; nothing where each counts 1."""
        return self._targets.weights

    def label_bits(self) -> NDArray[np.int8]:
        """Return whether each label is not the first, for the ledger's fingerprint."""
        bits: NDArray[np.int8] = (self._targets.labels != 0).astype(np.int8)
        return bits

    def begin_vertices(self, steps: VertexSteps | RoundSteps) -> NDArray[np.int64]:
        """Begin a run of Frank-Wolfe at zero weights; return this part of the column gradients."""
        self._vertices = steps.part(self._X, self._targets, self._threads)
        self._done, self._reply = 0, None
        return self._vertices.start()

    def move(self, step: int, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> Changes:
        """Take the steps from `step` on with these vertices; RuntimeError out of turn."""
        assert self._vertices is not None
        last = step + vertex.size - 1
        if last == self._done and self._reply is not None:
            return self._reply
        if step != self._done + 1:
            raise RuntimeError(
                f"{self._partition.name} has taken {self._done} steps and is asked for step {step}"
            )
        self._reply = self._vertices.move(vertex, sign)
        self._done = last
        return self._reply

    def catch_up(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> None:
        """Take the steps that the others have taken; from the beginning of a run."""
        assert self._vertices is not None
        if self._done:
            raise RuntimeError(f"{self._partition.name} has taken steps already")
        self._vertices.catch_up(vertex, sign)
        self._done = vertex.size

    def begin_sums(self, steps: SumSteps) -> None:
        """Begin a run of gradient descent, or a calibration."""
        self._vertices = self._sums = None
        self._sums = steps.sums(self._X, self._targets, self._threads)

    def sums(self, *released: Any) -> NDArray[np.int64]:
        """Return this part of the sums at weights, or at parameters of a calibration."""
        assert self._sums is not None
        return self._sums(*released)

    def close(self) -> None:
        """Let go of threads."""
        self._open.close()
