"""The kernels of a step: residuals by rows, exact integer gradients by columns, the update.

A record's contribution to column j is its share ``q_i z_ij S``, rounded towards zero, with z its
unit row (`dplasso.privacy.share`). No entry grows, so the contribution lies in the ball of radius
``C S`` by the arithmetic of its own row, and the sum is one of integers: the same bits for any
order, layout and number of threads.

The entries of a column may be halved b times before rows are made unit rows: z is that row, and the
weights are those of the entries as given.

With K outputs a record has K residuals, of L2 norm C together, and its contribution is that of
``q_ik z_ij S``: in the same ball. Weights then stand column by column, coordinate ``j K + k``.
"""

import numpy as np
from numba import njit

from dplasso.losses.contract import gradient, residual_vector
from dplasso.losses.targets import weight_of
from dplasso.matrix.unit_rows import SCALES, row_margin, row_margins
from dplasso.privacy.share import share


@njit(cache=True, nogil=True)
def row_gradients(data, loss, targets, model, units, first, last, scaled, integers, totals):
    """Compute residuals at the weights of a model, scaled as the columns want them.

    `units`: fixed-point units per unit of gradient, S, and C S, which bounds a share.
    `scaled`, shape (N,): filled with ``q_i factor_i S``, unless all entries of X are one value and
    none is halved.
    `integers`: the same bytes; filled with the integer contribution itself, if so.
    `totals`, shape (1,): the rows' contribution to the constant column is added.
    """
    (labels, weights, _), (unit, limit), rows = targets, units, data.rows
    offset = data.constant * model[data.n_columns] if data.constant != 0.0 else 0.0
    total = np.int64(0)
    for i in range(first, last):
        margin = row_margin(rows, i, model) * data.factor[i] + offset
        q = weight_of(weights, i) * gradient(loss, margin, labels[i])
        pull = q * data.factor[i] * unit
        if rows.values.size or data.halvings.size:
            scaled[i] = pull
        else:
            integers[i] = share(pull * np.float64(rows.constant), limit)
        if data.constant != 0.0:
            total += share(q * data.constant * unit, limit)
    totals[0] += total


@njit(cache=True, nogil=True)
def row_gradient_vectors(data, loss, targets, model, units, first, last, scaled, integers, totals):
    """Do what `row_gradients` does, for K outputs."""
    (labels, weights, _), (unit, limit), rows = targets, units, data.rows
    margins, residuals = np.empty(totals.size), np.empty(totals.size)
    for i in range(first, last):
        row_margins(rows, i, model, margins)
        for k in range(margins.size):
            margins[k] *= data.factor[i]
            if data.constant != 0.0:
                margins[k] += data.constant * model[data.n_columns, k]
        residual_vector(loss, margins, labels[i], residuals)
        for k in range(margins.size):
            q = weight_of(weights, i) * residuals[k]
            pull = q * data.factor[i] * unit
            if rows.values.size or data.halvings.size:
                scaled[i, k] = pull
            else:
                integers[i, k] = share(pull * np.float64(rows.constant), limit)
            if data.constant != 0.0:
                totals[k] += share(q * data.constant * unit, limit)


@njit(cache=True, nogil=True)
def column_gradients(columns, halvings, scaled, integers, limit, first, last, totals):
    """Set ``totals[c - first]`` to the sum of the contributions to column c, exactly; K = 1."""
    values, indices = columns.values, columns.indices
    for c in range(first, last):
        begin, end = np.uint64(columns.indptr[c]), np.uint64(columns.indptr[c + 1])
        scale = SCALES[halvings[c]] if halvings.size else 1.0
        total = np.int64(0)
        if values.size:
            for p in range(begin, end):
                pull = scaled[np.uint64(indices[p])] * np.float64(values[p])
                total += share(pull * scale, limit)
        elif halvings.size:
            # Each share by itself, as above: before halving it might be beyond the limit.
            for p in range(begin, end):
                pull = scaled[np.uint64(indices[p])] * np.float64(columns.constant)
                total += share(pull * scale, limit)
        else:
            for p in range(begin, end):
                total += integers[np.uint64(indices[p])]
        totals[c - first] = total


@njit(cache=True, nogil=True)
def column_gradient_vectors(columns, halvings, scaled, integers, limit, first, last, totals):
    """Set ``totals[c - first]`` to the K sums of the contributions to column c, exactly."""
    values, indices = columns.values, columns.indices
    for c in range(first, last):
        totals[c - first] = 0
        scale = SCALES[halvings[c]] if halvings.size else 1.0
        for p in range(np.uint64(columns.indptr[c]), np.uint64(columns.indptr[c + 1])):
            i = np.uint64(indices[p])
            value = np.float64(values[p]) if values.size else np.float64(columns.constant)
            for k in range(totals.shape[1]):
                if values.size or halvings.size:
                    totals[c - first, k] += share(scaled[i, k] * value * scale, limit)
                else:
                    totals[c - first, k] += integers[i, k]


@njit(cache=True, nogil=True)
def update(totals, unit, momentum, steps, velocity, weights, averaged, averaging):
    """Take a step ``m <- beta m + g``, ``w <- w - h m`` along some coordinates, in place.

    `totals`: their noisy gradients, in units.
    `steps`: h of each of their columns, which have equally many coordinates.
    """
    inverse, width = 1.0 / unit, totals.size // steps.size
    for c in range(steps.size):
        for k in range(c * width, (c + 1) * width):
            velocity[k] = momentum * velocity[k] + np.float64(totals[k]) * inverse
            weights[k] -= steps[c] * velocity[k]
            if averaging:
                averaged[k] += weights[k]
