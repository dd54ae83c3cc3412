"""Fits on partitioned rows: the coordinator draws, and adds up exact sums from the workers.

The checkpoint is written between two steps, so it contains what is drawn before any worker receives
it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.partitions import Partitions
from dplasso.cluster.worker import SumSteps
from dplasso.frank_wolfe.round_part import Changes, RoundSteps
from dplasso.gradient_descent.margins import LinearModel
from dplasso.matrix.scaling import Scaling
from dplasso.matrix.starting import StartingModel


def _summed(method: str) -> Callable[..., NDArray[np.int64]]:
    """Return a method that sums over the workers what this method of their rows returns."""

    def summed(self: "PartitionedRecords", *args: Any) -> NDArray[np.int64]:
        return self._begun(method, *args).sums()

    return summed


@dataclass(frozen=True)
class PartitionedRecords:
    """Records on workers; like `dplasso.gradient_descent.gradient_rows.GradientRows`."""

    partitions: Partitions
    loss: Any
    columns: NDArray[np.int64] | None = None
    prior: StartingModel | None = None

    def lay_out(self) -> None:
        """Do nothing; workers lay out their rows when they compute sums."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.partitions.shape[1] if self.columns is None else int(self.columns.size)

    def part(
        self, scaling: Scaling, unit: float, start: StartingModel | None = None
    ) -> "PartitionedSums":
        """Prepare sums of gradients, like `GradientRows.part`."""
        return self._begun("part", scaling, unit, start)

    energies = _summed("energies")
    magnitudes = _summed("magnitudes")
    column_sums = _summed("column_sums")
    moments = _summed("moments")
    gradient_beside = _summed("gradient_beside")

    def margins(self, model: LinearModel, start: StartingModel | None = None) -> "PartitionedSums":
        """Let the workers compute the margins of a model."""
        return self._begun("margins", model, start)

    def _begun(self, method: str, *args: Any) -> "PartitionedSums":
        """Let the workers call a method of their `GradientRows`."""
        steps = SumSteps(self.loss, method, args, self.columns, self.prior)
        self.partitions.begin("begin_sums", steps)
        return PartitionedSums(self.partitions)


@dataclass(frozen=True)
class PartitionedSums:
    """Sums over all partitions; like `GradientPart`, and like `Margins`."""

    partitions: Partitions

    def sums(self, *released: Any) -> NDArray[np.int64]:
        """Return the sums at released weights, or at slopes and constants."""
        return sum_of(self.partitions.call("sums", *released))


class PartitionedRows:
    """The rows of all workers, as a `dplasso.frank_wolfe.rounds.Rows`."""

    def __init__(self, partitions: Partitions, steps: RoundSteps) -> None:
        self._partitions, self._steps = partitions, steps
        self._moved = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int8)

    def start(self, level: int = 0) -> NDArray[np.int64]:  # noqa: ARG002
        """Return all column gradients at zero weights."""
        return sum_of(self._partitions.begin("begin_vertices", self._steps, lambda: self._moved))

    def gradient(self, coordinate: int) -> int | None:  # noqa: ARG002
        """Return None, because `start` returns all gradients."""
        return None

    def move(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> Changes:
        """Let all workers add some vertices; return the changes of the gradients."""
        done, signs = self._moved
        changes = added_up(self._partitions.call("move", done.size + 1, vertex, sign))
        self._moved = np.append(done, vertex), np.append(signs, sign)
        return changes


def added_up(parts: list[Changes]) -> Changes:
    """Add up the changes of all parts; return only coordinates that change."""
    sparse = [part for part in parts if part.coordinates is not None]
    dense = [part.amounts for part in parts if part.coordinates is None]
    if dense:
        total = sum_of(dense)
        for part in sparse:
            np.add.at(total, np.asarray(part.coordinates), part.amounts)
        coordinates = np.flatnonzero(total)
        return Changes(coordinates, total[coordinates])
    every = np.concatenate([np.asarray(part.coordinates, dtype=np.int64) for part in sparse])
    coordinates, place = np.unique(every, return_inverse=True)
    amounts = np.zeros(coordinates.size, dtype=np.int64)
    np.add.at(amounts, place, np.concatenate([part.amounts for part in sparse]))
    kept = amounts != 0
    return Changes(coordinates[kept], amounts[kept])


def sum_of(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the sum of arrays of integers, without changing them."""
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total
