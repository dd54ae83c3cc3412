"""Models and private estimators small enough to be run thousands of times."""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
from dp_accounting import GaussianDpEvent
from sklearn.base import BaseEstimator, ClassifierMixin

from dplasso import PrivateSearch
from dplasso.privacy.accounting import calibrate_mu

RNG = np.random.default_rng(0)
ROWS = 400
X = np.column_stack([np.arange(ROWS, dtype=float), RNG.normal(size=(ROWS, 5))])
Y = (X[:, 1] > 0).astype(int)
GRID = {"bias": [-2.0, 2.0]}
mu_of = lru_cache(calibrate_mu)


@dataclass
class Given(BaseEstimator):
    """A fitted model whose predictions are the rows: a probability, or a value to predict."""

    classes_: Any = (0, 1)

    def predict_proba(self, X):
        p = np.asarray(X)[:, 0]
        return np.column_stack([1.0 - p, p])

    def predict(self, X):
        if self.classes_ is None:
            return np.asarray(X)[:, 0]
        return np.asarray(self.classes_)[(np.asarray(X)[:, 0] > 0.5).astype(int)]


class NoisyShare(ClassifierMixin, BaseEstimator):
    """A private estimator of another package: the share of the second label, with Gaussian noise.

    It remembers which rows it was shown, by their first entry: `seen` of the class, in order.
    """

    seen: ClassVar[list[tuple[str, tuple[float, ...]]]] = []

    def __init__(self, epsilon=1.0, delta=1e-6, bias=0.0, classes=None):
        self.epsilon = epsilon
        self.delta = delta
        self.bias = bias
        self.classes = classes

    def privacy_event(self):
        return GaussianDpEvent(1.0 / mu_of(self.epsilon, self.delta))

    def fit(self, X, y):
        self.seen.append(("fit", tuple(np.asarray(X)[:, 0].tolist())))
        self.classes_ = np.array([0, 1])
        noise = np.random.default_rng().normal() / mu_of(self.epsilon, self.delta)
        self.share_ = float((np.sum(y) + noise) / 100.0)
        return self

    def predict_proba(self, X):
        self.seen.append(("score", tuple(np.asarray(X)[:, 0].tolist())))
        p = np.full(np.asarray(X).shape[0], 1.0 / (1.0 + math.exp(-self.bias)))
        return np.column_stack([1.0 - p, p])

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


def toy(**changes):
    settings = {"tries": 3.0, "law": "logarithmic", "metric": "accuracy"}
    return PrivateSearch(NoisyShare(), GRID, **(settings | changes))


def seen(wanted):
    """Return the rows that each fit, or each score, was shown; a score asks for one row a call."""
    tries = (list(rows) for kind, rows in groupby(NoisyShare.seen, itemgetter(0)) if kind == wanted)
    return [[int(row) for _, rows in one for row in rows] for one in tries]
