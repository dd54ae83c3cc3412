"""Noisy gradient descent on rows in partitions: exact sums from the workers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.frank_wolfe import sum_of
from dplasso.cluster.partitions import Partitions
from dplasso.cluster.worker import EnergySteps, GradientSteps, MarginSteps
from dplasso.gradient_descent.energies import NO_LOADS
from dplasso.gradient_descent.slopes import LinearModel
from dplasso.matrix.starting import StartingModel
from dplasso.matrix.unit_rows import Scaling


@dataclass(frozen=True)
class PartitionedRecords:
    """Records that workers hold; as `dplasso.gradient_descent.records.Records`."""

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
        steps = GradientSteps(self.loss, self.columns, scaling, unit, start)
        return PartitionedSums(self.partitions, steps)

    def energies(
        self, scaling: Scaling, unit: float, loads: NDArray[np.int64] = NO_LOADS
    ) -> NDArray[np.int64]:
        """Have the workers add up what `Records.energies` returns."""
        steps = EnergySteps(self.loss, self.columns, scaling, unit, loads, self.prior)
        self.partitions.begin("begin_sums", steps)
        return sum_of(self.partitions.call("sums"))

    def margins(
        self, model: LinearModel, start: StartingModel | None = None
    ) -> "PartitionedMargins":
        """Have the workers compute the margins of a model; as `Records.margins`."""
        steps = MarginSteps(self.loss, self.columns, model, start)
        self.partitions.begin("begin_sums", steps)
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

    def __init__(self, partitions: Partitions, steps: GradientSteps) -> None:
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
