"""The parts of a LASSO fit with a given radius, for tests that look inside."""

import numpy as np

from dplasso.fit.lasso import Lasso
from dplasso.fit.records import LocalRecords
from dplasso.fit.task import Binary
from dplasso.fit.vertices import vertex_selector

TWO = Binary(np.arange(2))


def method_of(estimator):
    """The method of an estimator."""
    return Lasso.from_params(estimator.get_params(deep=False))


def records_of(X, labels):
    """Records whose labels are 0 and 1."""
    return LocalRecords(X, np.asarray(labels), X.shape[1], None).encoded(TWO)


def problem_of(estimator, X, labels):
    """What a fit minimises."""
    method = method_of(estimator)
    records = records_of(X, labels)
    mechanism = method.mechanism(TWO, *records.shape)
    return records.problem(method, method.steps(TWO, mechanism, records.n_features))


def selector_of(estimator, problem):
    """The structure that its vertices are drawn by."""
    method = method_of(estimator)
    return vertex_selector(method.selector, method.mechanism(TWO, 1, 1), problem)
