"""Several margins of a record, one for each class: coordinate ``k P + j`` is column j of output k.

P is the number of coordinates of one output. A step moves one margin of the rows that hold its
column, which changes all K residuals of those rows. Each residual is kept while it is within
`drift_tol` of the true one. It depends on its own row and on releases only.

Between touches all margins shrink by the same public factor. No residual moves by more than
`STEEPEST` times the largest change of a margin. So the step after which a residual could be too far
off is known, and goes into the calendar of `dplasso.frank_wolfe.drift`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import starting_alpha, starting_residuals
from dplasso.frank_wolfe.drift import (
    NONE,
    Calendar,
    due_step,
    new_calendar,
    schedule,
    take_due,
    unscheduled,
)
from dplasso.frank_wolfe.gradient import (
    margin_scale,
    margin_term,
    replace_contributions,
    share_units,
)
from dplasso.frank_wolfe.problem import Problem, weight_scale
from dplasso.frank_wolfe.state import BLOCK_ROWS
from dplasso.losses.contract import residual_vector
from dplasso.losses.multinomial import STEEPEST
from dplasso.losses.targets import offset_of, weight_of
from dplasso.matrix.compressed import clip
from dplasso.matrix.orientations import column_of, refuse_damage
from dplasso.runtime.compilation import kernel
from dplasso.runtime.threads import Threads
from dplasso.selection.contract import NOTHING_REPORTED, granularity, rebuild, select, update_many

# Steps of several outputs are taken by one thread: all rows are in one block of the calendar.
_ONE_BLOCK = 31
# A step that touches more than this many entries per coordinate indexes all gradients afresh
# instead of reporting the changes.
TOUCHES_PER_COORDINATE = 2


class OutputState(NamedTuple):
    """The state of Algorithm 2 between steps, and working arrays.

    `alpha`, shape (K P,): column gradients in fixed point, output after output.
    `rows`, shape (N,): place of every row in the calendar.
    `margin`, `gradient`, shape (N, K): integer margins, and the residuals in use.
    `calendar`: rows due for a refresh; of length 0 with ``drift_tol=None``.
    """

    alpha: NDArray[np.int64]
    rows: NDArray[np.void]
    margin: NDArray[np.int64]
    gradient: NDArray[np.float64]
    calendar: Calendar
    values: NDArray[np.float64]
    residuals: NDArray[np.float64]
    taken: NDArray[np.int32]
    refreshed: NDArray[np.int32]
    old: NDArray[np.float64]
    new: NDArray[np.float64]
    amounts: NDArray[np.int64]
    changed: NDArray[np.int64]
    before: NDArray[np.int64]


def start_outputs(problem: Problem, drift_tol: float | None, threads: Threads) -> OutputState:
    """Return the state before the first step, with all weights zero."""
    design, n_outputs = problem.design, problem.loss.n_outputs
    links = [(name, np.int32) for name in ("due", "following", "previous")]
    rows = unscheduled(np.zeros(problem.labels.size, dtype=links))
    longest_row = int(np.diff(design.rows.indptr).max(initial=0)) + int(design.intercept)
    residuals = starting_residuals(problem)
    calendar = new_calendar(0, problem.n_steps, drift_tol is not None)._replace(shift=_ONE_BLOCK)
    old, new = np.empty((2, 1))
    amounts, changed, before = np.empty((3, longest_row + 1), dtype=np.int64)
    return OutputState(
        starting_alpha(problem, threads),
        rows,
        np.zeros(residuals.shape, dtype=np.int64),
        residuals,
        calendar,
        np.zeros(n_outputs),
        np.zeros(n_outputs),
        np.empty(BLOCK_ROWS, dtype=np.int32),
        np.empty(1, dtype=np.int32),
        old,
        new,
        amounts,
        changed,
        before,
    )


def take_output_steps(
    problem: Problem,
    state: OutputState,
    selector: Any,
    stream: Any,
    tolerance: float,
    first: int,
    last: int,
    take: Callable[[int, int, int], tuple[int, int]],
    threads: Threads,
) -> None:
    """Take steps `first` to `last`; `take` notes a vertex and returns the one to take."""
    for step in range(first, last + 1):
        drawn, sign = take(step, *select(selector, state.alpha, stream))
        output, j = divmod(drawn, problem.design.n_coordinates)
        column, begin, end = column_of(problem.design, j, threads)
        span = begin, end, output, sign * (step + 1)
        if not step_output_rows(problem, state, selector, column, span, step, tolerance):
            refuse_damage()


@kernel
def step_output_rows(problem, state, selector, column, span, step, tolerance):
    """Move one margin of the rows of a column, then refresh these rows and those due.

    `span`: first and last entry of the column, the output, and what is added to K. Returns False if
    a row or column number lies outside the matrix.
    """
    indices, values, constant = column
    begin, end, output, weight = span
    bound, unit = problem.design.bound, problem.margin_unit
    rows, calendar = state.rows, state.calendar
    everyone = indices.size == 0
    term = margin_term(clip(constant, bound), unit)
    touched = np.int64(0)
    for p in range(begin, end):
        i = np.int64(p) if everyone else np.int64(indices[p])
        # Indices from a store on disk have not been looked at before.
        if not 0 <= i < rows.size:
            return False
        if values.size:
            term = margin_term(clip(values[p], bound), unit)
        # A stored zero is no entry: it must not even refresh its row.
        if term == 0:
            continue
        state.margin[i, output] += weight * term
        touched = refresh_row(problem, state, selector, i, step, tolerance, touched)
        if touched < 0:
            return False
    if calendar.head.shape[1] > 0:
        while calendar.head[0, step] != NONE:
            count = take_due(calendar, rows, 0, step, state.taken)
            for m in range(count):
                i = np.int64(state.taken[m])
                touched = refresh_row(problem, state, selector, i, step, tolerance, touched)
                if touched < 0:
                    return False
    if touched > TOUCHES_PER_COORDINATE * state.alpha.size:
        rebuild(selector, state.alpha)
    return True


@kernel
def refresh_row(problem, state, selector, i, step, tolerance, touched):
    """Replace the residuals of a row that are too far off, and schedule its next refresh.

    Returns `touched`, the entries touched by this step, with those of this row; -1 if a column lies
    outside the matrix. Above `TOUCHES_PER_COORDINATE` changes are not reported to the selector,
    which is then rebuilt.
    """
    values, residuals, calendar = state.values, state.residuals, state.calendar
    scale = margin_scale(problem, step)
    largest = 0.0
    for k in range(values.size):
        values[k] = np.float64(state.margin[i, k]) * scale
        largest = max(largest, abs(values[k]))
        values[k] += offset_of(problem.offsets, i, k)
    residual_vector(problem.loss, values, problem.labels[i], residuals)
    indptr = problem.design.rows.indptr
    entries = np.int64(indptr[i + 1]) - np.int64(indptr[i])
    size = state.alpha.size // values.size
    off = 0.0
    state.refreshed[0] = i
    for k in range(residuals.size):
        old, new = state.gradient[i, k], weight_of(problem.weights, i) * residuals[k]
        error = abs(new - old)
        if error <= tolerance:
            off = max(off, error)
            continue
        state.gradient[i, k] = new
        touched += entries
        shift = np.int64(NOTHING_REPORTED)
        if touched <= TOUCHES_PER_COORDINATE * state.alpha.size:
            shift = np.int64(granularity(selector))
        state.old[0], state.new[0] = old, new
        changed, before, count = replace_contributions(
            problem.design.rows,
            problem.design.n_columns,
            problem.design.intercept,
            share_units(problem),
            state.alpha[k * size : (k + 1) * size],
            state.refreshed,
            state.old,
            state.new,
            shift,
            state.amounts,
            (state.changed, state.before, np.int64(0)),
        )
        # A column number outside the matrix.
        if count < 0:
            return np.int64(-1)
        if count:
            for m in range(count):
                changed[m] += k * size
            update_many(selector, state.alpha, changed, before, count)
    if calendar.head.shape[1]:
        lowest = largest - (tolerance - off) / STEEPEST if tolerance > 0.0 else np.inf
        full = largest / weight_scale(step)
        schedule(calendar, state.rows, i, due_step(full, lowest, np.inf, step, problem.n_steps))
    return touched
