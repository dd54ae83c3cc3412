"""Fits whose rows workers hold: a coordinator draws, and adds up the workers' exact sums.

Frank-Wolfe with a given radius first has all workers take the step before, and then draws: so a
vertex is on the checkpoint, which is written between two steps, before any worker hears of it.
Nobody takes the last step: its vertex is all that is wanted of it. Runs in rounds have a
coordinator of their own (`dplasso.frank_wolfe.rounds`), which asks `PartitionedRows`.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.partitions import Partitions
from dplasso.cluster.worker import SumSteps, calibrating, gradients_at, known_now
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.reports import WIDE, expected_entries, take_changes
from dplasso.frank_wolfe.round_part import Changes, RoundSteps
from dplasso.frank_wolfe.row_part import VertexSteps
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.frank_wolfe.vertex_run import VertexRun
from dplasso.gradient_descent.energies import NO_LOADS
from dplasso.gradient_descent.margins import LinearModel
from dplasso.gradient_descent.row_sums import Units
from dplasso.losses.targets import targets_of
from dplasso.matrix.compressed import Compressed
from dplasso.matrix.orientations import Design
from dplasso.matrix.scaling import Scaling
from dplasso.matrix.starting import StartingModel
from dplasso.privacy.parameters import check_records
from dplasso.privacy.randomness import RandomStream
from dplasso.selection.contract import granularity, rebuild, select, update_many


@dataclass(frozen=True)
class PartitionedRecords:
    """Records that workers hold; as `dplasso.gradient_descent.gradient_rows.GradientRows`."""

    partitions: Partitions
    loss: Any
    columns: NDArray[np.int64] | None = None
    prior: StartingModel | None = None

    def with_loss(self, loss: Any) -> "PartitionedRecords":
        """Return the records with another loss."""
        return replace(self, loss=loss)

    @property
    def n_records(self) -> int:
        """N."""
        return self.partitions.shape[0]

    def lay_out(self) -> None:
        """Do nothing: workers lay their rows out when they are asked for sums."""

    @property
    def n_columns(self) -> int:
        """How many columns the records have."""
        return self.partitions.shape[1] if self.columns is None else int(self.columns.size)

    def part(
        self, scaling: Scaling, unit: float, start: StartingModel | None = None
    ) -> "PartitionedSums":
        """Make ready the sums of gradients; the parameters as of `Records.part`."""
        ask = partial(gradients_at, scaling, unit, start)
        return PartitionedSums(self.partitions, SumSteps(self.loss, ask, self.columns, start))

    def energies(
        self, scaling: Scaling, unit: float, loads: NDArray[np.int64] = NO_LOADS
    ) -> NDArray[np.int64]:
        """Have the workers add up what `Records.energies` returns."""
        ask = partial(known_now, "energies", (scaling, unit, loads))
        return self._sum(SumSteps(self.loss, ask, self.columns, self.prior))

    def moments(
        self, loss: Any, scaling: Scaling, weights: NDArray[np.float64], units: Units
    ) -> NDArray[np.int64]:
        """Have the workers add up what `Records.moments` returns."""
        asked = partial(known_now, "moments", (loss, scaling, weights, units))
        return self._sum(SumSteps(loss, asked))

    def _sum(self, steps: SumSteps) -> NDArray[np.int64]:
        self.partitions.begin("begin_sums", steps)
        return sum_of(self.partitions.call("sums"))

    def margins(
        self, model: LinearModel, start: StartingModel | None = None
    ) -> "PartitionedMargins":
        """Have the workers compute the margins of a model; as `Records.margins`."""
        ask = partial(calibrating, model, start)
        self.partitions.begin("begin_sums", SumSteps(self.loss, ask, self.columns, start))
        return PartitionedMargins(self.partitions)


@dataclass(frozen=True)
class PartitionedMargins:
    """Margins that workers hold; as `dplasso.gradient_descent.calibration.Margins`."""

    partitions: Partitions

    def sums(self, parameters: NDArray[np.float64], unit: float) -> NDArray[np.int64]:
        """Return the gradient in slope and constants, in units."""
        return sum_of(self.partitions.call("sums", parameters, unit))


class PartitionedSums:
    """Sums of gradients over all partitions; as `GradientPart`."""

    def __init__(self, partitions: Partitions, steps: SumSteps) -> None:
        self._partitions, self._steps = partitions, steps
        self._totals: NDArray[np.int64] | None = None

    def begin(self, weights: NDArray[np.float64]) -> None:
        """Compute what `sums` returns parts of."""
        if self._totals is None:
            self._partitions.begin("begin_sums", self._steps)
        self._totals = sum_of(self._partitions.call("sums", weights))

    def sums(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return the sums of the gradients of columns `begin` to `end`, each K numbers."""
        assert self._totals is not None
        width = self._steps.loss.n_outputs
        return self._totals[begin * width : end * width]


def problem_of(partitions: Partitions, steps: VertexSteps) -> Problem:
    """Return the problem of a run without its rows: what the coordinator draws by."""
    nothing = Compressed(
        np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, np.float32), 0.0
    )
    design = Design(
        rows=nothing,
        columns=nothing,
        has_columns=False,
        n_rows=0,
        n_columns=partitions.shape[1],
        intercept=steps.intercept,
        bound=float(steps.bound),
    )
    return steps.problem(design, targets_of(np.zeros(0)))


class PartitionedRows:
    """The rows of all workers; a `dplasso.frank_wolfe.rounds.Rows`."""

    def __init__(self, partitions: Partitions, steps: VertexSteps | RoundSteps) -> None:
        check_records(partitions.shape[0], steps.share_bits)
        self._partitions, self._steps = partitions, steps
        self._moved = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int8)

    def start(self, level: int = 0) -> NDArray[np.int64]:  # noqa: ARG002
        """Return the column gradients at zero weights, with none left out."""
        return sum_of(self._partitions.begin("begin_vertices", self._steps, lambda: self._moved))

    def gradient(self, coordinate: int) -> int | None:  # noqa: ARG002
        """Return None: no gradient is left out."""
        return None

    def move(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> Changes:
        """Have all workers add some vertices; return what that changes."""
        done, signs = self._moved
        found = added_up(self._partitions.call("move", done.size + 1, vertex, sign))
        self._moved = np.append(done, vertex), np.append(signs, sign)
        return found


@dataclass(frozen=True)
class PartitionedVertexRows:
    """The rows of a run with a given radius, on workers; as `ProblemRows`."""

    partitions: Partitions
    steps: VertexSteps

    @property
    def problem(self) -> Problem:
        """The problem without its rows."""
        return problem_of(self.partitions, self.steps)

    def walk(self, selector: Any, stream: RandomStream, **settings: Any) -> "PartitionedFrankWolfe":
        """Return the coordinator of a run; workers choose solver and threads themselves."""
        known = self.partitions, self.steps, self.problem, selector, stream
        return PartitionedFrankWolfe(*known, **settings)


class PartitionedFrankWolfe(VertexRun):
    """Frank-Wolfe with a given radius on partitions; the problem is that of `problem_of`."""

    def __init__(
        self,
        partitions: Partitions,
        steps: VertexSteps,
        problem: Problem,
        selector: Any,
        stream: RandomStream,
        *,
        prefix: Transcript | None = None,
        **_: Any,
    ) -> None:
        super().__init__(steps.n_steps, problem.n_coordinates, prefix)
        self._size = partitions.n_entries, partitions.shape[0]
        self._rows = PartitionedRows(partitions, steps)
        self._selector, self._stream = selector, stream
        self._refreshed_part = 1.0

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1, both included."""
        for step in range(first, last + 1):
            if step == 1:
                self._alpha = self._rows.start()
                rebuild(self._selector, self._alpha)
            else:
                self._move(step - 1)
            self.take(step, *select(self._selector, self._alpha, self._stream))

    def _move(self, step: int) -> None:
        taken = self.transcript(step)
        found = self._rows.move(taken.vertex[-1:], taken.sign[-1:])
        n_looked_at, n_refreshed, n_touched = found.counts.tolist()
        # As `dplasso.frank_wolfe.reports` decides it for rows that are in one process.
        most = WIDE * self._alpha.size
        few = n_touched <= most
        few &= expected_entries(n_looked_at, self._refreshed_part, *self._size) <= most
        if expected_entries(n_looked_at, 1.0, *self._size) > most:
            self._refreshed_part = n_refreshed / n_looked_at
        changed, before = np.empty((2, found.amounts.size), dtype=np.int64)
        shift = granularity(self._selector)
        count = take_changes(
            self._alpha, found.coordinates, found.amounts, False, shift, changed, before
        )
        if few:
            update_many(self._selector, self._alpha, changed, before, count)
        else:
            rebuild(self._selector, self._alpha)


def added_up(found: list[Changes]) -> Changes:
    """Add up the changes of all parts; the coordinates are those that change."""
    counts = sum_of([one.counts for one in found])
    sparse = [one for one in found if one.coordinates is not None]
    dense = [one.amounts for one in found if one.coordinates is None]
    if dense:
        total = sum_of(dense)
        for one in sparse:
            np.add.at(total, np.asarray(one.coordinates), one.amounts)
        coordinates = np.flatnonzero(total)
        return Changes(coordinates, total[coordinates], counts)
    every = np.concatenate([np.asarray(one.coordinates, dtype=np.int64) for one in sparse])
    coordinates, place = np.unique(every, return_inverse=True)
    amounts = np.zeros(coordinates.size, dtype=np.int64)
    np.add.at(amounts, place, np.concatenate([one.amounts for one in sparse]))
    kept = amounts != 0
    return Changes(coordinates[kept], amounts[kept], counts)


def sum_of(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Add up arrays of integers; none of them is changed."""
    total = arrays[0].copy()
    for one in arrays[1:]:
        total += one
    return total
