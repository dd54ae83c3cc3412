"""More than two classes: one joint fit, its classes, probabilities and files."""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso import DPLogisticRegression, load
from dplasso.checkpoint.session import fit_with_checkpoints, resume_fit
from dplasso.data.blocks import matrix_source
from dplasso.data.store import open_store, write_store
from dplasso.gradient_descent import run
from dplasso.gradient_descent.release import UNCHANGED
from dplasso.losses.multinomial import residual_norm_at_zero

INF = float("inf")
NAMES = np.array(["ant", "bee", "cat", "dog"])


def model(**options):
    return DPLogisticRegression(**({"random_state": 0} | options))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((600, 15)) < 0.4, rng.normal(size=(600, 15)), 0.0)
    weights = 8.0 * rng.normal(size=(15, 4))
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    return X, NAMES[(unit @ weights + rng.gumbel(size=(600, 4))).argmax(axis=1)]


def test_a_joint_fit_has_a_row_of_weights_for_each_class(data):
    X, y = data
    fitted = model(epsilon=INF).fit(X, y)
    assert fitted.coef_.shape == (4, 15)
    assert fitted.intercept_.shape == (4,)
    assert fitted.classes_.tolist() == NAMES.tolist()
    assert fitted.decision_function(X).shape == (600, 4)
    assert fitted.score(X, y) > 0.7
    np.testing.assert_array_equal(
        NAMES[fitted.decision_function(X).argmax(axis=1)], fitted.predict(X)
    )
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1.0)
    assert fitted.privacy_.residual_bound == np.sqrt(2.0)


def test_its_cost_is_that_of_one_fit(data, monkeypatch):
    """However many classes: the noise of a weight does not grow but by the residual's norm."""
    # But for the slope of the margins, which every fit finds for itself.
    monkeypatch.setattr(run, "calibrate_margins", lambda *_, **__: UNCHANGED)
    X, y = data
    two = DPLogisticRegression().fit(X, y == "ant")
    four = DPLogisticRegression().fit(X, y)
    assert four.privacy_.is_private
    assert four.privacy_.epsilon <= 1.0
    assert four.privacy_.mu == pytest.approx(two.privacy_.mu)
    assert four.privacy_.sensitivity == residual_norm_at_zero(4)
    assert four.privacy_.n_classes == 4
    assert "the 4 class labels (they were taken from the data)" in four.privacy_.text()
    assert four.coef_standard_error_ == pytest.approx(two.coef_standard_error_)


def test_declared_classes_have_their_place_even_if_nobody_has_them(data):
    X, y = data
    names = ["dog", "cat", "elk", "ant", "bee"]
    fitted = model(classes=names, epsilon=3.0).fit(X, y)
    assert fitted.classes_.tolist() == names
    assert fitted.privacy_.classes == "declared"
    assert not np.isin("elk", fitted.predict(X))
    with pytest.raises(
        ValueError,
        match="a label that is not one of the declared classes 'ant', 'bee' and 'cat': row",
    ):
        model(classes=["ant", "bee", "cat"]).fit(X, np.where(y == "cat", "dog", y))
    for wrong in (["ant"], ["ant", "bee", "ant"], [["ant", "bee"]]):
        with pytest.raises(ValueError, match="two or more different labels"):
            model(classes=wrong).fit(X, y)


def test_probabilities_are_calibrated(data):
    """What is predicted on average is how often it happens, by the clipped loss's own link.

    The plain softmax of the same margins is farther off, so the check has power.
    """
    rng = np.random.default_rng(5)
    true = np.array([0.9, 0.07, 0.03])
    y = rng.choice(3, 20_000, p=true)
    X = np.ones((y.size, 1))
    fitted = model(epsilon=2.0, n_iter=300).fit(X, y)
    found = fitted.predict_proba(X[:1])[0]
    shares = np.bincount(y) / y.size
    np.testing.assert_allclose(found, shares, atol=0.01)
    margins = fitted.decision_function(X[:1])[0]
    plain = np.exp(margins - margins.max())
    assert np.abs(plain / plain.sum() - shares).max() > 0.03


@pytest.mark.parametrize("max_weights", [None, 3, "significant"])
def test_files_keep_it(data, tmp_path, max_weights):
    X, y = data
    fitted = model(max_weights=max_weights, epsilon=5.0).fit(X, y)
    fitted.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.classes_.tolist() == NAMES.tolist()
    assert again.coef_standard_error_ == fitted.coef_standard_error_
    if max_weights == 3:
        assert fitted.coef_.shape == (4, 15)
        assert np.unique(fitted.coef_.indices).size == 3
    if max_weights == "significant":
        assert 0 < fitted.coef_.nnz < 60
        assert np.all(np.abs(fitted.coef_.data) > 3.0 * fitted.coef_standard_error_)


@pytest.mark.parametrize("max_weights", [None, 3])
def test_an_interrupted_fit_goes_on(data, tmp_path, max_weights):
    X, y = data
    path = tmp_path / "fit.checkpoint"
    options = {"max_weights": max_weights, "n_iter": 40}
    whole = fit_with_checkpoints(model(**options), X, y, path, seconds=0)
    resumed = resume_fit(model(**options), X, y, path)
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))


def test_stores_and_threads_give_the_same_model(data, tmp_path):
    X, y = data
    numbers = np.searchsorted(NAMES, y).astype(np.float64)
    write_store(matrix_source(sp.csr_matrix(X), numbers, "records"), tmp_path / "rows.store")
    store = open_store(tmp_path / "rows.store")
    one, other = model(n_iter=20).fit(X, numbers), model(n_iter=20, n_jobs=3).fit(store)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-9)
    np.testing.assert_allclose(other.predict_proba(store), one.predict_proba(X), rtol=1e-9)


def test_the_table_of_weights_names_the_classes(data):
    X, y = data
    fitted = model(epsilon=5.0).fit(X, y)
    assert fitted.weights(dense=True).shape == (4, 15)
    rows = fitted.top_features(5).rows()
    assert {row["class"] for row in rows} <= set(NAMES.tolist())
    for row in rows:
        k = NAMES.tolist().index(row["class"])
        assert row["weight"] == fitted.coef_[k, row["column"]]
        assert row["z"] == row["weight"] / fitted.coef_standard_error_
    assert rows[0]["class"] in repr(fitted.top_features(1))
    with pytest.raises(
        ValueError, match="only a model of two classes can become one of scikit-learn"
    ):
        fitted.to_sklearn()
    assert "ant, bee, cat, dog" in fitted._repr_html_inner()


def test_two_classes_of_many_that_could_be_are_the_binary_fit(data):
    X, y = data
    kept = np.isin(y, ["ant", "bee"])
    assert model(n_iter=5).fit(X[kept], y[kept]).coef_.shape == (1, 15)
