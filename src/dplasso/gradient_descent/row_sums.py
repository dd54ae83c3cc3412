"""Exact sums over records in releases: column magnitudes, energies with row counts, and moments.

Moments are the sums of ``q z``, ``h z z'`` and ``q^2 z z'``, with z the row, q the residual and h
its derivative. Rows have at most unit length, so one record contributes at most C, the bound on h,
and C^2, in the L2 or Frobenius norm. A symmetric matrix is stored as its upper triangle with
off-diagonal entries times the square root of 2, whose L2 norm is the Frobenius norm.
"""

import math
from typing import NamedTuple

import numpy as np

from dplasso.gradient_descent.energies import COLUMNS, LARGEST_LOAD, LOADS, ROW
from dplasso.gradient_descent.magnitudes import LARGEST_MAGNITUDE, N_MAGNITUDES
from dplasso.losses.loss import gradient, second_derivative
from dplasso.losses.targets import weight_of
from dplasso.matrix.compressed import clip
from dplasso.matrix.scaling import SCALES, SLACK
from dplasso.matrix.tiles import column_of, row_of, tile_entries
from dplasso.privacy.share import share
from dplasso.runtime.compilation import kernel

_ROOT_2 = math.sqrt(2.0)


class Units(NamedTuple):
    """Fixed-point units per unit of each sum; `squares` is 0 if squares are not needed."""

    gradient: float
    curvature: float
    squares: float


@kernel
def row_moments(
    rows,
    factor,
    constant,
    loss,
    targets,
    weights,
    units,
    most,
    first,
    last,
    gradients,
    curvatures,
    squares,
):
    """Add the contributions of rows `first` to `last`, at most `most` each, to the three sums.

    Entries are summed in column order, so that a margin does not depend on the storage.
    """
    size = weights.size
    row, places = np.zeros(size), np.empty(size, np.int64)
    for i in range(first, last):
        row[:] = 0.0
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            c = np.int64(rows.indices[p])
            value = np.float64(rows.values[p]) if rows.values.size else np.float64(rows.constant)
            row[c] = value * factor[i]
        if constant != 0.0:
            row[size - 1] = constant
        count, margin = 0, 0.0
        for j in range(size):
            if row[j] != 0.0:
                margin += row[j] * weights[j]
                places[count] = j
                count += 1
        weight = weight_of(targets.weights, i)
        q = weight * gradient(loss, margin, targets.labels[i])
        h = weight * second_derivative(loss, margin, targets.labels[i])
        for a in range(count):
            j = places[a]
            gradients[j] += share(q * row[j] * units.gradient, most.gradient)
            begin = j * size - j * (j - 1) // 2 - j
            for b in range(a, count):
                k = places[b]
                product = row[j] * row[k] * (1.0 if k == j else _ROOT_2)
                curvatures[begin + k] += share(h * product * units.curvature, most.curvature)
                if squares.size:
                    squares[begin + k] += share(q * q * product * units.squares, most.squares)


@kernel
def add_named_sums(margins, loss, targets, units, totals):
    """Add up ``-q z``, ``z x`` and ``(q z)^2`` of a named column, with q the residual.

    `margins`, shape (N, 3): the margin, z and x over their bounds, so at most 1 after clipping.
    """
    bound = loss.residual_bound
    for i in range(margins.shape[0]):
        weight = weight_of(targets.weights, i)
        q = weight * gradient(loss, margins[i, 0], targets.labels[i])
        z, x = clip(margins[i, 1], 1.0), clip(margins[i, 2], 1.0)
        totals[0] += share(-q * z * units.gradient, bound * units.gradient)
        totals[1] += share(weight * z * x * units.curvature, units.curvature)
        totals[2] += share(q * q * z * z * units.squares, bound * bound * units.squares)


@kernel
def row_magnitudes(rows, targets, unit, first, last, totals):
    """Count the entries of rows `first` to `last` by column and magnitude."""
    values = rows.values
    # Stored zeros do not count, so that the result is independent of the storage.
    for i in range(first, last):
        begin, end, count = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1]), 0
        for p in range(begin, end):
            count += (values[p] if values.size else rows.constant) != 0.0
        part = weight_of(targets.weights, i) * unit * (1.0 - SLACK) / math.sqrt(max(count, 1))
        for p in range(begin, end):
            value = np.float64(values[p]) if values.size else np.float64(rows.constant)
            if value != 0.0:
                # The exponent of 4^k is 2 k + 1.
                k = min((math.frexp(value)[1] - 1) // 2, LARGEST_MAGNITUDE)
                place = max(0, k + N_MAGNITUDES - LARGEST_MAGNITUDE - 1)
                totals[np.int64(rows.indices[p]) * N_MAGNITUDES + place] += share(part, unit)


@kernel
def row_entries(rows, scales, length, targets, unit, first, last, totals):
    """Add up, by column, the entries of rows `first` to `last` times the scale of the column.

    Rows that are longer than `length` are then scaled down to it, and all are divided by it.
    """
    values = rows.values
    for i in range(first, last):
        begin, end, square = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1]), 0.0
        for p in range(begin, end):
            value = np.float64(values[p]) if values.size else np.float64(rows.constant)
            value *= scales[np.int64(rows.indices[p])]
            square += value * value
        # NaN compares with nothing: a row with it adds nothing, as one that is too long.
        long = max(length, math.sqrt(square)) if square < np.inf else np.inf
        part = weight_of(targets.weights, i) * unit * (1.0 - SLACK) / long
        for p in range(begin, end):
            j = np.int64(rows.indices[p])
            if scales[j] > 0.0:
                value = np.float64(values[p]) if values.size else np.float64(rows.constant)
                totals[j] += share(value * scales[j] * part, unit)


@kernel
def energy_share(weights, i, entry, unit):
    """Return the contribution of an entry of unit row i to the energy of its column."""
    return share(weight_of(weights, i) * entry * entry * COLUMNS * unit, COLUMNS * unit)


@kernel
def tile_energies(tiles, blocks, scale_exponents, factor, targets, unit, totals):
    """Add to `totals` the energies of the columns of some blocks, in units of `energy_share`."""
    constant, bits = np.float64(tiles.constant), tiles.block_bits
    # Chunk by chunk, so that randomly accessed values stay in the cache.
    for r in range(tiles.bounds.shape[0]):
        first = np.uint64(tiles.row_edges[r])
        for b in blocks:
            places, values = tile_entries(tiles, r, b)
            times, own = (
                scale_exponents[b << bits : (b + 1) << bits],
                totals[b << bits : (b + 1) << bits],
            )
            for p in range(np.uint64(places.size)):
                i, c = first + row_of(places[p]), column_of(places[p])
                entry = np.float64(values[p]) if values.size else constant
                if times.size:
                    entry *= SCALES[np.uint64(times[c])]
                own[c] += energy_share(targets.weights, i, entry * factor[i], unit)


@kernel
def row_sizes(rows, loads, targets, unit, first, last, totals):
    """Count each row in ``totals[s]``, where ``LOADS[s]`` bounds the sum of its entries' loads."""
    # Stored zeros do not count, so that the result is independent of the storage.
    values = rows.values
    stored = values.size > 0 or rows.constant != 0.0
    for i in range(first, last):
        load = np.int64(0)
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            if values[p] != 0 if values.size else stored:
                load += loads[np.uint64(rows.indices[p])] if loads.size else LARGEST_LOAD
        place = 0
        while place < LOADS.size and LOADS[place] < load:
            place += 1
        totals[place] += share(weight_of(targets.weights, i) * ROW * unit, ROW * unit)


@kernel
def count_along(rows, targets, least, unit):
    """Count the mixed rows of positive weight whose squared length is at least `least`."""
    total = np.int64(0)
    for i in range(rows.indptr.size - 1):
        square = 0.0
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            square += np.float64(rows.values[p]) * np.float64(rows.values[p])
        counts = weight_of(targets.weights, i) > 0.0 and square >= least
        total += share(np.float64(counts) * unit, unit)
    return total
