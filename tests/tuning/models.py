"""Models and private estimators small enough to be run thousands of times."""

import math
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator

from dplasso import PrivateSearch
from dplasso.estimators.base import PrivateClassifier
from dplasso.fit.task import Labels
from dplasso.privacy.budget import Draws, build_budget
from dplasso.privacy.statement import StatedRelease, make_statement

RNG = np.random.default_rng(0)
ROWS = 400
X = np.column_stack([np.arange(ROWS, dtype=float), RNG.normal(size=(ROWS, 5))])
Y = (X[:, 1] > 0).astype(int)
GRID = {"bias": [-2.0, 2.0]}


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


@dataclass(frozen=True)
class NoisyMethod:
    """What a search asks of a method, for one Gaussian variate."""

    params: dict[str, Any]
    column_bytes: ClassVar[int] = 12
    many_labels: ClassVar[bool] = False

    @classmethod
    def from_params(cls, params):
        return cls(params)

    @property
    def targets(self):
        return Labels(self.params["classes"])

    def starting(self, *_):
        return self

    def budget(self, *_):
        names = "epsilon", "delta", "neighbors", "rows_per_person"
        return build_budget(Draws(gaussian=1.0), n_iter=1, **{k: self.params[k] for k in names})

    cost = budget

    def statement(self, task, budget, n_features):
        seeded, releases = self.params["random_state"] is not None, [StatedRelease("fit", "", {})]
        return make_statement(budget, releases, seeded=seeded, classes_declared=True)


@dataclass(frozen=True)
class NoisyModel:
    """What a search asks of a model."""

    statement: Any
    feature_names: Any = None
    origin: Any = None
    digest: str = "0" * 64


class NoisyShare(PrivateClassifier):
    """A private estimator that is quickly fitted: the share of the second label, with noise.

    It remembers which rows it was shown, by their first entry: `seen` of the class, in order.
    """

    seen: ClassVar[list[tuple[str, tuple[float, ...]]]] = []
    _method = NoisyMethod

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-6,
        bias=0.0,
        classes=None,
        neighbors="add-remove",
        rows_per_person=1,
        random_state=None,
        verbose=None,
        ledger=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bias = bias
        self.classes = classes
        self.neighbors = neighbors
        self.rows_per_person = rows_per_person
        self.random_state = random_state
        self.verbose = verbose
        self.ledger = ledger

    def fit(self, X, y):
        self.seen.append(("fit", tuple(np.asarray(X)[:, 0].tolist())))
        self.classes_ = np.array([0, 1])
        method = NoisyMethod(self.get_params(deep=False))
        budget = method.budget()
        self.privacy_ = method.statement(None, budget, 1)
        self.model_ = NoisyModel(self.privacy_)
        self.share_ = float((np.sum(y) + np.random.default_rng().normal() / budget.mu) / 100.0)
        return self

    def predict_proba(self, X):
        self.seen.append(("score", tuple(np.asarray(X)[:, 0].tolist())))
        p = np.full(np.asarray(X).shape[0], 1.0 / (1.0 + math.exp(-self.bias)))
        return np.column_stack([1.0 - p, p])

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


def toy(**changes):
    settings = {"tries": 3.0, "metric": "accuracy"}
    return PrivateSearch(NoisyShare(), GRID, **(settings | changes))


def seen(wanted):
    """Return the rows that each fit, or each score, was shown; a score asks for one row a call."""
    tries = (list(rows) for kind, rows in groupby(NoisyShare.seen, itemgetter(0)) if kind == wanted)
    return [[int(row) for _, rows in one for row in rows] for one in tries]


def delta_of(mu, epsilon):
    """Return the exact delta of a Gaussian release at this epsilon."""
    tails = norm.cdf([mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu])
    return float(tails @ [1.0, -math.exp(epsilon)])
