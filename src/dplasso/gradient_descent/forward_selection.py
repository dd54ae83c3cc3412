"""Forward selection by noisy gradients: columns enter a run one after the other.

Gradients at weights 0 rank each column by itself, so a short list of the largest repeats what its
columns have in common. Here the columns chosen so far are fitted while the gradients of all others
add up, and the next to enter is the one whose sum is largest: orthogonal matching pursuit. All of
this is computed from noisy gradients, so composition covers it.
"""

import math

import numpy as np
from numpy.typing import NDArray

# A column enters once its sum of gradients has this many standard deviations; after the last round,
# the largest enter anyway. Every round has at least so many gradients.
_CLEAR, _SHORTEST_ROUND = 6.0, 3
# Each gradient of a round leaves this part of the sums from before columns entered.
_REMEMBERED = 0.8


class ForwardSelection:
    """Chooses `most` of `n_columns` columns in the first `n_steps` gradients.

    `entered`, shape (D,): 1 for columns that have entered. `sums`, shape (D, K): of the gradients
    since. `noise`: the variance of their noise, and 1 while they hold gradients from before.
    """

    def __init__(self, n_columns: int, n_outputs: int, most: int, n_steps: int) -> None:
        self.entered, self.sums = np.zeros(n_columns), np.zeros((n_columns, n_outputs))
        self.noise = np.zeros(2)
        self._most, self._n_steps = most, n_steps
        self._round = max(_SHORTEST_ROUND, n_steps // most)

    def add(self, step: int, gradient: NDArray[np.float64], noise_scale: float) -> None:
        """Add the noisy gradient of a step, shape (D, K); at the end of a round columns enter."""
        missing = self._most - np.count_nonzero(self.entered)
        if missing == 0:
            return
        remembered = _REMEMBERED if self.noise[1] else 1.0
        self.sums *= remembered
        self.sums += gradient
        self.noise[0] = remembered**2 * self.noise[0] + noise_scale**2
        is_last = step >= self._n_steps
        if step % self._round and not is_last:
            return
        sizes = np.linalg.norm(self.sums, axis=1)
        sizes[self.entered > 0.0] = -1.0
        rounds_left = (self._n_steps - step) // self._round + 1
        largest = np.argsort(-sizes, kind="stable")[: -(-missing // rounds_left)]
        if not is_last:
            clear = _CLEAR * math.sqrt(self.noise[0] * self.sums.shape[1])
            largest = largest[sizes[largest] > clear]
        self.entered[largest] = 1.0
        self.noise[1] = float(largest.size > 0)
