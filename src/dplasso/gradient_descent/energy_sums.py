"""Sums over records for the release of column energies and row counts."""

import numpy as np
from numba import njit

from dplasso.gradient_descent.energies import COLUMNS, LARGEST_LOAD, LOADS, ROW
from dplasso.losses.targets import weight_of
from dplasso.matrix.geometry import squared_length
from dplasso.matrix.scaling import SCALES
from dplasso.matrix.tiles import column_of, row_of, tile_entries
from dplasso.privacy.share import share


@njit(cache=True, nogil=True)
def energy_share(weights, i, entry, unit):
    """Return the contribution of an entry of unit row i to the energy of its column."""
    return share(weight_of(weights, i) * entry * entry * COLUMNS * unit, COLUMNS * unit)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
        place = np.searchsorted(LOADS, load)
        totals[place] += share(weight_of(targets.weights, i) * ROW * unit, ROW * unit)


@njit(cache=True, nogil=True)
def count_along(rows, targets, least, unit):
    """Count the mixed rows of positive weight whose squared length is at least `least`."""
    total = np.int64(0)
    for i in range(rows.indptr.size - 1):
        counts = weight_of(targets.weights, i) > 0.0 and squared_length(rows, i) >= least
        total += share(np.float64(counts) * unit, unit)
    return total
