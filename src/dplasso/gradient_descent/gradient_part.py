"""Exact gradients of some rows: of all, in one process, or of a part of them on another machine.

A part keeps nothing between two steps: it is given the weights and answers with sums of integers.
The sum over the parts is what one process computes, whatever the partition.
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
    """Rows that add up their gradients at weights that they are told.

    With K outputs, coordinate ``j K + k`` is that of column j and output k. The bits do not depend
    on the threads.
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
        # Of entries as given, which may be longer than those of the unit row, but for halving.
        most = self._limit * 2.0 ** int(data.scale_exponents.max(initial=0))
        self._units = unit, self._limit, min(most, _MOST)
        self._totals = np.zeros(data.n_coordinates * self.n_outputs, dtype=np.int64)
        self._entries = InTiles(data, self.n_outputs, threads)

    def begin(self, weights: NDArray[np.float64]) -> None:
        """Compute what `sums` returns parts of."""
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
        """Return the sums of the gradients of columns `begin` to `end`, each K numbers."""
        return self._totals[begin * self.n_outputs : end * self.n_outputs]

    def whole(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return all sums of the gradients at some weights."""
        self.begin(weights)
        return self._totals
