"""Algorithm 2 of the paper (arXiv 2310.19978), corrected: an iteration costs what it touches.

A step changes one weight, so only rows that hold the chosen column change their margin, and only
the columns of those rows their gradient. The shrinkage of all other margins by ``w_m`` is what the
paper leaves out; the calendar of `dplasso.frank_wolfe.drift` brings it back, to a stated tolerance.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.frank_wolfe.drift import NONE, Calendar, due_step, new_calendar, schedule
from dplasso.frank_wolfe.gradient import (
    clip,
    margin_scale,
    margin_term,
    probability,
    replace_shares,
)
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.transcript import weight_scale
from dplasso.frank_wolfe.work import OPERATIONS_PER_GRADIENT, record_work
from dplasso.selection.contract import (
    NOTHING_REPORTED,
    granularity,
    rebuild,
    select,
    update_many,
)

# A step that touches more than this many entries per coordinate indexes all gradients afresh
# instead of reporting each change.
_TOUCHES_PER_COORDINATE = 2


class SparseState(NamedTuple):
    """What Algorithm 2 carries from step to step.

    Attributes
    ----------
    alpha : ndarray of int64, shape (D,) or (D + 1,)
        Column gradients in fixed point.
    margin : ndarray of int64, shape (N,)
        Integer margins.
    gradient : ndarray of float64, shape (N,)
        Record gradients q_i in use.
    calendar : Calendar
        Due refreshes; of length 0 with ``drift_tol=None``.
    sums : ndarray of float64, shape (2,)
        ``<alpha, K>`` and the sum of the entropies of sigma(margin), for the history.
    effort : ndarray of int64, shape (2,)
        Entries touched and operations spent since the last record of work.
    changed, before : ndarray of int64, as long as the longest row
        Scratch: the gradients of a row that the selector must hear of.
    """

    alpha: NDArray[np.int64]
    margin: NDArray[np.int64]
    gradient: NDArray[np.float64]
    calendar: Calendar
    sums: NDArray[np.float64]
    effort: NDArray[np.int64]
    changed: NDArray[np.int64]
    before: NDArray[np.int64]


def start_sparse(
    problem: Problem, alpha: NDArray[np.int64], gradient: NDArray[np.float64], scheduled: bool
) -> SparseState:
    """Return the state before the first step, all weights zero.

    Parameters
    ----------
    problem : Problem
        The data.
    alpha : ndarray of int64
        Column gradients at zero weights.
    gradient : ndarray of float64, shape (N,)
        Record gradients at zero weights.
    scheduled : bool
        Whether rows are refreshed when they drift.
    """
    n_rows = gradient.size
    longest_row = int(np.diff(problem.rows.indptr).max(initial=0)) + int(problem.intercept)
    return SparseState(
        alpha,
        np.zeros(n_rows, dtype=np.int64),
        gradient,
        new_calendar(n_rows if scheduled else 0, problem.n_steps),
        np.array([0.0, n_rows * np.log(2.0)]),
        np.zeros(2, dtype=np.int64),
        np.empty(longest_row, dtype=np.int64),
        np.empty(longest_row, dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def entropy(p):
    """Return -p log p - (1 - p) log(1 - p): the loss minus its tangent's slope part."""
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return -p * np.log(p) - (1.0 - p) * np.log1p(-p)


@njit(cache=True, nogil=True)
def refresh_row(problem, state, selector, i, step, tolerance, record, grain):
    """Bring row i's gradient up to date after `step` steps and reschedule it."""
    margin = np.float64(state.margin[i])
    label = np.float64(problem.labels[i])
    old = state.gradient[i]
    new = probability(margin * margin_scale(problem, step)) - label
    state.effort[1] += OPERATIONS_PER_GRADIENT
    if new != old:
        changed, before = state.changed, state.before
        count = replace_shares(problem, state.alpha, i, old, new, grain, changed, before)
        if count:
            update_many(selector, state.alpha, changed, before, count)
        state.gradient[i] = new
        entries = problem.rows.indptr[i + 1] - problem.rows.indptr[i]
        state.effort[0] += entries
        state.effort[1] += 2 * entries
        if record:
            state.sums[0] += (new - old) * margin / problem.margin_unit
            state.sums[1] += entropy(new + label) - entropy(old + label)
    if state.calendar.due.size:
        full_margin = abs(margin) * problem.radius / problem.margin_unit
        due = due_step(full_margin, step, tolerance, problem.n_steps)
        schedule(state.calendar, i, due)


@njit(cache=True, nogil=True)
def step_column(problem, state, selector, j, weight, step, tolerance, record, grain):
    """Add `weight` to K_j and refresh the rows that hold column j."""
    if j == problem.n_columns:
        term = margin_term(problem.bound, problem.margin_unit)
        for i in range(state.margin.size):
            state.margin[i] += weight * term
            refresh_row(problem, state, selector, i, step, tolerance, record, grain)
        return
    columns = problem.columns
    for p in range(columns.indptr[j], columns.indptr[j + 1]):
        i = np.int64(columns.indices[p])
        value = columns.values[p] if columns.values.size else columns.constant
        term = margin_term(clip(value, problem.bound), problem.margin_unit)
        # A stored zero is no entry: it must not even refresh its row.
        if term == 0:
            continue
        state.margin[i] += weight * term
        refresh_row(problem, state, selector, i, step, tolerance, record, grain)


@njit(cache=True, nogil=True)
def many_touches(problem, state, j, step):
    """Say whether a step is better followed by indexing all gradients afresh.

    This decides how the selector comes to know the gradients, never which rows are refreshed.
    """
    n_rows = state.margin.size
    if j == problem.n_columns:
        refreshed = n_rows
    else:
        refreshed = problem.columns.indptr[j + 1] - problem.columns.indptr[j]
    if state.calendar.due.size:
        refreshed += state.calendar.rows_due[step]
    touches = np.float64(problem.rows.indices.size) / n_rows * refreshed
    return touches > _TOUCHES_PER_COORDINATE * state.alpha.size


@njit(cache=True, nogil=True)
def run_sparse(
    problem, state, selector, stream, tolerance, first, last, vertex, sign, history, work, n_given
):
    """Take steps `first` to `last` (inclusive, from 1) of Algorithm 2.

    Parameters
    ----------
    problem : Problem
    state : SparseState
        Changed in place.
    selector, stream
        A structure of `dplasso.selection` and its random words.
    tolerance : float
        `drift_tol`; ignored where the state has no calendar.
    first, last : int
        Steps to take.
    vertex, sign : ndarray, shape (T,)
        The transcript, filled in behind the first `n_given` steps.
    history : tuple of two ndarray of float64
        Objective and gap, filled in when of length T; of length 0 in private runs.
    work : ndarray of int64, shape (T, 6) or (0, 6)
        Work per step (`dplasso.frank_wolfe.work`), likewise.
    n_given : int
        Steps whose vertices stand in the transcript already. The selector draws there too, for the
        sake of its state, and the draw is thrown away.
    """
    objective, gap = history
    record = objective.size > 0
    n_rows = state.margin.size
    for step in range(first, last + 1):
        j, s = select(selector, state.alpha, stream)
        if step <= n_given:
            j, s = vertex[step - 1], np.int64(sign[step - 1])
        vertex[step - 1] = j
        sign[step - 1] = s
        steepest = np.float64(state.alpha[j]) / problem.unit
        if record:
            inner = problem.radius * weight_scale(step - 1) * state.sums[0]
            objective[step - 1] = (state.sums[1] + inner) / n_rows
            gap[step - 1] = (inner - s * problem.radius * steepest) / n_rows
        weight = s * (step + 1)
        state.sums[0] += weight * steepest
        grain = granularity(selector)
        wholesale = many_touches(problem, state, j, step)
        if wholesale:
            grain = NOTHING_REPORTED
        step_column(problem, state, selector, j, weight, step, tolerance, record, grain)
        if state.calendar.due.size:
            i = np.int64(state.calendar.head[step])
            while i != NONE:
                following = np.int64(state.calendar.following[i])
                refresh_row(problem, state, selector, i, step, tolerance, record, grain)
                i = following
        if wholesale:
            rebuild(selector, state.alpha)
        if work.shape[0]:
            record_work(work[step - 1], selector.counters, state.effort)
