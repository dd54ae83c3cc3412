"""Noisy gradient descent, slow and obvious: one record at a time, in plain floats and integers."""

import math

import numpy as np

from dplasso.gradient_descent.solve import BLOCK
from dplasso.losses.contract import gradient, residual_vector
from dplasso.privacy.gaussian_noise import noise_table, noisy
from dplasso.privacy.randomness import word_buffers

SLACK = 2.0**-30


def factor(row, constant, norm_bound=None):
    """Return what the entries of a row are multiplied by."""
    entries = [abs(float(v)) for v in row if v != 0.0]
    largest = max(entries, default=0.0)
    if largest < 1e-290:
        return 0.0
    total = 0.0
    for v in entries:
        total += (v / largest) ** 2
    root = math.sqrt(total * (1.0 + len(entries) * 2.0**-52))
    longest = math.sqrt(1.0 - constant * constant) * (1.0 - SLACK)
    if norm_bound is None:
        return longest / root / largest
    return longest / max(norm_bound, root * largest)


def residuals(loss, margins, label):
    """Return the residuals of a record at its margins."""
    if len(margins) == 1:
        return [gradient(loss, margins[0], label)]
    found = np.empty(len(margins))
    residual_vector(loss, np.array(margins), label, found)
    return found.tolist()


def contributions(
    dense, labels, weights, loss, unit, *, constant=0.0, norm_bound=None, halvings=None
):
    """Return what each record adds to each coordinate, in integer units."""
    n_outputs, rows = loss.n_outputs, []
    scales = [
        0.5 ** int(b) for b in (np.zeros(np.shape(dense)[1]) if halvings is None else halvings)
    ]
    for row, label in zip(np.asarray(dense, dtype=np.float64).tolist(), labels, strict=True):
        halved = [v * s for v, s in zip(row, scales, strict=True)]
        scale, entry = factor(halved, constant, norm_bound), constant * (1.0 - SLACK)
        margins = []
        for own in np.reshape(weights, (-1, n_outputs)).T.tolist():
            margin = 0.0
            for v, w in zip(row, own, strict=False):
                if v != 0.0:
                    margin += v * w
            margins.append(margin * scale + (entry * own[len(row)] if constant else 0.0))
        found = residuals(loss, margins, float(label))
        shares = [
            int(q * scale * unit * v * s) for v, s in zip(row, scales, strict=True) for q in found
        ]
        rows.append(shares + ([int(q * entry * unit) for q in found] if constant else []))
    return np.array(rows, dtype=np.int64).reshape(len(rows), -1)


def noise(stream, size, scale, n_steps):
    """Return the noise of all steps, shape (T, size): a stream for each block of coordinates."""
    table = noise_table(scale)
    values = np.zeros((n_steps, size), dtype=np.int64)
    blocks = range(0, size, BLOCK)
    for begin, buffer in zip(blocks, word_buffers(stream, len(blocks)), strict=True):
        for row in values:
            noisy(table, buffer, row[begin : begin + BLOCK])
    return values


def descend(dense, labels, schedule, added, loss, unit, *, constant=0.0, start=None):
    """Return all iterates, shape (T, size), and the average that is released."""
    size = (np.shape(dense)[1] + bool(constant)) * loss.n_outputs
    weights = [0.0] * size if start is None else list(start)
    velocity, iterates = [0.0] * size, []
    for step in range(schedule.n_steps):
        parts = contributions(dense, labels, weights, loss, unit, constant=constant)
        totals = parts.sum(axis=0) + added[step]
        for k in range(size):
            velocity[k] = schedule.momentum * velocity[k] + float(totals[k]) * (1.0 / unit)
            weights[k] -= schedule.step_size * velocity[k]
        iterates.append(list(weights))
    averaged = [0.0] * size
    last = iterates[schedule.first_averaged - 1 :]
    for iterate in last:
        averaged = [a + w for a, w in zip(averaged, iterate, strict=True)]
    return np.array(iterates), np.array(averaged) / float(len(last))
