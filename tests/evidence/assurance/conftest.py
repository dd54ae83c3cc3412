"""Fixtures for replays; see `replay`."""

import warnings

import pytest
from sklearn.base import clone

from dplasso import DPFrankWolfeClassifier
from neighbours import BOUND, in_form
from replay import differences, record


@pytest.fixture
def private_model():
    """Return a maker of small private fits, which count nothing; arguments are the estimator's."""

    def make(**options):
        settings = {"n_iter": 12, "feature_bound": BOUND, "l1_radius": 40.0, "classes": (0, 1)}
        alone = {"fit_intercept": False, "n_records": 40}
        return DPFrankWolfeClassifier(**settings | alone | options)

    return make


@pytest.fixture
def replay():
    """Return a function that fits one of two neighbours, replays it on the other and compares.

    It returns what differs although the same vertices were released: an empty list where nothing
    else leaves a fit. The vertices are those given, or else the ones that the first fit draws.
    """

    def run(model, pair, form, drawn=None):
        one, other = in_form(form, pair)
        if drawn is None:
            with warnings.catch_warnings():
                # `record` looks at warnings; here they would only stop the test.
                warnings.simplefilter("ignore")
                drawn = clone(model).fit(*one).transcript_
        first, second = (record(model, data, drawn) for data in (one, other))
        assert first.error == ""
        return differences(first, second)

    return run
