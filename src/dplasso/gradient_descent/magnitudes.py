"""Column magnitudes: counts that find columns in other units than the rest, and their means.

Rows are scaled to unit length, so one column of large numbers would hide all others. For each
column, entries are counted by their magnitude, a power of 4. Each of the n entries of a record adds
``1 / sqrt(n)`` to one count, at most 1 in L2 altogether. The fit then halves the entries of columns
until all columns have entries of about the same size. Rows are scaled to unit length after that, so
no sensitivity changes.

Columns without zeros are centred before: a year or a temperature says little by its size. A record
adds its entries of such columns, over their sizes, to their sums, scaled to at most 1 in L2.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dplasso.gradient_descent.schedule import TABLE_COLUMNS
from dplasso.matrix.scaling import MOST_SCALE_EXPONENT

# Shares of mu^2 of each release of counts, the larger one of few records, and the most columns:
# more are mostly those of texts, in one unit. A release of sums has a part of that share.
_SHARE, _MOST_SHARE, MOST_COLUMNS = 0.02, 0.15, 10_000
SUMS_PART = 0.4
# More columns than those of a table may have a smaller share.
_MOST_OF_MANY = 0.05
# The largest k of the magnitudes 4^k, and the number of counts of a column; the least is -16.
LARGEST_MAGNITUDE, N_MAGNITUDES = 15, 32
# The squares of typical entries of each magnitude.
_SQUARES = 16.0 ** (np.arange(N_MAGNITUDES) + (LARGEST_MAGNITUDE + 1.5 - N_MAGNITUDES))
# Sums of two neighbouring counts beyond so many standard deviations are not noise. For the largest
# of each column, as many are enough as this number of all of them will exceed by noise alone.
_DEVIATIONS, _FALSE = 5.5, 0.02
# The counts of a column without zeros should have so many standard deviations.
_RECORDS = 10.0
# Columns within this power of 2 of each other keep their entries; the smallest part of them may be
# smaller, because a column seems smaller than it is if its large entries are too rare to be found.
# Those further above the median than the last power of 2 become like most.
_RANGE, _SMALLEST, _ABOVE = 6, 0.25, 2
# The size of a column of which nothing is known.
HIDDEN = np.int8(127)
# A column without zeros has at least this part of the entries of the fullest, up to so many
# standard deviations, and an entry in at least this part of the records.
_AS_FULL, _WITHIN, _FULL = 0.9, 4.0, 0.5
# Means below this part of the size of a column stay.
_FAR = 0.25
# If rows keep their lengths, this multiple of the root mean square bounds those of their gradients,
# and rows may be so many times as long. Shorter gradients of many columns hide less in noise.
ROW_NORM, LONGEST_ROW, _MANY_ROW_NORM = 1.2, 2.5, 0.85
# Rows of many columns keep them where columns without zeros make up this part of their squares.
_LARGEST_PART = 0.5
# If no noise hides them, so few of a column's entries still say nothing.
_RARE = 1e-4
# Magnitudes whose counts are below this many standard deviations are not those of a column, and
# centres below it are 0.
_NOT_NOISE = 2.5
# Noise may hide so many standard deviations of a column's entries.
_HIDDEN_ENTRIES = 12.0
# Noise may move a centre by this part of the size of the column, before sums clip longer rows.
_MOVED = 0.05


def share_of(n_records: float, n_columns: int, deviation: float) -> float | None:
    """Return the share with which so many records can find the magnitudes; None for too few.

    `deviation`: of the noise of the whole budget.
    """
    needed = _RECORDS * deviation * math.sqrt(min(n_columns, TABLE_COLUMNS))
    share = max(_SHARE, (needed / n_records) ** 2)
    most = _MOST_SHARE if n_columns <= TABLE_COLUMNS else _MOST_OF_MANY
    return share if share <= most else None


def clear_counts(counts: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    """Return noisy counts of magnitudes, shape (D, 32), with 0 for those that may be noise."""
    rare = _RARE * np.maximum(counts, 0.0).sum(axis=1, keepdims=True)
    least = np.maximum(deviation, rare)
    # The entries of most columns have a few neighbouring magnitudes.
    pairs = (counts[:, 1:] + counts[:, :-1]) / math.sqrt(2.0)
    needed = np.where(
        pairs < pairs.max(axis=1, keepdims=True), _DEVIATIONS, _largest_of(pairs.size)
    )
    clear = pairs > needed * least
    own = counts > _NOT_NOISE * least
    own &= np.pad(clear, ((0, 0), (0, 1))) | np.pad(clear, ((0, 0), (1, 0)))
    return np.where(own, counts, 0.0)


def _largest_of(n_sums: int) -> float:
    """Return the standard deviations that so many sums of noise rarely exceed."""
    return float(-ndtri(_FALSE / n_sums))


def sizes_of(clear: NDArray[np.float64]) -> NDArray[np.int8]:
    """Return the size of each column's entries as a power of 2, by its clear counts."""
    totals = clear.sum(axis=1)
    found = totals > 0.0
    sizes = np.full(len(clear), float(HIDDEN))
    sizes[found] = np.rint(np.log2((clear[found] @ _SQUARES) / totals[found]) / 2.0)
    return sizes.astype(np.int8)


def scale_exponents_of(sizes: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return how often each column's entries are halved."""
    exponents, found = np.zeros(sizes.size), sizes < HIDDEN
    own = np.asarray(sizes[found], dtype=np.float64)
    if own.size and own.max() - np.quantile(own, _SMALLEST, method="lower") > _RANGE:
        own -= own.min()
        # Nothing is known of the other columns, so they are treated like most.
        exponents[:] = np.rint(np.median(own))
        exponents[found] = own
    elif own.size:
        above = own - np.rint(np.median(own))
        exponents[found] = np.where(above > _ABOVE, above, 0.0)
    return np.minimum(exponents, MOST_SCALE_EXPONENT).astype(np.int8)


def _is_more_than_ones(clear: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which columns, shape (D,), have other entries than 0 and 1, by their counts."""
    # Entries of 1 to 4 alone are mostly those of 0/1 columns.
    others = np.delete(clear, N_MAGNITUDES - 1 - LARGEST_MAGNITUDE, axis=1)
    return np.asarray(others.any(axis=1), dtype=np.bool_)


def bounds_of(
    clear: NDArray[np.float64], deviation: float, n_records: float
) -> NDArray[np.float64]:
    """Return bounds on the entries of columns without zeros, 0 for the others, shape (D,)."""
    totals = clear.sum(axis=1)
    # Of records with n entries, a full column has N / sqrt(n), and all together N sqrt(n).
    full = totals > _AS_FULL * totals.max() - _WITHIN * deviation
    full &= totals * totals.sum() > _FULL * n_records**2
    full &= _is_more_than_ones(clear)
    largest = N_MAGNITUDES - 1 - np.argmax(clear[:, ::-1] > 0.0, axis=1)
    return np.where(full, 4.0 ** (largest + (LARGEST_MAGNITUDE + 2.0 - N_MAGNITUDES)), 0.0)


def squares_of(
    clear: NDArray[np.float64], exponents: NDArray[np.int8], deviation: float, n_records: float
) -> NDArray[np.float64]:
    """Return the mean squared entries of the columns over all records, shape (D,).

    `exponents`: how often entries are halved. After that, squares are at least those of as many
    typical entries of all columns as noise may hide.
    """
    counts = clear.sum(axis=1)
    squares = np.where(_is_more_than_ones(clear), clear @ _SQUARES, counts)
    found = counts > 0.0
    units = np.exp2(2.0 * exponents)
    typical = float(np.median(squares[found] / (counts * units)[found]))
    least = max(1.0, _HIDDEN_ENTRIES * deviation) * typical
    means: NDArray[np.float64] = np.maximum(squares, least * units)
    means *= clear.sum() / n_records**2
    return means


def squares_of_many(
    squares: NDArray[np.float64], exponents: NDArray[np.int8], bounds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean squares of many columns, for shorter gradients; none for unit rows."""
    scaled = squares * np.exp2(-2.0 * exponents)
    if scaled[bounds > 0.0].sum() < _LARGEST_PART * scaled.sum():
        return np.zeros(0)
    return squares * (_MANY_ROW_NORM / ROW_NORM) ** 2


def scales_of_sums(
    bounds: NDArray[np.float64], sizes: NDArray[np.int8], deviation: float, n_records: float
) -> tuple[NDArray[np.float64], float]:
    """Return the scales of entries in sums, 0 for columns without bounds, and the most length.

    Longer rows are clipped to that length, because noise is proportional to it.
    """
    full = bounds > 0.0
    scales = np.where(full, np.ldexp(1.0, np.where(full, -sizes.astype(np.int64), 0)), 0.0)
    typical, longest = ROW_NORM * math.sqrt(np.count_nonzero(full)), np.linalg.norm(bounds * scales)
    harmless = _MOVED * n_records / deviation if deviation else math.inf
    return scales, min(max(typical, harmless), float(longest))


def centres_of(
    sums: NDArray[np.float64],
    scales: NDArray[np.float64],
    length: float,
    deviation: float,
    n_records: float,
) -> NDArray[np.float64]:
    """Return the means of columns by noisy sums of rows over their `length`; 0 for few."""
    clear = (np.abs(sums) > _NOT_NOISE * deviation) & (scales > 0.0)
    own = np.abs(sums[scales > 0.0])
    clear &= own.max() > _largest_of(2 * own.size) * deviation
    # Smaller ones hide nothing.
    clear &= np.abs(sums) * length > _FAR * n_records
    return np.divide(sums * length / n_records, scales, out=np.zeros_like(sums), where=clear)
