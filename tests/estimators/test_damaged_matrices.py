"""Damaged matrices: whoever has scipy select from one knows before that no index lies outside."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dplasso import DataError, DPLassoClassifier, DPLogisticRegression, PrivateSearch, private_score
from dplasso.cluster import InProcessEngine

SHAPE = 12, 40
GOOD = sp.csr_array(np.random.default_rng(0).integers(0, 3, SHAPE).astype(np.float64))
Y, PEOPLE = np.arange(12) % 2, np.arange(12) // 2


def model(**options):
    given = {"epsilon": 5.0, "classes": [0, 1]} | options
    return DPLogisticRegression(**given)


def searched(estimator, X, **given):
    grid = {"fit_intercept": [True, False]}
    if hasattr(estimator, "steps"):
        grid = {f"dplogisticregression__{name}": some for name, some in grid.items()}
    known = {"tries": 2, "held_out": 0.5, "random_state": 1}
    return PrivateSearch(estimator, grid, 5.0, **known).fit(X, Y, **given)


def in_halves(X):
    halves = {"engine": InProcessEngine(), "groups": [PEOPLE, PEOPLE + 9]}
    return model(rows_per_person=1).fit([X, GOOD], [Y, Y], **halves)


WAYS = {
    "people": lambda X: model(rows_per_person=1).fit(X, Y, groups=PEOPLE),
    "people in partitions": in_halves,
    "public data": lambda X: model(public_data=(X, Y)).fit(GOOD, Y),
    "a short list": lambda X: model(max_weights=2).fit(GOOD, Y).predict(X),
    "a score of people": lambda X: private_score(model().fit(GOOD, Y), X, Y, 1.0, groups=PEOPLE),
    "a search": lambda X: searched(model(), X),
    "a search of people": lambda X: searched(model(rows_per_person=1), X, groups=PEOPLE),
    "a score behind a step": lambda X: private_score(
        make_pipeline(Normalizer(), model()).fit(GOOD, Y), X, Y, 1.0
    ),
    "a fit": lambda X: model().fit(X, Y),
    "a remark": lambda X: DPLassoClassifier(epsilon=5.0, max_weights=2, classes=[0, 1]).fit(X, Y),
}
FAR = 2**30
# What scipy reads on past comes first: a bug planted here is to fail, not to end the process.
DAMAGES = {
    "fewer entries": ("data", slice(10), None),
    "an index beyond": ("indices", 3, FAR),
    "an index one beyond": ("indices", 3, max(SHAPE)),
    "an index before": ("indices", 3, -FAR),
    "an index that is no number": ("indices", 3, np.float64("nan")),
    "a pointer beyond": ("indptr", 5, FAR),
    "a pointer before": ("indptr", 5, -FAR),
    "the first pointer": ("indptr", 0, FAR),
    "another first pointer": ("indptr", 0, 1),
    "a pointer below the one before": ("indptr", 5, 1),
    "other pointers": ("indptr", [*range(13), -1], None),
    "fewer indices": ("indices", slice(10), None),
    "fewer pointers": ("indptr", slice(10), None),
}


@pytest.mark.filterwarnings("ignore::dplasso.NoiseWarning", "ignore:Caution:RuntimeWarning")
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_matrix_is_refused_before_anything_is_selected(way, form):
    for name, place, number in DAMAGES.values():
        X = form(GOOD)
        array = getattr(X, name).copy()
        if number is None:
            array = array[place]
        else:
            array = array.astype(np.result_type(array.dtype, getattr(number, "dtype", array.dtype)))
            array[place] = number
        setattr(X, name, array)
        with pytest.raises(DataError, match="not a valid sparse matrix"):
            WAYS[way](X)


@pytest.mark.parametrize("number", [FAR, -FAR])
@pytest.mark.parametrize("place", ["row", "col", "indptr", "indices"])
def test_a_damaged_matrix_is_refused_before_it_is_converted(place, number):
    X = (sp.coo_matrix if place in ("row", "col") else sp.bsr_array)(GOOD.copy())
    getattr(X, place)[3] = number
    for work in (model().fit, lambda X, _: model().fit(GOOD, Y).predict(X)):
        with pytest.raises(DataError, match="not a valid sparse matrix"):
            work(X, Y)
