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

from dplasso.losses.contract import residual_vector
from dplasso.losses.targets import weight_of
from dplasso.privacy.share import share


@njit(cache=True, nogil=True)
def row_gradients(loss, targets, factor, entries, unit, limit, first, last, scaled, totals):
    """Turn the margins of rows into their residuals, scaled as the columns want them.

    `factor`, shape (N,): what each row's entries are multiplied by.
    `entries`: whether all entries of X are one value, that value, and the constant entry.
    `unit`, `limit`: fixed-point units per unit of gradient, S, and C S, which bounds a share.
    `scaled`, shape (N, K): margins; filled with ``q_i factor_i S`` or, where all entries of X are
    one value, its bytes with the integer contribution itself.
    `totals`, shape (K,): the rows' contribution to the constant column is added.
    """
    labels, weights, _ = targets
    equal, value, constant = entries
    contributions, residuals = scaled.view(np.int64), np.empty(scaled.shape[1])
    for i in range(first, last):
        residual_vector(loss, scaled[i], labels[i], residuals)
        weight = weight_of(weights, i)
        for k in range(residuals.size):
            q = weight * residuals[k]
            pull = q * factor[i] * unit
            if equal:
                contributions[i, k] = share(pull * value, limit)
            else:
                scaled[i, k] = pull
            if constant != 0.0:
                totals[k] += share(q * constant * unit, limit)


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
    """Take a step ``m <- beta m + g``, ``w <- w - h m`` along some coordinates, in place.

    `totals`: their noisy gradients, in units.
    `averaging`: whether this iterate is added to `averaged`.
    """
    inverse = 1.0 / unit
    for k in range(totals.size):
        velocity[k] = momentum * velocity[k] + np.float64(totals[k]) * inverse
        weights[k] -= step_size * velocity[k]
        if averaging:
            averaged[k] += weights[k]
