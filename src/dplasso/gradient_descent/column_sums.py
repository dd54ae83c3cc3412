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
    short_column_gradients,
    tile_gradients,
    tile_products,
)
from dplasso.matrix.numbering import Numbering
from dplasso.matrix.tiles import Tiles
from dplasso.matrix.unit_rows import UnitRows, row_product_vectors, row_products
from dplasso.runtime.threads import Threads, cut, even_parts

# Entries of a column, on average, up to which many columns are added up in one loop.
_SHORT = 16
# Parts of the columns for each thread.
_PARTS = 4


class InTiles:
    """The passes over tiles. `row_edges`: the rows of each thread."""

    def __init__(self, data: UnitRows, tiles: Tiles, n_outputs: int, threads: Threads) -> None:
        self._tiles, self._halvings = tiles, data.halvings
        self._n_outputs, self._threads = n_outputs, threads
        self._chunks = even_parts(np.append(tiles.bounds[:, 0], tiles.places.size), threads.count)
        self.row_edges = tiles.row_edges[self._chunks]
        # Blocks with much more than others are divided by rows.
        sizes, n_chunks = np.diff(tiles.bounds).sum(axis=0), tiles.bounds.shape[0]
        most = 1.0 + tiles.places.size / (_PARTS * threads.count)
        counts = np.ceil(sizes / most) if threads.count > 1 else np.ones(sizes.size)
        self._pieces = [
            (b, first, last)
            for b, count in enumerate(np.clip(counts, 1, max(1, n_chunks)).astype(int))
            for first, last in pairwise(cut(0, n_chunks, count).tolist())
        ]

    def ordered(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights in the order of the data."""
        return weights

    def multiply(self, t: int, weights: NDArray[np.float64], products: NDArray[np.float64]) -> None:
        """Set the products of thread t's rows with weights, K numbers each."""
        chunks = self._chunks[t], self._chunks[t + 1]
        tile_products(self._tiles, *chunks, self._n_outputs, weights, products)

    def add_up(self, scaled: NDArray[np.float64], limit: float, totals: NDArray[np.int64]) -> None:
        """Set `totals` to what all rows contribute to the columns, K numbers each."""
        width, given = self._tiles.width * self._n_outputs, (scaled, scaled.view(np.int64), limit)
        # Whichever thread is free takes the next.
        rest = iter(self._pieces)

        def some(_: int) -> list[tuple[slice, NDArray[np.int64]]]:
            more = []
            for b, first, last in rest:
                span = slice(b * width, (b + 1) * width)
                found = np.empty_like(totals[span]) if first else totals[span]
                chunks = first, last, self._n_outputs, self._halvings
                tile_gradients(self._tiles, b, *chunks, *given, found)
                if first:
                    more.append((span, found))
            return more

        for more in self._threads.run(some):
            for span, found in more:
                totals[span] += found


class ByColumns:
    """The passes over rows and over columns, in numbers of their own; the members as of `InTiles`.

    `numbering`: weights and totals go by its original numbers.
    """

    def __init__(
        self, data: UnitRows, n_outputs: int, threads: Threads, numbering: Numbering
    ) -> None:
        self._rows, self._columns, self._halvings = data.rows, data.columns, data.halvings
        self._n_outputs, self._threads = n_outputs, threads
        self._original = numbering.original[: data.n_columns]
        self.row_edges = even_parts(data.rows.indptr, threads.count)
        edges = even_parts(data.columns.indptr, _PARTS * threads.count).tolist()
        self._parts = list(pairwise(edges))
        short = data.columns.indices.size < _SHORT * data.n_columns
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

    def multiply(self, t: int, weights: NDArray[np.float64], products: NDArray[np.float64]) -> None:
        """Set the products of thread t's rows with weights, K numbers each."""
        first, last = self.row_edges[t], self.row_edges[t + 1]
        fill = row_products if self._n_outputs == 1 else row_product_vectors
        own = self._by_columns(products)[first:last]
        fill(self._rows, first, last, self._by_columns(weights), own)

    def add_up(self, scaled: NDArray[np.float64], limit: float, totals: NDArray[np.int64]) -> None:
        """Set `totals` to what all rows contribute to the columns, K numbers each."""
        pulls, whole = self._by_columns(scaled), self._by_columns(totals)
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
