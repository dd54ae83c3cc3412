"""Drift control: which residuals are too far off, and when the next ones will be.

A row keeps its residual while the true one is within `drift_tol` of it, which is an interval of the
margin. A touch moves the margin. Between touches the margin shrinks by the public factor
`weight_scale`, so the first step after which it leaves the interval is known in advance. All of
this depends on the row itself and on the transcript only, which the privacy argument needs.

Rows that are due at the same step form a doubly linked list. A row may be listed at an earlier step
than necessary. Each block of rows has its own lists, so threads on different blocks share none.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.problem import weight_scale
from dplasso.losses.loss import gradient
from dplasso.losses.targets import (
    Targets,
    offset_of,
    weight_of,
    weighted_margins_within,
    weighted_tangent_offset,
)
from dplasso.runtime.compilation import kernel

NONE = -1

# The state of a row is stored together, so a touched row costs one cache miss instead of six.
ROW = np.dtype(
    [
        ("margin", np.int64),
        ("gradient", np.float64),
        ("lowest", np.float32),
        ("highest", np.float32),
        ("due", np.int32),
        ("following", np.int32),
        ("previous", np.int32),
    ],
    align=True,
)

# `drift_tol="auto"`, chosen by measurement (docs/drift.md).
PRIVATE_TOLERANCE, PLAIN_TOLERANCE = 2.5e-3, 1e-4
# Stale residuals may change a score by this part of the largest score of noise alone, and a
# residual is never off by more than the second number.
_PART_OF_NOISE, _MOST = 1 / 3, 0.1
# The most blocks of rows, and the logarithm of the fewest rows of a block.
_MOST_BLOCKS, _BLOCK_BITS = 16, 12


class Calendar(NamedTuple):
    """Rows by the step at which they are due; the links are in the rows.

    `head`, shape (B, T + 1): first row of each block due at each step, or -1; (B, 0) for no
    refreshes.
    `rows_due`, shape (B, T + 1): number of rows due. `shift`: row i is in block ``i >> shift``.
    """

    head: NDArray[np.int32]
    rows_due: NDArray[np.int32]
    shift: int


def tolerance_within_noise(exponent_scale: float, largest: float, n_scores: int) -> float:
    """Return a tolerance that the noise of the draws hides, at least `PRIVATE_TOLERANCE`.

    `largest`: the bound on a column gradient for residuals of 1. If all residuals were off by the
    tolerance in one direction, a score would be off by a third of ``log(n_scores)``, which is how
    far noise alone lifts the best score.
    """
    hidden = _PART_OF_NOISE * math.log(n_scores) / (exponent_scale * largest)
    return max(PRIVATE_TOLERANCE, min(hidden, _MOST))


def new_calendar(n_rows: int, n_steps: int, scheduled: bool = True) -> Calendar:
    """Return an empty calendar; blocks do not depend on threads, so sums have one order."""
    n_blocks = max(1, min(_MOST_BLOCKS, n_rows // (n_steps + 1)))
    shift = _BLOCK_BITS
    while n_rows > n_blocks << shift:
        shift += 1
    shape = max(1, -(-n_rows >> shift)), n_steps + 1 if scheduled else 0
    return Calendar(np.full(shape, NONE, dtype=np.int32), np.zeros(shape, dtype=np.int32), shift)


def new_rows(loss: Any, targets: Targets, tolerance: float) -> tuple[NDArray[np.void], float]:
    """Return the rows at zero weights, shape (N,), none scheduled; and their tangent offsets."""
    rows: NDArray[np.void] = np.zeros(targets.labels.size, dtype=ROW).view(np.recarray)
    for name in ("due", "following", "previous"):
        rows[name] = NONE
    return rows, float(_start_rows(loss, targets, rows, tolerance))


@kernel
def _start_rows(loss, targets, rows, tolerance):
    """Set residuals and intervals to those of the starting margins; sum the tangent offsets."""
    total = 0.0
    for i in range(rows.size):
        row, label, weight = rows[i], targets.labels[i], weight_of(targets.weights, i)
        offset = offset_of(targets.offsets, i, 0)
        row.gradient = weight * gradient(loss, offset, label)
        row.lowest, row.highest = weighted_margins_within(
            loss, row.gradient, label, weight, offset, tolerance
        )
        total += weighted_tangent_offset(loss, row.gradient, label, weight, offset)
    return total


@kernel
def schedule(calendar, rows, i, step):
    """Move row i to the list of `step`; a step after the last one unschedules it."""
    unschedule(calendar, rows, i)
    head = calendar.head
    if step >= head.shape[1]:
        return
    block = i >> calendar.shift
    first = head[block, step]
    rows[i].following = first
    if first != NONE:
        rows[first].previous = i
    head[block, step] = i
    calendar.rows_due[block, step] += 1
    rows[i].due = step


@kernel
def unschedule(calendar, rows, i):
    """Take row i off the calendar, if it is on it."""
    step = rows[i].due
    if step == NONE:
        return
    block = i >> calendar.shift
    before = rows[i].previous
    after = rows[i].following
    if before == NONE:
        calendar.head[block, step] = after
    else:
        rows[before].following = after
    if after != NONE:
        rows[after].previous = before
    calendar.rows_due[block, step] -= 1
    rows[i].previous = NONE
    rows[i].following = NONE
    rows[i].due = NONE


@kernel
def count_due(calendar, step):
    """Return the number of rows that are due at a step."""
    total = np.int64(0)
    if calendar.head.shape[1]:
        for block in range(calendar.head.shape[0]):
            total += calendar.rows_due[block, step]
    return total


@kernel
def take_due(calendar, rows, block, step, taken):
    """Take rows of a block off a list into `taken` until it is full; return their number."""
    count = 0
    i = calendar.head[block, step]
    while i != NONE and count < taken.size:
        taken[count] = i
        count += 1
        following = rows[i].following
        rows[i].previous = NONE
        rows[i].following = NONE
        rows[i].due = NONE
        i = following
    calendar.head[block, step] = i
    calendar.rows_due[block, step] -= count
    if i != NONE:
        rows[i].previous = NONE
    return count


@kernel
def due_step(full_margin, lowest, highest, step, n_steps):
    """Return the first step after which an untouched row's margin is outside its interval.

    `full_margin`: margin / weight_scale, constant between touches. The margin is inside after
    `step` steps, or the interval is empty. A result above `n_steps` means never.
    """
    never = n_steps + 1
    if full_margin == 0.0:
        return never
    size, edge = full_margin, np.float64(lowest)
    if full_margin < 0.0:
        size, edge = -full_margin, -np.float64(highest)
    # Margins shrink towards zero, so they never leave an interval that contains zero.
    if edge <= 0.0:
        return never
    # Solve size * weight_scale(s) = edge for s, then correct the rounding.
    guess = 0.5 * (np.sqrt(1.0 + 8.0 * size / edge) - 3.0)
    due = step + 1
    if guess > due:
        due = np.int64(min(guess, np.float64(n_steps)))
    while due > step + 1 and size * weight_scale(due - 1) < edge:
        due -= 1
    while due <= n_steps and size * weight_scale(due) >= edge:
        due += 1
    return due
