"""Forward selection by noisy gradients: columns enter a run one after the other.

Gradients at weights 0 rank each column by itself, so a short list of the largest repeats what its
columns have in common. Here the columns chosen so far are fitted while the gradients of all others
add up, and the next to enter is the one that explains most: orthogonal matching pursuit. All of
this is computed from noisy gradients, so composition covers it.
"""

import math

import numpy as np
from numpy.typing import NDArray

# A column enters once its gradient has this many standard deviations; after the last round, the
# largest enter anyway. Every round has at least so many gradients.
_CLEAR, _SHORTEST_ROUND = 6.0, 3
# After columns entered, each gradient of a round leaves this part of those before it.
_REMEMBERED = 0.8
# Steps of the constant are so many times as long where a calibration finds it again. If it followed
# slowly, columns that are nearly constant would enter for it.
CONSTANT_STEPS = 3.0
# Gradients have moved if their mean squared differences exceed those of noise by so many standard
# deviations.
_EXCESS = 2.0
# The variance of estimates before the first round.
_UNKNOWN = 1e300


class ForwardSelection:
    """Chooses `most` of D columns in the first `n_steps` gradients.

    `sizes`, shape (D,): root mean squares of the entries, up to a factor; empty if unknown.
    `constant_steps`: how many times as long the steps of the constant are.

    `entered`, shape (D,): 1 for columns that have entered. `sums`, shape (D, K): of the gradients
    of a round. `estimates`, shape (D, K): of each gradient, by all rounds. `numbers`: weight and
    variance of the sums, variance of the estimates, and 1 if columns entered in the last round.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        most: int,
        n_steps: int,
        sizes: NDArray[np.float64],
        constant_steps: float,
    ) -> None:
        self.entered, self.numbers = np.zeros(shape[0]), np.array([0.0, 0.0, _UNKNOWN, 0.0])
        self.sums, self.estimates = np.zeros(shape), np.zeros(shape)
        self.constant_steps = constant_steps
        self._most, self._n_steps, self._sizes = most, n_steps, sizes
        self._round = max(_SHORTEST_ROUND, n_steps // most)

    def add(self, step: int, gradient: NDArray[np.float64], noise_scale: float) -> None:
        """Add the noisy gradient of a step, shape (D, K); at the end of a round columns enter."""
        missing = self._most - np.count_nonzero(self.entered)
        if missing == 0:
            return
        remembered = _REMEMBERED if self.numbers[3] else 1.0
        self.sums *= remembered
        self.sums += gradient
        self.numbers[0] = remembered * self.numbers[0] + 1.0
        self.numbers[1] = remembered**2 * self.numbers[1] + noise_scale**2
        is_last = step >= self._n_steps
        if step % self._round and not is_last:
            return
        self._estimate()
        lengths = np.linalg.norm(self.estimates, axis=1)
        lengths[self.entered > 0.0] = -1.0
        is_clear = lengths > _CLEAR * math.sqrt(self.numbers[2] * self.estimates.shape[1])
        # What a column explains is its gradient over its size. Noise is the same for all, so it
        # would be large over small sizes.
        gains = lengths / self._sizes if self._sizes.size else lengths
        order = np.lexsort((-np.where(is_clear, gains, lengths), ~is_clear))
        rounds_left = (self._n_steps - step) // self._round + 1
        largest = order[: -(-missing // rounds_left)]
        if not is_last:
            largest = largest[is_clear[largest]]
        self.entered[largest] = 1.0
        self.numbers[3] = float(largest.size > 0)

    def _estimate(self) -> None:
        """Combine the means of a round and the estimates before, by how far gradients moved."""
        weight, noise, variance, _ = self.numbers
        means, own = self.sums / weight, noise / weight**2
        difference = means - self.estimates
        squares = difference[self.entered == 0.0] ** 2
        expected = (own + variance) * (1.0 + _EXCESS * math.sqrt(2.0 / squares.size))
        before = variance + max(0.0, float(squares.mean()) - expected)
        part = before / (before + own) if own else 1.0
        self.estimates += part * difference
        self.sums[:] = 0.0
        self.numbers[:3] = 0.0, 0.0, part * own
