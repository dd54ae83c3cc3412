"""Two numberings of the coordinates: the data's own, and the one in which alpha is stored.

The solver may store the gradients of popular columns side by side, where they share cache lines.
Structures name coordinates by their original numbers, so that a draw does not depend on the
layout; only where they read ``alpha`` do they ask where a coordinate stands.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray


class Numbering(NamedTuple):
    """Where each coordinate stands in alpha; empty arrays where the two numberings are one.

    `internal`, shape (D,): place in alpha of each coordinate.
    `original`: coordinate at each place.
    """

    internal: NDArray[np.integer]
    original: NDArray[np.integer]


AS_GIVEN = Numbering(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))


@register_jitable
def look_up(numbers, k):
    """Return ``numbers[k]``, or k where there is only one numbering."""
    if numbers.size:
        return np.int64(numbers[k])
    return np.int64(k)


def by_frequency(counts: NDArray[np.integer], intercept: bool) -> Numbering:
    """Rank columns by their number of entries, most first; the first wins a tie.

    An intercept follows the columns and keeps its number.
    """
    size = counts.size + int(intercept)
    kind = np.int32 if size < 2**31 else np.int64
    internal: NDArray[np.integer] = np.arange(size).astype(kind)
    original: NDArray[np.integer] = internal.copy()
    if counts.size:
        number_by_count(counts, np.zeros(int(counts.max()) + 1, np.int64), internal)
        invert(internal[: counts.size], original)
    return Numbering(internal, original)


@njit(cache=True, nogil=True)
def number_by_count(counts, start, internal):
    """Renumber columns by falling count, ties by column; `start` is zeros, one per count."""
    for j in range(counts.size):
        start[counts[j]] += 1
    place = np.int64(0)
    for c in range(start.size - 1, -1, -1):
        n = start[c]
        start[c] = place
        place += n
    for j in range(counts.size):
        c = counts[j]
        internal[j] = start[c]
        start[c] += 1


@njit(cache=True, nogil=True)
def invert(permutation, inverse):
    """Write the inverse of a permutation."""
    for j in range(permutation.size):
        inverse[np.uint64(permutation[j])] = j
