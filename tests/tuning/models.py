"""Models whose predictions are known, and a search of private fits of few steps."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator

from dplasso import DPLogisticRegression, PrivateSearch

RNG = np.random.default_rng(0)
ROWS = 400
X = np.column_stack([np.arange(ROWS, dtype=float), RNG.normal(size=(ROWS, 5))])
Y = (X[:, 1] > 0).astype(int)
GRID = {"fit_intercept": [True, False]}


@dataclass
class Given(BaseEstimator):
    """A fitted model whose predictions are the rows: a value, or probabilities.

    `classes_`: None for numbers; a row of two classes has the probability of the second alone.
    """

    classes_: Any = (0, 1)
    many_labels: bool = False

    def predict_proba(self, X):
        X = np.asarray(X)
        return np.column_stack([1.0 - X, X]) if X.shape[1] == 1 else X

    def predict(self, X):
        X = np.asarray(X)
        if self.classes_ is None:
            return X[:, 0]
        if self.many_labels:
            return (X > 0.5).astype(int)
        p = np.nan_to_num(self.predict_proba(X), nan=-1.0)
        return np.asarray(self.classes_)[p.argmax(axis=1)]


def toy(**changes):
    settings = {"estimator": DPLogisticRegression(), "grid": GRID}
    settings |= {"tries": 3.0, "metric": "accuracy"}
    return PrivateSearch(**settings | changes)


def delta_of(mu, epsilon):
    """Return the exact delta of a Gaussian release at this epsilon."""
    tails = norm.cdf([mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu])
    return float(tails @ [1.0, -math.exp(epsilon)])
