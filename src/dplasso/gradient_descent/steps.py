"""A step: residuals by rows, exact integer gradients by columns, and the update.

A record's contribution to column j is ``q_i z_ij S``, rounded towards zero, with z its unit row
(`dplasso.privacy.share`). So it lies in the ball of radius ``C S``, and the integer sum has the
same bits for any order, layout and number of threads. If the entries of a column are halved b
times, a contribution is divided by ``2^b`` before it is rounded, and weights belong to the original
entries.

With K outputs a record has K residuals of L2 norm C together. Weights stand column by column,
coordinate ``j K + k``.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.losses.loss import gradient, residual_vector
from dplasso.losses.targets import Targets, offset_of, weight_of
from dplasso.matrix.scaling import NO_SCALE_EXPONENTS, SCALES
from dplasso.matrix.tiles import column_of, entries_ahead, prefetched, row_of, tile_entries
from dplasso.matrix.unit_rows import UnitRows
from dplasso.privacy.share import share
from dplasso.runtime.compilation import kernel
from dplasso.runtime.threads import ONE_THREAD, Threads, even_parts

# Rows whose residuals are computed together, entries that are added up in one loop.
_ROWS, _ENTRIES = 256, 1024


@kernel
def row_gradients(data, loss, targets, model, units, first, last, alike, scaled, totals):
    """Compute residuals at the weights of a model, scaled for the columns.

    `units`: S and C S, the bound on a contribution.
    `alike`: whether all entries of X are one value, and which.
    `scaled`, shape (N,): products with the weights on entry, ``q_i S factor_i`` on return, times
    the entry if all are alike. In this order: of huge entries the factor is tiny, and its product
    with a small residual would lose digits.
    `totals`, shape (1,): receives the contribution to the constant column.
    """
    (labels, weights, _, offsets), (unit, limit) = targets, units
    (factor, n_columns, constant), (all_alike, value) = data, alike
    offset = constant * model[n_columns] if constant != 0.0 else 0.0
    # Short loops without a branch are compiled to vector instructions.
    some, total = np.empty(_ROWS), np.int64(0)
    for begin in range(first, last, _ROWS):
        size = min(_ROWS, last - begin)
        own = slice(begin, begin + size)
        products, factors, targeted = scaled[own], factor[own], labels[own]
        for k in range(size):
            some[k] = products[k] * factors[k] + offset
        if offsets.size:
            for k in range(size):
                some[k] += offset_of(offsets, begin + k, 0)
        for k in range(size):
            some[k] = gradient(loss, some[k], targeted[k])
        if weights.size:
            for k in range(size):
                some[k] *= weight_of(weights, begin + k)
        if constant != 0.0:
            for k in range(size):
                total += share(some[k] * constant * unit, limit)
        for k in range(size):
            products[k] = some[k] * unit * factors[k]
        if all_alike:
            for k in range(size):
                products[k] *= value
    totals[0] += total


@kernel
def row_gradient_vectors(data, loss, targets, model, units, first, last, alike, scaled, totals):
    """Do the same as `row_gradients` for K outputs."""
    (labels, weights, _, offsets), (unit, limit) = targets, units
    (factor, n_columns, constant), (all_alike, value) = data, alike
    residuals = np.empty(totals.size)
    for i in range(first, last):
        margins = scaled[i]
        for k in range(margins.size):
            margins[k] = margins[k] * factor[i] + offset_of(offsets, i, k)
            if constant != 0.0:
                margins[k] += constant * model[n_columns, k]
        residual_vector(loss, margins, labels[i], residuals)
        for k in range(margins.size):
            q = weight_of(weights, i) * residuals[k]
            scaled[i, k] = q * unit * factor[i]
            if all_alike:
                scaled[i, k] *= value
            if constant != 0.0:
                totals[k] += share(q * constant * unit, limit)


@kernel
def tile_products(tiles, first, last, weights, products, ahead):
    """Add to `products` those of the rows of some chunks with weights, as in `row_products`."""
    constant = np.float64(tiles.constant)
    for r in range(first, last):
        own = products[tiles.row_edges[r] : tiles.row_edges[r + 1]]
        for b in range(tiles.bounds.shape[1] - 1):
            some = weights[b << tiles.block_bits :]
            places, values = tile_entries(tiles, r, b)
            begin, size = np.uint64(0), np.uint64(places.size)
            while begin < size:
                end = size
                if ahead is not None:
                    arguments = places, begin, size, ahead, own, some, NO_SCALE_EXPONENTS, 0
                    end = prefetched(*arguments)
                if values.size:
                    for p in range(begin, end):
                        own[row_of(places[p])] += np.float64(values[p]) * some[column_of(places[p])]
                else:
                    for p in range(begin, end):
                        own[row_of(places[p])] += constant * some[column_of(places[p])]
                begin = end


@kernel
def tile_product_vectors(tiles, first, last, weights, products):
    """Do the same as `tile_products` for K outputs."""
    constant, n_outputs = np.float64(tiles.constant), weights.shape[1]
    outputs = np.uint64(n_outputs)
    weights, products = weights.reshape(-1), products.reshape(-1)
    for r in range(first, last):
        own = products[tiles.row_edges[r] * n_outputs :]
        for b in range(tiles.bounds.shape[1] - 1):
            some = weights[(b << tiles.block_bits) * n_outputs :]
            places, values = tile_entries(tiles, r, b)
            for p in range(np.uint64(places.size)):
                value = np.float64(values[p]) if values.size else constant
                i, j = row_of(places[p]) * outputs, column_of(places[p]) * outputs
                for k in range(outputs):
                    own[i + k] += value * some[j + k]


@kernel
def halve_contributions(scaled, limit, first, last, levels):
    """Set ``levels[b]`` to the shares of `scaled` in columns whose entries are halved b times.

    ``levels[0]`` may have the bytes of `scaled`.
    """
    for begin in range(first, last, _ENTRIES):
        whole = scaled[begin : min(begin + _ENTRIES, last)]
        for b in range(levels.shape[0] - 1, -1, -1):
            own, scale = levels[b, begin:last], SCALES[b]
            for k in range(whole.size):
                own[k] = share(whole[k] * scale, limit)


@kernel
def tile_gradients(
    tiles, blocks, first, last, scale_exponents, scaled, levels, limit, totals, begins, ahead
):
    """Add to `totals` what the rows of some chunks contribute to the columns of some blocks.

    `scaled`, ``levels[b]``: a number per row, from `row_gradients` and `halve_contributions`.
    `begins`: where the blocks begin in `totals`.
    """
    bits, n_rows, whole = tiles.block_bits, levels.shape[1], levels.reshape(-1)
    stride = 0 if tiles.values.size else n_rows
    # Chunk by chunk, so that randomly accessed numbers of rows stay in the cache.
    for r in range(first, last):
        pulls, own = scaled[tiles.row_edges[r] :], whole[tiles.row_edges[r] :]
        for k in range(blocks.size):
            places, values = tile_entries(tiles, r, blocks[k])
            times, sums = scale_exponents[blocks[k] << bits :], totals[begins[k] :]
            begin, size = np.uint64(0), np.uint64(places.size)
            while begin < size:
                end = size
                if ahead is not None:
                    end = prefetched(places, begin, size, ahead, own, sums, times, stride)
                if values.size and times.size:
                    for p in range(begin, end):
                        c, pull = column_of(places[p]), pulls[row_of(places[p])]
                        pull *= np.float64(values[p])
                        sums[c] += share(pull * SCALES[np.uint64(times[c])], limit)
                elif values.size:
                    for p in range(begin, end):
                        pull = pulls[row_of(places[p])] * np.float64(values[p])
                        sums[column_of(places[p])] += share(pull, limit)
                elif times.size:
                    for p in range(begin, end):
                        c = column_of(places[p])
                        sums[c] += own[np.uint64(times[c]) * np.uint64(n_rows) + row_of(places[p])]
                else:
                    for p in range(begin, end):
                        sums[column_of(places[p])] += own[row_of(places[p])]
                begin = end


@kernel
def tile_gradient_vectors(
    tiles, blocks, first, last, scale_exponents, scaled, levels, limit, totals, begins
):
    """Do the same as `tile_gradients` for K outputs."""
    bits, n_outputs, size = tiles.block_bits, scaled.shape[1], np.uint64(levels.shape[1])
    outputs = np.uint64(n_outputs)
    scaled, whole, totals = scaled.reshape(-1), levels.reshape(-1), totals.reshape(-1)
    for r in range(first, last):
        row = np.uint64(tiles.row_edges[r]) * outputs
        for k in range(blocks.size):
            places, values = tile_entries(tiles, r, blocks[k])
            times, sums = scale_exponents[blocks[k] << bits :], totals[begins[k] * n_outputs :]
            for p in range(np.uint64(places.size)):
                i, c = row + row_of(places[p]) * outputs, column_of(places[p])
                how_often = np.uint64(times[c]) if times.size else np.uint64(0)
                for m in range(outputs):
                    if values.size:
                        pull = scaled[i + m] * np.float64(values[p])
                        sums[c * outputs + m] += share(pull * SCALES[how_often], limit)
                    else:
                        sums[c * outputs + m] += whole[how_often * size + i + m]


def update(
    totals: NDArray[np.int64],
    unit: float,
    momentum: float,
    steps: NDArray[np.float64],
    velocity: NDArray[np.float64],
    weights: NDArray[np.float64],
    averaged: NDArray[np.float64] | None,
) -> None:
    """Take a step ``m <- beta m + g``, ``w <- w - h m`` along some coordinates, in place.

    `steps`: h of each column. `averaged`: weights are added to it, unless it is None.
    """
    inverse = 1.0 / unit
    if steps.size == weights.size:
        _update_each(totals, inverse, momentum, steps, velocity, weights)
    else:
        velocity *= momentum
        velocity += totals * inverse
        weights.reshape(steps.size, -1)[:] -= steps[:, None] * velocity.reshape(steps.size, -1)
    if averaged is not None:
        averaged += weights


@kernel
def _update_each(totals, inverse, momentum, steps, velocity, weights):
    """Take the step of one output; numpy would pass through the memory five times."""
    for k in range(totals.size):
        velocity[k] = momentum * velocity[k] + np.float64(totals[k]) * inverse
        weights[k] -= steps[k] * velocity[k]


class GradientPart:
    """Rows that sum their gradients by threads; coordinate ``j K + k`` is column j and output k.

    A step passes through the entries twice: products with weights, and sums by columns.
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
        tiles, self.n_outputs = data.tiles, loss.n_outputs
        self._data, self._loss, self._targets, self._threads = data, loss, targets, threads
        self._shape = (-1,) if self.n_outputs == 1 else (-1, self.n_outputs)
        n_coordinates = data.n_columns + (data.constant != 0.0)
        self._totals = np.zeros(n_coordinates * self.n_outputs, dtype=np.int64)
        n_halvings = int(data.scale_exponents.max(initial=0))
        self._units = unit, loss.residual_bound * unit
        self._chunks = even_parts(np.append(tiles.bounds[:, 0], tiles.places.size), threads.count)
        # In blocks with a large part of all entries each thread sums some rows. The other blocks
        # are divided among the threads.
        sizes = np.diff(tiles.bounds).sum(axis=0)
        large = (sizes * (2 * threads.count) > tiles.places.size) & (threads.count > 1)
        self._large, others = np.flatnonzero(large), np.flatnonzero(~large)
        edges = even_parts(np.cumsum(np.append(0, sizes[others])), threads.count)
        self._others = [others[slice(*span)] for span in pairwise(edges)]
        # If all entries are equal: contributions of the rows at each scale exponent of a column.
        count = 1 if tiles.values.size else 1 + n_halvings
        self._levels = np.empty((count, data.factor.size * self.n_outputs), dtype=np.int64)
        self._ahead = (entries_ahead(tiles, scaled=count > 1),) if self.n_outputs == 1 else ()

    def sums(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return all gradient sums at the given weights, until the next call."""
        data, n_outputs, (_, limit) = self._data, self.n_outputs, self._units
        multiply: Any = tile_products if n_outputs == 1 else tile_product_vectors
        pull: Any = row_gradients if n_outputs == 1 else row_gradient_vectors
        flat, model = self._levels[0].view(np.float64), weights.reshape(self._shape)
        scaled, row_edges = flat.reshape(self._shape), data.tiles.row_edges[self._chunks]
        rows = data.factor, data.n_columns, data.constant
        alike = not data.rows.values.size, float(data.rows.constant)

        def residuals(t: int) -> NDArray[np.int64]:
            first, last = row_edges[t : t + 2]
            scaled[first:last] = 0.0
            multiply(data.tiles, *self._chunks[t : t + 2], model, scaled, *self._ahead)
            totals, some = np.zeros(n_outputs, dtype=np.int64), (first, last, alike)
            fixed = rows, self._loss, self._targets, model, self._units
            pull(*fixed, *some, scaled, totals)
            if not data.tiles.values.size:
                own = n_outputs * first, n_outputs * last
                halve_contributions(flat, limit, *own, self._levels)
            return totals

        constants = np.sum(self._threads.run(residuals), axis=0)
        size = data.n_columns * n_outputs
        self._add_up(scaled, self._totals[:size].reshape(self._shape))
        if self._totals.size > size:
            self._totals[size:] = constants
        return self._totals

    def _add_up(self, scaled: NDArray[np.float64], totals: NDArray[np.int64]) -> None:
        """Set `totals` to the column sums of all contributions, K numbers per column."""
        tiles, (_, limit) = self._data.tiles, self._units
        width, n_chunks = tiles.width, tiles.bounds.shape[0]
        add: Any = tile_gradients if self.n_outputs == 1 else tile_gradient_vectors
        arguments = self._data.scale_exponents, scaled, self._levels, limit

        def some(t: int) -> NDArray[np.int64]:
            blocks, chunks = self._others[t], self._chunks[t : t + 2]
            for begin in blocks * width:
                totals[begin : begin + width] = 0
            add(tiles, blocks, 0, n_chunks, *arguments, totals, blocks * width, *self._ahead)
            own = np.zeros((self._large.size * width, *totals.shape[1:]), dtype=np.int64)
            begins = np.arange(self._large.size) * width
            add(tiles, self._large, *chunks, *arguments, own, begins, *self._ahead)
            return own

        parts = self._threads.run(some)
        for k, b in enumerate(self._large):
            whole = totals[b * width : (b + 1) * width]
            own = slice(k * width, k * width + len(whole))
            whole[:] = parts[0][own]
            for part in parts[1:]:
                whole += part[own]
