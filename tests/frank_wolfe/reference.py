"""Slow, obvious twins of the solvers' kernels."""


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
