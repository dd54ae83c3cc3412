"""How rows are scaled to unit length: public or released numbers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Rows are this much shorter than 1, so that rounding makes none longer than 1.
SLACK = 2.0**-30
# Scales of columns are 2^-b with b up to this number, so that no entry becomes 0.
MOST_SCALE_EXPONENT = 40
SCALES: NDArray[np.float64] = np.ldexp(1.0, -np.arange(MOST_SCALE_EXPONENT + 1))
# All columns keep their entries.
NO_SCALE_EXPONENTS = np.zeros(0, dtype=np.int8)
# No column is centred.
NO_CENTRES = np.zeros(0)
# Entries that are clipped to it stay as they are.
UNLIMITED = float(np.finfo(np.float64).max)


class Scaling(NamedTuple):
    """How rows are scaled to unit length; public or released.

    `kept`: the columns in use, ascending; empty for all.
    `constant`: the constant entry of every row.
    `norm_bound`: longer rows are scaled down to it, and all are divided by it; None for unit rows.
    `scale_exponents`: how often the entries of each column in use are halved; empty for never.
    `around`: the same for all columns of the records, if rows have their length in all columns.
    `length`: rows are also divided by it, if the columns in use hold a part of that length.
    `centres`: what is taken from the entries of each column in use before all this; empty for 0.
    `limits`: to which what is left is clipped; `UNLIMITED` for columns that are not centred.
    """

    kept: NDArray[np.int64]
    constant: float
    norm_bound: float | None
    scale_exponents: NDArray[np.int8] = NO_SCALE_EXPONENTS
    around: NDArray[np.int8] = NO_SCALE_EXPONENTS
    length: float = 1.0
    centres: NDArray[np.float64] = NO_CENTRES
    limits: NDArray[np.float64] = NO_CENTRES


class Mix(NamedTuple):
    """The parts of a mixed row; public or released.

    `n_directions`: k. `part`: m^2, the mean part of latent entries in the squared length of public
    rows.
    """

    n_directions: int
    part: float


def constant_entry(constant: float) -> float:
    """Return the constant entry as it is used, with the slack of the rows."""
    return constant * (1.0 - SLACK)


def spread(
    scale_exponents: NDArray[np.int8], columns: NDArray[np.int64], n_columns: int
) -> NDArray[np.int8]:
    """Return the scale exponents of all columns from those of some; empty for 0."""
    if not scale_exponents.size:
        return scale_exponents
    whole = np.zeros(n_columns, dtype=np.int8)
    whole[columns] = scale_exponents
    return whole
