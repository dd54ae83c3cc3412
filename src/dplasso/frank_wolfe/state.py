"""The state of Algorithm 2 between steps, and working arrays."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import ENTRIES, alpha_of
from dplasso.frank_wolfe.drift import Calendar, new_calendar, new_rows
from dplasso.frank_wolfe.gradient import share_units
from dplasso.frank_wolfe.problem import Problem
from dplasso.runtime.threads import Threads

# Rows that are processed together.
BLOCK_ROWS = 2048
# Space for the notes of a step; it grows if a step has more.
_REPORTS = 4096


class Scratch(NamedTuple):
    """Working arrays for one block of rows, and notes of changed column gradients.

    `moved`, `moved_to`: rows to be scheduled, and their steps. `old`, `new`: residuals of the
    refreshed rows before and after.
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
    """The state of Algorithm 2 between steps.

    `alpha`, shape (D,): column gradients in fixed point.
    `calendar`: rows due for a refresh; of length 0 with ``drift_tol=None``.
    `sums`, shape (B, 2): per block of rows, ``<alpha, K>`` and the tangent offsets, for the
    history.
    `operation_counts`, shape (2,): entries touched and operations since the last record of work.
    `step_counts`, shape (3,): rows looked at, rows with a new residual, and their entries.
    `untold`, shape (1,): whether to rebuild the selector before the next draw.
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
        """Residuals in use, a view, shape (N,)."""
        return self.rows["gradient"]


def new_scratch(n_rows: int, n_reports: int) -> Scratch:
    """Return working arrays for `n_rows` rows and `n_reports` notes."""
    taken, refreshed, moved, moved_to = np.empty((4, n_rows), dtype=np.int32)
    old, new = np.empty((2, n_rows))
    amounts = np.empty(ENTRIES, dtype=np.int64)
    notes = np.empty((2, n_reports), dtype=np.int64)
    return Scratch(taken, refreshed, old, new, moved, moved_to, amounts, *notes)


def start_sparse(problem: Problem, drift_tol: float | None, threads: Threads) -> SparseState:
    """Return the state before the first step, with all weights zero."""
    design = problem.design
    longest_row = int(np.diff(design.rows.indptr).max(initial=0)) + int(design.intercept)
    calendar = new_calendar(design.n_rows, problem.n_steps, drift_tol is not None)
    sums = np.zeros((len(calendar.head), 2))
    rows, sums[0, 1] = new_rows(problem.loss, problem.targets, drift_tol or 0.0)
    residuals = np.ascontiguousarray(rows["gradient"])
    alpha = alpha_of(design, share_units(problem), residuals, threads)
    counts = np.zeros(2, dtype=np.int64), np.zeros(3, dtype=np.int64)
    scratch = new_scratch(BLOCK_ROWS, max(_REPORTS, longest_row))
    untold, refreshed_part = np.zeros(1, dtype=np.bool_), np.ones(1)
    return SparseState(alpha, rows, calendar, sums, *counts, untold, refreshed_part, scratch)
