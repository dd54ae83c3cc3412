"""Slow, obvious twins of the solvers' kernels."""

import math

import numpy as np
from scipy.special import expit


def clipped(value, bound):
    """Return an entry, clipped."""
    return bound if value > bound else -bound if value < -bound else float(value)


def with_constant(X, bound, intercept):
    """Return the dense rows as lists, the intercept's column of `bound` appended."""
    return [[float(x) for x in row] + [bound] * intercept for row in X]


def column_gradients(X, gradient, bound, *, intercept, residual_bound=1.0):
    """Return alpha in unbounded integers: the sum of every record's rounded contribution."""
    rows = with_constant(X, bound, intercept)
    alpha = [0] * (X.shape[1] + intercept)
    for row, q in zip(rows, gradient, strict=True):
        for k, x in enumerate(row):
            alpha[k] += round(float(q) * (2.0**32 / (bound * residual_bound)) * clipped(x, bound))
    return alpha


def integer_margins(X, weights, bound, margin_unit, *, intercept):
    """Return the margins in unbounded integers, from the integer weights."""
    rows = with_constant(X, bound, intercept)
    return [
        sum(k * round(clipped(x, bound) * margin_unit) for k, x in zip(weights, row, strict=True))
        for row in rows
    ]


def loss_at(margins, labels, residual_bound):
    """Return every record's loss: logistic up to the margin of the bound, linear beyond."""
    wrong = np.where(labels, -margins, margins)
    if residual_bound == 1.0:
        return np.logaddexp(0.0, wrong)
    edge = math.log(residual_bound / (1.0 - residual_bound))
    inside = np.minimum(wrong, edge)
    return np.logaddexp(0.0, inside) + residual_bound * (wrong - inside)


def frank_wolfe(X, y, radius, n_steps, *, transcript, residual_bound=1.0):
    """Run textbook Frank-Wolfe on dense rows; return a dict of arrays, one entry per step.

    It takes the vertices of `transcript` (pairs of coordinate and sign); `steepest` is the
    largest |gradient| and `gradient` the one at the vertex taken, both of the mean loss.
    """
    w = np.zeros(X.shape[1])
    trajectory = {name: [] for name in ("sign", "objective", "gap", "steepest", "gradient")}
    for step, (j, s) in zip(range(1, n_steps + 1), transcript, strict=True):
        margins = X @ w
        q = np.clip(expit(margins) - y, -residual_bound, residual_bound)
        gradient = X.T @ q / len(y)
        trajectory["sign"].append(s)
        trajectory["objective"].append(loss_at(margins, y, residual_bound).mean())
        trajectory["gap"].append(gradient @ w - s * radius * gradient[j])
        trajectory["steepest"].append(np.abs(gradient).max())
        trajectory["gradient"].append(gradient[j])
        eta = 2.0 / (step + 2.0)
        w *= 1.0 - eta
        w[j] += eta * s * radius
    return {name: np.array(values) for name, values in trajectory.items()}
