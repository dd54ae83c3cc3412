"""Fixed-point arithmetic of margins and gradients.

A column gradient is an int64 sum of the records' contributions ``rint(q_i x_ij S)``, with S = 2^32
/ (B C). Integer sums have no order and no drift: after any updates alpha is exactly the sum of the
current contributions, one record moves it by at most 2^32 (2^33 when replaced), and every layout,
thread count and solver gives the same bits. Margins are held the same way, as integer sums of ``K_k
rint(x_ik 2^b / bound)`` (see `dplasso.frank_wolfe.transcript` for the integers K), so recomputing
them and updating them agree to the bit as well.
"""

import numpy as np
from numba import njit

from dplasso.frank_wolfe.transcript import weight_scale
from dplasso.matrix.compressed import clip
from dplasso.privacy.share import share
from dplasso.selection.contract import NOTHING_REPORTED

# Of the entry that is its bound, with some room for rounding (`frank_wolfe.problem.margin_unit`).
LARGEST_MARGIN_TERM = 2.0**41


@njit(cache=True, nogil=True)
def contribution(scaled_gradient, value, limit):
    """Return a record's contribution to one column gradient: rint(q S x), within `limit`."""
    return share(np.rint(scaled_gradient * value), limit)


@njit(cache=True, nogil=True)
def contribution_change(scaled_old, scaled_new, value, limit):
    """Return the contribution at the new residual less that at the old, with one conversion."""
    # Whole numbers below 2^34: their difference is exact in doubles.
    new = clip(np.rint(scaled_new * value), limit)
    return share(new - clip(np.rint(scaled_old * value), limit), 2.0 * limit)


@njit(cache=True, nogil=True)
def margin_term(value, margin_unit):
    """Return an entry, clipped to its bound, in margin units: rint(x 2^b / bound)."""
    return share(np.rint(value * margin_unit), LARGEST_MARGIN_TERM)


@njit(cache=True, nogil=True)
def margin_scale(problem, step):
    """Return the factor from an integer margin to the margin after `step` steps."""
    return problem.radius / problem.margin_unit * weight_scale(step)


@njit(cache=True, nogil=True)
def add_contributions(problem, first, last, gradient, alpha):
    """Add the contributions of rows `first` to `last` (exclusive) to alpha."""
    design = problem.design
    rows = design.rows
    constant, limit = clip(rows.constant, design.bound), problem.share_limit
    for i in range(first, last):
        scaled = gradient[i] * problem.unit
        added = contribution(scaled, constant, limit)
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            if rows.values.size:
                added = contribution(scaled, clip(rows.values[p], design.bound), limit)
            alpha[np.uint64(rows.indices[p])] += added
        if design.intercept:
            alpha[design.n_columns] += contribution(scaled, design.bound, limit)


@njit(cache=True, nogil=True)
def add_margins(problem, integer_weights, margin):
    """Set margin[i] to the integer margin of every row, from scratch."""
    design = problem.design
    rows = design.rows
    constant = margin_term(clip(rows.constant, design.bound), problem.margin_unit)
    for i in range(margin.size):
        total = np.int64(0)
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            weight = integer_weights[rows.indices[p]]
            if weight:
                term = constant
                if rows.values.size:
                    term = margin_term(clip(rows.values[p], design.bound), problem.margin_unit)
                total += weight * term
        if design.intercept:
            term = margin_term(design.bound, problem.margin_unit)
            total += integer_weights[design.n_columns] * term
        margin[i] = total


@njit(cache=True, nogil=True)
def make_room(changed, before, count, more):
    """Return copies of the first `count` notes with room for some more."""
    size = 2 * (count + more)
    longer_changed, longer_before = np.empty(size, np.int64), np.empty(size, np.int64)
    longer_changed[:count] = changed[:count]
    longer_before[:count] = before[:count]
    return longer_changed, longer_before


@njit(cache=True, nogil=True)
def replace_contributions(
    problem, alpha, refreshed, old, new, n_rows, report_shift, amounts, notes
):
    """Replace the contributions of the first `n_rows` of some rows at `old` by those at `new`.

    `report_shift`: changes of ``alpha_k >> report_shift`` are noted; at `NOTHING_REPORTED` none is.
    `amounts`: room for the changes of some entries, of any size but 0.
    `notes`: coordinates, what they were, and how many are noted already; made longer if need be.

    Returns: the notes, with these behind them.
    """
    changed, before, noted = notes
    design = problem.design
    rows = design.rows
    indptr, indices, values = rows.indptr, rows.indices, rows.values
    bound, limit = design.bound, problem.share_limit
    reporting = report_shift != NOTHING_REPORTED
    reported = ~((np.int64(1) << report_shift) - 1) if reporting else np.int64(0)
    room = np.uint64(amounts.size)
    count = np.uint64(noted)
    for m in range(n_rows):
        i = refreshed[m]
        scaled_old = old[m] * problem.unit
        scaled_new = new[m] * problem.unit
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        if reporting and count + (last - first) + np.uint64(1) > np.uint64(changed.size):
            more = np.int64(last - first) + 1
            changed, before = make_room(changed, before, np.int64(count), more)
        change = contribution_change(scaled_old, scaled_new, clip(rows.constant, bound), limit)
        while first < last:
            size = min(last - first, room) if values.size else last - first
            # Apart from the scattered additions, changes are computed several at a time.
            if values.size:
                for p in range(size):
                    value = clip(values[first + p], bound)
                    amounts[p] = contribution_change(scaled_old, scaled_new, value, limit)
            # Unsigned, an index needs no test for counting from the end: half the time of the loop.
            for p in range(size):
                k = np.uint64(indices[first + p])
                if values.size:
                    change = amounts[p]
                was = alpha[k]
                now = was + change
                alpha[k] = now
                if (was ^ now) & reported:
                    changed[count] = k
                    before[count] = was
                    count += np.uint64(1)
            first += size
        if design.intercept:
            k = np.uint64(design.n_columns)
            was = alpha[k]
            now = was + contribution_change(scaled_old, scaled_new, bound, limit)
            alpha[k] = now
            if (was ^ now) & reported:
                changed[count] = k
                before[count] = was
                count += np.uint64(1)
    return changed, before, np.int64(count)
