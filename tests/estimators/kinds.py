"""The estimators, fits of every sort of them, and small records to fit."""

from functools import cache
from math import inf

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from dplasso import (
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
)
from phases.cases import PLANS, Case, rows, small

KINDS = {
    "lasso": DPLassoClassifier,
    "logistic": DPLogisticRegression,
    "lasso of numbers": DPLasso,
    "linear": DPLinearRegression,
}
EVERY = KINDS | {"frank-wolfe": DPFrankWolfeClassifier}
CLASSIFIERS = ("lasso", "logistic")
REGRESSIONS = ("lasso of numbers", "linear")
BOUNDS = (10.0, 50.0)
each_kind = pytest.mark.parametrize("kind", KINDS)
every_kind = pytest.mark.parametrize("kind", EVERY)
each_classifier = pytest.mark.parametrize("kind", CLASSIFIERS)
each_regression = pytest.mark.parametrize("kind", REGRESSIONS)


def make(kind, *epsilon, **options):
    """Return an estimator; a regression knows its interval."""
    own = {"target_bounds": BOUNDS} if kind in REGRESSIONS else {}
    return EVERY[kind](*epsilon, **own | options)


@cache
def few(kind="lasso", n_rows=120):
    """Return float32 rows of 12 columns, and the labels or targets that columns 0 and 1 make.

    One row has no entries, and column 5 has none either.
    """
    rng = np.random.default_rng(1)
    X = np.where(rng.random((n_rows, 12)) < 0.8, rng.normal(size=(n_rows, 12)), 0.0)
    X[3], X[:, 5] = 0.0, 0.0
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    score = 2.0 * unit[:, 0] - unit[:, 1]
    y = 30.0 + 10.0 * score if kind in REGRESSIONS else np.where(score > 0, "yes", "no")
    return sp.csr_array(X.astype(np.float32)), y


@cache
def strong(kind="logistic"):
    """Return rows with four columns that nearly everybody has, which a fit scales, and targets."""
    rng = np.random.default_rng(2)
    density = np.where(np.arange(30) % 8 == 3, 0.95, 0.08)
    X = rng.normal(0.0, 1.0, (3800, 30)) * (rng.random((3800, 30)) < density)
    X[3] = 0.0
    score = X[:, 3] - X[:, 11] + X[:, 9] + 0.2 * rng.normal(size=3800)
    y = 30.0 + 5.0 * score if kind in REGRESSIONS else np.where(score > 0, "yes", "no")
    return sp.csr_array(X), y


# Every sort of model: plans of columns without a schema, and without what the parameters of a file
# leave out.
SORTS = {
    name: case
    for name, case in PLANS.items()
    if not (case.schema or case.scaled or any(one in name for one in ("prior", "public", "named")))
}
SORTS |= {
    "lasso, not private": Case(DPLassoClassifier(inf, max_weights=4)),
    "frank-wolfe, not private": Case(DPFrankWolfeClassifier(inf, n_iter=40)),
    "frank-wolfe, class weights": Case(
        DPFrankWolfeClassifier(20.0, n_iter=12, class_weight=(1.0, 2.0, 0.5)), 3
    ),
    "logistic, scaled": Case(DPLogisticRegression(60.0), scaled=True),
    "short list, scaled": Case(DPLogisticRegression(60.0, max_weights=4), scaled=True),
    "lasso, scaled": Case(DPLassoClassifier(60.0, max_weights=20), scaled=True),
    "linear, scaled": Case(DPLinearRegression(60.0, target_bounds=BOUNDS), "numbers", scaled=True),
    "logistic, not private": Case(DPLogisticRegression(inf)),
    "labels": Case(DPLogisticRegression(50.0), "labels"),
    "rows as they are": Case(DPLogisticRegression(row_norm=2.0, fit_intercept=False)),
}
each_sort = pytest.mark.parametrize("sort", SORTS)


def sort_of(sort, **options):
    """Return an estimator of a sort, with a seed, and its data; a row and a column are empty."""
    case = SORTS[sort]
    if case.scaled:
        X, y = strong("linear" if case.targets == "numbers" else "logistic")
    else:
        X, y = rows(case)
        X[3], X[:, 5] = 0.0, 0.0
    model = clone(case.estimator).set_params(random_state=7, **options)
    return model, sp.csr_array(X.astype(np.float32)), y


def fit_of(sort, *data, **options):
    """Return a fitted model of a sort, of few steps, on other data if these are given."""
    model, X, y = sort_of(sort, **options)
    with small(SORTS[sort]):
        return model.fit(*(data or (X, y)))


@cache
def fitted(sort):
    """Return a fitted model of a sort, for tests that only look at it."""
    return fit_of(sort)


def numbers(model):
    """Return weights and intercepts in one array, and what intervals are made of."""
    weights = model.coef_ if isinstance(model.coef_, np.ndarray) else model.coef_.toarray()
    found = getattr(model, "inference_", None)
    intervals = [] if found is None else [found.coef, found.standard_error]
    return np.concatenate([weights.ravel(), model.intercept_, *intervals])


def outputs(model, X):
    """Return what a model says of rows: margins, or the predicted numbers."""
    return getattr(model, "decision_function", model.predict)(X)
