"""The rows of a fit in partitions: their workers, and getting back those that are lost.

The coordinator alone decides what is computed. It calls all workers and adds up what they answer,
each partition once; a worker that is lost is started anew, told again what all of them were told,
and brought to where the others are before its answer counts. A partition that cannot be had back
ends the fit: no sum is ever of other rows than all.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.engines import FIRST, Engine, Handle, Held, Pending, WorkerLost
from dplasso.cluster.worker import Description, Partition
from dplasso.data.people import number_people
from dplasso.data.source_files import is_address
from dplasso.errors import ClusterError, DataError

# What a fresh worker has to be told: a method, and a function that gives its arguments.
Told = tuple[str, Callable[[], tuple[Any, ...]]]
# What it has to be told in every run.
_KEPT = ("copy", "describe", "limit", "encode")
# The coordinator fetches at most this many answers; more are added up before, in such groups.
FAN_IN = 4


class Partitions:
    """The workers of a fit, one for each partition, in the order of the rows; a context."""

    def __init__(
        self,
        engine: Engine,
        partitions: Sequence[Partition],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        if not partitions:
            raise DataError("there is no partition to fit on; give at least one store")
        self._engine, self._partitions = engine.gather(len(partitions)), partitions
        self._events, began = self._engine.events, time.perf_counter()
        self._events.metrics.workers = len(partitions)
        self._events.tell(FIRST, workers=len(partitions))
        self._lost = [0] * len(partitions)
        self._told: list[Told] = []
        self._workers: list[Handle] = []
        try:
            for partition in partitions:
                self._workers.append(self._engine.start(partition))
            self.call("ready")
            if any(one.path is not None and is_address(one.path) for one in partitions):
                self._copy(progress or (lambda *_: None))
            self.descriptions: list[Description] = self.tell("describe")
            _check(partitions, self.descriptions)
            seconds = round(time.perf_counter() - began, 3)
            self._events.tell("ready", seconds=seconds, shape=self.shape, entries=self.n_entries)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Partitions":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all workers."""
        if self._workers:
            self._events.tell("end", **self._events.metrics.to_dict())
        for worker in self._workers:
            with suppress(Exception):
                worker.end()
        self._workers = []

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of all partitions together."""
        return sum(one.shape[0] for one in self.descriptions), self.descriptions[0].shape[1]

    @property
    def n_entries(self) -> int:
        """Entries of all partitions together."""
        return sum(one.n_entries for one in self.descriptions)

    @property
    def know_people(self) -> bool:
        """Whether they are stores that say which person each row belongs to."""
        return self.descriptions[0].has_people

    def limit_people(self, chosen: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> None:
        """Leave out all rows but those that are `chosen` by their persons' numbers."""
        within = chosen(number_people(np.concatenate(self.call("person_hashes"))))
        each = np.split(within, np.cumsum([one.shape[0] for one in self.descriptions])[:-1])
        names = [one.name for one in self._partitions]
        self.tell("limit", dict(zip(names, map(np.packbits, each), strict=True)))

    @property
    def labels(self) -> NDArray[Any]:
        """The different labels; DataError if they are too many for classes."""
        labels = np.unique(np.concatenate([one.labels for one in self.descriptions]))
        if not labels.size:
            raise DataError("the labels are not classes: declare them with `classes`")
        return labels

    @property
    def single_labels(self) -> int:
        """How many labels one record has, of all partitions."""
        labels = np.concatenate([one.labels for one in self.descriptions])
        counts = np.concatenate([one.label_counts for one in self.descriptions])
        _, number = np.unique(labels, return_inverse=True)
        return len(np.flatnonzero(np.bincount(number, counts) == 1))

    def call(self, method: str, *args: Any) -> list[Any]:
        """Call a method of all workers; return what they answer, parts of a sum in any order."""
        began = time.perf_counter()
        found = self._answers(method, args)
        self._events.answered(method, began, args, found)
        return found

    def _answers(self, method: str, args: tuple[Any, ...]) -> list[Any]:
        shared = self._engine.shared(args)
        pending = [self._begin(worker, method, shared) for worker in self._workers]
        found = [self._result(number, one, method, args) for number, one in enumerate(pending)]
        held = [number for number, one in enumerate(found) if isinstance(one, Held)]
        if not held:
            return found
        rest = [one for one in found if not isinstance(one, Held)]
        # If a worker is lost, the tree is dropped and every answer is fetched by itself below.
        with suppress(Exception):
            return rest + [one.fetch() for one in tree_of([found[number] for number in held])]
        return rest + [
            self._result(number, found[number].fetch, method, args, fetch=True) for number in held
        ]

    def tell(self, method: str, *args: Any) -> list[Any]:
        """Call a method of all workers, and of each that replaces one of them later."""
        found = self.call(method, *args)
        self._told.append((method, lambda: args))
        return found

    def begin(
        self, method: str, steps: Any, caught_up: Callable[[], tuple[Any, ...]] | None = None
    ) -> list[Any]:
        """Begin a run: tell all workers its steps, and how one that comes later catches up."""
        self._told = [one for one in self._told if one[0] in _KEPT]
        found = self.tell(method, steps)
        if caught_up is not None:
            self._told.append(("catch_up", caught_up))
        return found

    def _copy(self, progress: Callable[[int, int], None]) -> None:
        """Have workers copy what is on object storage, piece by piece."""
        done, total = 0, 1
        while done < total:
            answers = self.call("copy")
            done, total = (sum(numbers) for numbers in zip(*answers, strict=True))
            progress(done, total)
        self._told.append(("copy", lambda: (True,)))

    def _begin(self, worker: Handle, method: str, args: tuple[Any, ...]) -> Pending:
        """Begin a call; a lost worker is noticed when its answer is asked for."""
        try:
            return worker.call(method, *args)
        except WorkerLost as lost:
            return partial(_raise, lost)

    def _result(
        self,
        number: int,
        pending: Pending,
        method: str,
        args: tuple[Any, ...],
        *,
        fetch: bool = False,
    ) -> Any:
        """Return a worker's answer, from another if it is lost; `fetch` it even if it is held."""
        while True:
            try:
                found = pending()
                return found.fetch() if fetch and isinstance(found, Held) else found
            except WorkerLost as lost:
                self._lost[number] += 1
                name = self._partitions[number].name
                self._events.tell("lost", partition=name, during=method, why=str(lost))
                if self._lost[number] > self._engine.restarts:
                    times = f"{self._lost[number]} times" if self._lost[number] > 1 else "once"
                    raise ClusterError(
                        f"the worker of partition {number + 1}, {name}, "
                        f"was lost {times} ({str(lost).rstrip('.')}); the fit has ended and what "
                        "it was charged stays: resume it from its checkpoint once the partition "
                        "can be had"
                    ) from None
            pending = self._begin_anew(number, method, args)

    def _begin_anew(self, number: int, method: str, args: tuple[Any, ...]) -> Pending:
        """Replace a worker, bring the new one to where the others are, and call it."""
        began, partition = time.perf_counter(), self._partitions[number]
        # The lost worker may still run; its answers are ignored from now on.
        with suppress(Exception):
            self._workers[number].end()
        try:
            worker = self._engine.start(partition)
            self._workers[number] = worker
            worker.call("ready")()
            for said, arguments in self._told:
                answer = worker.call(said, *arguments())()
                if said == "describe" and answer.rows != self.descriptions[number].rows:
                    raise DataError(
                        f"{partition.name} has changed since the fit began; put "
                        "back what it held, and resume the fit from its checkpoint"
                    )
            seconds = round(time.perf_counter() - began, 3)
            self._events.metrics.restarts += 1
            self._events.tell("replaced", partition=partition.name, seconds=seconds)
            return worker.call(method, *args)
        except WorkerLost as lost:
            return partial(_raise, lost)


def tree_of(held: Sequence[Held]) -> list[Held]:
    """Begin to add up integers that workers hold, exact in any order; `FAN_IN` are left."""
    found = list(held)
    while len(found) > FAN_IN:
        groups = [found[first : first + FAN_IN] for first in range(0, len(found), FAN_IN)]
        found = [one.add(others) if others else one for one, *others in groups]
    return found


def _raise(error: Exception) -> NoReturn:
    raise error


def _check(partitions: Sequence[Partition], found: Sequence[Description]) -> None:
    """Refuse partitions that do not make one data set."""
    first = found[0]
    contents = Counter(one.content for one in found if one.content is not None)
    for partition, one in zip(partitions, found, strict=True):
        if one.shape[0] == 0 or one.shape[1] == 0:
            raise DataError(f"{partition.name} has no rows or no columns; at least one is needed")
        if one.has_people != first.has_people:
            raise DataError(
                f"{partition.name} and {partitions[0].name}: one has a person column and the "
                "other does not; convert all files with the same --person-column"
            )
        if one.shape[1] != first.shape[1]:
            raise DataError(
                f"{partition.name} has {one.shape[1]:,} columns and {partitions[0].name} has "
                f"{first.shape[1]:,}; convert all files with the same --features"
            )
        if one.content is not None and contents[one.content] > 1:
            raise DataError(
                f"{partition.name} holds the same rows as another partition; each record may be in "
                "one of them only, since one that is in two counts twice"
            )
