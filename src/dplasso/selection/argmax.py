"""Brute force: the coordinate of largest magnitude, without privacy.

Reference for the faster structures; O(D) per draw, nothing to keep up to date.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.selection.contract import no_change, register


class ArgmaxState(NamedTuple):
    """State of `argmax`: nothing but its counters.

    Attributes
    ----------
    counters : ndarray of int64, shape (4,)
        See `dplasso.selection.counters`.
    """

    counters: NDArray[np.int64]


@njit(cache=True, nogil=True)
def descent_sign(gradient):
    """Sign of the vertex that descends: minus the gradient's, -1 at zero."""
    return -1 if gradient >= 0 else 1


@njit(cache=True, nogil=True)
def select_argmax(selector, alpha, stream):
    """Return the first coordinate of largest magnitude and the descending sign."""
    best = 0
    largest = abs(alpha[0])
    for k in range(1, alpha.size):
        magnitude = abs(alpha[k])
        if magnitude > largest:
            largest = magnitude
            best = k
    return best, descent_sign(alpha[best])


@njit(cache=True, nogil=True)
def keep_nothing(selector, alpha, k, old, new):
    """Update of a structure that reads alpha afresh at every draw."""


@njit(cache=True, nogil=True)
def rebuild_nothing(selector, alpha):
    """Rebuild of a structure that reads alpha afresh at every draw."""


register(ArgmaxState, select_argmax, keep_nothing, rebuild_nothing, no_change)
