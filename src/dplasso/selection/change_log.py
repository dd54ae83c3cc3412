"""A structure that selects nothing: it notes which gradients have changed since it was emptied."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.selection.argmax import keep_nothing
from dplasso.selection.contract import every_change, register
from dplasso.selection.counters import new_counters


class ChangeLog(NamedTuple):
    """Which gradients have changed.

    `noted`, shape (D,): whether a coordinate is on the list.
    `changed`: the list.
    `length`, shape (2,): its length, and whether it was given up because most gradients change.
    `counters`, shape (4,): see `dplasso.selection.counters`.
    """

    noted: NDArray[np.bool_]
    changed: NDArray[np.int64]
    length: NDArray[np.int64]
    counters: NDArray[np.int64]


def new_change_log(size: int) -> ChangeLog:
    """Return an empty list for `size` coordinates."""
    return ChangeLog(
        np.zeros(size, dtype=np.bool_),
        np.zeros(size, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
        new_counters(),
    )


@njit(cache=True, nogil=True)
def note_changes(log, alpha, changed, old, count):
    """Put coordinates on the list, each once."""
    for m in range(count):
        k = changed[m]
        if not log.noted[k]:
            log.noted[k] = True
            log.changed[log.length[0]] = k
            log.length[0] += 1


@njit(cache=True, nogil=True)
def give_up_list(log, alpha):
    """Note that all gradients have to be looked at."""
    log.length[1] = 1


@njit(cache=True, nogil=True)
def select_nothing(log, alpha, stream):
    """Return no vertex."""
    return np.int64(-1), np.int64(0)


register(ChangeLog, select_nothing, keep_nothing, give_up_list, every_change, note_changes)
