"""Frank-Wolfe on rows in partitions: the coordinator's side.

The coordinator alone has the column gradients, the selection structure, the random stream and the
transcript. Each step first has all workers take the one before, and then draws: so a vertex is on
the checkpoint, which is written between two steps, before any worker hears of it. Nobody takes the
last step: its vertex is all that is wanted of it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.partitions import Partitions
from dplasso.cluster.worker import VertexSteps
from dplasso.frank_wolfe.distinct import draw
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.release import VertexRelease
from dplasso.frank_wolfe.reports import (
    WIDE,
    expected_entries,
    index,
    prepare_draw,
    take_changes,
)
from dplasso.frank_wolfe.row_part import Changes
from dplasso.frank_wolfe.solve import release_of
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.losses.targets import targets_of
from dplasso.matrix.compressed import Compressed
from dplasso.matrix.design import Design
from dplasso.matrix.numbering import AS_GIVEN
from dplasso.privacy.randomness import RandomStream


def problem_of(partitions: Partitions, steps: VertexSteps) -> Problem:
    """Return the problem of a run without its rows: what the coordinator draws by."""
    n_columns = partitions.shape[1]
    nothing = Compressed(
        np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, np.float32), 0.0
    )
    design = Design(
        rows=nothing,
        columns=nothing,
        has_columns=False,
        columns_internal=False,
        numbering=AS_GIVEN,
        n_rows=0,
        n_columns=n_columns,
        intercept=steps.intercept,
        bound=float(steps.bound),
    )
    return steps.problem(design, targets_of(np.zeros(0)))


class PartitionedFrankWolfe:
    """T steps of Frank-Wolfe on partitions; as `dplasso.frank_wolfe.solve.FrankWolfe`.

    Parameters
    ----------
    partitions : Partitions
        The rows.
    steps : VertexSteps
        Public numbers.
    problem : Problem
        Of `problem_of`.
    selector, stream, prefix
        As in `FrankWolfe`.
    """

    history = None
    work = None

    def __init__(
        self,
        partitions: Partitions,
        steps: VertexSteps,
        problem: Problem,
        selector: Any,
        stream: RandomStream,
        *,
        prefix: Transcript | None = None,
    ) -> None:
        self.n_steps = steps.n_steps
        self._partitions, self._steps, self._problem = partitions, steps, problem
        self._selector, self._stream = selector, stream
        self._n_prefix = 0 if prefix is None else len(prefix)
        if self._n_prefix > self.n_steps:
            raise ValueError(
                f"a prefix of {self._n_prefix} steps is given to a run of {self.n_steps}"
            )
        self._vertex = np.zeros(self.n_steps, dtype=np.int64)
        self._sign = np.zeros(self.n_steps, dtype=np.int8)
        if prefix is not None:
            self._vertex[: self._n_prefix] = prefix.vertex
            self._sign[: self._n_prefix] = prefix.sign
        self._alpha = np.zeros(0, dtype=np.int64)
        self._moved = 0
        self._untold, self._refreshed_part = np.zeros(1, dtype=np.bool_), 1.0

    def begin(self) -> None:
        """Do nothing: nothing is counted before the first vertex."""

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1, both included."""
        for step in range(first, last + 1):
            if step == 1:
                self._start()
            else:
                self._move(step - 1)
            self._draw(step)

    def transcript(self, done: int | None = None) -> Transcript:
        """Return the first `done` vertices, by default all; a view that later steps leave alone."""
        return Transcript(self._vertex[:done], self._sign[:done])

    def release(self, done: int | None = None) -> VertexRelease:
        """Return what the first `done` steps have drawn, by default all of them."""
        return release_of(self._problem, self.transcript(done))

    def _start(self) -> None:
        def moved() -> tuple[Any, ...]:
            return self._vertex[: self._moved], self._sign[: self._moved]

        self._alpha = sum_of(self._partitions.begin("begin_vertices", self._steps, moved))
        index(self._selector, self._alpha)

    def _draw(self, step: int) -> None:
        drawn = self._problem, self._alpha, self._selector
        prepare_draw(*drawn, self._vertex, step - 1, self._untold)
        j, sign = draw(*drawn, self._stream, self._vertex, step - 1)
        if step > self._n_prefix:
            self._vertex[step - 1], self._sign[step - 1] = j, sign

    def _move(self, step: int) -> None:
        """Have all rows take a step, and add up what it changes."""
        vertex = int(self._vertex[step - 1]), int(self._sign[step - 1])
        found: list[Changes] = self._partitions.call("move", step, *vertex)
        self._moved = step
        n_looked_at, n_refreshed, n_touched = sum_of([one.counts for one in found]).tolist()
        # As `dplasso.frank_wolfe.reports` decides it for rows that are in one process.
        size = self._partitions.n_entries, self._partitions.shape[0]
        most = WIDE * self._alpha.size
        few = n_touched <= most
        few &= expected_entries(n_looked_at, self._refreshed_part, *size) <= most
        if expected_entries(n_looked_at, 1.0, *size) > most:
            self._refreshed_part = n_refreshed / n_looked_at
        take_changes(
            self._problem,
            self._alpha,
            self._selector,
            self._vertex,
            step - 1,
            few,
            *added_up(found),
            self._untold,
        )


def added_up(found: list[Changes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Add up the changes of all parts.

    `found`: of each part once.

    Returns `coordinates`: those that change, ascending.
    `amounts`: by how much.
    """
    sparse = [one for one in found if one.coordinates is not None]
    dense = [one.amounts for one in found if one.coordinates is None]
    if dense:
        total = sum_of(dense)
        for one in sparse:
            total[one.coordinates] += one.amounts
        coordinates = np.flatnonzero(total)
        return coordinates, total[coordinates]
    every = np.concatenate([np.asarray(one.coordinates, dtype=np.int64) for one in sparse])
    coordinates, place = np.unique(every, return_inverse=True)
    amounts = np.zeros(coordinates.size, dtype=np.int64)
    np.add.at(amounts, place, np.concatenate([one.amounts for one in sparse]))
    kept = amounts != 0
    return coordinates[kept], amounts[kept]


def sum_of(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Add up arrays of integers; none of them is changed."""
    total = arrays[0].copy()
    for one in arrays[1:]:
        total += one
    return total
