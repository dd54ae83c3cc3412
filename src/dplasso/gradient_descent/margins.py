"""Margins of records, and their exact gradients in slopes and constants, without noise.

With two targets, each margin is rounded to a public grid that is so fine that the noise hides the
rounding. Records with the same rounded margin and target contribute the same integer, which is
multiplied by their number. Records with weights below 1, and those of other losses, are points of
their own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.losses.loss import residual_vector
from dplasso.losses.targets import Targets, weight_of, weights_within
from dplasso.matrix.compressed import clip, clip_all
from dplasso.matrix.scaling import Scaling
from dplasso.privacy.share import share
from dplasso.runtime.compilation import kernel
from dplasso.runtime.threads import ONE_THREAD, Threads, cut

# Records with longer margins get smaller weights if there is a prior. It bounds the curvature, in
# multiples of that of the loss.
LONGEST = 4.0
# For fewer points threads are not worth starting.
_FEW = 2**14
# Weight of the constants relative to the slopes, c.
CONSTANT = 0.5
# Factor of the weights that keeps contributions within the residual despite rounding.
SLACK = 1.0 - 2.0**-40
# Margins are clipped to this number, so that their squares are finite; NaN, from rows with huge
# entries, becomes 0.
LARGEST_MARGIN = 2.0**400
# The grid rounds 1 + |s| / `_SHORT` to this many bits after the first, for one part and for two
# parts; it ends at 1 + 2^`_OCTAVES`.
_SHORT, _BITS, _OCTAVES = 2.0**-6, (6, 3), 16
_ROWS = 2**13


class MarginCounts(NamedTuple):
    """Margins, and the number of records at each.

    `parts`, shape (n, S, K): the margins of S parts and K outputs.
    `scales`, shape (n,): factors that keep contributions as short as the residual.
    `counts`, shape (n,): number of records; empty if each point is one record.
    """

    parts: NDArray[np.float64]
    labels: NDArray[np.float64]
    scales: NDArray[np.float64]
    counts: NDArray[np.int64]


def margin_counts_of(
    parts: NDArray[np.float64], loss: Any, targets: Targets, longest: float, threads: Threads
) -> MarginCounts:
    """Return the points of the records."""
    labels, weights = targets.labels, targets.weights
    counts = np.zeros(0, dtype=np.int64)
    if loss.n_outputs == 1 and loss.two_targets:
        parts, labels, weights, counts = _alike(parts, targets, threads)
    scales = np.empty(len(parts))

    def scale(rows: slice) -> None:
        scales[rows] = point_scales(weights[rows], parts[rows], longest)

    _some(len(parts), threads, scale)
    return MarginCounts(parts, labels, scales, counts)


def _alike(
    parts: NDArray[np.float64], targets: Targets, threads: Threads
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return grid points, their targets and weights, and the number of records at each."""
    n_records, n_parts = parts.shape[:2]
    bits = _BITS[n_parts - 1]
    side = 2 * ((_OCTAVES + 1) << bits) + 1
    cells, each = np.empty(n_records, dtype=np.int64), np.empty(n_records)

    def fill(rows: slice) -> None:
        cell = np.zeros(len(parts[rows]), dtype=np.int64)
        for s in range(n_parts - 1, -1, -1):
            cell = cell * side + places_of(parts[rows, s, 0], bits) + side // 2
        cells[rows] = 2 * cell + (targets.labels[rows] != 0.0)
        each[rows] = weights_within(targets.weights[rows], cell.size)

    _some(n_records, threads, fill)
    alone = (each > 0.0) & (each < 1.0)
    counts: NDArray[np.int64] = np.bincount(cells[each == 1.0], minlength=2 * side**n_parts)
    occupied = np.flatnonzero(counts)
    cells = np.concatenate([occupied, cells[alone]])
    weights: NDArray[Any] = np.concatenate([np.ones(occupied.size), each[alone]])
    counts = np.concatenate(
        [counts[occupied], np.ones(weights.size - occupied.size, dtype=np.int64)]
    )
    places = np.stack([cells // 2 // side**s % side for s in range(n_parts)], axis=1) - side // 2
    labels: NDArray[np.float64] = (cells % 2).astype(np.float64)
    lengths = ((np.abs(places) + (1023 << bits)) << (52 - bits)).view(np.float64)
    margins = np.copysign((lengths - 1.0) * _SHORT, places)
    return margins[:, :, np.newaxis], labels, weights, counts


def places_of(margins: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
    """Round margins to grid points, by the first bits of 1 + |s| / `_SHORT`."""
    s = clip_all(margins, _SHORT * 2.0**_OCTAVES)
    lengths = (1.0 + np.abs(s) / _SHORT).view(np.int64)
    places = ((lengths + (1 << (51 - bits))) >> (52 - bits)) - (1023 << bits)
    return np.where(s < 0.0, -places, places)


def point_scales(
    weights: NDArray[np.float64], parts: NDArray[np.float64], longest: float
) -> NDArray[np.float64]:
    """Return factors of the residuals that keep contributions as short as the residual.

    By Cauchy's inequality ``sum_s (q.s)^2 + c^2 |q|^2 <= |q|^2 (|s|^2 + c^2)``.
    """
    squares = np.full(len(parts), CONSTANT * CONSTANT)
    for own in clip_all(parts, LARGEST_MARGIN).reshape(len(parts), -1).T:
        squares += own * own
    length = np.sqrt(squares)
    scales: NDArray[np.float64] = SLACK / length * np.minimum(1.0, longest / length)
    return scales * weights_within(weights, len(parts))


def _some(n_rows: int, threads: Threads, work: Callable[[slice], None]) -> None:
    """Process all rows in slices that fit the cache."""
    edges = cut(0, n_rows, threads.count)

    def part(t: int) -> None:
        for begin in range(edges[t], edges[t + 1], _ROWS):
            work(slice(begin, min(begin + _ROWS, edges[t + 1])))

    threads.run(part)


@dataclass(frozen=True)
class LinearModel:
    """A released model, and how its rows are scaled.

    `weights`, shape (k, K), and `intercept`, shape (K,): of each margin. `influence`: how far a
    residual of 1 moved the margin of its own record, to be taken out of it. `centre`, shape (K,):
    what the intercept leaves out for the calibration.
    """

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    scaling: Scaling
    influence: float = 0.0
    centre: NDArray[np.float64] | float = 0.0


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
        """Return the gradient in slopes and b / c, in units, shape (S + K,) or (2 K,)."""
        add_up: Any = slope_gradient
        points: Any = self._points
        if parameters.size > self.parts.shape[1] + self.loss.n_outputs:
            add_up, points = label_gradients, (self.parts, self.targets)
        arguments = self.loss, points, parameters, unit, self.loss.residual_bound * unit
        n_points = len(points[0])
        threads = self.threads if n_points > _FEW else ONE_THREAD
        each = np.zeros((threads.count, parameters.size), dtype=np.int64)
        edges = cut(0, n_points, threads.count) if threads.count > 1 else [0, n_points]
        threads.run(lambda t: add_up(*arguments, edges[t], edges[t + 1], each[t]))
        totals: NDArray[np.int64] = each.sum(axis=0)
        return totals


@kernel
def leave_out(loss, margins, centre, labels, weights, influence):
    """Take what each record taught the model out of its margins, shape (N, K), in place.

    `influence`, shape (N,): how far a residual of 1 moved them.
    """
    residuals = np.empty(margins.shape[1])
    for i in range(len(margins)):
        residual_vector(loss, margins[i] + centre, labels[i], residuals)
        margins[i] += influence[i] * weight_of(weights, i) * residuals


@kernel
def slope_gradient(loss, points, parameters, unit, limit, first, last, totals):
    """Sum ``q s`` and ``c q``, times `scales`, for S parts of K margins, one slope for each part.

    `parameters`: the slopes and b / c. `limit`: the bound on a contribution, in units.
    """
    parts, labels, scales, counts = points
    n_parts, n_outputs = parts.shape[1], parts.shape[2]
    margins, residuals = np.empty(n_outputs), np.empty(n_outputs)
    own = np.empty((n_parts, n_outputs))
    for i in range(first, last):
        for k in range(n_outputs):
            margins[k] = CONSTANT * parameters[n_parts + k]
            for s in range(n_parts):
                own[s, k] = clip(parts[i, s, k], LARGEST_MARGIN)
                margins[k] += parameters[s] * own[s, k]
        residual_vector(loss, margins, labels[i], residuals)
        count = counts[i] if counts.size else 1
        scale = scales[i] * unit
        for k in range(n_outputs):
            totals[n_parts + k] += count * share(residuals[k] * CONSTANT * scale, limit)
        for s in range(n_parts):
            along = 0.0
            for k in range(n_outputs):
                along += residuals[k] * own[s, k]
            totals[s] += count * share(along * scale, limit)


@kernel
def label_gradients(loss, points, parameters, unit, limit, first, last, totals):
    """Sum contributions for a slope and a constant of each label.

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
