"""What margins pull along their slope and constants: exact sums over rows, without randomness.

See `dplasso.gradient_descent.calibration` and `.blend` for what becomes of them.
"""

from dataclasses import dataclass
from functools import cached_property
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
# Longer margins of a blend count less, and by as much its loss bends at most, in curvatures.
LONGEST = 4.0
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

    @cached_property
    def _whole(self) -> "Blend":
        """Margins of several outputs are one part, and no record counts less."""
        given = self.margins[:, np.newaxis], self.loss, self.targets, self.threads
        return Blend(*given, longest=np.inf)

    def sums(self, parameters: NDArray[np.float64], unit: float) -> NDArray[np.int64]:
        """Return the gradient in a and b / c, shape (1 + K,), in units; exact.

        With a slope for each of K labels, shape (2 K,).
        """
        if parameters.size > 1 + self.loss.n_outputs:
            known = self.loss, self.targets, self.margins, parameters, unit
            return _sums_over_rows(label_gradients, *known, self.threads)
        if self.loss.n_outputs > 1:
            return self._whole.sums(parameters, unit)
        known = self.loss, self.targets, self.margins, parameters, unit
        return _sums_over_rows(slope_gradient, *known, self.threads)


@dataclass(frozen=True)
class Blend:
    """Parts of the margins of the rows that one process holds, and what they pull.

    `parts`, shape (N, S, K).
    `longest`: longer margins count less.
    """

    parts: NDArray[np.float64]
    loss: Any
    targets: Targets
    threads: Threads
    longest: float = LONGEST

    @cached_property
    def _margins(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        scales = np.empty(len(self.parts))
        blend_scales(self.targets, self.parts, self.longest, scales)
        return self.parts, scales

    def sums(self, parameters: NDArray[np.float64], unit: float) -> NDArray[np.int64]:
        """Return the gradient in slopes and b / c, shape (S + K,), in units; exact."""
        add_up = blend_gradient if self.loss.n_outputs == 1 else blend_gradient_vectors
        known = self.loss, self.targets, self._margins, parameters, unit
        return _sums_over_rows(add_up, *known, self.threads)


def _sums_over_rows(
    add_up: Any,
    loss: Any,
    targets: Targets,
    margins: Any,
    parameters: NDArray[np.float64],
    unit: float,
    threads: Threads,
) -> NDArray[np.int64]:
    """Return what a kernel adds up over all rows, one total for each parameter, exactly."""
    edges = cut(0, len(targets.labels), threads.count)
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
def blend_scales(targets, parts, longest, scales):
    """Set what the rows' residuals are multiplied by, for shares no longer than a residual.

    By Cauchy's inequality ``sum_s (q.s)^2 + c^2 |q|^2 <= |q|^2 (|s|^2 + c^2)``.
    """
    for i in range(scales.size):
        squares = CONSTANT * CONSTANT
        for s in range(parts.shape[1]):
            for k in range(parts.shape[2]):
                own = clip(parts[i, s, k], LARGEST_MARGIN)
                squares += own * own
        length = np.sqrt(squares)
        counts = SLACK / length * min(1.0, longest / length)
        scales[i] = weight_of(targets.weights, i) * counts


@njit(cache=True, nogil=True)
def blend_gradient(loss, targets, margins, parameters, unit, limit, first, last, totals):
    """Add up shares as in `slope_gradient`, of one or two parts, each of one margin.

    `margins`: the parts, and what `blend_scales` makes of them.
    """
    parts, scales = margins
    two, last_slope = parts.shape[1] == 2, parts.shape[1] - 1
    for i in range(first, last):
        one = clip(parts[i, 0, 0], LARGEST_MARGIN)
        other = clip(parts[i, last_slope, 0], LARGEST_MARGIN) if two else 0.0
        margin = CONSTANT * parameters[last_slope + 1] + parameters[0] * one
        margin += parameters[last_slope] * other
        q, scale = gradient(loss, margin, targets.labels[i]), scales[i] * unit
        totals[last_slope + 1] += share(q * CONSTANT * scale, limit)
        totals[0] += share(q * one * scale, limit)
        if two:
            totals[1] += share(q * other * scale, limit)


@njit(cache=True, nogil=True)
def blend_gradient_vectors(loss, targets, margins, parameters, unit, limit, first, last, totals):
    """Add up shares as in `blend_gradient`, of S parts of K margins, each part with a slope."""
    parts, scales = margins
    n_parts, n_outputs = parts.shape[1], parts.shape[2]
    blended, residuals = np.empty(n_outputs), np.empty(n_outputs)
    own = np.empty((n_parts, n_outputs))
    for i in range(first, last):
        for k in range(n_outputs):
            blended[k] = CONSTANT * parameters[n_parts + k]
            for s in range(n_parts):
                own[s, k] = clip(parts[i, s, k], LARGEST_MARGIN)
                blended[k] += parameters[s] * own[s, k]
        residual_vector(loss, blended, targets.labels[i], residuals)
        scale = scales[i] * unit
        for k in range(n_outputs):
            totals[n_parts + k] += share(residuals[k] * CONSTANT * scale, limit)
        for s in range(n_parts):
            along = 0.0
            for k in range(n_outputs):
                along += residuals[k] * own[s, k]
            totals[s] += share(along * scale, limit)


@njit(cache=True, nogil=True)
def label_gradients(loss, targets, margins, parameters, unit, limit, first, last, totals):
    """Add up shares as in `slope_gradient`, of a slope and a constant for each of many labels.

    Those of a label are no longer than its residual, so all are no longer than all residuals.
    """
    n_labels = margins.shape[1]
    own, stretched, residuals = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    for i in range(first, last):
        for k in range(n_labels):
            own[k] = clip(margins[i, k], LARGEST_MARGIN)
            stretched[k] = parameters[k] * own[k] + CONSTANT * parameters[n_labels + k]
        residual_vector(loss, stretched, targets.labels[i], residuals)
        weight = weight_of(targets.weights, i) * SLACK * unit
        for k in range(n_labels):
            pull = residuals[k] * weight / np.sqrt(own[k] * own[k] + CONSTANT * CONSTANT)
            totals[k] += share(pull * own[k], limit)
            totals[n_labels + k] += share(pull * CONSTANT, limit)
