"""Column energies: one release that scales frequent columns and bounds the step size.

The energy of a column is the sum of its squared entries in unit rows. The energies of one record
sum to at most 1, so its L2 contribution is at most 1. The fit halves the entries of high-energy
columns until their gradients resemble those of other columns, which allows longer steps. Rows are
scaled to unit length after that, so no sensitivity changes.

The same release counts rows by the loads of their entries, which are public or released. A record
contributes ``COLUMNS`` times its energies and ``ROW`` to one count, at most 1 in L2. Both bound the
largest eigenvalue of ``Z'Z``, Z the unit rows: for any loads a, ``(z.v)^2 <= (sum_j a_j) (sum_j
z_j^2 v_j^2 / a_j)``. The bound is small if the loads are close to the energies.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.matrix.scaling import MOST_SCALE_EXPONENT, SCALES

# Shares of mu^2: energies for the column scales, and energies for the step size afterwards.
SCALES_SHARE, CURVATURE_SHARE = 0.02, 0.01
# Share of mu^2 for the root mean square length of rows in some columns, and its lower limit.
REACH_SHARE, _SHORTEST = 0.01, 0.05
# Share of mu^2 for the length of whole rows.
SIZE_SHARE = 0.02
# A column is scaled if its energy exceeds that of one row and this many standard deviations of the
# noise. Energies are released only if the records exceed this threshold by the second factor,
# because few columns contain a larger part of the records.
_DEVIATIONS, _RECORDS = 12.0, 96.0
# Without privacy a column is scaled if it contains more than this part of the records.
_SMALLEST_PART = 2.0**-20
# The scale of a column decreases with its energy to this power.
_EXPONENT = 0.35
# A record's contribution is divided between its energies and its row count.
COLUMNS, ROW = 0.9, 0.435
# Loads are integers of at most the first number and at least about this fraction of it.
LARGEST_LOAD, _LEAST_LOAD = 256, 0.2
# Upper ends of the row counts by load. The first is for rows without entries; one more follows.
LOADS = np.append(0, np.rint(LARGEST_LOAD * np.exp2(np.arange(-9, 49) / 3.0)).astype(np.int64))
N_SIZES = LOADS.size + 1
# Means that every column has the largest load.
NO_LOADS = np.zeros(0, dtype=np.int64)
_EDGES = np.exp2((np.arange(1, MOST_SCALE_EXPONENT + 1) - 0.5) / _EXPONENT)


def threshold(n_records: float, deviation: float) -> float:
    """Return the energy above which a column is scaled; `deviation`: of the noise, 0 for none."""
    return max(1.0, _DEVIATIONS * deviation) if deviation else n_records * _SMALLEST_PART


def pays(n_records: float, deviation: float) -> bool:
    """Return whether the energies of so many records are worth their budget."""
    return n_records > _RECORDS * threshold(n_records, deviation)


def relative_energies(released: NDArray[np.float64], least: float) -> NDArray[Any]:
    """Return energies over the threshold `least`, shape (D,), for the model file."""
    energies = released[: released.size - N_SIZES] / (COLUMNS * least)
    return energies.astype(np.float32)


def scale_exponents_of(energies: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return the scale exponent of each column (entries times ``2^-e``) by `relative_energies`."""
    # Compared in single precision, which gives the same result on every machine.
    edges = _EDGES.astype(np.float32)
    return np.searchsorted(edges, energies, side="right").astype(np.int8)


def shrinking(energies: NDArray[np.float32]) -> float:
    """Return the ratio of scaled to original row length, in root mean square."""
    scale_exponents = scale_exponents_of(energies)
    scaled = energies[scale_exponents > 0].astype(np.float64)
    left = float(scaled @ SCALES[scale_exponents[scale_exponents > 0]] ** 2)
    total = max(float(scaled.sum()), float(energies.sum(dtype=np.float64)))
    return float(np.sqrt((total - float(scaled.sum()) + left) / total)) if scaled.size else 1.0


def loads_of(energies: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the load of each column: an integer that approximates its energy after scaling."""
    left = np.maximum(energies.astype(np.float64), 0.0) * SCALES[scale_exponents_of(energies)] ** 2
    most = max(1e-30, float(left.max(initial=0.0)))
    parts = (left + _LEAST_LOAD * most) / (most + _LEAST_LOAD * most)
    loads: NDArray[np.int64] = np.ceil(LARGEST_LOAD * np.minimum(1.0, parts)).astype(np.int64)
    return loads


def largest_eigenvalue(
    released: NDArray[np.float64],
    n_records: float,
    constant: float,
    loads: NDArray[np.int64] = NO_LOADS,
) -> float:
    """Return an upper bound on the largest eigenvalue of the Gram matrix of the unit rows.

    The bound holds up to the noise. `constant`: the constant entry of every row.
    `loads`: the loads that rows were counted by.
    """
    energies, sizes = released[:-N_SIZES], released[-N_SIZES:] / ROW
    # Rows of a larger load add no more than 1 each.
    larger = np.cumsum(sizes[:0:-1])[::-1]
    own = loads if loads.size else np.array([LARGEST_LOAD])
    least = n_records * _SMALLEST_PART
    energy = float((np.maximum(least, energies / COLUMNS) / own).max())
    bounds = LOADS * energy + np.maximum(0.0, larger)
    return min(n_records, float(bounds.min()) + constant * constant * n_records)


def total_energy(totals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum of all energies, shape (1,); a record contributes at most one unit."""
    total: NDArray[np.int64] = np.sum(totals[:-N_SIZES], keepdims=True)
    return total


def mean_square(released: NDArray[np.float64], n_records: float) -> float:
    """Return the mean squared length of rows by the released `total_energy`; from 0 to 1."""
    return min(1.0, max(0.0, float(released[0]) / (COLUMNS * n_records)))


def reach_of(released: NDArray[np.float64], n_records: float, deviation: float) -> float:
    """Return the root mean square length of rows by the released `total_energy`; at most 1.

    Two standard deviations of the noise are added, because a length that is too small lets noise
    into the margins, and one that is too large only costs signal.
    """
    square = mean_square(released, n_records) + 2.0 * deviation / (COLUMNS * n_records)
    return max(_SHORTEST, math.sqrt(min(1.0, square)))
