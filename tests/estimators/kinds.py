"""The estimators, fits of every sort of them, and small records to fit."""

from functools import cache
from math import inf

import numpy as np
import pytest
import scipy.sparse as sp
from evidence.matrices import matrix_source

from dplasso import (
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
)
from dplasso.data.store import write_store
from fit.cases import four_classes, records
from recorded_fits import short_runs

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
def many(kind="lasso"):
    """Return binary rows of 900 columns of which the first ten make the label or target."""
    X, y = records()
    return X, np.where(y == "yes", 45.0, 15.0) if kind in REGRESSIONS else y


@cache
def long(kind="lasso"):
    """Return rows so long that a LASSO draws its columns, and labels by the first five."""
    rng = np.random.default_rng(4)
    X = rng.choice([-1.0, 0.0, 1.0], (300, 450)).astype(np.float32)
    return sp.csr_array(X), np.where(X[:, :5].sum(axis=1) > 0.0, "yes", "no")


@cache
def four(kind="lasso"):
    """Return rows of 500 columns and labels of four classes."""
    return four_classes()


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


KEPT = {"epsilon": 20.0, "max_weights": 12}
WEIGHTED = {"epsilon": 20.0, "n_iter": 12, "class_weight": (1.0, 2.0, 3.0, 0.5)}
# Every sort of model: its estimator, its options and its data.
SORTS = {
    "lasso, all columns": ("lasso", {}, few),
    "lasso, drawn": ("lasso", {"epsilon": 50.0, "max_weights": 5}, long),
    "lasso, kept": ("lasso", KEPT, many),
    "lasso, not private": ("lasso", {"epsilon": inf, "max_weights": 4}, few),
    "lasso, four classes": ("lasso", KEPT, four),
    "lasso of numbers": ("lasso of numbers", KEPT, many),
    "vertices": ("frank-wolfe", {"n_iter": 40, "feature_bound": 0.5}, few),
    "vertices, not private": ("frank-wolfe", {"epsilon": inf, "n_iter": 40}, few),
    "vertices, four classes": ("frank-wolfe", WEIGHTED, four),
    "logistic": ("logistic", {}, few),
    "short list": ("logistic", {"epsilon": 20.0, "max_weights": 4}, few),
    "rows as they are": ("logistic", {"row_norm": 2.0, "fit_intercept": False}, few),
    "logistic, not private": ("logistic", {"epsilon": inf}, few),
    "scaled": ("logistic", {"epsilon": 60.0}, strong),
    "scaled, short list": ("logistic", {"epsilon": 60.0, "max_weights": 4}, strong),
    "scaled, refitted": ("lasso", {"epsilon": 60.0, "max_weights": 20}, strong),
    "scaled, linear": ("linear", {"epsilon": 60.0}, strong),
    "logistic, four classes": ("logistic", {"epsilon": 5.0}, four),
    "balanced, four classes": ("logistic", {"class_weight": "balanced"}, four),
    "short list, four classes": ("logistic", {"max_weights": 3}, four),
    "intervals": ("logistic", {"infer": "all", "row_norm": 2.0}, few),
    "linear": ("linear", {}, few),
    "linear, intervals": ("linear", {"infer": "all", "row_norm": 2.0}, few),
    "linear, short list": ("linear", {"epsilon": 20.0, "max_weights": 4}, few),
}
each_sort = pytest.mark.parametrize("sort", SORTS)


def sort_of(sort, **options):
    """Return an estimator of a sort, with a seed, and its data."""
    kind, own, data = SORTS[sort]
    return make(kind, **{"random_state": 7} | own | options), *data(kind)


@cache
def fitted(sort):
    """Return a fitted model of a sort, of few steps, for tests that only look at it."""
    model, X, y = sort_of(sort)
    with short_runs():
        return model.fit(X, y)


def numbers(model):
    """Return weights and intercepts in one array, and what intervals are made of."""
    weights = model.coef_ if isinstance(model.coef_, np.ndarray) else model.coef_.toarray()
    found = getattr(model, "inference_", None)
    intervals = [] if found is None else [found.coef, found.standard_error]
    return np.concatenate([weights.ravel(), model.intercept_, *intervals])


def outputs(model, X):
    """Return what a model says of rows: margins, or the predicted numbers."""
    return getattr(model, "decision_function", model.predict)(X)


def stored(X, y, path):
    """Write rows to a store and open it."""
    return write_store(matrix_source(X, y), path, memory=2**27)
