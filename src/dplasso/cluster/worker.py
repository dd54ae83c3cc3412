"""A worker, which holds the rows of one partition.

A worker computes exact sums of its rows' contributions from released values only, without
randomness. It accepts the next step, repeats its stored reply to the last step, and refuses any
other. A replacement for a lost worker first repeats the earlier steps (`catch_up`) without adding
to any sum.
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
from dplasso.frank_wolfe.problem import design_of
from dplasso.frank_wolfe.round_part import Changes, RoundRows, RoundSteps
from dplasso.gradient_descent.gradient_rows import build_gradient_rows
from dplasso.losses.targets import Targets, targets_of
from dplasso.matrix.compressed import compress
from dplasso.matrix.starting import StartingModel
from dplasso.runtime.threads import Threads, thread_pool

# With more different labels than this, they are not classes, and a partition does not list them.
MOST_LABELS = 10_000

Sums = Callable[..., NDArray[np.int64]]


@dataclass(frozen=True)
class Partition:
    """The source of a worker's rows.

    `path`: of a store on the worker's machine, or its address on object storage.
    `X`, `y`: checked rows in memory and their labels. `weights`: of each row, in [0, 1].
    `origin`: how the columns of rows in memory were made, as JSON values.
    """

    name: str
    path: str | None = None
    X: Any = None
    y: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None
    origin: Any = None


@dataclass(frozen=True)
class Description:
    """The description of a partition, for the coordinator only: it depends on private data."""

    shape: tuple[int, int]
    n_entries: int
    labels: NDArray[Any]
    label_counts: NDArray[np.int64]
    origin: Any
    content: str | None
    has_people: bool

    @property
    def rows(self) -> tuple[Any, ...]:
        """Values that identify the rows of a data set."""
        return self.shape, self.n_entries, self.content


@dataclass(frozen=True)
class SumSteps:
    """The settings of sums over the records: a method of `GradientRows`, and its arguments."""

    loss: Any
    method: str
    args: tuple[Any, ...]
    columns: NDArray[np.int64] | None = None
    prior: StartingModel | None = None

    def sums(self, X: Any, targets: Targets, threads: Threads) -> Sums:
        """Return the function that computes the sums."""
        settings = X, self.loss, targets, threads, self.columns
        rows = build_gradient_rows(*settings, prior=self.prior)
        made = getattr(rows, self.method)(*self.args)
        return getattr(made, "sums", lambda: made)


class Worker:
    """The rows of one partition."""

    def __init__(self, partition: Partition, n_threads: int = 1) -> None:
        self._partition = partition
        self._open = ExitStack()
        self._threads = self._open.enter_context(thread_pool(n_threads))
        self._X, self._y = partition.X, partition.y
        self._targets = targets_of(np.zeros(0))
        self._within: NDArray[np.bool_] | None = None
        self._vertices: RoundRows | None = None
        self._sums: Sums | None = None
        self._done = 0
        self._reply: Changes | None = None
        self._folder: Path | None = None
        self._away = self._open.enter_context(ExitStack())
        self._copying: Iterator[tuple[int, int]] = iter(())
        self._copied = 0, 0

    def ready(self) -> None:
        """Return, to show that the worker runs."""

    def copy(self, whole: bool = False) -> tuple[int, int]:
        """Copy a piece of a store on object storage, or its `whole` rest; return (bytes, total)."""
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
        """Open the partition, check all of it, and describe it."""
        partition = self._partition
        content, origin = None, partition.origin
        if partition.path is not None:
            with showing(partition.path, self._folder):
                self._X = open_store(self._folder or partition.path)
                self._y = self._X.y
                check_entries(self._X, n_threads=self._threads.count)
            header = self._X.header
            # What the arrays mean is in the header: the only value, and the words of labels.
            arrays = [(name, entry.size, entry.pieces) for name, entry in header.arrays.items()]
            meant = repr((sorted(arrays), header.constant, header.label_words))
            content, origin = sha256(meant.encode()).hexdigest(), header.origin
            # Remove the copy now: mapped files stay readable, and a killed worker leaves no files.
            self._away.close()
            n_entries = self._X.nnz
        else:
            n_entries = compress(self._X)[0].indices.size
        n_rows, weights = int(self._X.shape[0]), partition.weights
        if weights is not None and weights.size != n_rows:
            raise DataError(
                f"{partition.name} has {n_rows:,} rows, but {weights.size:,} weights; pass one for "
                "each row"
            )
        labels, counts = self._different_labels()
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
        """Return the hash of each row's person, two numbers each, for the coordinator only."""
        return np.array(self._X.person_hashes)

    def limit(
        self, within: Mapping[str, NDArray[np.uint8]]
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Leave out rows whose bit is 0 in `within`, which has bits for every partition.

        Returns the labels of the others, as `describe` does.
        """
        bits, size = within[self._partition.name], self._X.shape[0]
        self._within = np.unpackbits(bits, count=size) != 0
        return self._different_labels()

    @property
    def _labels(self) -> NDArray[Any]:
        """The labels of the rows that enter."""
        assert self._y is not None
        return self._y if self._within is None else self._y[self._within]

    def _different_labels(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        labels, counts = np.unique(self._labels, return_counts=True)
        most = labels.size if labels.size <= MOST_LABELS else 0
        return labels[:most], counts[:most]

    def encode(self, task: Any) -> None:
        """Convert the labels to the targets of a task; `DataError` for a label without a class."""
        try:
            labels = task.encode(self._labels)
        except DataError as error:
            raise DataError(f"{self._partition.name}: {error}") from None
        self._targets = targets_of(labels, self._partition.weights, self._within)

    def of_targets(self, question: Callable[[Targets], Any]) -> Any:
        """Return what `question` returns for the targets, for the coordinator only."""
        return question(self._targets)

    def begin_vertices(self, steps: RoundSteps) -> NDArray[np.int64]:
        """Begin a run of Frank-Wolfe at zero weights; return this worker's column gradients."""
        design = design_of(self._X, steps.bound, False, self._threads)
        self._vertices = RoundRows(steps, design, self._targets, self._threads)
        self._done, self._reply = 0, None
        return self._vertices.start()

    def move(self, step: int, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> Changes:
        """Take the steps from `step` on with these vertices; RuntimeError for a wrong step."""
        assert self._vertices is not None
        last = step + vertex.size - 1
        if last == self._done and self._reply is not None:
            return self._reply
        if step != self._done + 1:
            raise RuntimeError(
                f"{self._partition.name} has taken {self._done} steps and cannot take step {step}"
            )
        self._reply = self._vertices.move(vertex, sign)
        self._done = last
        return self._reply

    def catch_up(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> None:
        """Take the steps that other workers have taken, at the beginning of a run."""
        assert self._vertices is not None
        if self._done:
            raise RuntimeError(f"{self._partition.name} has taken steps already")
        # Residuals follow from the margins alone, so all rounds can be added at once.
        self._vertices.move(vertex, sign)
        self._done = vertex.size

    def begin_sums(self, steps: SumSteps) -> None:
        """Begin a run of gradient descent, or a calibration."""
        self._vertices = self._sums = None
        self._sums = steps.sums(self._X, self._targets, self._threads)

    def sums(self, *released: Any) -> NDArray[np.int64]:
        """Return this worker's part of the sums at weights, or at calibration parameters."""
        assert self._sums is not None
        return self._sums(*released)

    def close(self) -> None:
        """Stop the threads."""
        self._open.close()
