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
from dplasso.losses.targets import weight_of
from dplasso.privacy.share import share


@njit(cache=True, nogil=True)
def row_gradients(loss, targets, factor, entries, units, first, last, scaled, integers, totals):
    """Turn the margins of rows into their residuals, scaled as the columns want them.

    `factor`, shape (N,): what each row's entries are multiplied by.
    `entries`: whether all entries of X are one value, that value, and the constant entry.
    `units`: fixed-point units per unit of gradient, S, and C S, which bounds a share.
    `scaled`, shape (N, 1): margins; filled with ``q_i factor_i S``, unless all entries of X are one
    value.
    `integers`: the same bytes; filled with the integer contribution itself, if they are.
    `totals`, shape (1,): the rows' contribution to the constant column is added.
    """
    labels, weights, _ = targets
    equal, value, constant = entries
    unit, limit = units
    for i in range(first, last):
        q = weight_of(weights, i) * gradient(loss, scaled[i, 0], labels[i])
        pull = q * factor[i] * unit
        if equal:
            integers[i, 0] = share(pull * value, limit)
        else:
            scaled[i, 0] = pull
        if constant != 0.0:
            totals[0] += share(q * constant * unit, limit)


@njit(cache=True, nogil=True)
def row_gradient_vectors(
    loss, targets, factor, entries, units, first, last, scaled, integers, totals
):
    """Do what `row_gradients` does, for K outputs."""
    labels, weights, _ = targets
    equal, value, constant = entries
    unit, limit = units
    residuals = np.empty(totals.size)
    for i in range(first, last):
        residual_vector(loss, scaled[i], labels[i], residuals)
        for k in range(totals.size):
            q = weight_of(weights, i) * residuals[k]
            pull = q * factor[i] * unit
            if equal:
                integers[i, k] = share(pull * value, limit)
            else:
                scaled[i, k] = pull
            if constant != 0.0:
                totals[k] += share(q * constant * unit, limit)


@njit(cache=True, nogil=True)
def column_gradients(columns, scaled, integers, limit, first, last, totals):
    """Set ``totals[c - first]`` to the sum of the contributions to column c, exactly; K = 1."""
    values, indices = columns.values, columns.indices
    for c in range(first, last):
        begin, end = np.uint64(columns.indptr[c]), np.uint64(columns.indptr[c + 1])
        total = np.int64(0)
        if values.size:
            for p in range(begin, end):
                total += share(scaled[np.uint64(indices[p]), 0] * np.float64(values[p]), limit)
        else:
            for p in range(begin, end):
                total += integers[np.uint64(indices[p]), 0]
        totals[c - first, 0] = total


@njit(cache=True, nogil=True)
def column_gradient_vectors(columns, scaled, integers, limit, first, last, totals):
    """Set ``totals[c - first]`` to the K sums of the contributions to column c, exactly."""
    values, indices = columns.values, columns.indices
    for c in range(first, last):
        totals[c - first] = 0
        for p in range(np.uint64(columns.indptr[c]), np.uint64(columns.indptr[c + 1])):
            i = np.uint64(indices[p])
            for k in range(totals.shape[1]):
                if values.size:
                    totals[c - first, k] += share(scaled[i, k] * np.float64(values[p]), limit)
                else:
                    totals[c - first, k] += integers[i, k]


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
