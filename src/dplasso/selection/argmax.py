"""Brute force: the coordinate of largest magnitude, without privacy.

Reference for the faster structures; O(D) per draw, nothing to keep up to date.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.matrix.numbering import AS_GIVEN, Numbering, look_up
from dplasso.selection.contract import no_change, register


class ArgmaxState(NamedTuple):
    """State of `argmax`: nothing but its counters.

    `counters`, shape (4,): see `dplasso.selection.counters`.
    `numbering`: where the coordinates stand in alpha.
    """

    counters: NDArray[np.int64]
    numbering: Numbering = AS_GIVEN


@njit(cache=True, nogil=True)
def descent_sign(gradient):
    """Sign of the vertex that descends: minus the gradient's, -1 at zero."""
    return -1 if gradient >= 0 else 1


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


@njit(cache=True, nogil=True)
def keep_nothing(selector, alpha, k, old, new):
    """Update of a structure that reads alpha afresh at every draw."""


@njit(cache=True, nogil=True)
def rebuild_nothing(selector, alpha):
    """Rebuild of a structure that reads alpha afresh at every draw."""


register(ArgmaxState, select_argmax, keep_nothing, rebuild_nothing, no_change)
