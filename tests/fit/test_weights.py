"""Weights of records: what each counts, and that none counts for more than the bound."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils import estimator_checks

from dplasso import (
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    load,
    open_store,
)
from dplasso.data.blocks import matrix_source
from dplasso.data.store import write_store
from dplasso.errors import DataError
from dplasso.estimators.fitting import method_of
from dplasso.fit import stages
from dplasso.fit.records import LocalRecords
from dplasso.fit.weights import checked_weights
from dplasso.privacy.randomness import random_stream
from dplasso.runtime.threads import ONE_THREAD
from fit.cases import records

INF = math.inf
EXACT = {
    "logistic": DPLogisticRegression(epsilon=INF),
    "lasso": DPLassoClassifier(epsilon=INF),
    "lasso, vertices": DPLassoClassifier(epsilon=INF, n_iter=20, l1_radius=3.0),
    "lasso, standard": DPLassoClassifier(epsilon=INF, n_iter=20, l1_radius=3.0, solver="standard"),
    "lasso, drawn": DPLassoClassifier(epsilon=INF, n_iter=8),
    "lasso of numbers": DPLasso(epsilon=INF, target_bounds=(0, 3)),
    "linear": DPLinearRegression(epsilon=INF, target_bounds=(0, 3)),
}
PRIVATE = {
    "logistic": DPLogisticRegression(20.0, random_state=3),
    "lasso": DPLassoClassifier(20.0, random_state=3, n_iter=10),
    "lasso, vertices": DPLassoClassifier(20.0, random_state=3, n_iter=10, l1_radius=3.0),
    "lasso of numbers": DPLasso(20.0, random_state=3, n_iter=10, target_bounds=(0, 1)),
    "linear": DPLinearRegression(20.0, random_state=3, target_bounds=(0, 1)),
}
CHECKS = [
    "check_sample_weights_pandas_series",
    "check_sample_weights_not_an_array",
    "check_sample_weights_list",
    "check_all_zero_sample_weights_error",
    "check_sample_weights_shape",
    "check_sample_weights_not_overwritten",
]


def numbers(model):
    weights = model.coef_ if isinstance(model.coef_, np.ndarray) else model.coef_.toarray()
    return np.append(weights, model.intercept_)


@pytest.fixture(scope="module")
def data():
    X, y = records(60, 300)
    return X, (y == "yes").astype(int), np.random.default_rng(5).uniform(0.0, 3.0, 300)


@pytest.mark.parametrize("name", [name for name in EXACT if name != "lasso, standard"])
@pytest.mark.parametrize("check", CHECKS)
def test_scikit_learn_s_checks_of_weights(name, check):
    getattr(estimator_checks, check)("it", EXACT[name])


@pytest.mark.parametrize("name", ["logistic", "lasso", "lasso, drawn"])
def test_scikit_learn_s_check_of_one_class_left(name):
    estimator_checks.check_classifiers_one_label_sample_weights("it", EXACT[name])


@pytest.mark.parametrize("model", EXACT.values(), ids=EXACT)
@pytest.mark.parametrize("bound", [None, 7.0])
def test_weights_stand_for_repeated_rows(model, bound):
    rng = np.random.default_rng(42)
    X, weights = rng.random((40, 12), dtype=np.float32), rng.integers(0, 5, 40)
    y = (X[:, 0] + X[:, 1] + rng.random(40) > 1.5).astype(int)
    repeated = sklearn.clone(model).fit(X.repeat(weights, axis=0), y.repeat(weights))
    model = sklearn.clone(model).set_params(weight_bound=bound).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(numbers(model), numbers(repeated), rtol=1e-5, atol=1e-7)


def test_weights_of_several_classes():
    rng = np.random.default_rng(1)
    X, y, weights = rng.random((40, 6)), rng.integers(0, 3, 40), rng.integers(0, 4, 40)
    model = DPLogisticRegression(epsilon=INF, n_iter=50)
    repeated = sklearn.clone(model).fit(X.repeat(weights, axis=0), y.repeat(weights))
    model.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(numbers(model), numbers(repeated), rtol=1e-5, atol=1e-7)
    assert (
        DPLogisticRegression(weight_bound=2.0).fit(X, y, sample_weight=weights).privacy_.is_private
    )


@pytest.mark.parametrize("model", PRIVATE.values(), ids=PRIVATE)
class TestPrivateFits:
    def fitted(self, model, data, weights, bound=2.0, **options):
        model = sklearn.clone(model).set_params(weight_bound=bound)
        return model.fit(*data[:2], sample_weight=weights, **options)

    def test_only_the_ratio_to_the_bound_counts(self, model, data):
        weights = data[2]
        first = self.fitted(model, data, weights)
        np.testing.assert_array_equal(
            numbers(first), numbers(self.fitted(model, data, 4 * weights, 8))
        )
        assert not np.array_equal(numbers(first), numbers(self.fitted(model, data, weights, 8.0)))
        clipped = self.fitted(model, data, np.minimum(weights, 2.0))
        np.testing.assert_array_equal(numbers(first), numbers(clipped))

    def test_the_sensitivity_stays_and_the_bound_is_told(self, model, data):
        plain = sklearn.clone(model).fit(*data[:2]).privacy_
        told = self.fitted(model, data, data[2]).privacy_
        assert (told.sensitivity, told.weight_bound) == (plain.sensitivity, 2.0)
        assert plain.weight_bound is None
        again = type(told).from_json(told.to_json())
        assert again == told

    def test_no_bound_no_weights(self, model, data):
        with pytest.raises(ValueError, match="sample_weight needs weight_bound, a public bound"):
            self.fitted(model, data, data[2], None)

    def test_forms_and_files(self, model, data, tmp_path):
        X, y, weights = data
        write_store(matrix_source(X, y), tmp_path / "rows.store")
        first = self.fitted(model, data, weights)
        store = open_store(tmp_path / "rows.store")
        again = self.fitted(model, (store, None), weights.tolist())
        np.testing.assert_array_equal(numbers(first), numbers(again))
        first.save(tmp_path / "m.npz")
        loaded = load(tmp_path / "m.npz")
        np.testing.assert_array_equal(numbers(first), numbers(loaded))
        assert loaded.get_params()["weight_bound"] == 2.0
        assert loaded.privacy_ == first.privacy_

    def test_rows_beyond_a_person_s_go_with_their_weights(self, model, data):
        X, y, weights = data
        people = np.arange(300) // 2
        first = self.fitted(model, data, weights, groups=people)
        halved = self.fitted(model, (X[::2], y[::2]), weights[::2])
        np.testing.assert_array_equal(numbers(first), numbers(halved))


def test_a_statement_names_the_bound(data):
    X, y, weights = data
    text = DPLassoClassifier(weight_bound=2.0).fit(X, y, sample_weight=weights).privacy_.text()
    assert "the bound on the weights of records (2; larger weights were clipped to it)" in text


@pytest.mark.parametrize("name", ["logistic", "linear"])
def test_where_rows_are_replaced_the_weight_of_one_does_not_count(name):
    """The number of rows is public then, the sum of the weights is not: it must not be used.

    A row without entries pulls with nothing, so nothing but the count could tell its weight.
    """
    rng = np.random.default_rng(0)
    X = rng.random((60, 4)) * (rng.random((60, 4)) < 0.5)
    X[7] = 0.0
    y, weights = (X[:, 0] > 0.3).astype(int), np.full(60, 0.5)
    # So few and large steps that the number of rows limits them.
    model = sklearn.clone(PRIVATE[name]).set_params(
        epsilon=50.0, n_iter=2, neighbors="replace-one", fit_intercept=False, weight_bound=1.0
    )
    found = []
    for own in (0.0, 1.0):
        weights[7] = own
        found.append(numbers(sklearn.clone(model).fit(X, y, sample_weight=weights)))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.parametrize("bounds", [None, (-1.0, 1.0)])
def test_weighted_counts_move_by_no_more_than_their_sensitivity(neighbors, bounds, monkeypatch):
    monkeypatch.setattr(
        stages, "noisy_counts", lambda counts, _s, _mu, _stream, bits: np.array(counts) / 2**bits
    )
    kind = DPLassoClassifier if bounds is None else DPLasso
    options = {} if bounds is None else {"target_bounds": bounds}
    method = method_of(kind(neighbors=neighbors, weight_bound=1.0, **options))
    task = method.targets.of_size(2)
    mechanism = method.mechanism(task, 9, 3)
    X = sp.csr_array(np.ones((9, 3), dtype=np.float32))

    def counts(target, weight):
        targets, weights = np.linspace(-1, 1, 9), np.linspace(0, 1, 9)
        if bounds is None:
            targets = np.arange(9) % 2
        targets[4], weights[4] = target, weight
        records = LocalRecords(X, targets, 3, None, weights=weights).encoded(task)
        run = method.solver(task, mechanism, records, random_stream(0), ONE_THREAD)
        run.begin()
        return run.release(0).counts

    ends = [counts(t, w) for t in ((0, 1) if bounds is None else (-1, 1)) for w in (0.0, 0.3, 1.0)]
    absent = counts(0, 0.0)
    others = [absent] if neighbors == "add-remove" else ends
    farthest = max(np.linalg.norm(one - other) for one in ends for other in others)
    assert 0.999 * mechanism.count_sensitivity < farthest <= mechanism.count_sensitivity + 1e-6


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([1.0, 2.0], r"has the shape \(2,\); one weight for each of 3 rows is needed"),
        (np.ones((3, 1)), "has the shape"),
        ([1.0, np.nan, 1.0], "holds NaN, infinity or a negative number"),
        ([1.0, np.inf, 1.0], "holds NaN, infinity or a negative number"),
        ([1.0, -1e-9, 1.0], "holds NaN, infinity or a negative number"),
        ([0.0, 0.0, 0.0], "sample_weight is zero for every row"),
        (["a", "b", "c"], "holds something that is not a number"),
    ],
)
def test_bad_weights_are_refused(given, named):
    with pytest.raises(DataError, match=named):
        checked_weights(given, 3, 1.0, private=True)


def test_weights_are_parts_of_the_bound():
    given = np.array([0.0, 1.0, 2.0, 8.0])
    assert checked_weights(given, 4, 4.0, private=True).tolist() == [0.0, 0.25, 0.5, 1.0]
    assert checked_weights(given, 4, None, private=False).tolist() == [0.0, 0.125, 0.25, 1.0]
    assert given.tolist() == [0.0, 1.0, 2.0, 8.0]


def test_class_weights_multiply_them(data):
    X, y, weights = data
    model = DPLassoClassifier(INF, n_iter=15, l1_radius=4.0, drift_tol=0.0)
    product = sklearn.clone(model).fit(X, y, sample_weight=weights * np.where(y, 1.0, 0.5))
    both = model.set_params(class_weight=[0.5, 1.0]).fit(X, y, sample_weight=weights)
    assert both.transcript_ == product.transcript_


def test_weights_are_routed(data):
    X, y, weights = data
    with sklearn.config_context(enable_metadata_routing=True):
        model = DPLassoClassifier(epsilon=INF).set_fit_request(sample_weight=True)
        routed = make_pipeline(MaxAbsScaler(), model).fit(X, y, sample_weight=weights)[-1]
    direct = DPLassoClassifier(epsilon=INF).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(numbers(routed), numbers(direct))


def test_other_arguments_of_fit_are_refused(data):
    with pytest.raises(TypeError, match="unexpected keyword argument 'weight'"):
        DPLassoClassifier().fit(*data[:2], weight=data[2])
