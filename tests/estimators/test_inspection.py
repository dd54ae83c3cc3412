"""What a fitted model shows of itself: weights by name, numpy's idioms, a notebook's page."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import binom
from sklearn import config_context
from sklearn.pipeline import make_pipeline

from dplasso import DPFrankWolfeClassifier, DPLassoClassifier, DPLogisticRegression

BY_NOISE = "noise alone could have picked this"
NAMES = [f"name {j}" for j in range(8)]


def table(n_rows=3_000):
    """Return rows of which columns 0 and 1 tell the label, and no other."""
    rng = np.random.default_rng(0)
    X = (rng.random((n_rows, 8)) < 0.5).astype(float)
    return pd.DataFrame(X, columns=NAMES), X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n_rows) > 0


@pytest.fixture(scope="module", params=["lasso", "refit", "logistic", "short"])
def model(request):
    estimator = {
        "lasso": DPFrankWolfeClassifier(epsilon=3.0, n_iter=40, l1_radius=10.0),
        "refit": DPLassoClassifier(epsilon=3.0, max_weights=4),
        "logistic": DPLogisticRegression(epsilon=3.0),
        "short": DPLogisticRegression(epsilon=3.0, max_weights=3),
    }[request.param]
    return estimator.fit(*table())


def test_the_table_is_coef_by_name(model):
    dense = model.coef_ if isinstance(model.coef_, np.ndarray) else model.coef_.toarray()
    weights = model.weights()
    assert len(weights) == np.count_nonzero(dense) == len(list(weights))
    for name, value in weights:
        assert weights[name] == value == dense[0, NAMES.index(name)]
    np.testing.assert_array_equal(model.weights(dense=True), dense[0])
    assert dict(zip(weights.index, weights.values, strict=True)) == dict(weights)
    with pytest.raises(KeyError, match="no column 'height' has a weight"):
        weights["height"]
    frame = weights.to_pandas()
    assert frame["weight"].to_dict() == dict(weights)
    assert bool(frame.loc["name 0", "clear"])
    assert pd.DataFrame(weights).columns.tolist() == ["name", "weight"]


def test_the_largest_come_first_and_only_those_that_tell_are_clear(model):
    top = model.top_features(3)
    assert {"name 0", "name 1"} == set(top.index[:2])
    assert list(np.abs(top.values)) == sorted(np.abs(model.weights().values), reverse=True)[:3]
    rows = model.weights().rows()
    assert {row["name"] for row in rows if row["clear"]} >= {"name 0", "name 1"}
    # 40 uniform draws of 18 vertices take none as often, but in one run of twenty.
    chance = next(k for k in range(41) if 18 * binom.sf(k - 1, 40, 1 / 18) <= 0.05)
    for row in rows:
        assert row["clear"] == (row["steps"] >= chance if row["z"] is None else abs(row["z"]) > 3)
    marked = repr(model.weights()).count(BY_NOISE)
    assert marked == sum(not row["clear"] for row in rows)
    assert "name 0" in repr(top)
    if len(rows) > 3:
        assert marked > 0


def test_numpy_reads_sparse_weights_as_the_matrix_they_are():
    model = DPFrankWolfeClassifier(epsilon=3.0, n_iter=40, l1_radius=10.0).fit(*table())
    dense = model.coef_.toarray()
    assert isinstance(model.coef_, sp.csr_array)
    np.testing.assert_array_equal(np.argsort(model.coef_[0]), np.argsort(dense[0]))
    np.testing.assert_array_equal(np.abs(model.coef_), np.abs(dense))
    np.testing.assert_array_equal(np.asarray(model.coef_, dtype=np.float32), dense.astype("f4"))
    np.testing.assert_allclose(np.ones((2, 8)) @ model.coef_.T, np.ones((2, 8)) @ dense.T)
    assert model.coef_[0, 0] == dense[0, 0]
    assert (pickle.loads(pickle.dumps(model)).coef_ != model.coef_).nnz == 0
    with pytest.raises(ValueError, match="no dense memory"):
        np.asarray(model.coef_, copy=False)


def test_numpy_is_refused_where_there_are_too_many_columns():
    model = DPFrankWolfeClassifier(epsilon=3.0, n_iter=2, l1_radius=10.0).fit(*table())
    wide = type(model.coef_)(sp.csr_array(([1.0], [3], [0, 1]), shape=(1, 2**40)))
    assert wide[0, 3] == 1.0
    for idiom in (np.argsort, np.abs, np.asarray):
        with pytest.raises(ValueError, match=r"columns \(1,099,511,627,776\) .* model.weights\(\)"):
            idiom(wide[0])
    assert abs(wide).nnz == 1
    model.n_features_in_ = 10**8 + 1
    with pytest.raises(ValueError, match="for a dense array"):
        model.weights(dense=True)


def test_without_noise_nothing_is_marked():
    X, y = table()
    for estimator in (DPLassoClassifier, DPLogisticRegression):
        fitted = estimator(epsilon=float("inf")).fit(X.to_numpy(), y)
        weights = fitted.weights()
        assert weights.clear is None
        assert not weights.standard_error
        assert weights.names is None
        assert weights[0] == fitted.weights(dense=True)[0]
        assert BY_NOISE not in repr(weights) + fitted._repr_mimebundle_()["text/html"]


def test_a_notebook_shows_the_report_once_there_is_a_model(model):
    shown = model._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    assert "Differentially private" in model._repr_html_()
    assert "Differentially private with epsilon = 3" in shown["text/html"]
    assert "name 0" in shown["text/html"]
    assert "<h1>" not in shown["text/html"].partition("dplasso-report")[2]
    assert "Differentially" not in type(model)()._repr_html_()
    assert "Pipeline" in make_pipeline(model)._repr_html_()
    with config_context(display="text"):
        assert set(model._repr_mimebundle_()) == {"text/plain"}
