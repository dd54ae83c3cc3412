"""Every column at most once: draws from the exponential mechanism over the columns not yet drawn.

The gradient of a drawn column is set to zero, where no column is less likely, and a draw that hits
one is made again. That is the exponential mechanism over the others, which depends on the data only
through their gradients: which columns are left out has been released. At most half of all columns
may be drawn, so a draw hits one with probability at most 1/2.
"""

import numpy as np
from numba import njit

from dplasso.matrix.numbering import look_up
from dplasso.selection.contract import select, update_many

# So many draws in a row hit drawn columns with probability 2^-128, or where without privacy all
# other gradients are zero; then such a column is taken once more.
_MOST_DRAWS = 128


@njit(cache=True, nogil=True)
def draw(problem, alpha, selector, stream, vertex, done):
    """Draw a vertex; if columns are to be distinct, none of the first `done` of the transcript."""
    j, s = select(selector, alpha, stream)
    if problem.distinct:
        for _ in range(_MOST_DRAWS):
            if not is_drawn(vertex, done, j):
                break
            j, s = select(selector, alpha, stream)
    return j, s


@njit(cache=True, nogil=True)
def is_drawn(vertex, done, j):
    """Return whether j is among the first `done` vertices."""
    found = False
    for t in range(done):
        found |= vertex[t] == j
    return found


@njit(cache=True, nogil=True)
def leave_out(problem, alpha, selector, vertex, done, report):
    """Set the gradients of the columns drawn so far to zero, and perhaps tell the selector."""
    changed, before, count = np.empty(done, np.int64), np.empty(done, np.int64), 0
    for t in range(done):
        place = look_up(problem.design.numbering.internal, vertex[t])
        if alpha[place] != 0:
            changed[count], before[count] = place, alpha[place]
            alpha[place] = 0
            count += 1
    if report:
        update_many(selector, alpha, changed, before, count)
