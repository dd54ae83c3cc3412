"""How much of the records each column holds: released once, it scales columns and bounds steps.

The energy of a column is the sum of its squared entries in unit rows. A row's own are non-negative
and add up to at most 1, so the energies move by at most 1 in L2 with one record. Columns of much
energy are halved until they pull little more than others, which lets steps be as long as the noise
asks for; rows are made unit rows after that, so no sensitivity changes.

Beside the energies stand counts of rows by the loads of their entries, which are public or follow
from what was released: a record has ``COLUMNS`` times its energies and ``ROW`` in one of the
counts, in L2 at most 1 together. The two bound the largest eigenvalue of ``Z'Z``, Z the unit rows:
``(z.v)^2 <= (sum_j a_j) (sum_j z_j^2 v_j^2 / a_j)`` for a row, both sums over its entries, whatever
the loads a are. Loads near the energies make that bound a small one.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.matrix.scaling import MOST_SCALE_EXPONENT, SCALES

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
# Parts of a unit: of a record's energies, and of its place in the counts.
COLUMNS, ROW = 0.9, 0.435
# Loads are whole numbers up to the first; none is below this part of the largest, about.
LARGEST_LOAD, _LEAST_LOAD = 256, 0.2
# Counts of rows: of no entries, of loads up to each of these numbers, and of larger ones.
LOADS = np.append(0, np.rint(LARGEST_LOAD * np.exp2(np.arange(-9, 49) / 3.0)).astype(np.int64))
N_SIZES = LOADS.size + 1
# All alike, and the largest.
NO_LOADS = np.zeros(0, dtype=np.int64)
_EDGES = np.exp2((np.arange(1, MOST_SCALE_EXPONENT + 1) - 0.5) / _EXPONENT)


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
    energies = released[: released.size - N_SIZES] / (unit * COLUMNS * least)
    return energies.astype(np.float32)


def scale_exponents_of(energies: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return how often each column is halved, by `relative_energies`."""
    # Compared in their own precision: the same on every machine.
    edges = _EDGES.astype(np.float32)
    return np.searchsorted(edges, energies, side="right").astype(np.int8)


def scales_of(energies: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return what the entries of each column are multiplied by, shape (D,); [1.] for all alike."""
    return SCALES[scale_exponents_of(energies)] if energies.size else np.ones(1)


def shrinking(energies: NDArray[np.float32]) -> float:
    """Return how much shorter the scaled rows are, in root mean square, by `relative_energies`."""
    scale_exponents = scale_exponents_of(energies)
    scaled = energies[scale_exponents > 0].astype(np.float64)
    left = float(scaled @ SCALES[scale_exponents[scale_exponents > 0]] ** 2)
    total = max(float(scaled.sum()), float(energies.sum(dtype=np.float64)))
    return float(np.sqrt((total - float(scaled.sum()) + left) / total)) if scaled.size else 1.0


def loads_of(energies: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the load of each column, by `relative_energies`: near its energy once it is scaled."""
    left = np.maximum(energies.astype(np.float64), 0.0) * SCALES[scale_exponents_of(energies)] ** 2
    most = max(1e-30, float(left.max(initial=0.0)))
    parts = (left + _LEAST_LOAD * most) / (most + _LEAST_LOAD * most)
    loads: NDArray[np.int64] = np.ceil(LARGEST_LOAD * np.minimum(1.0, parts)).astype(np.int64)
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
    energies, sizes = released[:-N_SIZES], released[-N_SIZES:] / (unit * ROW)
    # Rows of a larger load add no more than 1 each.
    larger = np.cumsum(sizes[:0:-1])[::-1]
    own = loads if loads.size else np.array([LARGEST_LOAD])
    energy = float((np.maximum(1.0, energies / (unit * COLUMNS)) / own).max())
    bounds = LOADS * energy + np.maximum(0.0, larger)
    return min(n_records, float(bounds.min()) + constant * constant * n_records)


def total_energy(totals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the energy of all columns together, shape (1,): no record adds more than a unit."""
    total: NDArray[np.int64] = np.sum(totals[:-N_SIZES], keepdims=True)
    return total


def reach_of(released: NDArray[np.int64], unit: float, n_records: float) -> float:
    """Return how long rows are, in root mean square, by the `total_energy` released; at most 1."""
    square = float(released[0]) / (unit * COLUMNS * n_records)
    return math.sqrt(min(1.0, max(_SHORTEST * _SHORTEST, square)))
