"""Coordinates drawn uniformly, then the true sign: a draw whose coordinate knows nothing of X.

Not private, and no choice of the estimator. It shows how much of the utility of
`mechanism="paper"` comes from the sign alone (docs/paper-sign.md).
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.privacy.randomness import below
from dplasso.selection.log_weights import descent_sign
from dplasso.selection.selector import NOTHING_REPORTED, new_counters, register


class UniformState(NamedTuple):
    """State of the uniform draw: nothing of its own."""

    counters: NDArray[np.int64]
    shift: int = NOTHING_REPORTED


def uniform_state() -> UniformState:
    """Return the state of a uniform draw."""
    return UniformState(new_counters())


@njit(cache=True, nogil=True)
def select_uniform(selector, alpha, stream):
    """Return a coordinate drawn without looking at alpha, and its true descending sign."""
    j = np.int64(below(stream, np.uint64(alpha.size)))
    return j, descent_sign(alpha[j])


register(UniformState, select_uniform)
