"""Slow, obvious twins of the solvers' kernels."""

import math

import numpy as np
from scipy.special import expit

# --- fixed point -------------------------------------------------------------


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


def sigmoid(margin):
    """Return sigma(margin) of a number >= 0."""
    return 1.0 / (1.0 + math.exp(-margin))


def first_outside(full_margin, lowest, highest, step, n_steps):
    """Return the first later step at which a shrinking margin is outside, by looking at each."""
    # numpy would compare a float with a float32 in single precision.
    lowest, highest = float(lowest), float(highest)
    for later in range(step + 1, n_steps + 1):
        if not lowest <= full_margin * (2.0 / ((later + 1.0) * (later + 2.0))) <= highest:
            return later
    return n_steps + 1


def sigma(margin):
    """Return sigma(margin)."""
    return sigmoid(margin) if margin >= 0 else 1.0 - sigmoid(-margin)


def residual(margin, label, residual_bound):
    """Return sigma(margin) - label, clipped to the bound."""
    # Of the two ways to write it, the one without cancellation.
    q = sigma(margin) if label == 0 else -sigma(-margin)
    return max(-residual_bound, min(residual_bound, q))


def loss_at(margins, labels, residual_bound):
    """Return every record's loss: logistic up to the margin of the bound, linear beyond."""
    wrong = np.where(labels, -margins, margins)
    if residual_bound == 1.0:
        return np.logaddexp(0.0, wrong)
    edge = math.log(residual_bound / (1.0 - residual_bound))
    inside = np.minimum(wrong, edge)
    return np.logaddexp(0.0, inside) + residual_bound * (wrong - inside)


# --- Algorithm 1 in floating point -------------------------------------------


def frank_wolfe(X, y, radius, n_steps, *, transcript=None, residual_bound=1.0):
    """Run textbook Frank-Wolfe on dense rows; return a dict of arrays, one entry per step.

    With `transcript` (pairs of coordinate and sign) it takes those vertices; `steepest` is the
    largest |gradient| and `gradient` the one at the vertex taken, both of the mean loss.
    """
    w = np.zeros(X.shape[1])
    trajectory = {
        "vertex": [],
        "sign": [],
        "objective": [],
        "gap": [],
        "steepest": [],
        "gradient": [],
    }
    for step in range(1, n_steps + 1):
        margins = X @ w
        q = np.clip(expit(margins) - y, -residual_bound, residual_bound)
        gradient = X.T @ q / len(y)
        j = int(np.argmax(np.abs(gradient)))
        s = -1 if gradient[j] >= 0 else 1
        if transcript is not None:
            j, s = transcript[step - 1]
        trajectory["vertex"].append(j)
        trajectory["sign"].append(s)
        trajectory["objective"].append(loss_at(margins, y, residual_bound).mean())
        trajectory["gap"].append(gradient @ w - s * radius * gradient[j])
        trajectory["steepest"].append(np.abs(gradient).max())
        trajectory["gradient"].append(gradient[j])
        eta = 2.0 / (step + 2.0)
        w *= 1.0 - eta
        w[j] += eta * s * radius
    return {name: np.array(values) for name, values in trajectory.items()} | {"w": w}
