"""The kernels of a step: residuals by rows, exact integer gradients by columns, the update.

A record's contribution to column j is its share ``q_i z_ij S``, rounded towards zero, with z its
unit row (`dplasso.privacy.share`). No entry grows, so the contribution lies in the ball of radius
``C S`` by the arithmetic of its own row, and the sum is one of integers: the same bits for any
order, layout and number of threads.

With K outputs a record has K residuals, of L2 norm C together, and its contribution is that of
``q_ik z_ij S``: in the same ball. Weights then stand column by column, coordinate ``j K + k``.
"""

import numpy as np
from numba import njit

from dplasso.losses.contract import gradient, residual_vector
from dplasso.matrix.unit_rows import row_margin, row_margins
from dplasso.privacy.share import share


@njit(cache=True, nogil=True)
def row_gradients(data, loss, labels, weights, unit, limit, first, last, scaled):
    """Compute residuals, scaled as the columns want them.

    `loss`: the loss.
    `labels`, shape (N,): the targets.
    `weights`, shape (D,): the model so far.
    `unit`: fixed-point units per unit of gradient, S.
    `limit`: C S, the bound on a contribution.
    `first`, `last`: rows.
    `scaled`, shape (N,): filled with ``q_i factor_i S``; where all entries of X are one value, its
    bytes with the integer contribution itself.

    Returns: the rows' contribution to the constant column.
    """
    rows, contributions = data.rows, scaled.view(np.int64)
    offset = 0.0
    if data.constant != 0.0:
        offset = data.constant * weights[data.n_columns]
    total = np.int64(0)
    for i in range(first, last):
        margin = row_margin(rows, i, weights) * data.factor[i] + offset
        q = gradient(loss, margin, np.float64(labels[i]))
        pull = q * data.factor[i] * unit
        if rows.values.size:
            scaled[i] = pull
        else:
            contributions[i] = share(pull * np.float64(rows.constant), limit)
        if data.constant != 0.0:
            total += share(q * data.constant * unit, limit)
    return total


@njit(cache=True, nogil=True)
def column_gradients(columns, scaled, limit, first, last, totals):
    """Set ``totals[c - first]`` to the sum of the contributions to column c, exactly."""
    values, indices, contributions = columns.values, columns.indices, scaled.view(np.int64)
    for c in range(first, last):
        begin, end = np.uint64(columns.indptr[c]), np.uint64(columns.indptr[c + 1])
        total = np.int64(0)
        if values.size:
            for p in range(begin, end):
                total += share(scaled[np.uint64(indices[p])] * np.float64(values[p]), limit)
        else:
            for p in range(begin, end):
                total += contributions[np.uint64(indices[p])]
        totals[c - first] = total


@njit(cache=True, nogil=True)
def row_gradient_vectors(data, loss, labels, weights, unit, limit, first, last, scaled, totals):
    """Compute residuals of K outputs, scaled as the columns want them.

    `data`, `unit`, `limit`, `first`, `last`: as in `row_gradients`.
    `loss`: the loss.
    `labels`, shape (N,): numbers of the classes.
    `weights`, shape (D, K): the model so far.
    `scaled`, shape (N, K): filled as in `row_gradients`.
    `totals`, shape (K,): the rows' contribution to the constant column is added.
    """
    rows, contributions = data.rows, scaled.view(np.int64)
    margins = np.empty(weights.shape[1])
    residuals = np.empty(weights.shape[1])
    for i in range(first, last):
        row_margins(rows, i, weights, margins)
        for k in range(margins.size):
            margins[k] *= data.factor[i]
            if data.constant != 0.0:
                margins[k] += data.constant * weights[data.n_columns, k]
        residual_vector(loss, margins, labels[i], residuals)
        for k in range(margins.size):
            pull = residuals[k] * data.factor[i] * unit
            if rows.values.size:
                scaled[i, k] = pull
            else:
                contributions[i, k] = share(pull * np.float64(rows.constant), limit)
            if data.constant != 0.0:
                totals[k] += share(residuals[k] * data.constant * unit, limit)


@njit(cache=True, nogil=True)
def column_gradient_vectors(columns, scaled, limit, first, last, totals):
    """Set ``totals[c - first]`` to the K sums of the contributions to column c, exactly."""
    values, indices, contributions = columns.values, columns.indices, scaled.view(np.int64)
    for c in range(first, last):
        totals[c - first] = 0
        for p in range(np.uint64(columns.indptr[c]), np.uint64(columns.indptr[c + 1])):
            i = np.uint64(indices[p])
            for k in range(totals.shape[1]):
                if values.size:
                    totals[c - first, k] += share(scaled[i, k] * np.float64(values[p]), limit)
                else:
                    totals[c - first, k] += contributions[i, k]


@njit(cache=True, nogil=True)
def update(totals, unit, momentum, step_size, velocity, weights, averaged, averaging):
    """Take a step along some coordinates, whose noisy gradients are `totals` in units.

    `totals`, shape (B,): noisy gradients.
    `unit`: units per unit of gradient.
    `momentum`, `step_size`: beta and h.
    `velocity`, `weights`, `averaged`, shape (B,): changed in place: ``m <- beta m + g``, ``w <- w
    - h m``, and the sum of the iterates.
    `averaging`: whether this iterate counts.
    """
    inverse = 1.0 / unit
    for k in range(totals.size):
        velocity[k] = momentum * velocity[k] + np.float64(totals[k]) * inverse
        weights[k] -= step_size * velocity[k]
        if averaging:
            averaged[k] += weights[k]
