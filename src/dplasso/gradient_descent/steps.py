"""The kernels of a step: residuals by rows, exact integer gradients by columns, the update.

A record's contribution to column j is its share ``q_i z_ij S``, rounded towards zero, with z its
unit row (`dplasso.privacy.share`). No entry grows, so the contribution lies in the ball of radius
``C S`` by the arithmetic of its own row, and the sum is one of integers: the same bits for any
order, layout and number of threads.

The entries of a column may be halved b times before rows are made unit rows. A share is then
divided by ``2^b``, again towards zero, and the weights are those of the entries as given.

With K outputs a record has K residuals, of L2 norm C together, and its contribution is that of
``q_ik z_ij S``: in the same ball. Weights then stand column by column, coordinate ``j K + k``.
"""

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from dplasso.losses.contract import gradient, residual_vector
from dplasso.losses.targets import offset_of, weight_of
from dplasso.matrix.scaling import NO_SCALE_EXPONENTS, SCALES
from dplasso.matrix.tiles import column_of, prefetched, row_of, tile_entries
from dplasso.privacy.share import share

# Rows whose residuals are computed together, entries that are added up in one loop.
_ROWS, _ENTRIES = 256, 1024


@njit(cache=True, nogil=True)
def row_gradients(data, loss, targets, model, units, first, last, alike, scaled, integers, totals):
    """Compute residuals at the weights of a model, scaled as the columns want them.

    `units`: fixed-point units per unit of gradient, S; C S, which bounds a share; and what bounds
    the integer contribution, from which that of a column follows by halving.
    `alike`: whether all entries of X are one value, and which.
    `scaled`, shape (N,): holds the rows' products with the weights; filled with ``q_i factor_i S``.
    `integers`: the same bytes; filled with the integer contribution itself, if entries are alike.
    `totals`, shape (1,): the rows' contribution to the constant column is added.
    """
    (labels, weights, _, offsets), (unit, limit, most) = targets, units
    (factor, n_columns, constant), (all_alike, value) = data, alike
    offset = constant * model[n_columns] if constant != 0.0 else 0.0
    # Loops of a few rows without a branch, which are compiled to vectors.
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
        if all_alike:
            contributions = integers[own]
            for k in range(size):
                contributions[k] = share(some[k] * factors[k] * unit * value, most)
        else:
            for k in range(size):
                products[k] = some[k] * factors[k] * unit
    totals[0] += total


@njit(cache=True, nogil=True)
def row_gradient_vectors(
    data, loss, targets, model, units, first, last, alike, scaled, integers, totals
):
    """Do what `row_gradients` does, for K outputs."""
    (labels, weights, _, offsets), (unit, limit, most) = targets, units
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
            pull = q * factor[i] * unit
            if all_alike:
                integers[i, k] = share(pull * value, most)
            else:
                scaled[i, k] = pull
            if constant != 0.0:
                totals[k] += share(q * constant * unit, limit)


@register_jitable
def halved(count, b):
    """Return an integer divided by 2^b, rounded towards zero."""
    return (count + ((count >> 63) & ((np.int64(1) << b) - 1))) >> b


@njit(cache=True, nogil=True)
def tile_products(tiles, first, last, weights, products, ahead):
    """Add to `products` those of the rows of some chunks with weights, as `row_products` does.

    `ahead`: of `dplasso.matrix.tiles.entries_ahead`.
    """
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
                    given = places, begin, size, ahead, own, some, NO_SCALE_EXPONENTS, 0
                    end = prefetched(*given)
                if values.size:
                    for p in range(begin, end):
                        own[row_of(places[p])] += np.float64(values[p]) * some[column_of(places[p])]
                else:
                    for p in range(begin, end):
                        own[row_of(places[p])] += constant * some[column_of(places[p])]
                begin = end


@njit(cache=True, nogil=True)
def tile_product_vectors(tiles, first, last, weights, products):
    """Do what `tile_products` does, for K outputs: K numbers for each column and row."""
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


@njit(cache=True, nogil=True)
def halve_contributions(limit, first, last, levels):
    """Set ``levels[b]`` to ``levels[0]``, whole contributions, halved b times and then bounded."""
    most = np.int64(limit)
    for begin in range(first, last, _ENTRIES):
        end = min(begin + _ENTRIES, last)
        whole = levels[0, begin:end]
        for b in range(levels.shape[0] - 1, -1, -1):
            own = levels[b, begin:end]
            for k in range(own.size):
                own[k] = max(-most, min(most, halved(whole[k], b)))


@njit(cache=True, nogil=True)
def tile_gradients(
    tiles, blocks, first, last, scale_exponents, scaled, levels, limit, totals, begins, ahead
):
    """Add to `totals` what the rows of some chunks contribute to the columns of some blocks.

    `scaled`, ``levels[b]``: a number for each row, as of `row_gradients` and `halve_contributions`.
    `begins`: where the blocks begin in `totals`.
    `ahead`: of `dplasso.matrix.tiles.entries_ahead`.
    """
    bits, n_rows, whole = tiles.block_bits, levels.shape[1], levels.reshape(-1)
    stride = 0 if tiles.values.size else n_rows
    # Chunk by chunk: what is read here and there stays in the cache, and totals are passed through.
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


@njit(cache=True, nogil=True)
def tile_gradient_vectors(
    tiles, blocks, first, last, scale_exponents, scaled, levels, limit, totals, begins
):
    """Do what `tile_gradients` does, for K outputs: K numbers for each row and column."""
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

    `totals`: their noisy gradients, in units.
    `steps`: h of each of their columns, which have equally many coordinates.
    `averaged`: where weights are added to, if they count.
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


@njit(cache=True, nogil=True)
def _update_each(totals, inverse, momentum, steps, velocity, weights):
    """Take the step of one output: in numpy it would pass through memory five times."""
    for k in range(totals.size):
        velocity[k] = momentum * velocity[k] + np.float64(totals[k]) * inverse
        weights[k] -= steps[k] * velocity[k]
