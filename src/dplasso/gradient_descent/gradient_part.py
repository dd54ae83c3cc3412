"""Exact gradients over rows: all rows in one process, or one partition on another machine.

A partition keeps no state between steps. It receives weights and returns integer sums, so the total
over partitions equals the sum that one process computes, however rows are partitioned.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.steps import (
    halve_contributions,
    row_gradient_vectors,
    row_gradients,
    tile_gradient_vectors,
    tile_gradients,
    tile_product_vectors,
    tile_products,
)
from dplasso.losses.targets import Targets
from dplasso.matrix.tiles import entries_ahead
from dplasso.matrix.unit_rows import UnitRows
from dplasso.runtime.threads import ONE_THREAD, Threads, even_parts

# The largest whole number that a record may contribute before it is halved.
_MOST = 2.0**62


class InTiles:
    """Both passes over the entries, by threads: products with weights, and sums by columns.

    `row_edges`: first row of each thread, and the end.
    `scaled`: K numbers per row: margins, then residuals.
    """

    def __init__(self, data: UnitRows, n_outputs: int, threads: Threads) -> None:
        tiles = data.tiles
        self._tiles, self._halvings = tiles, data.scale_exponents
        self._n_outputs, self._threads = n_outputs, threads
        self._shape = (-1,) if n_outputs == 1 else (-1, n_outputs)
        self._chunks = even_parts(np.append(tiles.bounds[:, 0], tiles.places.size), threads.count)
        self.row_edges = tiles.row_edges[self._chunks]
        # In blocks with a large part of all entries each thread sums some rows. The other blocks
        # are divided among the threads.
        sizes = np.diff(tiles.bounds).sum(axis=0)
        large = (sizes * (2 * threads.count) > tiles.places.size) & (threads.count > 1)
        self._large, others = np.flatnonzero(large), np.flatnonzero(~large)
        edges = even_parts(np.cumsum(np.append(0, sizes[others])), threads.count)
        self._others = [others[slice(*span)] for span in pairwise(edges)]
        # If all entries are equal: contributions of the rows at each scale exponent of a column.
        count = 1 if tiles.values.size else 1 + int(data.scale_exponents.max(initial=0))
        self._levels = np.empty((count, data.factor.size * n_outputs), dtype=np.int64)
        self.scaled = self._levels[0].view(np.float64)
        self._ahead = (entries_ahead(tiles, scaled=count > 1),) if n_outputs == 1 else ()

    def multiply(self, t: int, weights: NDArray[np.float64]) -> None:
        """Set `scaled` to the products of the rows of thread t with the weights."""
        first, last = self._n_outputs * self.row_edges[t : t + 2]
        self.scaled[first:last] = 0.0
        multiply = tile_products if self._n_outputs == 1 else tile_product_vectors
        chunks, given = self._chunks[t : t + 2], (weights, self.scaled)
        multiply(self._tiles, *chunks, *(one.reshape(self._shape) for one in given), *self._ahead)

    def halve(self, t: int, limit: float) -> None:
        """Halve the contributions of thread t's rows for scaled columns, if entries are equal."""
        if not self._tiles.values.size:
            first, last = (self._n_outputs * edge for edge in self.row_edges[t : t + 2])
            halve_contributions(limit, first, last, self._levels)

    def add_up(self, limit: float, totals: NDArray[np.int64]) -> None:
        """Set `totals` to the column sums of all contributions, K numbers per column."""
        width, n_chunks = self._tiles.width, self._tiles.bounds.shape[0]
        add: Any = tile_gradients if self._n_outputs == 1 else tile_gradient_vectors
        given = self._halvings, self.scaled.reshape(self._shape), self._levels, limit
        totals = totals.reshape(self._shape)

        def some(t: int) -> NDArray[np.int64]:
            blocks, chunks = self._others[t], self._chunks[t : t + 2]
            for begin in blocks * width:
                totals[begin : begin + width] = 0
            add(self._tiles, blocks, 0, n_chunks, *given, totals, blocks * width, *self._ahead)
            own = np.zeros((self._large.size * width, *totals.shape[1:]), dtype=np.int64)
            begins = np.arange(self._large.size) * width
            add(self._tiles, self._large, *chunks, *given, own, begins, *self._ahead)
            return own

        parts = self._threads.run(some)
        for k, b in enumerate(self._large):
            whole = totals[b * width : (b + 1) * width]
            own = slice(k * width, k * width + len(whole))
            whole[:] = parts[0][own]
            for part in parts[1:]:
                whole += part[own]


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
