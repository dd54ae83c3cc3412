"""Brute force: the coordinate of largest magnitude, without privacy.

Reference for the faster structures; O(D) per draw, nothing to keep up to date.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.selection.contract import register
from dplasso.selection.log_weights import descent_sign


class ArgmaxState(NamedTuple):
    """State of the exact argmax: nothing of its own."""

    counters: NDArray[np.int64]


@njit(cache=True, nogil=True)
def select_argmax(selector, alpha, stream):
    """Return the first coordinate of largest magnitude and the descending sign."""
    best = np.int64(0)
    largest = np.int64(-1)
    for j in range(alpha.size):
        magnitude = abs(alpha[j])
        if magnitude > largest:
            largest = magnitude
            best = j
    return best, descent_sign(alpha[best])


register(ArgmaxState, select_argmax)
