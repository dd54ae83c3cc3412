"""The LASSO of more than two classes: one joint fit, its forms, files and figures."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso import DPLassoClassifier, load
from dplasso.model.report import report_section
from fit.cases import COLUMNS, NAMES, four_classes, other_forms, same_model


@pytest.fixture(scope="module")
def data():
    return four_classes()


def fitted(data, **options):
    return DPLassoClassifier(**({"epsilon": 20.0, "random_state": 7} | options)).fit(*data)


SETTINGS = {
    "default": {},
    "no refit": {"refit": None, "n_iter": 30},
    "steps": {"n_iter": 12},
    "radius": {"l1_radius": 5.0},
    "no privacy": {"epsilon": math.inf, "random_state": None, "n_iter": 20},
    "no intercept": {"fit_intercept": False, "n_records": 900},
    "public count": {"n_records": 900},
    "weights": {"class_weight": [1.0, 2.0, 3.0, 0.5]},
    "as in the paper": {"l1_radius": 5.0, "n_iter": 25},
}


@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
class TestForms:
    def test_the_same_bits_from_every_form(self, data, options, tmp_path):
        X, y = data
        first = fitted(data, **options)
        for form, labels in other_forms(X, y, tmp_path / "rows.store"):
            again = fitted((form, labels), **options)
            agree(first, again)
            np.testing.assert_allclose(
                again.decision_function(form), first.decision_function(X), rtol=1e-12, atol=1e-12
            )
        agree(first, fitted(data, n_jobs=2, **options))

    def test_both_solvers_take_the_same_steps(self, data, options):
        agree(
            *(
                fitted(data, solver=s, drift_tol=0, selector="noisy-max", **options)
                for s in ("sparse", "standard")
            )
        )

    def test_a_file_holds_it(self, data, options, tmp_path):
        model = fitted(data, **options)
        model.save(tmp_path / "m.npz")
        loaded = load(tmp_path / "m.npz")
        agree(model, loaded)
        assert loaded.coef_.shape == (4, COLUMNS)
        assert loaded.intercept_.shape == (4,)
        np.testing.assert_array_equal(loaded.predict_proba(data[0]), model.predict_proba(data[0]))
        assert loaded.privacy_ == model.privacy_
        assert "ant, bee, cat, dog" in loaded._repr_html_inner()


def agree(one, other):
    if one.model_.release.kind == "staged":
        same_model(one, other)
    assert one.transcript_ == other.transcript_
    np.testing.assert_array_equal(one.coef_.toarray(), other.coef_.toarray())


def test_it_finds_what_tells_the_classes(data):
    model = fitted(data, n_iter=20)
    assert set(range(12)) <= set(model.coef_.indices.tolist())
    for k in range(4):
        told = model.coef_.toarray()[k, :12].reshape(4, 3).mean(axis=1)
        assert told.argmax() == k
    assert model.score(*data) > 0.8
    assert abs(model.n_records_ - 900) < 100
    rows = model.top_features(5).rows()
    assert {row["class"] for row in rows} <= set(NAMES.tolist())
    for row in rows:
        k = NAMES.tolist().index(row["class"])
        assert row["weight"] == model.coef_.toarray()[k, row["column"]]
    np.testing.assert_allclose(model.predict_proba(data[0]).sum(axis=1), 1.0)


def test_every_weight_is_drawn_once(data):
    model = fitted(data, n_iter=200, refit=None)
    assert np.unique(model.transcript_.vertex).size == model.n_iter_ == 200
    assert model.coef_.nnz == 200
    output, column = np.divmod(model.transcript_.vertex, COLUMNS)
    signs = np.sign(model.coef_.toarray()[output, column])
    assert (signs == model.transcript_.sign).all()


def test_every_count_is_noisy(data):
    """A noisy count is a whole number by a chance of 2^-32."""
    X, y = data
    counts = [DPLassoClassifier(n_iter=1).fit(X, y).model_.release.counts for _ in range(5)]
    assert not (np.array(counts) % 1.0 == 0.0).any()
    assert np.std(counts, axis=0).min() > 5.0
    exact = np.bincount(np.searchsorted(NAMES, y))
    assert np.abs(np.mean(counts, axis=0) - exact).max() < 200.0


@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
def test_a_weight_says_of_which_class_it_is(data, options):
    model = fitted(data, **options)
    found = model.weights()
    assert set(found.labels) <= set(NAMES)
    where = np.searchsorted(NAMES, found.labels), found.columns
    np.testing.assert_array_equal(model.coef_.toarray()[where], found.values)
    largest = found.top(1).rows()[0]
    assert f"{largest['class']}: column {largest['column']}<" in report_section(model.model_)


def test_its_cost_is_that_of_one_fit(data):
    X, y = data
    two = DPLassoClassifier(n_iter=20, l1_radius=3.0).fit(X, y == "ant")
    four = DPLassoClassifier(n_iter=20, l1_radius=3.0).fit(X, y)
    assert four.privacy_.eps0 == two.privacy_.eps0
    assert four.privacy_.sensitivity == two.privacy_.sensitivity == 0.5
    text = DPLassoClassifier().fit(X, y).privacy_.text()
    assert "noisy counts of the 4 classes" in text
    assert "the 4 class labels (they were taken from the data)" in text


def test_probabilities_are_calibrated():
    """Without columns that tell anything, they are the shares of the classes."""
    rng = np.random.default_rng(5)
    y = rng.choice(3, 20_000, p=[0.8, 0.15, 0.05])
    X = sp.csr_array((rng.random((y.size, 300)) < 0.01).astype(np.float32))
    model = DPLassoClassifier(20.0, n_iter=5, random_state=0).fit(X, y)
    found = model.predict_proba(X).mean(axis=0)
    np.testing.assert_allclose(found, np.bincount(y) / y.size, atol=0.02)
    plain = np.exp(model.decision_function(X))
    plain /= plain.sum(axis=1, keepdims=True)
    assert np.abs(plain.mean(axis=0) - np.bincount(y) / y.size).max() > 0.03


def test_declared_classes_have_their_place_even_if_nobody_has_them(data):
    names = ["dog", "cat", "elk", "ant", "bee"]
    model = fitted(data, classes=names)
    assert model.classes_.tolist() == names
    assert not np.isin("elk", model.predict(data[0]))


@pytest.mark.parametrize("solver", ["sparse", "standard"])
def test_a_row_of_weight_zero_is_no_row(data, solver):
    X, y = data
    kept = np.arange(y.size) % 3 > 0
    options = {"epsilon": math.inf, "n_iter": 20, "l1_radius": 9.0, "classes": NAMES}
    weighted = DPLassoClassifier(**options, solver=solver).fit(X, y, sample_weight=1.0 * kept)
    without = DPLassoClassifier(**options, solver=solver).fit(X[kept], y[kept])
    agree(weighted, without)
    half = DPLassoClassifier(3.0, weight_bound=2.0).fit(X, y, sample_weight=np.ones(y.size))
    assert half.n_records_ == pytest.approx(y.size / 2, abs=100)


def test_who_counts_for_more_is_predicted_more_often(data):
    plain, weighted = (
        fitted(data, n_iter=20, class_weight=weight).predict(data[0])
        for weight in (None, {"ant": 1.0, "bee": 30.0, "cat": 1.0, "dog": 1.0})
    )
    assert (weighted == "bee").sum() > 1.2 * (plain == "bee").sum()
    same_model(
        fitted(
            data, n_iter=20, classes=NAMES, class_weight=dict(zip(NAMES, range(1, 5), strict=True))
        ),
        fitted(data, n_iter=20, class_weight=[1, 2, 3, 4]),
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"class_weight": [1.0, 2.0]}, "class_weight must have a weight for each of the 4 classes"),
        ({"mechanism": "paper"}, "mechanism='paper' is for two classes; there are 4"),
    ],
)
def test_what_is_for_two_classes_only_is_refused(data, options, named):
    with pytest.raises(ValueError, match=named):
        DPLassoClassifier(**options).fit(*data)
