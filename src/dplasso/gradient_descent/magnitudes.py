"""Column magnitudes: one release that finds columns in other units than the rest.

Rows are scaled to unit length, so one column of large numbers would hide all others. For each
column, entries are counted by their magnitude, a power of 4. Each of the n entries of a record adds
``1 / sqrt(n)`` to one count, at most 1 in L2 altogether. The fit then halves the entries of columns
until all columns have entries of about the same size. Rows are scaled to unit length after that, so
no sensitivity changes.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dplasso.matrix.scaling import MOST_SCALE_EXPONENT

# Share of mu^2, and the most columns: more are mostly those of texts, in one unit.
MAGNITUDES_SHARE, MOST_COLUMNS = 0.02, 10_000
# The largest k of the magnitudes 4^k, and the number of counts of a column; the least is -16.
LARGEST_MAGNITUDE, N_MAGNITUDES = 15, 32
# Sums of two counts beyond this many standard deviations are not noise alone.
_DEVIATIONS = 5.5
# Records pay if a column without zeros is found in rows of at most this many entries.
_RECORDS, _ENTRIES = 11.0, 300
# Columns within this power of 2 of each other keep their entries. A column seems smaller than it is
# if its large entries are too rare to be found.
_RANGE = 6


def pays(n_records: float, n_columns: int, deviation: float) -> bool:
    """Return whether so many records can find the magnitudes; `deviation`: of the noise."""
    return n_records > _RECORDS * deviation * math.sqrt(min(n_columns, _ENTRIES))


def scale_exponents_of(counts: NDArray[np.float64], deviation: float) -> NDArray[np.int8]:
    """Return how often each column's entries are halved, by noisy counts of shape (D, 32)."""
    # The entries of most columns have a few neighbouring magnitudes.
    sums = counts[:, 1:] + counts[:, :-1]
    clear = np.where(sums > _DEVIATIONS * math.sqrt(2.0) * deviation, sums, 0.0)
    totals = clear.sum(axis=1)
    found = totals > 0.0
    if not found.any():
        return np.zeros(len(counts), dtype=np.int8)
    squares = 16.0 ** (np.arange(N_MAGNITUDES - 1.0) + LARGEST_MAGNITUDE - N_MAGNITUDES + 1.5)
    sizes = np.rint(np.log2((clear[found] @ squares) / totals[found]) / 2.0)
    sizes -= sizes.min()
    # Nothing is known of the other columns, so they are treated like most.
    exponents = np.full(len(counts), np.rint(np.median(sizes)))
    exponents[found] = sizes
    own: NDArray[np.int8] = np.minimum(exponents, MOST_SCALE_EXPONENT).astype(np.int8)
    return own if sizes.max() > _RANGE else np.zeros_like(own)
