"""What parts of margins pull along their slopes: exact sums over rows, without randomness.

See `dplasso.gradient_descent.blend` for what becomes of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.gradient_descent.slopes import CONSTANT, LARGEST_MARGIN, SLACK, sums_over_rows
from dplasso.losses.contract import residual_vector
from dplasso.losses.targets import Targets, weight_of
from dplasso.matrix.compressed import clip
from dplasso.privacy.share import share
from dplasso.runtime.threads import Threads

# Longer margins count less, and by as much the weighted loss bends at most, in curvatures.
LONGEST = 4.0


@dataclass(frozen=True)
class Blend:
    """Parts of the margins of the rows that one process holds, and what they pull.

    `parts`, shape (N, S, K).
    """

    parts: NDArray[np.float64]
    loss: Any
    targets: Targets
    threads: Threads

    def sums(self, parameters: NDArray[np.float64], unit: float) -> NDArray[np.int64]:
        """Return the gradient in a and b / c, shape (S + K,), in units; exact."""
        given = self.loss, self.targets, self.parts, parameters, unit
        return sums_over_rows(blend_gradient, *given, self.threads)


@njit(cache=True, nogil=True)
def blend_gradient(loss, targets, parts, parameters, unit, limit, first, last, totals):
    """Add up the rows' shares of the gradient in slopes and constants, in units, exactly.

    By Cauchy's inequality ``sum_s (q.s)^2 + c^2 |q|^2 <= |q|^2 (|s|^2 + c^2)``.
    """
    n_parts, n_outputs = parts.shape[1], parts.shape[2]
    margins, residuals = np.empty(n_outputs), np.empty(n_outputs)
    own = np.empty((n_parts, n_outputs))
    for i in range(first, last):
        squares = CONSTANT * CONSTANT
        for k in range(n_outputs):
            margins[k] = CONSTANT * parameters[n_parts + k]
            for s in range(n_parts):
                own[s, k] = clip(parts[i, s, k], LARGEST_MARGIN)
                squares += own[s, k] * own[s, k]
                margins[k] += parameters[s] * own[s, k]
        residual_vector(loss, margins, targets.labels[i], residuals)
        length = np.sqrt(squares)
        counts = SLACK / length * min(1.0, LONGEST / length)
        scale = weight_of(targets.weights, i) * counts * unit
        for k in range(n_outputs):
            totals[n_parts + k] += share(residuals[k] * CONSTANT * scale, limit)
        for s in range(n_parts):
            along = 0.0
            for k in range(n_outputs):
                along += residuals[k] * own[s, k]
            totals[s] += share(along * scale, limit)
