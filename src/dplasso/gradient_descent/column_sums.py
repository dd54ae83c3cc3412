"""Both passes over the entries of some rows, by threads: products with weights, sums by columns.

`InTiles` has one copy of the entries, for a matrix in memory; `ByColumns` has the two of a store.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.steps import (
    column_gradient_vectors,
    column_gradients,
    halve_contributions,
    short_column_gradients,
    tile_gradients,
    tile_products,
)
from dplasso.matrix.compressed import Compressed
from dplasso.matrix.numbering import Numbering
from dplasso.matrix.tiles import Tiles
from dplasso.matrix.unit_rows import UnitRows, row_product_vectors, row_products
from dplasso.runtime.threads import Threads, even_parts

# Entries of a column, on average, up to which many columns are added up in one loop.
_SHORT = 16
# Parts of the columns for each thread, where any will do.
_PARTS = 4


class InTiles:
    """The passes over tiles.

    `row_edges`: the rows of each thread.
    `scaled`: room for K numbers for each row.
    """

    def __init__(self, data: UnitRows, tiles: Tiles, n_outputs: int, threads: Threads) -> None:
        self._tiles, self._halvings = tiles, data.halvings
        self._n_outputs, self._threads = n_outputs, threads
        self._chunks = even_parts(np.append(tiles.bounds[:, 0], tiles.places.size), threads.count)
        self.row_edges = tiles.row_edges[self._chunks]
        # Of blocks with much of all, every thread adds up some rows; the others are divided.
        sizes = np.diff(tiles.bounds).sum(axis=0)
        large = (sizes * (2 * threads.count) > tiles.places.size) & (threads.count > 1)
        self._large, others = np.flatnonzero(large), np.flatnonzero(~large)
        edges = even_parts(np.cumsum(np.append(0, sizes[others])), threads.count)
        self._others = [others[slice(*span)] for span in pairwise(edges)]
        # Of entries that are alike: what rows contribute to columns that are halved so often.
        count = 1 if tiles.values.size else 1 + int(data.halvings.max(initial=0))
        self._levels = np.empty((count, data.factor.size * n_outputs), dtype=np.int64)
        self.scaled = self._levels[0].view(np.float64)

    def ordered(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights in the order of the data."""
        return weights

    def multiply(self, t: int, weights: NDArray[np.float64]) -> None:
        """Set `scaled` to the products of thread t's rows with weights."""
        chunks = self._chunks[t], self._chunks[t + 1]
        tile_products(self._tiles, *chunks, self._n_outputs, weights, self.scaled)

    def halve(self, t: int, limit: float) -> None:
        """Make ready what thread t's rows, whose entries are alike, contribute to each column."""
        if not self._tiles.values.size:
            first, last = (self._n_outputs * edge for edge in self.row_edges[t : t + 2])
            halve_contributions(limit, first, last, self._levels)

    def add_up(self, limit: float, totals: NDArray[np.int64]) -> None:
        """Set `totals` to what all rows contribute to the columns, K numbers each."""
        width, n_chunks = self._tiles.width * self._n_outputs, self._tiles.bounds.shape[0]
        given = self._n_outputs, self._halvings, self.scaled, self._levels, limit

        def some(t: int) -> NDArray[np.int64]:
            blocks, chunks = self._others[t], (self._chunks[t], self._chunks[t + 1])
            tile_gradients(self._tiles, blocks, 0, n_chunks, *given, totals, blocks * width)
            own = np.empty(self._large.size * width, dtype=np.int64)
            begins = np.arange(self._large.size) * width
            tile_gradients(self._tiles, self._large, *chunks, *given, own, begins)
            return own

        parts = self._threads.run(some)
        for k, b in enumerate(self._large):
            whole = totals[b * width : (b + 1) * width]
            own = slice(k * width, k * width + whole.size)
            np.sum([part[own] for part in parts], axis=0, out=whole)


class ByColumns:
    """The passes over rows and over columns, in numbers of their own; the members as of `InTiles`.

    `numbering`: weights and totals go by its original numbers.
    """

    def __init__(
        self,
        data: UnitRows,
        columns: Compressed,
        n_outputs: int,
        threads: Threads,
        numbering: Numbering,
    ) -> None:
        self._rows, self._columns, self._halvings = data.rows, columns, data.halvings
        self._n_outputs, self._threads = n_outputs, threads
        self._original = numbering.original[: data.n_columns]
        self.scaled = np.empty(data.factor.size * n_outputs)
        self.row_edges = even_parts(data.rows.indptr, threads.count)
        edges = even_parts(columns.indptr, _PARTS * threads.count).tolist()
        self._parts = list(pairwise(edges))
        short = columns.indices.size < _SHORT * data.n_columns
        self._add_up: Any = column_gradient_vectors
        if n_outputs == 1:
            self._add_up = short_column_gradients if short else column_gradients

    def ordered(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights in the order of the data."""
        size = self._original.size
        if not size:
            return weights
        reordered, given = np.empty_like(weights), self._by_columns(weights)
        own = self._by_columns(reordered)
        own[size:] = given[size:]

        def some(begin: int, end: int) -> None:
            own[begin:end] = given[self._original[begin:end]]

        self._share(some)
        return reordered

    def multiply(self, t: int, weights: NDArray[np.float64]) -> None:
        """Set `scaled` to the products of thread t's rows with weights."""
        first, last = self.row_edges[t], self.row_edges[t + 1]
        fill = row_products if self._n_outputs == 1 else row_product_vectors
        own = self._by_columns(self.scaled)[first:last]
        fill(self._rows, first, last, self._by_columns(weights), own)

    def halve(self, t: int, limit: float) -> None:
        """Do nothing: contributions are halved as they are added up."""

    def add_up(self, limit: float, totals: NDArray[np.int64]) -> None:
        """Set `totals` to what all rows contribute to the columns, K numbers each."""
        pulls, whole = self._by_columns(self.scaled), self._by_columns(totals)
        given = self._columns, self._halvings, pulls, pulls.view(np.int64), limit

        def some(begin: int, end: int) -> None:
            found = whole[begin:end]
            if self._original.size:
                found = np.empty_like(found)
            self._add_up(*given, begin, end, found)
            if self._original.size:
                whole[self._original[begin:end]] = found

        self._share(some)

    def _by_columns(self, flat: NDArray[Any]) -> NDArray[Any]:
        """View a flat array as rows of K numbers for each column, where K is more than 1."""
        return flat if self._n_outputs == 1 else flat.reshape(-1, self._n_outputs)

    def _share(self, work: Any) -> None:
        """Call `work` on every part of the columns, shared among the threads."""
        count = self._threads.count
        self._threads.run(lambda t: [work(*part) for part in self._parts[t::count]])
