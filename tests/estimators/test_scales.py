"""Fits whose columns are scaled by released energies: what they predict and say of it."""

import math
from functools import cache

import numpy as np
import pytest

from estimators import kinds
from estimators.kinds import make, outputs
from fit.cases import releases
from gradient_descent.reference import factor

D = 30
RICH = {"epsilon": 60.0, "random_state": 5}
REFIT = RICH | {"max_weights": 20}
SORTS = {
    "dense": ("logistic", RICH),
    "short list": ("logistic", {"max_weights": 4} | RICH),
    "rows as they are": ("logistic", {"row_norm": 2.0} | RICH),
    "short list of rows as they are": ("logistic", {"row_norm": 2.0, "max_weights": 4} | RICH),
    "no intercept": ("logistic", {"fit_intercept": False} | RICH),
    "not private": ("logistic", RICH | {"epsilon": math.inf}),
    "three classes": ("logistic", RICH),
    "linear": ("linear", RICH),
    "refit": ("lasso", REFIT),
    "refit, three classes": ("lasso", REFIT),
}
each_sort = pytest.mark.parametrize("sort", SORTS)


@cache
def strong(sort):
    """Return dense rows whose columns are scaled, and what is to be predicted."""
    X, y = kinds.strong("linear" if "three" in sort else SORTS[sort][0])
    return X.toarray(), np.digitize(y, [27.5, 32.5]) if "three" in sort else y


@cache
def fitted(sort):
    kind, options = SORTS[sort]
    return make(kind, **options).fit(*strong(sort))


def halved(model):
    """Return how often the entries of each column are halved; never in a short list."""
    if model.max_weights is not None:
        assert not hasattr(model, "column_scale_")
        return np.zeros(len(model.model_.linear.columns), dtype=np.int8)
    exponents = -np.log2(model.column_scale_)
    assert exponents.any()
    assert (exponents == exponents.astype(int)).all()
    return exponents.astype(np.int8)


@each_sort
def test_margins_are_those_of_the_rows_that_were_trained_on(sort):
    """Halved, then made unit rows; of a short list or a refit, by their own columns alone."""
    model, (X, _) = fitted(sort), strong(sort)
    scale_exponents = halved(model)
    listed = "short" in sort or "refit" in sort
    kept = model.model_.linear.columns if listed else np.arange(D)
    assert scale_exponents.size == kept.size
    assert kept.size == 4 or "short" not in sort
    bound, constant = None, 0.0 if "no intercept" in sort else 0.1
    held = releases(model)
    squares = held.get("magnitudes-squares", np.zeros(0))
    if "as they are" in sort or squares.any():
        # By what part of the length of rows is left; that of some is released.
        squares = squares[held["cut-columns"]] if listed and squares.size else squares
        bound = 3.0 * math.sqrt(squares.sum()) if squares.any() else 2.0
        if not listed:
            energies = held["scales-energies"].astype(float)
            bound *= math.sqrt(energies @ model.column_scale_**2 / energies.sum())
    rows = X[:200, kept].tolist()
    own = np.array([factor(row, constant, bound, scale_exponents) for row in rows])
    weights = model.coef_ if isinstance(model.coef_, np.ndarray) else model.coef_.toarray()
    weights = np.atleast_2d(weights)[:, kept]
    expected = X[:200, kept] @ weights.T * own[:, np.newaxis] + model.intercept_
    found = outputs(model, X[:200])
    if "numbers" in sort or "linear" in sort:
        expected = np.clip(expected, 10.0, 50.0)
    np.testing.assert_allclose(found.reshape(200, -1), expected, rtol=1e-9, atol=1e-9)
    # An empty row has the constants alone.
    np.testing.assert_allclose(found[3], np.ravel(model.intercept_)[: found[3].size], rtol=1e-12)
