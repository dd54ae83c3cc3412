"""Both passes over the entries of some rows, by threads: products with weights, sums by columns."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.steps import (
    halve_contributions,
    tile_gradient_vectors,
    tile_gradients,
    tile_product_vectors,
    tile_products,
)
from dplasso.matrix.tiles import entries_ahead
from dplasso.matrix.unit_rows import UnitRows
from dplasso.runtime.threads import Threads, even_parts


class InTiles:
    """The passes over tiles.

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
