"""What Algorithm 2 carries from step to step, and the room its blocks of rows need."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import ENTRIES
from dplasso.frank_wolfe.drift import Calendar, new_calendar, new_rows
from dplasso.frank_wolfe.problem import Problem
from dplasso.losses.targets import offset_of, weight_of, weighted_tangent_offset
from dplasso.runtime.compilation import kernel

# Rows worked through together.
BLOCK_ROWS = 2048
# Room for the reports of a step that most steps do with.
_REPORTS = 4096


class Scratch(NamedTuple):
    """Room for one block of rows and for what a step reports.

    `taken`, `refreshed`, `moved`, `moved_to`, shape (B,): rows taken off the calendar, rows whose
    gradient changed, and rows to be scheduled with their steps.
    `old`, `new`, shape (B,): gradients of the refreshed rows before and after.
    `amounts`: changes of some entries of a row.
    `changed`, `before`: notes of column gradients that changed, and what they were.
    """

    taken: NDArray[np.int32]
    refreshed: NDArray[np.int32]
    old: NDArray[np.float64]
    new: NDArray[np.float64]
    moved: NDArray[np.int32]
    moved_to: NDArray[np.int32]
    amounts: NDArray[np.int64]
    changed: NDArray[np.int64]
    before: NDArray[np.int64]


class SparseState(NamedTuple):
    """What Algorithm 2 carries from step to step.

    `alpha`, shape (D,): column gradients in fixed point.
    `rows`, shape (N,): margin, gradient in use, interval and place in the calendar of every row.
    `calendar`: due refreshes; of length 0 with ``drift_tol=None``.
    `sums`, shape (B, 2): by blocks of rows, ``<alpha, K>`` and the sum of the losses' tangent
    offsets, for the history.
    `operation_counts`, shape (2,): entries touched and operations since the last record of work.
    `step_counts`, shape (3,): rows that the step looks at, rows whose gradient it changes, and
    their entries.
    `untold`, shape (1,): whether the selector is to index all gradients before the next draw.
    `refreshed_part`, shape (1,): part of the rows that changed in the last wide step.
    """

    alpha: NDArray[np.int64]
    rows: NDArray[np.void]
    calendar: Calendar
    sums: NDArray[np.float64]
    operation_counts: NDArray[np.int64]
    step_counts: NDArray[np.int64]
    untold: NDArray[np.bool_]
    refreshed_part: NDArray[np.float64]
    scratch: Scratch

    @property
    def margin(self) -> NDArray[np.int64]:
        """Integer margins, a view, shape (N,)."""
        return self.rows["margin"]

    @property
    def gradient(self) -> NDArray[np.float64]:
        """Record gradients in use, a view, shape (N,)."""
        return self.rows["gradient"]


def new_scratch(n_rows: int, n_reports: int) -> Scratch:
    """Return room for blocks of `n_rows` rows and for `n_reports` changed gradients."""
    taken, refreshed, moved, moved_to = np.empty((4, n_rows), dtype=np.int32)
    old, new = np.empty((2, n_rows))
    amounts = np.empty(ENTRIES, dtype=np.int64)
    notes = np.empty((2, n_reports), dtype=np.int64)
    return Scratch(taken, refreshed, old, new, moved, moved_to, amounts, *notes)


@kernel
def starting_offset(loss, targets, rows):
    """Return the sum of the tangent offsets at zero weights."""
    labels, weights, offsets = targets
    total = 0.0
    for i in range(labels.size):
        weight = weight_of(weights, i)
        offset = offset_of(offsets, i, 0)
        total += weighted_tangent_offset(loss, rows[i].gradient, labels[i], weight, offset)
    return total


def start_sparse(
    problem: Problem, alpha: NDArray[np.int64], drift_tol: float | None
) -> SparseState:
    """Return the state before the first step, all weights zero; without a tolerance no calendar."""
    design = problem.design
    longest_row = int(np.diff(design.rows.indptr).max(initial=0)) + int(design.intercept)
    calendar = new_calendar(problem.labels.size, problem.n_steps, drift_tol is not None)
    sums = np.zeros((len(calendar.head), 2))
    loss, targets = problem.loss, (problem.labels, problem.weights, problem.offsets)
    rows = new_rows(loss, targets, drift_tol or 0.0)
    sums[0, 1] = starting_offset(loss, targets, rows)
    counts = np.zeros(2, dtype=np.int64), np.zeros(3, dtype=np.int64)
    scratch = new_scratch(BLOCK_ROWS, max(_REPORTS, longest_row))
    untold, refreshed_part = np.zeros(1, dtype=np.bool_), np.ones(1)
    return SparseState(alpha, rows, calendar, sums, *counts, untold, refreshed_part, scratch)
