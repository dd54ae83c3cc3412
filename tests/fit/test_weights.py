"""Weights of records and of classes: what each counts, and that no record counts for more."""

import warnings
from math import inf

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from dplasso import DataError, DPFrankWolfeClassifier, DPLogisticRegression, write_store
from dplasso.privacy import wording
from estimators.kinds import REGRESSIONS, each_kind, make, numbers
from fit.cases import records


@pytest.fixture(scope="module")
def data():
    X, y = records(60, 300)
    return X, (y == "yes").astype(int), np.random.default_rng(5).uniform(0.0, 3.0, 300)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("logistic", {}),
        ("logistic", {"class_weight": "balanced"}),
        ("lasso", {}),
        ("frank-wolfe", {"n_iter": 20, "l1_radius": 3.0}),
        ("lasso of numbers", {"target_bounds": (0, 3)}),
        ("linear", {"target_bounds": (0, 3)}),
    ],
    ids=["logistic", "balanced", "lasso", "vertices", "lasso of numbers", "linear"],
)
def test_weights_stand_for_repeated_rows(kind, options, n_classes):
    # The loop of vertices is compiled for two classes alone.
    n_classes = 2 if "l1_radius" in options else n_classes
    rng = np.random.default_rng(42)
    X, weights = rng.random((40, 12), dtype=np.float32), rng.integers(0, 5, 40)
    y = np.digitize(X[:, 0] + X[:, 1] + rng.random(40), [1.5, 1.9][: n_classes - 1])
    repeated = sp.csr_array(X.repeat(weights, axis=0))
    model = make(kind, inf, **options)
    plain = sklearn.clone(model).fit(repeated, y.repeat(weights))
    model.fit(sp.csr_array(X), y, sample_weight=weights)
    np.testing.assert_allclose(numbers(model), numbers(plain), rtol=1e-5, atol=1e-7)


@each_kind
def test_forms_files_and_people(kind, data, tmp_path):
    X, y, weights = data
    own = {"target_bounds": (0, 1)} if kind in REGRESSIONS else {}

    def fitted(*data, **given):
        # Of so few columns the LASSO takes all and draws none.
        return make(kind, 20.0, random_state=3, **own).fit(*data, **given)

    first = fitted(X, y, sample_weight=weights)
    again = fitted(write_store(tmp_path / "rows.store", X, y), sample_weight=weights.tolist())
    np.testing.assert_array_equal(numbers(first), numbers(again))
    # Rows beyond a person's go with their weights.
    one_each = fitted(X, y, sample_weight=weights, groups=np.arange(300) // 2)
    halved = fitted(X[::2], y[::2], sample_weight=weights[::2])
    np.testing.assert_array_equal(numbers(one_each), numbers(halved))


@pytest.mark.parametrize("kind", ["logistic", "linear"])
def test_where_rows_are_replaced_the_weight_of_one_does_not_count(kind):
    """The number of rows is public then, the sum of the weights is not: it must not be used.

    A row without entries pulls with nothing, so nothing but the count could tell its weight.
    """
    rng = np.random.default_rng(0)
    X = rng.random((60, 4)) * (rng.random((60, 4)) < 0.5)
    X[7] = 0.0
    y, weights, own = (X[:, 0] > 0.3).astype(int), np.full(60, 0.5), {}
    if kind in REGRESSIONS:
        # Its target, scaled to [-1, 1], has the square 1/2, which adds nothing to the spread.
        y, own = y.astype(float), {"target_bounds": (-1, 1)}
        y[7] = 0.5**0.5
    own |= {"neighbors": "replace-one", "fit_intercept": False}
    found = []
    for weight in (0.0, 1.0):
        weights[7] = weight
        model = make(kind, 50.0, random_state=3, **own).fit(X, y, sample_weight=weights)
        found.append(model.model_.digest)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([1.0, 2.0], r"has the shape \(2,\); one weight for each of 3 rows is needed"),
        (np.ones((3, 1)), "has the shape"),
        ([1.0, np.nan, 1.0], "holds NaN, infinity or a negative number"),
        ([1.0, np.inf, 1.0], "holds NaN, infinity or a negative number"),
        ([1.0, -1e-9, 1.0], "holds NaN, infinity or a negative number"),
        ([0.0, 0.0, 0.0], "sample_weight is zero for every row"),
        (["a", "b", "c"], "must hold finite numbers only"),
        # One text makes texts of all numbers, those of float16 with three digits.
        (np.array([*np.float16([0.1, 0.2]), "1"]), "must hold finite numbers only"),
        ([1.0, 10**400, 1.0], "must hold finite numbers only"),
    ],
)
def test_bad_weights_are_refused(given, named):
    with pytest.raises(DataError, match=named):
        DPLogisticRegression().fit(np.eye(3), [0, 1, 0], sample_weight=given)


@each_kind
def test_a_record_of_weight_1_counts_as_one(kind, data):
    """Larger weights are clipped; without privacy a weight of 3 stands for three rows."""
    X, y, weights = data
    own = {"target_bounds": (0, 1)} if kind in REGRESSIONS else {}

    def fitted(weights, epsilon=20.0):
        model = make(kind, epsilon, random_state=3, **own)
        return numbers(model.fit(X, y, sample_weight=weights))

    clipped = fitted(np.minimum(weights, 1.0))
    np.testing.assert_array_equal(fitted(weights), clipped)
    assert not np.array_equal(clipped, fitted(weights / 3.0))
    np.testing.assert_array_equal(fitted(weights, inf), fitted(weights / weights.max(), inf))


def test_the_curator_is_told_once_that_weights_were_clipped(monkeypatch):
    monkeypatch.setattr(wording, "_said", set())
    X, y = np.eye(30), np.arange(30) % 2

    def warned(weights, **given):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = DPLogisticRegression(**{"classes": [0, 1], **given})
            model.fit(X, y, sample_weight=weights)
        found = [one for one in caught if "weights above" in str(one.message)]
        return [str(one.message) for one in found], model.privacy_.text()

    assert not warned(np.linspace(0.0, 1.0, 30))[0]
    assert not warned(np.linspace(0.0, 9.0, 30), epsilon=inf)[0]
    ((told,), statement) = warned(np.linspace(0.0, 9.0, 30))
    assert "above 1, which were clipped to 1" in told
    assert "`sample_weight / limit`" in told
    assert "for you, not for release" in told
    assert statement == warned(np.linspace(0.0, 1.0, 30))[1]
    assert not warned(np.linspace(0.0, 9.0, 30))[0]


def test_class_weights_multiply_them_and_only_their_ratio_counts(data):
    X, y, weights = data[0], data[1], data[2] / 3.0
    options = {"epsilon": 20.0, "n_iter": 15, "l1_radius": 4.0, "random_state": 3}
    # Nothing is counted: a count knows the weights of records alone.
    options |= {"drift_tol": 0.0, "fit_intercept": False, "n_records": 300}
    by_row = weights * np.where(y, 1.0, 0.5)
    product = DPFrankWolfeClassifier(**options).fit(X, y, sample_weight=by_row)
    for given in ([0.5, 1.0], [2.0, 4.0]):
        model = DPFrankWolfeClassifier(class_weight=given, **options)
        assert model.fit(X, y, sample_weight=weights).transcript_ == product.transcript_


# The parts of the classes, by their number.
SHARES = {2: [0.95, 0.05], 3: [0.8, 0.15, 0.05]}


def skewed(n_classes, n_rows=4000, seed=0):
    """Return rows that tell their classes, of which some are rare."""
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n_rows, p=SHARES[n_classes])
    means = rng.normal(size=(n_classes, 10))
    return means[y] + rng.normal(0.0, 2.0, (n_rows, 10)), y


def recall(model, X, y):
    return balanced_accuracy_score(y, model.predict(X))


@pytest.mark.parametrize("n_classes", SHARES)
@pytest.mark.parametrize(
    "options",
    [{}, {"neighbors": "replace-one"}, {"fit_intercept": False}, {"rows_per_person": 2}],
    ids=str,
)
def test_rare_classes_are_found(n_classes, options):
    X, y = skewed(n_classes)
    options = {"classes": range(n_classes), "epsilon": 5.0, "random_state": 0} | options
    plain = DPLogisticRegression(**options).fit(X, y)
    balanced = DPLogisticRegression(class_weight="balanced", **options).fit(X, y)
    public = LogisticRegression(class_weight="balanced").fit(X, y)
    assert recall(balanced, X, y) > recall(public, X, y) - 0.05
    assert recall(balanced, X, y) > recall(plain, X, y) + 0.05
    told, own = (one.privacy_.find("gradients").numbers for one in (balanced, plain))
    assert told["sensitivity"] == own["sensitivity"]
    assert balanced.privacy_.records == "counted privately by class"


@pytest.mark.parametrize("n_classes", SHARES)
def test_without_noise_they_are_the_weights_of_the_counts(n_classes):
    X, y = skewed(n_classes)
    # By the names of the classes.
    weights = dict(enumerate((1.0 / np.bincount(y)).tolist()))
    given, balanced = (
        DPLogisticRegression(epsilon=inf, class_weight=own).fit(X, y)
        for own in (weights, "balanced")
    )
    # The longer path of larger weights ends elsewhere.
    directions = [own.coef_ / np.linalg.norm(own.coef_) for own in (balanced, given)]
    np.testing.assert_allclose(*directions, atol=0.03)
