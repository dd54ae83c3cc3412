"""What margins pull along their slopes and constants: exact sums over rows, without randomness.

See `dplasso.gradient_descent.calibration` and `.prior_slopes` for what becomes of them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.gradient_descent.margin_counts import (
    CONSTANT,
    LARGEST_MARGIN,
    SLACK,
    MarginCounts,
    margin_counts_of,
)
from dplasso.losses.contract import gradient, residual_vector
from dplasso.losses.targets import Targets, weight_of
from dplasso.matrix.compressed import clip
from dplasso.matrix.scaling import Scaling
from dplasso.privacy.share import share
from dplasso.runtime.threads import ONE_THREAD, Threads, cut

# Longer margins beside a start count less, and by as much their loss bends at most, in curvatures.
LONGEST = 4.0
# So many points are no work for threads.
_FEW = 2**14


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
    """Margins of the rows that one process holds, in parts, and what they pull.

    `parts`, shape (N, S, K), hold what the loss would add to each: `loss` has no offset.
    `longest`: longer margins count less.
    """

    parts: NDArray[np.float64]
    loss: Any
    targets: Targets
    threads: Threads
    longest: float = np.inf

    @cached_property
    def _points(self) -> MarginCounts:
        return margin_counts_of(self.parts, self.loss, self.targets, self.longest, self.threads)

    def sums(self, parameters: NDArray[np.float64], unit: float) -> NDArray[np.int64]:
        """Return the gradient in slopes and b / c, shape (S + K,), in units; exact.

        With a slope for each of K labels, shape (2 K,).
        """
        add_up = slope_gradient if self.loss.n_outputs == 1 else slope_gradient_vectors
        points: Any = self._points
        if parameters.size > self.parts.shape[1] + self.loss.n_outputs:
            add_up, points = label_gradients, (self.parts, self.targets)
        known = self.loss, points, parameters, unit, self.loss.residual_bound * unit
        n_points = len(points[0])
        threads = self.threads if n_points > _FEW else ONE_THREAD
        each = np.zeros((threads.count, parameters.size), dtype=np.int64)
        edges = cut(0, n_points, threads.count) if threads.count > 1 else [0, n_points]
        threads.run(lambda t: add_up(*known, edges[t], edges[t + 1], each[t]))
        totals: NDArray[np.int64] = each.sum(axis=0)
        return totals


@njit(cache=True, nogil=True)
def slope_gradient(loss, points, parameters, unit, limit, first, last, totals):
    """Add up ``q s`` and ``c q`` of some points, q weighted for shares no longer than q.

    Of one or two parts, each of one margin.
    `parameters`: the slopes and b / c. `limit`: the bound on a share, in units.
    """
    parts, labels, scales, counts = points
    two, last_slope = parts.shape[1] == 2, parts.shape[1] - 1
    for i in range(first, last):
        one = clip(parts[i, 0, 0], LARGEST_MARGIN)
        other = clip(parts[i, last_slope, 0], LARGEST_MARGIN) if two else 0.0
        margin = CONSTANT * parameters[last_slope + 1] + parameters[0] * one
        margin += parameters[last_slope] * other
        count = counts[i] if counts.size else 1
        q, scale = gradient(loss, margin, labels[i]), scales[i] * unit
        totals[last_slope + 1] += count * share(q * CONSTANT * scale, limit)
        totals[0] += count * share(q * one * scale, limit)
        if two:
            totals[1] += count * share(q * other * scale, limit)


@njit(cache=True, nogil=True)
def slope_gradient_vectors(loss, points, parameters, unit, limit, first, last, totals):
    """Add up shares as in `slope_gradient`, of S parts of K margins, each part with a slope."""
    parts, labels, scales, _ = points
    n_parts, n_outputs = parts.shape[1], parts.shape[2]
    with_prior_slopes, residuals = np.empty(n_outputs), np.empty(n_outputs)
    own = np.empty((n_parts, n_outputs))
    for i in range(first, last):
        for k in range(n_outputs):
            with_prior_slopes[k] = CONSTANT * parameters[n_parts + k]
            for s in range(n_parts):
                own[s, k] = clip(parts[i, s, k], LARGEST_MARGIN)
                with_prior_slopes[k] += parameters[s] * own[s, k]
        residual_vector(loss, with_prior_slopes, labels[i], residuals)
        scale = scales[i] * unit
        for k in range(n_outputs):
            totals[n_parts + k] += share(residuals[k] * CONSTANT * scale, limit)
        for s in range(n_parts):
            along = 0.0
            for k in range(n_outputs):
                along += residuals[k] * own[s, k]
            totals[s] += share(along * scale, limit)


@njit(cache=True, nogil=True)
def label_gradients(loss, points, parameters, unit, limit, first, last, totals):
    """Add up shares as in `slope_gradient`, of a slope and a constant for each of many labels.

    Those of a label are no longer than its residual, so all are no longer than all residuals.
    """
    parts, targets = points
    n_labels = parts.shape[2]
    own, stretched, residuals = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    for i in range(first, last):
        for k in range(n_labels):
            own[k] = clip(parts[i, 0, k], LARGEST_MARGIN)
            stretched[k] = parameters[k] * own[k] + CONSTANT * parameters[n_labels + k]
        residual_vector(loss, stretched, targets.labels[i], residuals)
        weight = weight_of(targets.weights, i) * SLACK * unit
        for k in range(n_labels):
            pull = residuals[k] * weight / np.sqrt(own[k] * own[k] + CONSTANT * CONSTANT)
            totals[k] += share(pull * own[k], limit)
            totals[n_labels + k] += share(pull * CONSTANT, limit)
