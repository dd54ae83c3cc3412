"""Fixed-point arithmetic of margins and gradients.

A column gradient is an int64 sum of the records' contributions ``rint(q_i x_ij S)``, with S = 2^32
/ (B C). A sum of integers does not depend on the order and does not drift. So alpha is always
exactly the sum of the current contributions, one record changes it by at most 2^32 (2^33 when it is
replaced), and every layout, thread count and solver gives the same bits. Margins are sums of ``K_k
rint(x_ik 2^b / bound)`` with the integers K of `dplasso.frank_wolfe.transcript`.
"""

from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dplasso.frank_wolfe.problem import weight_scale
from dplasso.losses.loss import gradient, residual_vector
from dplasso.losses.targets import offset_of, weight_of
from dplasso.matrix.compressed import clip
from dplasso.privacy.share import share, shares
from dplasso.runtime.compilation import kernel
from dplasso.selection.selector import NOTHING_REPORTED

# The margin term of an entry at the bound, with space for rounding.
LARGEST_MARGIN_TERM = 2.0**41
# Entries of 4 bytes in a cache line, and the number of rows that are read ahead.
_LINE, _AHEAD = np.uint64(16), 32
# Rows whose residuals are computed together.
_TOGETHER = 256


@kernel
def contribution(scaled_gradient, value, limit):
    """Return a record's contribution to one column gradient: rint(q S x), within `limit`."""
    return share(np.rint(scaled_gradient * value), limit)


def contributions(
    scaled_gradients: NDArray[np.float64], values: NDArray[np.float64] | float, limit: float
) -> NDArray[np.int64]:
    """Return the contributions of many records."""
    return shares(np.rint(scaled_gradients * values), limit)


@kernel
def contribution_change(scaled_old, scaled_new, value, limit):
    """Return the contribution at the new residual minus that at the old one."""
    # The difference of whole numbers below 2^34 is exact in doubles.
    new = clip(np.rint(scaled_new * value), limit)
    return share(new - clip(np.rint(scaled_old * value), limit), 2.0 * limit)


@kernel
def margin_term(value, margin_unit):
    """Return an entry, clipped to its bound already, in margin units: rint(x 2^b / bound)."""
    return share(np.rint(value * margin_unit), LARGEST_MARGIN_TERM)


@kernel
def margin_scale(problem, step):
    """Return the factor from an integer margin to the margin after `step` steps."""
    return problem.radius / problem.margin_unit * weight_scale(step)


@register_jitable
def share_units(problem):
    """Return the bound of the entries, the gradient unit, and the limit of a contribution."""
    return problem.design.bound, problem.unit, problem.share_limit


@kernel
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


@kernel
def make_room(changed, before, count, more):
    """Return copies of the first `count` notes with room for more."""
    size = 2 * (count + more)
    longer_changed, longer_before = np.empty(size, np.int64), np.empty(size, np.int64)
    # A loop, because slices take seconds to compile.
    for m in range(count):
        longer_changed[m], longer_before[m] = changed[m], before[m]
    return longer_changed, longer_before


@register_jitable
def _look_ahead(rows, refreshed, first, last):
    """Read an entry of every cache line of some rows; the result is not used.

    These loads do not wait for each other, unlike those of rows that are processed one after
    another.
    """
    seen = np.int64(0)
    for m in range(first, last):
        i = refreshed[m]
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1]), _LINE):
            seen ^= np.int64(rows.indices[p])
            if rows.values.size:
                seen ^= np.int64(rows.values[p] != 0)
    return seen


@kernel
def replace_contributions(
    rows, n_columns, intercept, units, alpha, refreshed, old, new, shift, amounts, notes
):
    """Replace the contributions of some rows at `old` by those at `new`; return the notes.

    `alpha`: gradients of one output; empty to list all changes instead of adding them up.
    `shift`: changes of ``alpha_k >> shift`` are noted; none at `NOTHING_REPORTED`.
    `amounts`: room for changes, of any size but 0.
    `notes`: coordinates, their previous values (or the listed changes), and the number of notes.
    The number becomes -1 if a column lies outside the matrix.
    """
    changed, before, noted = notes
    bound, unit, limit = units
    indptr, indices, values = rows.indptr, rows.indices, rows.values
    reporting = shift != NOTHING_REPORTED
    reported = ~((np.int64(1) << shift) - 1) if reporting else np.int64(0)
    room, size = np.uint64(amounts.size), np.uint64(n_columns)
    count = np.uint64(noted)
    for m in range(refreshed.size):
        if m % _AHEAD == 0:
            amounts[0] = _look_ahead(rows, refreshed, m, min(m + _AHEAD, refreshed.size))
        if old[m] == new[m]:
            continue
        i = refreshed[m]
        scaled_old, scaled_new = old[m] * unit, new[m] * unit
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        if reporting and count + (last - first) + np.uint64(1) > np.uint64(changed.size):
            more = np.int64(last - first) + 1
            changed, before = make_room(changed, before, np.int64(count), more)
        if not values.size:
            change = contribution_change(scaled_old, scaled_new, clip(rows.constant, bound), limit)
            amounts[: min(last - first, room)] = change
        while first < last:
            some = min(last - first, room)
            # This loop is compiled to vector instructions, unlike the scattered additions.
            if values.size:
                for p in range(some):
                    value = clip(values[first + p], bound)
                    amounts[p] = contribution_change(scaled_old, scaled_new, value, limit)
            # The store may have changed on the disk since it was checked.
            inside = True
            for p in range(some):
                inside &= np.uint64(indices[first + p]) < size
            if not inside:
                return changed, before, np.int64(-1)
            # Indices are unsigned, so that numba does not test for negative ones.
            if alpha.size and not reporting:
                for p in range(some):
                    alpha[np.uint64(indices[first + p])] += amounts[p]
            elif alpha.size:
                for p in range(some):
                    k = np.uint64(indices[first + p])
                    was = alpha[k]
                    now = was + amounts[p]
                    alpha[k] = now
                    if (was ^ now) & reported:
                        changed[count] = k
                        before[count] = was
                        count += np.uint64(1)
            else:
                for p in range(some):
                    changed[count] = indices[first + p]
                    before[count] = amounts[p]
                    count += np.uint64(1)
            first += some
        if intercept:
            was = alpha[size]
            alpha[size] = was + contribution_change(scaled_old, scaled_new, bound, limit)
            if (was ^ alpha[size]) & reported:
                changed[count] = size
                before[count] = was
                count += np.uint64(1)
    return changed, before, np.int64(count)


def renew_residuals(
    loss: Any,
    targets: Any,
    rows: NDArray[np.integer],
    scale: float,
    margin: NDArray[np.int64],
    residual: NDArray[np.float64],
    old: NDArray[np.float64],
    new: NDArray[np.float64],
) -> None:
    """Set the residuals of some rows by their margins, scaled to numbers by `scale`.

    `margin`, `residual`, shape (N, K): of all rows. `old`, `new`, shape (n, K): receive the
    residuals of these rows before and after.
    """
    renew = _renew_residuals if loss.n_outputs == 1 else _renew_residual_vectors
    renew(loss, targets, rows, scale, margin, residual, old, new)


@kernel
def _renew_residuals(loss, targets, rows, scale, margin, residual, old, new):
    labels, weights, _, offsets = targets
    # Short loops without a branch are compiled to vector instructions.
    some, targeted = np.empty((2, _TOGETHER))
    for begin in range(0, rows.size, _TOGETHER):
        size = min(_TOGETHER, rows.size - begin)
        own = rows[begin : begin + size]
        for m in range(size):
            i = own[m]
            some[m] = np.float64(margin[i, 0]) * scale + offset_of(offsets, i, 0)
            targeted[m] = labels[i]
        for m in range(size):
            some[m] = gradient(loss, some[m], targeted[m])
        for m in range(size):
            i = own[m]
            old[begin + m, 0] = residual[i, 0]
            residual[i, 0] = new[begin + m, 0] = weight_of(weights, i) * some[m]


@kernel
def _renew_residual_vectors(loss, targets, rows, scale, margin, residual, old, new):
    labels, weights, _, offsets = targets
    margins, residuals = np.empty(margin.shape[1]), np.empty(margin.shape[1])
    for m in range(rows.size):
        i = rows[m]
        for k in range(margins.size):
            margins[k] = np.float64(margin[i, k]) * scale + offset_of(offsets, i, k)
        residual_vector(loss, margins, labels[i], residuals)
        for k in range(residuals.size):
            old[m, k] = residual[i, k]
            new[m, k] = weight_of(weights, i) * residuals[k]
            residual[i, k] = new[m, k]
