"""Exact gradients over rows: all rows in one process, or one partition on another machine.

A partition keeps no state between steps. It receives weights and returns integer sums, so the total
over partitions equals the sum that one process computes, however rows are partitioned.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.column_sums import InTiles
from dplasso.gradient_descent.steps import row_gradient_vectors, row_gradients
from dplasso.losses.targets import Targets
from dplasso.matrix.unit_rows import UnitRows
from dplasso.runtime.threads import ONE_THREAD, Threads

# The largest whole number that a record may contribute before it is halved.
_MOST = 2.0**62


class GradientPart:
    """Rows that sum their gradients at given weights.

    With K outputs, coordinate ``j K + k`` belongs to column j and output k. The result is
    bit-identical for any number of threads.
    """

    def __init__(
        self,
        data: UnitRows,
        loss: Any,
        targets: Targets,
        unit: float,
        *,
        threads: Threads = ONE_THREAD,
    ) -> None:
        self.n_outputs = loss.n_outputs
        self._data, self._loss, self._targets = data, loss, targets
        self._limit, self._threads = loss.residual_bound * unit, threads
        # Unscaled entries may exceed those of the unit row by the column's scale exponent.
        most = self._limit * 2.0 ** int(data.scale_exponents.max(initial=0))
        self._units = unit, self._limit, min(most, _MOST)
        self._totals = np.zeros(data.n_coordinates * self.n_outputs, dtype=np.int64)
        self._entries = InTiles(data, self.n_outputs, threads)

    def begin(self, weights: NDArray[np.float64]) -> None:
        """Compute the gradient sums, which `sums` returns in slices."""
        data, entries, scaled = self._data, self._entries, self._entries.scaled
        pull = row_gradients if self.n_outputs == 1 else row_gradient_vectors
        shape = (-1,) if self.n_outputs == 1 else (-1, self.n_outputs)
        rows = data.factor, data.n_columns, data.constant
        given = rows, self._loss, self._targets, weights.reshape(shape), self._units
        alike = not data.rows.values.size, float(data.rows.constant)
        filled = scaled.reshape(shape), scaled.view(np.int64).reshape(shape)

        def residuals(t: int) -> NDArray[np.int64]:
            entries.multiply(t, weights)
            totals = np.zeros(self.n_outputs, dtype=np.int64)
            own = entries.row_edges[t], entries.row_edges[t + 1]
            pull(*given, *own, alike, *filled, totals)
            entries.halve(t, self._limit)
            return totals

        constants = np.sum(self._threads.run(residuals), axis=0)
        size = data.n_columns * self.n_outputs
        entries.add_up(self._limit, self._totals[:size])
        if self._totals.size > size:
            self._totals[size:] = constants

    def sums(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return the gradient sums of columns `begin` to `end`, K numbers per column."""
        return self._totals[begin * self.n_outputs : end * self.n_outputs]

    def whole(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Compute and return all gradient sums at the given weights."""
        self.begin(weights)
        return self._totals
