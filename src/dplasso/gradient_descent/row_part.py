"""Exact gradients of some rows: of all, in one process, or of a part of them on another machine.

A part keeps nothing between two steps: it is given the weights and answers with sums of integers.
The sum over the parts is what one process computes, whatever the partition.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.steps import (
    column_gradient_vectors,
    column_gradients,
    row_gradient_vectors,
    row_gradients,
)
from dplasso.matrix.numbering import AS_GIVEN, Numbering
from dplasso.matrix.unit_rows import UnitRows
from dplasso.runtime.threads import ONE_THREAD, Threads, even_parts


class GradientPart:
    """Rows that add up their gradients at weights that they are told.

    Parameters
    ----------
    data : UnitRows
        The rows.
    loss : Logistic, Squared or Multinomial
        The loss. With K outputs, coordinate ``j K + k`` is that of column j and output k.
    labels : ndarray of int8, int32 or float64, shape (N,)
        The targets.
    unit : float
        Fixed-point units per unit of gradient, S.
    threads : Threads
        Share the rows, and those of `whole` the columns; the bits do not depend on them.
    numbering : Numbering, optional
        Of the columns, where `data` numbers them by itself. Weights and sums go by the original
        numbers.
    """

    def __init__(
        self,
        data: UnitRows,
        loss: Any,
        labels: NDArray[Any],
        unit: float,
        *,
        threads: Threads = ONE_THREAD,
        numbering: Numbering = AS_GIVEN,
    ) -> None:
        self.n_outputs = loss.n_outputs
        self._data, self._loss, self._labels = data, loss, labels
        self._unit, self._limit, self._threads = unit, loss.residual_bound * unit, threads
        self._scaled = self.by_columns(np.empty(labels.size * self.n_outputs))
        self._original = numbering.original[: data.n_columns]
        # With numbers of its own, `data` wants the weights in that order, and then gives gradients.
        own = data.n_coordinates * self.n_outputs if self._original.size else 0
        self._reordered = np.empty(own)
        self._row_edges = even_parts(data.rows.indptr, threads.count)

    def begin(self, weights: NDArray[np.float64], spans: list[tuple[int, int]]) -> None:
        """Compute what `sums` adds up.

        `weights`, shape (K D,) or (K (D + 1),): the model so far.
        `spans`: begins and ends of all columns that are going to be asked for.
        """
        if self._original.size:
            self._share(spans, lambda begin, end: self._reorder(weights, begin, end))
            weights = self._reordered

        def residuals(t: int) -> Any:
            rows, units = (self._row_edges[t], self._row_edges[t + 1]), (self._unit, self._limit)
            given = self._data, self._loss, self._labels, self.by_columns(weights)
            if self.n_outputs == 1:
                return int(row_gradients(*given, *units, *rows, self._scaled))
            totals = np.zeros(self.n_outputs, dtype=np.int64)
            row_gradient_vectors(*given, *units, *rows, self._scaled, totals)
            return totals

        self._constant_total = sum(self._threads.run(residuals))
        if self._original.size:
            self._share(spans, self._reordered_sums)

    def sums(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return the sums of the gradients of columns `begin` to `end`, each K numbers."""
        span = slice(begin * self.n_outputs, end * self.n_outputs)
        totals = (
            self._reordered.view(np.int64)[span] if self._original.size else self._sums(begin, end)
        )
        if end > self._data.n_columns:
            totals[-self.n_outputs :] = self._constant_total
        return totals

    def whole(self, weights: NDArray[np.float64], block: int) -> NDArray[np.int64]:
        """Return all sums of the gradients at some weights, computed `block` columns at a time."""
        size = self._data.n_coordinates
        spans = [(begin, min(begin + block, size)) for begin in range(0, size, block)]
        self.begin(weights, spans)
        totals = np.empty(size * self.n_outputs, dtype=np.int64)

        def some(begin: int, end: int) -> None:
            totals[begin * self.n_outputs : end * self.n_outputs] = self.sums(begin, end)

        self._share(spans, some)
        return totals

    def by_columns(self, flat: NDArray[Any]) -> NDArray[Any]:
        """View a flat array as one row of K numbers for each column, where there are several."""
        return flat if self.n_outputs == 1 else flat.reshape(-1, self.n_outputs)

    def _share(self, spans: list[tuple[int, int]], work: Any) -> None:
        """Call `work` on every span, shared among the threads."""
        count = self._threads.count
        self._threads.run(lambda t: [work(*span) for span in spans[t::count]])

    def _sums(self, begin: int, end: int) -> NDArray[np.int64]:
        totals = np.empty((end - begin) * self.n_outputs, dtype=np.int64)
        add_up = column_gradients if self.n_outputs == 1 else column_gradient_vectors
        last = min(end, self._data.n_columns)
        add_up(self._data.columns, self._scaled, self._limit, begin, last, self.by_columns(totals))
        return totals

    def _reordered_sums(self, begin: int, end: int) -> None:
        gradients = self.by_columns(self._reordered.view(np.int64))
        places = self._original[begin:end]
        gradients[places] = self.by_columns(self._sums(begin, end))[: places.size]

    def _reorder(self, given: NDArray[np.float64], begin: int, end: int) -> None:
        """Put the weights into the order of the data."""
        reordered, weights = self.by_columns(self._reordered), self.by_columns(given)
        places = self._original[begin:end]
        reordered[begin : begin + places.size] = weights[places]
        reordered[begin + places.size : end] = weights[begin + places.size : end]
