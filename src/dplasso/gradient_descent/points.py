"""Records whose margins pull alike, counted: what a search for slopes looks at instead of records.

Margins of records with one of two targets are rounded, each by itself, to a grid that is public and
so fine that noise hides the rounding. Records whose rounded margins and targets are the same pull
the same: their share is computed once and added as often as there are records, in whole numbers. So
every one of the many sums of a search costs what there are points, however many records there are.
Records that count in part, and those of other losses, are points of their own.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.losses.targets import Targets, weight_of
from dplasso.matrix.compressed import clip
from dplasso.runtime.threads import Threads, cut

# Weight of the constants beside the slopes, c.
CONSTANT = 0.5
# Of the weights, so that rounding makes no share longer than the residual.
SLACK = 1.0 - 2.0**-40
# Margins are clipped to it, far beyond any that means something: their squares are finite, and one
# that is no number, of a row of huge entries, counts as 0.
LARGEST_MARGIN = 2.0**400
# On the grid, the lengths 1 + |s| / `_SHORT` are rounded to so many bits after the first, of one
# part and of each of two; and none is longer than 1 + 2^`_OCTAVES`.
_SHORT, _BITS, _OCTAVES = 2.0**-6, (6, 3), 16


class Points(NamedTuple):
    """Margins, and how many records have them.

    `parts`, shape (n, S, K).
    `labels`: the targets.
    `scales`, shape (n,): what residuals are multiplied by, for shares no longer than a residual.
    `counts`, shape (n,): how many records are there; empty where each point is one record.
    """

    parts: NDArray[np.float64]
    labels: NDArray[np.float64]
    scales: NDArray[np.float64]
    counts: NDArray[np.int64]


def points_of(
    parts: NDArray[np.float64], loss: Any, targets: Targets, longest: float, threads: Threads
) -> Points:
    """Return the points of some records; the parameters as of `Margins`."""
    labels, weights = targets.labels, targets.weights
    counts = np.zeros(0, dtype=np.int64)
    if loss.n_outputs == 1 and loss.two_targets:
        parts, labels, weights, counts = _alike(parts, targets, threads)
    scales = np.empty(len(parts))
    edges = cut(0, len(parts), threads.count)
    threads.run(lambda t: fill_scales(weights, parts, longest, edges[t], edges[t + 1], scales))
    return Points(parts, labels, scales, counts)


def _alike(
    parts: NDArray[np.float64], targets: Targets, threads: Threads
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return points, their targets and weights, and how many records of full weight each has."""
    n_records, n_parts = parts.shape[:2]
    bits = _BITS[n_parts - 1]
    side = 2 * ((_OCTAVES + 1) << bits) + 1
    cells, each = np.empty(n_records, dtype=np.int64), np.empty(n_records)
    edges = cut(0, n_records, threads.count)
    threads.run(
        lambda t: fill_cells(parts, targets, bits, side, edges[t], edges[t + 1], cells, each)
    )
    alone = (each > 0.0) & (each < 1.0)
    counts: NDArray[np.int64] = np.bincount(cells[each == 1.0], minlength=2 * side**n_parts)
    found = np.flatnonzero(counts)
    cells = np.concatenate([found, cells[alone]])
    weights: NDArray[Any] = np.concatenate([np.ones(found.size), each[alone]])
    counts = np.concatenate([counts[found], np.ones(weights.size - found.size, dtype=np.int64)])
    places = np.stack([cells // 2 // side**s % side for s in range(n_parts)], axis=1) - side // 2
    labels: NDArray[np.float64] = (cells % 2).astype(np.float64)
    return margins_at(places, bits)[:, :, np.newaxis], labels, weights, counts


def margins_at(places: NDArray[np.int64], bits: int) -> NDArray[np.float64]:
    """Return the margins at some places of the grid."""
    lengths = ((np.abs(places) + (1023 << bits)) << (52 - bits)).view(np.float64)
    return np.copysign((lengths - 1.0) * _SHORT, places)


@njit(cache=True, nogil=True)
def place_of(margin, bits):
    """Return the place of a margin on the grid, by the first bits of 1 + its length."""
    s = clip(margin, _SHORT * 2.0**_OCTAVES)
    length = np.float64(1.0 + abs(s) / _SHORT).view(np.int64)
    place = ((length + (np.int64(1) << (51 - bits))) >> (52 - bits)) - (np.int64(1023) << bits)
    return -place if s < 0.0 else place


@njit(cache=True, nogil=True)
def fill_cells(parts, targets, bits, side, first, last, cells, each):
    """Set `cells` to a number for places and target of each record, and `each` to its weight."""
    for i in range(first, last):
        cell = 0
        for s in range(parts.shape[1] - 1, -1, -1):
            cell = cell * side + place_of(parts[i, s, 0], bits) + side // 2
        cells[i] = 2 * cell + (targets.labels[i] != 0.0)
        each[i] = weight_of(targets.weights, i)


@njit(cache=True, nogil=True)
def fill_scales(weights, parts, longest, first, last, scales):
    """Set what residuals are multiplied by, for shares no longer than a residual.

    By Cauchy's inequality ``sum_s (q.s)^2 + c^2 |q|^2 <= |q|^2 (|s|^2 + c^2)``.
    """
    for i in range(first, last):
        squares = CONSTANT * CONSTANT
        for s in range(parts.shape[1]):
            for k in range(parts.shape[2]):
                own = clip(parts[i, s, k], LARGEST_MARGIN)
                squares += own * own
        length = np.sqrt(squares)
        counts = SLACK / length * min(1.0, longest / length)
        scales[i] = weight_of(weights, i) * counts
