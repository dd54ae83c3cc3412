"""A structure that selects nothing: it notes which gradients a step has changed."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.selection.contract import every_change, register
from dplasso.selection.counters import new_counters


class ChangeLog(NamedTuple):
    """Which gradients have changed.

    `changed`, shape (D,): their places, as the last step reported them.
    `length`, shape (1,): how many there are.
    """

    changed: NDArray[np.int64]
    length: NDArray[np.int64]
    counters: NDArray[np.int64]


def new_change_log(size: int) -> ChangeLog:
    """Return an empty list for `size` coordinates."""
    return ChangeLog(np.zeros(size, dtype=np.int64), np.zeros(1, dtype=np.int64), new_counters())


@njit(cache=True, nogil=True)
def note_changes(log, alpha, changed, old, count):
    """List the gradients that changed."""
    log.changed[:count] = changed[:count]
    log.length[0] = count


@njit(cache=True, nogil=True)
def select_nothing(log, alpha, stream):
    """Return no vertex."""
    return np.int64(-1), np.int64(0)


register(ChangeLog, select_nothing, note_changes, granularity_kernel=every_change)
