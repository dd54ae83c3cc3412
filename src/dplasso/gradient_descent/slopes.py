"""Exact gradients in slopes and constants of margins, without noise.

`dplasso.gradient_descent.calibration` and `.prior_slopes` release them.
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

# Records with longer margins get smaller weights if there is a prior. It bounds the curvature, in
# multiples of that of the loss.
LONGEST = 4.0
# Threads do not pay for fewer points.
_FEW = 2**14


@dataclass(frozen=True)
class LinearModel:
    """A released model, and how its rows are scaled.

    `weights`, shape (k, K), and `intercept`, shape (K,): of each margin.
    `scaling`: how rows are scaled to unit length.
    `bound`: clip entries to [-bound, bound] instead of scaling rows.
    """

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    scaling: Scaling
    bound: float | None = None


@dataclass(frozen=True)
class Margins:
    """Margins of the rows in one process, and their gradients.

    `parts`, shape (N, S, K): margins including the offset of the loss, so `loss` has none.
    `longest`: records with longer margins get smaller weights.
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
        """Return the exact gradient in slopes and b / c, shape (S + K,), in units.

        The shape is (2 K,) if each of K labels has a slope.
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
    """Sum ``q s`` and ``c q``, times the weights `scales`, over points `first` to `last`.

    There are one or two parts, each with one margin.
    `parameters`: the slopes and b / c. `limit`: the bound on a contribution, in units.
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
    """Sum contributions as `slope_gradient` does, for S parts of K margins, one slope a part."""
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
    """Sum contributions as `slope_gradient` does, with a slope and a constant for each label.

    Each label's part is at most as long as its residual, so a record's contribution is at most as
    long as the vector of residuals.
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
