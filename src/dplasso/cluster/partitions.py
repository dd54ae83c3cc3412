"""The partitions of a fit: their workers, and the replacement of lost workers.

A new worker repeats all earlier calls that set its state, before its answer counts. If this fails,
the fit ends, so that a sum always covers all rows.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.engines import Engine, Handle, Held, Pending, WorkerLost
from dplasso.cluster.worker import Description, Partition
from dplasso.data.people import number_people
from dplasso.data.source_files import is_address
from dplasso.errors import ClusterError, DataError
from dplasso.runtime.progress import say

# A call that sets the state of a new worker: a method, and a function that returns its arguments.
SetupCall = tuple[str, Callable[[], tuple[Any, ...]]]
# Setup calls for all runs of a fit.
_KEPT = ("copy", "describe", "limit", "encode")
# The coordinator fetches at most this many answers; workers add up more in groups of this size.
FAN_IN = 4


class Partitions:
    """The workers of a fit, one for each partition in row order."""

    def __init__(
        self,
        engine: Engine,
        partitions: Sequence[Partition],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        if not partitions:
            raise DataError("there is no partition to fit on; pass at least one store")
        self._engine, self._partitions = engine.gather(len(partitions)), partitions
        self._lost = [0] * len(partitions)
        self._setup: list[SetupCall] = []
        self._workers: list[Handle] = []
        try:
            for partition in partitions:
                self._workers.append(self._engine.start(partition))
            self.call("ready")
            paths = [partition.path for partition in partitions]
            if any(path is not None and is_address(path) for path in paths):
                self._copy(progress or (lambda *_: None))
            self.descriptions: list[Description] = self.tell("describe")
            _check(partitions, self.descriptions)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop all workers."""
        for worker in self._workers:
            with suppress(Exception):
                worker.end()
        self._workers = []

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns of all partitions together."""
        n_rows = sum(described.shape[0] for described in self.descriptions)
        return n_rows, self.descriptions[0].shape[1]

    def limit_people(self, chosen: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> None:
        """Keep only the rows that `chosen` returns for the numbers of their people."""
        within = chosen(number_people(np.concatenate(self.call("person_hashes"))))
        sizes = [described.shape[0] for described in self.descriptions]
        each = np.split(within, np.cumsum(sizes)[:-1])
        names = [partition.name for partition in self._partitions]
        answers = self.tell("limit", dict(zip(names, map(np.packbits, each), strict=True)))
        self.descriptions = [
            replace(described, labels=labels, label_counts=counts)
            for described, (labels, counts) in zip(self.descriptions, answers, strict=True)
        ]

    def call(self, method: str, *args: Any) -> list[Any]:
        """Call a method of all workers; return their answers, parts of a sum in any order."""
        shared = self._engine.shared(args)
        pending = [self._begin(worker, method, shared) for worker in self._workers]
        answers = [self._result(number, call, method, args) for number, call in enumerate(pending)]
        held = [number for number, answer in enumerate(answers) if isinstance(answer, Held)]
        if not held:
            return answers
        rest = [answer for answer in answers if not isinstance(answer, Held)]
        # If a worker is lost, the tree is dropped and every answer is fetched separately below.
        with suppress(Exception):
            return rest + [part.fetch() for part in tree_of([answers[number] for number in held])]
        return rest + [
            self._result(number, answers[number].fetch, method, args, fetch=True) for number in held
        ]

    def tell(self, method: str, *args: Any) -> list[Any]:
        """Call a method of all workers, and of each worker that replaces one later."""
        answers = self.call(method, *args)
        self._setup.append((method, lambda: args))
        return answers

    def begin(
        self, method: str, steps: Any, caught_up: Callable[[], tuple[Any, ...]] | None = None
    ) -> list[Any]:
        """Begin a run on all workers; `caught_up` returns the steps that a new worker repeats."""
        self._setup = [call for call in self._setup if call[0] in _KEPT]
        answers = self.tell(method, steps)
        if caught_up is not None:
            self._setup.append(("catch_up", caught_up))
        return answers

    def _copy(self, progress: Callable[[int, int], None]) -> None:
        """Let workers copy stores from object storage, piece by piece."""
        done, total = 0, 1
        while done < total:
            answers = self.call("copy")
            done, total = (sum(numbers) for numbers in zip(*answers, strict=True))
            progress(done, total)
        self._setup.append(("copy", lambda: (True,)))

    def _begin(self, worker: Handle, method: str, args: tuple[Any, ...]) -> Pending:
        """Begin a call; if the worker is lost, fetching its answer raises `WorkerLost`."""
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
        """Return a worker's answer, replacing a lost worker; `fetch` an answer that is held."""
        while True:
            try:
                answer = pending()
                return answer.fetch() if fetch and isinstance(answer, Held) else answer
            except WorkerLost as lost:
                self._lost[number] += 1
                name = self._partitions[number].name
                if self._lost[number] > self._engine.restarts:
                    times = f"{self._lost[number]} times" if self._lost[number] > 1 else "once"
                    raise ClusterError(
                        f"the worker of partition {number + 1}, {name}, was lost {times} "
                        f"({str(lost).rstrip('.')}), so the fit has ended. Its charge remains: "
                        "resume it from its checkpoint when the partition is available again"
                    ) from None
                say(f"the worker of {name} was lost ({lost}) and is being replaced")
            pending = self._begin_anew(number, method, args)

    def _begin_anew(self, number: int, method: str, args: tuple[Any, ...]) -> Pending:
        partition = self._partitions[number]
        # If the lost worker still runs, its answers are ignored from now on.
        with suppress(Exception):
            self._workers[number].end()
        try:
            worker = self._engine.start(partition)
            self._workers[number] = worker
            worker.call("ready")()
            for setup, arguments in self._setup:
                answer = worker.call(setup, *arguments())()
                if setup == "describe" and answer.rows != self.descriptions[number].rows:
                    raise DataError(
                        f"{partition.name} has changed since the fit began; restore "
                        "it, and resume the fit from its checkpoint"
                    )
            say(f"the worker of {partition.name} was replaced")
            return worker.call(method, *args)
        except WorkerLost as lost:
            return partial(_raise, lost)


def tree_of(held: Sequence[Held]) -> list[Held]:
    """Start to add up integers on the workers (exact in any order), until `FAN_IN` are left."""
    parts = list(held)
    while len(parts) > FAN_IN:
        groups = [parts[first : first + FAN_IN] for first in range(0, len(parts), FAN_IN)]
        parts = [first.add(others) if others else first for first, *others in groups]
    return parts


def _raise(error: Exception) -> NoReturn:
    raise error


def _check(partitions: Sequence[Partition], descriptions: Sequence[Description]) -> None:
    """Raise `DataError` unless partitions form one data set."""
    first = descriptions[0]
    contents = Counter(described.content for described in descriptions)
    for partition, described in zip(partitions, descriptions, strict=True):
        if described.shape[0] == 0 or described.shape[1] == 0:
            raise DataError(f"{partition.name} has no rows or no columns; at least one is needed")
        if described.has_people != first.has_people:
            raise DataError(
                f"{partition.name} and {partitions[0].name}: one has a person column and the "
                "other does not; convert all files with the same --person-column"
            )
        if described.shape[1] != first.shape[1]:
            raise DataError(
                f"{partition.name} has {described.shape[1]:,} columns and {partitions[0].name} has "
                f"{first.shape[1]:,}; convert all files with the same --features"
            )
        if described.content is not None and contents[described.content] > 1:
            raise DataError(
                f"{partition.name} holds the same rows as another partition, so they would count "
                "twice; leave one of the two out"
            )
