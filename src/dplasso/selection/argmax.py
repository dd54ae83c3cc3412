"""Brute force: the coordinate of largest magnitude, without privacy.

Reference for the faster structures; O(D) per draw, nothing to keep up to date.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.matrix.numbering import AS_GIVEN, Numbering, look_up
from dplasso.selection.contract import register
from dplasso.selection.log_weights import descent_sign


class ArgmaxState(NamedTuple):
    """State of the exact argmax: nothing of its own."""

    counters: NDArray[np.int64]
    numbering: Numbering = AS_GIVEN


@njit(cache=True, nogil=True)
def select_argmax(selector, alpha, stream):
    """Return the first coordinate of largest magnitude and the descending sign."""
    internal = selector.numbering.internal
    best = np.int64(0)
    largest = np.int64(-1)
    for j in range(alpha.size):
        magnitude = abs(alpha[look_up(internal, j)])
        if magnitude > largest:
            largest = magnitude
            best = j
    return best, descent_sign(alpha[look_up(internal, best)])


register(ArgmaxState, select_argmax)
