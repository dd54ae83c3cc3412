"""How much of the records each column holds: released once, it scales columns and bounds steps.

The energy of a column is the sum of its squared entries in unit rows. A row's own are non-negative
and add up to at most 1, so the energies move by at most 1 in L2 with one record. Columns of much
energy are halved until they pull little more than others, which lets steps be as long as the noise
asks for; rows are made unit rows after that, so no sensitivity changes.

Beside the energies stand counts of rows by the loads of their entries, which are public or follow
from what was released: a record has ``_COLUMNS`` times its energies and ``_ROW`` in one of the
counts, in L2 at most 1 together. The two bound the largest eigenvalue of ``Z'Z``, Z the unit rows:
``(z.v)^2 <= (sum_j a_j) (sum_j z_j^2 v_j^2 / a_j)`` for a row, both sums over its entries, whatever
the loads a are. Loads near the energies make that bound a small one.
"""

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.losses.targets import weight_of
from dplasso.matrix.tiles import column_of, row_of, tile_entries
from dplasso.matrix.unit_rows import MOST_HALVINGS, SCALES
from dplasso.privacy.share import share

# Shares of mu^2: of the energies that make the scales, and of those that bound the steps after.
SCALES_SHARE, CURVATURE_SHARE = 0.02, 0.01
# The same of how long rows are in some columns; they are taken for no shorter than the second.
REACH_SHARE, _SHORTEST = 0.01, 0.05
# A column is scaled if its energy is beyond so many standard deviations of the noise, and beyond
# that of one row. Energies are released only if there are so many times as many records: hardly
# any column holds a larger part of them.
_DEVIATIONS, _RECORDS = 12.0, 96.0
# Without privacy a column is scaled if it holds more than this part of the records.
_SMALLEST_PART = 2.0**-20
# A column's scale falls with its energy to this power.
_EXPONENT = 0.35
_COLUMNS, _ROW = 0.9, 0.435
# Loads are whole numbers up to the first; none is below this part of the largest, about.
_LARGEST_LOAD, _LEAST_LOAD = 256, 0.2
# Counts of rows: of no entries, of loads up to each of these numbers, and of larger ones.
_LOADS = np.append(0, np.rint(_LARGEST_LOAD * np.exp2(np.arange(-9, 49) / 3.0)).astype(np.int64))
N_SIZES = _LOADS.size + 1
# All alike, and the largest.
NO_LOADS = np.zeros(0, dtype=np.int64)
_EDGES = np.exp2((np.arange(1, MOST_HALVINGS + 1) - 0.5) / _EXPONENT)


def threshold(n_records: float, deviation: float) -> float:
    """Return the energy beyond which a column is scaled; `deviation`: of the noise.

    Without noise it is a part of all records, whatever the unit of their weights.
    """
    return max(1.0, _DEVIATIONS * deviation) if deviation else n_records * _SMALLEST_PART


def pays(n_records: float, deviation: float) -> bool:
    """Return whether the energies of so many records are worth their budget."""
    return n_records > _RECORDS * threshold(n_records, deviation)


def relative_energies(released: NDArray[np.int64], unit: float, least: float) -> NDArray[Any]:
    """Return energies over the threshold `least`, shape (D,), as a model file holds them."""
    energies = released[: released.size - N_SIZES] / (unit * _COLUMNS * least)
    return energies.astype(np.float32)


def halvings_of(energies: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return how often each column is halved, by `relative_energies`."""
    # Compared in their own precision: the same on every machine.
    edges = _EDGES.astype(np.float32)
    return np.searchsorted(edges, energies, side="right").astype(np.int8)


def scales_of(energies: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return what the entries of each column are multiplied by, shape (D,); [1.] for all alike."""
    return SCALES[halvings_of(energies)] if energies.size else np.ones(1)


def shrinking(energies: NDArray[np.float32]) -> float:
    """Return how much shorter the scaled rows are, in root mean square, by `relative_energies`."""
    halvings = halvings_of(energies)
    scaled = energies[halvings > 0].astype(np.float64)
    left = float(scaled @ SCALES[halvings[halvings > 0]] ** 2)
    total = max(float(scaled.sum()), float(energies.sum(dtype=np.float64)))
    return float(np.sqrt((total - float(scaled.sum()) + left) / total)) if scaled.size else 1.0


def loads_of(energies: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the load of each column, by `relative_energies`: near its energy once it is scaled."""
    left = np.maximum(energies.astype(np.float64), 0.0) * SCALES[halvings_of(energies)] ** 2
    most = max(1e-30, float(left.max(initial=0.0)))
    parts = (left + _LEAST_LOAD * most) / (most + _LEAST_LOAD * most)
    loads: NDArray[np.int64] = np.ceil(_LARGEST_LOAD * np.minimum(1.0, parts)).astype(np.int64)
    return loads


def largest_eigenvalue(
    released: NDArray[np.int64],
    unit: float,
    n_records: float,
    constant: float,
    loads: NDArray[np.int64] = NO_LOADS,
) -> float:
    """Return a bound on the largest eigenvalue of the Gram matrix of the unit rows.

    Exact but for the noise. `constant`: the constant entry of every row.
    `loads`: those that rows were counted by.
    """
    energies, sizes = released[:-N_SIZES], released[-N_SIZES:] / (unit * _ROW)
    # Rows of a larger load add no more than 1 each.
    larger = np.cumsum(sizes[:0:-1])[::-1]
    own = loads if loads.size else np.array([_LARGEST_LOAD])
    energy = float((np.maximum(1.0, energies / (unit * _COLUMNS)) / own).max())
    bounds = _LOADS * energy + np.maximum(0.0, larger)
    return min(n_records, float(bounds.min()) + constant * constant * n_records)


def total_energy(totals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the energy of all columns together, shape (1,): no record adds more than a unit."""
    total: NDArray[np.int64] = np.sum(totals[:-N_SIZES], keepdims=True)
    return total


def reach_of(released: NDArray[np.int64], unit: float, n_records: float) -> float:
    """Return how long rows are, in root mean square, by the `total_energy` released; at most 1."""
    square = float(released[0]) / (unit * _COLUMNS * n_records)
    return math.sqrt(min(1.0, max(_SHORTEST * _SHORTEST, square)))


@njit(cache=True, nogil=True)
def energy_share(weights, i, entry, unit):
    """Return what an entry of unit row i adds to the energy of its column."""
    return share(weight_of(weights, i) * entry * entry * _COLUMNS * unit, _COLUMNS * unit)


@njit(cache=True, nogil=True)
def tile_energies(tiles, blocks, halvings, factor, targets, unit, totals):
    """Add to `totals` the energies of the columns of some blocks, in units of `energy_share`."""
    constant, bits = np.float64(tiles.constant), tiles.block_bits
    # Chunk by chunk: what is read here and there stays in the cache.
    for r in range(tiles.bounds.shape[0]):
        first = np.uint64(tiles.row_edges[r])
        for b in blocks:
            places, values = tile_entries(tiles, r, b)
            times, own = halvings[b << bits : (b + 1) << bits], totals[b << bits : (b + 1) << bits]
            for p in range(np.uint64(places.size)):
                i, c = first + row_of(places[p]), column_of(places[p])
                entry = np.float64(values[p]) if values.size else constant
                if times.size:
                    entry *= SCALES[np.uint64(times[c])]
                own[c] += energy_share(targets.weights, i, entry * factor[i], unit)


@njit(cache=True, nogil=True)
def row_sizes(rows, loads, targets, unit, first, last, totals):
    """Add rows to ``totals[s]`` by the loads of their entries, up to ``_LOADS[s]`` together."""
    # Stored zeros are no entries, also where all are zeros: how rows are stored must not show.
    values = rows.values
    stored = values.size > 0 or rows.constant != 0.0
    for i in range(first, last):
        load = np.int64(0)
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            if values[p] != 0 if values.size else stored:
                load += loads[np.uint64(rows.indices[p])] if loads.size else _LARGEST_LOAD
        place = np.searchsorted(_LOADS, load)
        totals[place] += share(weight_of(targets.weights, i) * _ROW * unit, _ROW * unit)
