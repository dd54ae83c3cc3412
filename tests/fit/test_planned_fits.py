"""What `weakest_association` says of the gradient family, against fits: within a factor of two."""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso import DPLinearRegression, DPLogisticRegression, weakest_association

# A table of so many parts, each with one of so many levels; texts of so many words of a vocabulary.
TABLE, TEXTS = (16, 8), (60, 2_000)


def rows_of(rng, n, kind):
    entries, size = kind
    if kind == TABLE:
        columns = rng.integers(size, size=(n, entries)) + size * np.arange(entries)
        size *= entries
    else:
        law = 1.0 / np.arange(1, size + 1)
        columns = rng.choice(size, size=(n, entries), p=law / law.sum())
    X = sp.csr_matrix((np.ones(columns.size), (np.repeat(np.arange(n), entries), columns.ravel())))
    X.resize(n, size)
    X.data[:] = 1.0
    return X


def planted(rng, X, limit):
    """Choose four columns, about as frequent as the others; return the rows that hold one alone."""
    d = X.shape[1]
    often = np.asarray(X.sum(axis=0)).ravel()
    order = np.argsort(np.abs(np.log(np.maximum(often, 1) / max(X.nnz / d, 4 * limit))))
    chosen = order[:16:4]
    alone = np.flatnonzero(np.asarray(X[:, chosen].sum(axis=1)).ravel() == 1)
    columns = X.tocsc()
    return chosen, [
        rng.permutation(np.intersect1d(alone, columns[:, one].indices)) for one in chosen
    ]


def z_of(n, kind, epsilon, method, n_classes, factor):
    """Return how many standard errors the weights come to at `factor` times the limit."""
    rng = np.random.default_rng(3)
    X = rows_of(rng, n, kind)
    public = {"method": method, "n_classes": n_classes, "row_entries": X.nnz / n}
    limit = weakest_association(epsilon, 1e-6, n, X.shape[1], **public).rows
    columns, rows = planted(rng, X, limit)
    settings = {"random_state": 1}
    if method == "linear":
        model = DPLinearRegression(epsilon, target_bounds=(0.0, 1.0), **settings)
        y = 0.5 + rng.uniform(-0.1, 0.1, n)
        for k, own in enumerate(rows):
            y[own[: round(factor * limit)]] = (k + 1) % 2
    else:
        model = DPLogisticRegression(epsilon, classes=[*range(n_classes)], **settings)
        y = np.arange(n) % n_classes
        for k, own in enumerate(rows):
            # As many of each class, and so many more of one.
            y[own] = np.arange(own.size) % n_classes
            others = own[y[own] != k % n_classes]
            y[others[: round(factor * limit * (1.0 - 1.0 / n_classes))]] = k % n_classes
    model.fit(X, y)
    weights, errors = np.atleast_2d(model.coef_), np.atleast_2d(model.coef_standard_error_)
    z = weights[:, columns] / np.broadcast_to(errors, weights.shape)[:, columns]
    if n_classes > 2:
        return float(np.mean(z[np.arange(4) % n_classes, range(4)]))
    return float(np.mean(z[0] * (-1) ** (np.arange(4) + (method == "logistic"))))


@pytest.mark.parametrize(
    "asked",
    [
        *(
            (3_000, kind, epsilon, "logistic", 2)
            for kind in (TABLE, TEXTS)
            for epsilon in (1.0, 3.0)
        ),
        (6_000, TABLE, 3.0, "logistic", 4),
        (6_000, TABLE, 3.0, "linear", 2),
    ],
)
def test_half_of_the_limit_is_not_found_and_twice_the_limit_is(asked):
    """It ends below three standard errors, or beyond them."""
    found = [z_of(*asked, factor) for factor in (0.5, 2.0)]
    assert found[0] < 3.0 < found[1], found
