"""What margins pull along their slope and constants: exact sums over rows, without randomness.

See `dplasso.gradient_descent.calibration` for what becomes of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.losses.contract import gradient, residual_vector
from dplasso.losses.targets import Targets, weight_of
from dplasso.matrix.compressed import clip
from dplasso.matrix.unit_rows import Scaling
from dplasso.privacy.share import share
from dplasso.runtime.threads import Threads, cut

# Weight of the constants beside the slope, c.
CONSTANT = 0.5
# Of the weights, so that rounding makes no share longer than the residual.
SLACK = 1.0 - 2.0**-40
# Margins are clipped to it, far beyond any that means something: their squares are finite, and one
# that is no number, of a row of huge entries, counts as 0.
LARGEST_MARGIN = 2.0**400


@dataclass(frozen=True)
class LinearModel:
    """A released model, and the rows that it is one of.

    `weights`, shape (k, K), and `intercept`, shape (K,): of each margin.
    `scaling`: how they are made unit rows.
    `bound`: instead of that, entries are clipped to [-bound, bound].
    """

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    scaling: Scaling
    bound: float | None = None


@dataclass(frozen=True)
class Margins:
    """Margins of the rows that one process holds, and what they pull along slope and constants.

    `margins`, shape (N, K), hold what the loss would add to each: `loss` has no offset.
    """

    margins: NDArray[np.float64]
    loss: Any
    targets: Targets
    threads: Threads

    def sums(self, parameters: NDArray[np.float64], unit: float) -> NDArray[np.int64]:
        """Return the gradient in a and b / c, shape (1 + K,), in units; exact."""
        add_up = slope_gradient if self.loss.n_outputs == 1 else slope_gradient_vectors
        given = self.loss, self.targets, self.margins, parameters, unit
        return sums_over_rows(add_up, *given, self.threads)


def sums_over_rows(
    add_up: Any,
    loss: Any,
    targets: Targets,
    margins: NDArray[np.float64],
    parameters: NDArray[np.float64],
    unit: float,
    threads: Threads,
) -> NDArray[np.int64]:
    """Return what a kernel adds up over all rows, one total for each parameter, exactly."""
    edges = cut(0, len(margins), threads.count)
    units = unit, loss.residual_bound * unit

    def part(t: int) -> NDArray[np.int64]:
        totals = np.zeros(parameters.size, dtype=np.int64)
        add_up(loss, targets, margins, parameters, *units, edges[t], edges[t + 1], totals)
        return totals

    totals: NDArray[np.int64] = np.sum(threads.run(part), axis=0)
    return totals


@njit(cache=True, nogil=True)
def slope_gradient(loss, targets, margins, parameters, unit, limit, first, last, totals):
    """Add up the rows' shares of the gradient in slope and constant, in units, exactly.

    `parameters`, shape (2,): a and b / c. `limit`: the bound on a share, in units.
    """
    labels, weights = targets.labels, targets.weights
    for i in range(first, last):
        s = clip(margins[i, 0], LARGEST_MARGIN)
        margin = parameters[0] * s + CONSTANT * parameters[1]
        q = weight_of(weights, i) * gradient(loss, margin, labels[i])
        pull = q * (SLACK / np.sqrt(s * s + CONSTANT * CONSTANT)) * unit
        totals[0] += share(pull * s, limit)
        totals[1] += share(pull * CONSTANT, limit)


@njit(cache=True, nogil=True)
def slope_gradient_vectors(loss, targets, margins, parameters, unit, limit, first, last, totals):
    """Add up shares as in `slope_gradient`, of K margins with one slope.

    By Cauchy's inequality ``(q.s)^2 + c^2 |q|^2 <= |q|^2 (|s|^2 + c^2)``.
    """
    labels, weights = targets.labels, targets.weights
    n_outputs = margins.shape[1]
    stretched, residuals, own = np.empty(n_outputs), np.empty(n_outputs), np.empty(n_outputs)
    for i in range(first, last):
        squares = CONSTANT * CONSTANT
        for k in range(n_outputs):
            s = clip(margins[i, k], LARGEST_MARGIN)
            own[k] = s
            squares += s * s
            stretched[k] = parameters[0] * s + CONSTANT * parameters[1 + k]
        residual_vector(loss, stretched, labels[i], residuals)
        scale = weight_of(weights, i) * (SLACK / np.sqrt(squares)) * unit
        along = 0.0
        for k in range(n_outputs):
            along += residuals[k] * own[k]
            totals[1 + k] += share(residuals[k] * CONSTANT * scale, limit)
        totals[0] += share(along * scale, limit)
