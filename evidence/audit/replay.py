"""Replay: the vertices of a given transcript, in order, whatever the gradients are.

Audits and the tests on two neighbours need it: the run that they repeat must take the
same steps on other data.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.selection.selector import NOTHING_REPORTED, new_counters, register


class ReplayState(NamedTuple):
    """State of a replay.

    `vertex`, `sign`, shape (T,): coordinates to choose, and their signs.
    `position`, shape (1,): vertices already replayed.
    `seen`, shape (T, D) or (0, 0): the gradients at each draw, for whoever audits a fit.
    """

    vertex: NDArray[np.int64]
    sign: NDArray[np.int8]
    position: NDArray[np.int64]
    counters: NDArray[np.int64]
    seen: NDArray[np.int64]
    shift: int = NOTHING_REPORTED


def replay_state(vertex: NDArray[np.int64], sign: NDArray[np.int8], n_seen: int = 0) -> ReplayState:
    """Return the state that replays these vertices from the first.

    The gradients of the first `n_seen` coordinates are kept at each draw.
    """
    seen = np.zeros((vertex.size if n_seen else 0, n_seen), dtype=np.int64)
    # Kernels are compiled for one type of signs.
    sign = sign.astype(np.int8, copy=False)
    return ReplayState(vertex, sign, np.zeros(1, dtype=np.int64), new_counters(), seen)


@njit(cache=True, nogil=True)
def select_replay(selector, alpha, stream):
    """Return the transcript's next vertex."""
    position = selector.position[0]
    selector.position[0] = position + 1
    if selector.seen.size:
        selector.seen[position] = alpha
    return selector.vertex[position], np.int64(selector.sign[position])


register(ReplayState, select_replay)
