"""What a step tells the selector: every column gradient that changed, once, in ascending order.

A step changes a gradient many times, in the order of its rows. The selector hears of the whole
change alone, in the order of the original column numbers: so what it keeps, and with it every
draw, is the same however the rows are partitioned, stored or shared among threads.

While a step runs, changes that cross a multiple of the selector's granularity are noted with the
gradient before them. The first note of a gradient has it as it was before the step, to the
granularity: smaller changes before it crossed nothing.

A step that changes very many gradients reports none, and the selector indexes all of them afresh
before the next draw. Which steps do is decided by sums over all rows, so by all partitions alike:
by the changes where every column is drawn at most once, and otherwise, as seeds of earlier versions
have it, by the entries touched.
"""

import numpy as np
from numba import njit

from dplasso.frank_wolfe.distinct import leave_out
from dplasso.matrix.numbering import look_up
from dplasso.selection.contract import granularity, rebuild, update_many

# So few notes are sorted by insertion, and more than one for so many gradients by a look at all.
_FEW, _MANY = 48, 16
# From this part of all gradients on, the selector is not told of changes, but indexes all.
REPORTED_PART = 1 / 16
# Steps that look at more entries than this for each gradient are wide: they say what part changes.
WIDE = 2


@njit(cache=True, nogil=True)
def expected_entries(n_looked_at, refreshed_part, n_entries, n_rows):
    """Return how many entries a step touches if so large a part of its rows changes."""
    return n_looked_at * refreshed_part * (n_entries / max(1, n_rows))


@njit(cache=True, nogil=True)
def begin_step(problem, state, vertex, n_looked_at):
    """Return whether changes are to be noted in a step that looks at so many rows.

    `vertex`: the transcript; empty for rows in partitions, which tell of every change.
    """
    state.step_counts[:] = 0
    state.step_counts[0] = n_looked_at
    n_entries = problem.design.rows.indices.size
    expected = expected_entries(
        n_looked_at, state.refreshed_part[0], n_entries, problem.labels.size
    )
    return problem.distinct or vertex.size == 0 or expected <= WIDE * state.alpha.size


@njit(cache=True, nogil=True)
def sort_notes(original, size, changed, before, count):
    """Sort notes by the original numbers of their gradients, in place.

    `size`: D.

    Returns: how many are left: of equals, the first are first, and perhaps alone.
    """
    if count <= _FEW:
        for m in range(1, count):
            k, was = changed[m], before[m]
            name = look_up(original, k)
            at = m
            while at > 0 and look_up(original, changed[at - 1]) > name:
                changed[at], before[at] = changed[at - 1], before[at - 1]
                at -= 1
            changed[at], before[at] = k, was
        return count
    if count > size // _MANY:
        first = np.full(size, -1, np.int64)
        for m in range(count - 1, -1, -1):
            first[look_up(original, changed[m])] = m
        order = first[first >= 0]
    else:
        names = np.empty(count, np.int64)
        for m in range(count):
            names[m] = look_up(original, changed[m])
        order = np.argsort(names, kind="mergesort")
    changed[: order.size] = changed[order]
    before[: order.size] = before[order]
    return order.size


@njit(cache=True, nogil=True)
def index(selector, alpha):
    """Call `rebuild` from Python."""
    rebuild(selector, alpha)


@njit(cache=True, nogil=True)
def report(problem, state, selector, vertex, done, noting, notes):
    """Tell the selector what a step has changed, or note that it was not told.

    `vertex`: as in `begin_step`.
    `done`: how many vertices were drawn before this step.
    `noting`: what `begin_step` returned.
    `notes`: what was noted.
    """
    n_looked_at, n_refreshed, n_touched = state.step_counts
    n_entries, n_rows = problem.design.rows.indices.size, problem.labels.size
    most = WIDE * state.alpha.size
    if expected_entries(n_looked_at, 1.0, n_entries, n_rows) > most:
        state.refreshed_part[0] = n_refreshed / n_looked_at
    by_changes = problem.distinct or vertex.size == 0
    if not by_changes and (not noting or n_touched > most):
        state.untold[0] = True
        return
    if problem.distinct:
        # Those left out stay so: how their gradients were computed must not show.
        leave_out(problem, state.alpha, selector, vertex, done, False)
    changed, before, count = notes
    if count == 0:
        return
    shift = granularity(selector)
    count = sort_notes(problem.design.numbering.original, state.alpha.size, changed, before, count)
    kept = np.int64(0)
    previous = np.int64(-1)
    for m in range(count):
        k = changed[m]
        # Of several notes of a gradient, the first has it as it was.
        if k != previous and (before[m] ^ state.alpha[k]) >> shift:
            changed[kept], before[kept] = k, before[m]
            kept += 1
        previous = k
    tell(by_changes, state.alpha, selector, changed, before, kept, state.untold)


@njit(cache=True, nogil=True)
def tell(by_changes, alpha, selector, changed, before, count, untold):
    """Tell the selector of some changes, or set `untold` where indexing all of them is cheaper."""
    if by_changes and count > REPORTED_PART * alpha.size:
        untold[0] = True
    else:
        update_many(selector, alpha, changed, before, count)


@njit(cache=True, nogil=True)
def prepare_draw(problem, alpha, selector, vertex, done, untold):
    """Leave out the columns that may not be drawn again, and index what was not told.

    `vertex`, `done`: the transcript and how many of it are drawn.
    `untold`: as in `dplasso.frank_wolfe.state.SparseState`.
    """
    if problem.distinct:
        leave_out(problem, alpha, selector, vertex, done, not untold[0])
    if untold[0]:
        rebuild(selector, alpha)
        untold[0] = False


@njit(cache=True, nogil=True)
def take_changes(problem, alpha, selector, vertex, done, few, coordinates, amounts, untold):
    """Change some gradients, and tell the selector as `report` does.

    `vertex`, `done`: as in `report`.
    `few`: whether so few entries were touched that changes are told, if that decides.
    `untold`: as in `dplasso.frank_wolfe.state.SparseState`.
    `coordinates`: ascending, in the original numbers.
    `amounts`: by how much each changes, over all rows.
    """
    shift = granularity(selector)
    places, old = np.empty(coordinates.size, np.int64), np.empty(coordinates.size, np.int64)
    for m in range(coordinates.size):
        k = np.int64(coordinates[m])
        places[m], old[m] = k, alpha[k]
        alpha[k] += amounts[m]
    if not (problem.distinct or few):
        untold[0] = True
        return
    if problem.distinct:
        leave_out(problem, alpha, selector, vertex, done, False)
    kept = np.int64(0)
    for m in range(coordinates.size):
        if (old[m] ^ alpha[places[m]]) >> shift:
            places[kept], old[kept] = places[m], old[m]
            kept += 1
    tell(problem.distinct, alpha, selector, places, old, kept, untold)
