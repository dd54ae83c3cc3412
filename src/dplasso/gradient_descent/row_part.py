"""Exact gradients of some rows: of all, in one process, or of a part of them on another machine.

A part keeps nothing between two steps: it is given the weights and answers with sums of integers.
The sum over the parts is what one process computes, whatever the partition.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.steps import (
    column_gradient_vectors,
    column_gradients,
    row_gradient_vectors,
    row_gradients,
    short_column_gradients,
)
from dplasso.losses.targets import Targets
from dplasso.matrix.numbering import AS_GIVEN, Numbering
from dplasso.matrix.unit_rows import UnitRows
from dplasso.runtime.threads import ONE_THREAD, Threads, even_parts

# Entries of a column, on average, up to which many columns are added up in one loop.
_SHORT = 16
# The largest whole number that a record may contribute before it is halved.
_MOST = 2.0**62
# Blocks of columns are no parts for threads where one would have so much more to do than another.
_UNEVEN = 1.2


class GradientPart:
    """Rows that add up their gradients at weights that they are told.

    With K outputs, coordinate ``j K + k`` is that of column j and output k. The bits do not depend
    on the threads. Weights and sums go by the original numbers of `numbering`.
    """

    def __init__(
        self,
        data: UnitRows,
        loss: Any,
        targets: Targets,
        unit: float,
        *,
        threads: Threads = ONE_THREAD,
        numbering: Numbering = AS_GIVEN,
    ) -> None:
        self.n_outputs = loss.n_outputs
        self._data, self._loss, self._targets = data, loss, targets
        self._limit, self._threads = loss.residual_bound * unit, threads
        # Of entries as given, which may be longer than those of the unit row, but for halving.
        most = self._limit * 2.0 ** int(data.halvings.max(initial=0))
        self._units = unit, self._limit, min(most, _MOST)
        short = data.columns.indices.size < _SHORT * data.n_columns
        self._add_up = short_column_gradients if short else column_gradients
        self._scaled = self._by_columns(np.empty(len(targets.labels) * self.n_outputs))
        self._original = numbering.original[: data.n_columns]
        # With numbers of its own, `data` wants the weights in that order, and then gives gradients.
        # So it does for threads that take other ranges of the columns than the blocks asked for.
        self._kept, self._parts = np.zeros(0), list[tuple[int, int]]()
        self._row_edges = even_parts(data.rows.indptr, threads.count)

    def begin(self, weights: NDArray[np.float64], spans: list[tuple[int, int]]) -> None:
        """Compute what `sums` adds up; `spans` are begins and ends of all columns asked for."""
        if not self._kept.size and (self._original.size or self._uneven(spans)):
            self._kept = np.empty(self._data.n_coordinates * self.n_outputs)
            edges = even_parts(self._data.columns.indptr, 4 * self._threads.count).tolist()
            self._parts = list(pairwise(edges))
        if self._original.size:
            self._share(spans, lambda begin, end: self._reorder(weights, begin, end))
            weights = self._kept
        pull = row_gradients if self.n_outputs == 1 else row_gradient_vectors
        given = self._data, self._loss, self._targets, self._by_columns(weights), self._units
        filled = self._scaled, self._scaled.view(np.int64)

        def residuals(t: int) -> NDArray[np.int64]:
            rows = self._row_edges[t], self._row_edges[t + 1]
            totals = np.zeros(self.n_outputs, dtype=np.int64)
            pull(*given, *rows, *filled, totals)
            return totals

        self._constant_totals: NDArray[np.int64] = np.sum(self._threads.run(residuals), axis=0)
        self._share(self._parts, self._keep_sums)

    def sums(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return the sums of the gradients of columns `begin` to `end`, each K numbers."""
        span = slice(begin * self.n_outputs, end * self.n_outputs)
        kept = self._kept.view(np.int64)
        totals = kept[span] if kept.size else self._sums(begin, end)
        if end > self._data.n_columns:
            totals[-self.n_outputs :] = self._constant_totals
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

    def _by_columns(self, flat: NDArray[Any]) -> NDArray[Any]:
        """View a flat array as rows of K numbers for each column, where K is more than 1."""
        return flat if self.n_outputs == 1 else flat.reshape(-1, self.n_outputs)

    def _share(self, spans: list[tuple[int, int]], work: Any) -> None:
        """Call `work` on every span, shared among the threads."""
        count = self._threads.count
        self._threads.run(lambda t: [work(*span) for span in spans[t::count]])

    def _sums(self, begin: int, end: int) -> NDArray[np.int64]:
        totals = np.empty((end - begin) * self.n_outputs, dtype=np.int64)
        add_up = self._add_up if self.n_outputs == 1 else column_gradient_vectors
        given = self._scaled, self._scaled.view(np.int64), self._limit
        span = begin, min(end, self._data.n_columns)
        data = self._data.columns, self._data.halvings
        add_up(*data, *given, *span, self._by_columns(totals))
        return totals

    def _uneven(self, spans: list[tuple[int, int]]) -> bool:
        """Return whether threads that share these blocks would have different amounts to add up."""
        ends = self._data.columns.indptr[np.minimum(np.array(spans), self._data.n_columns)]
        sizes, count = ends[:, 1] - ends[:, 0], self._threads.count
        return count > 1 and max(sizes[t::count].sum() for t in range(count)) * count > (
            _UNEVEN * sizes.sum()
        )

    def _keep_sums(self, begin: int, end: int) -> None:
        gradients = self._by_columns(self._kept.view(np.int64))
        places = self._original[begin:end] if self._original.size else slice(begin, end)
        gradients[places] = self._by_columns(self._sums(begin, end))

    def _reorder(self, given: NDArray[np.float64], begin: int, end: int) -> None:
        """Put the weights into the order of the data."""
        reordered, weights = self._by_columns(self._kept), self._by_columns(given)
        places = self._original[begin:end]
        reordered[begin : begin + places.size] = weights[places]
        reordered[begin + places.size : end] = weights[begin + places.size : end]
