"""Fixed-point arithmetic of margins and gradients.

A column gradient is an int64 sum of the records' shares ``rint(q_i x_ij S)``, S = 2^32 / bound.
Integer sums have no order and no drift: after any updates alpha is exactly the sum of the current
shares, one record moves it by at most 2^32 (2^33 when replaced), and every layout, thread count and
solver gives the same bits. Margins are held the same way, as integer sums of
``K_k rint(x_ik 2^b / bound)`` (see `dplasso.frank_wolfe.transcript` for the integers K), so
recomputing them and updating them agree to the bit as well.
"""

import numpy as np
from numba import njit

from dplasso.frank_wolfe.transcript import weight_scale
from dplasso.selection.contract import NOTHING_REPORTED


@njit(cache=True, nogil=True)
def clip(value, bound):
    """Return an entry clipped to [-bound, bound], as a double."""
    return min(max(np.float64(value), -bound), bound)


@njit(cache=True, nogil=True)
def probability(margin):
    """Return sigma(margin) without overflow."""
    if margin >= 0.0:
        return 1.0 / (1.0 + np.exp(-margin))
    rise = np.exp(margin)
    return rise / (1.0 + rise)


@njit(cache=True, nogil=True)
def share(scaled_gradient, value):
    """Return a record's share of one column gradient: rint(q S x)."""
    return np.int64(np.rint(scaled_gradient * value))


@njit(cache=True, nogil=True)
def share_change(scaled_old, scaled_new, value):
    """Return ``share(scaled_new, value) - share(scaled_old, value)``, with one conversion."""
    # Whole numbers below 2^34: their difference is exact in doubles.
    return np.int64(np.rint(scaled_new * value) - np.rint(scaled_old * value))


@njit(cache=True, nogil=True)
def margin_term(value, margin_unit):
    """Return an entry in margin units: rint(x 2^b / bound)."""
    return np.int64(np.rint(value * margin_unit))


@njit(cache=True, nogil=True)
def margin_scale(problem, step):
    """Return the factor from an integer margin to the margin after `step` steps."""
    return problem.radius / problem.margin_unit * weight_scale(step)


@njit(cache=True, nogil=True)
def add_shares(problem, first, last, gradient, alpha):
    """Add the shares of rows `first` to `last` (exclusive) to alpha."""
    rows = problem.rows
    constant = clip(rows.constant, problem.bound)
    for i in range(first, last):
        scaled = gradient[i] * problem.unit
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            value = clip(rows.values[p], problem.bound) if rows.values.size else constant
            alpha[np.uint64(rows.indices[p])] += share(scaled, value)
        if problem.intercept:
            alpha[problem.n_columns] += share(scaled, problem.bound)


@njit(cache=True, nogil=True)
def add_margins(problem, integer_weights, margin):
    """Set margin[i] to the integer margin of every row, from scratch."""
    rows = problem.rows
    constant = margin_term(clip(rows.constant, problem.bound), problem.margin_unit)
    for i in range(margin.size):
        total = np.int64(0)
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            weight = integer_weights[rows.indices[p]]
            if weight:
                term = constant
                if rows.values.size:
                    term = margin_term(clip(rows.values[p], problem.bound), problem.margin_unit)
                total += weight * term
        if problem.intercept:
            term = margin_term(problem.bound, problem.margin_unit)
            total += integer_weights[problem.n_columns] * term
        margin[i] = total


@njit(cache=True, nogil=True)
def replace_shares(problem, alpha, i, old, new, report_shift, changed, before):
    """Replace row i's shares at record gradient `old` by those at `new`.

    Parameters
    ----------
    problem : Problem
    alpha : ndarray of int64
        Column gradients, changed in place.
    i : int
        Row.
    old, new : float
        Record gradients.
    report_shift : int
        Changes of ``alpha_k >> report_shift`` are reported; at `NOTHING_REPORTED` none is.
    changed, before : ndarray of int64, at least as long as a row
        Filled with the coordinates to report and what they were.

    Returns
    -------
    int
        Number of coordinates to report.
    """
    rows = problem.rows
    indices, values = rows.indices, rows.values
    bound = problem.bound
    scaled_old = old * problem.unit
    scaled_new = new * problem.unit
    count = np.uint64(0)
    reported = (
        np.int64(0) if report_shift == NOTHING_REPORTED else ~((np.int64(1) << report_shift) - 1)
    )
    value = clip(rows.constant, bound)
    change = share_change(scaled_old, scaled_new, value)
    # Unsigned, an index needs no test for counting from the end: half the time of the loop.
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
        if values.size:
            value = clip(values[p], bound)
            change = share_change(scaled_old, scaled_new, value)
        k = np.uint64(indices[p])
        was = alpha[k]
        now = was + change
        alpha[k] = now
        if (was ^ now) & reported:
            changed[count] = k
            before[count] = was
            count += np.uint64(1)
    if problem.intercept:
        k = np.uint64(problem.n_columns)
        was = alpha[k]
        now = was + share_change(scaled_old, scaled_new, bound)
        alpha[k] = now
        if (was ^ now) & reported:
            changed[count] = k
            before[count] = was
            count += np.uint64(1)
    return np.int64(count)
