"""The calendar of due refreshes: which rows' gradients would drift too far, and when.

Between two touches a row's margin only shrinks towards zero, by the public factor `weight_scale`.
So the first step after which its gradient is off by more than the tolerance is known the moment the
row is touched. It depends on that row and the transcript alone, never on other records, which is
what the privacy argument asks of it.

Rows due at the same step form a doubly linked list; scheduling and unscheduling are O(1).
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.frank_wolfe.gradient import probability
from dplasso.frank_wolfe.transcript import weight_scale

NONE = -1


class Calendar(NamedTuple):
    """Rows by the step at which they are due.

    Attributes
    ----------
    head : ndarray of int32, shape (T + 1,)
        First row due at each step, or -1.
    rows_due : ndarray of int32, shape (T + 1,)
        Number of rows due at each step.
    following, previous : ndarray of int32, shape (N,)
        Neighbours in the list, or -1.
    due : ndarray of int32, shape (N,)
        Step at which the row is due, or -1.
    """

    head: NDArray[np.int32]
    rows_due: NDArray[np.int32]
    following: NDArray[np.int32]
    previous: NDArray[np.int32]
    due: NDArray[np.int32]


def new_calendar(n_rows: int, n_steps: int) -> Calendar:
    """Return an empty calendar for `n_rows` rows (0 when nothing is ever refreshed)."""
    return Calendar(
        np.full(n_steps + 1, NONE, dtype=np.int32),
        np.zeros(n_steps + 1, dtype=np.int32),
        np.full(n_rows, NONE, dtype=np.int32),
        np.full(n_rows, NONE, dtype=np.int32),
        np.full(n_rows, NONE, dtype=np.int32),
    )


@njit(cache=True, nogil=True)
def schedule(calendar, row, step):
    """Move a row to the list of `step`; a step beyond the last unschedules it."""
    unschedule(calendar, row)
    if step >= calendar.head.size:
        return
    first = calendar.head[step]
    calendar.following[row] = first
    if first != NONE:
        calendar.previous[first] = row
    calendar.head[step] = row
    calendar.rows_due[step] += 1
    calendar.due[row] = step


@njit(cache=True, nogil=True)
def unschedule(calendar, row):
    """Take a row off the calendar, if it is on it."""
    step = calendar.due[row]
    if step == NONE:
        return
    before = calendar.previous[row]
    after = calendar.following[row]
    if before == NONE:
        calendar.head[step] = after
    else:
        calendar.following[before] = after
    if after != NONE:
        calendar.previous[after] = before
    calendar.rows_due[step] -= 1
    calendar.previous[row] = NONE
    calendar.following[row] = NONE
    calendar.due[row] = NONE


@njit(cache=True, nogil=True)
def drift(full_margin, step, later):
    """Return how far sigma moves between two steps for a row that is not touched.

    `full_margin` is the row's margin divided by `weight_scale`, in absolute value.
    """
    here = probability(full_margin * weight_scale(step))
    return here - probability(full_margin * weight_scale(later))


@njit(cache=True, nogil=True)
def due_step(full_margin, step, tolerance, n_steps):
    """Return the first step after which an untouched row has drifted by more than `tolerance`.

    Parameters
    ----------
    full_margin : float
        |margin| / weight_scale, constant until the row is touched again.
    step : int
        Steps done when the row's gradient was computed.
    tolerance : float
        Largest allowed change of the record gradient, >= 0.
    n_steps : int
        T; any result above it means never.

    Returns
    -------
    int
        ``step + 1`` at the earliest, ``n_steps + 1`` if not due within the run.
    """
    never = n_steps + 1
    if full_margin == 0.0:
        return never
    if tolerance == 0.0:
        return step + 1
    target = probability(full_margin * weight_scale(step)) - tolerance
    if target <= 0.5:
        return never
    # Solve full_margin * weight_scale(s) = logit(target) for s, then settle the rounding.
    # A target that rounds to 1 has an infinite logit and so a guess too early.
    ratio = 2.0 * full_margin / (np.log(target) - np.log1p(-target))
    guess = 0.5 * (np.sqrt(1.0 + 4.0 * ratio) - 3.0)
    due = step + 1
    if guess > due:
        due = np.int64(min(guess, np.float64(n_steps)))
    while due > step + 1 and drift(full_margin, step, due - 1) > tolerance:
        due -= 1
    while due <= n_steps and drift(full_margin, step, due) <= tolerance:
        due += 1
    return due
