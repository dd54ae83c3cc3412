"""scikit-learn's own checks, in full, and life inside its tools."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from dplasso import DPLassoClassifier, load
from frank_wolfe.cases import dense_rows, some_labels

INF = float("inf")
CLASSIFIERS = [
    *(f"DPLassoClassifier({e}, solver={s!r})" for e in (1.0, INF) for s in ("sparse", "standard")),
    *("DPLogisticRegression()", "DPLogisticRegression(inf)"),
    *("DPLogisticRegression(max_weights=2)", "DPLogisticRegression(max_weights='significant')"),
]
REGRESSIONS = [
    f"{kind}({epsilon}, target_bounds=(-100, 100))"
    for kind in ("DPLasso", "DPLinearRegression")
    for epsilon in (1.0, INF)
]


@pytest.mark.parametrize("estimators", [CLASSIFIERS, REGRESSIONS], ids=["classes", "numbers"])
def test_all_checks_pass(estimators):
    """In a process of its own: some of the checks want the array API switched on at import."""
    script = f"""
from math import inf
from sklearn.utils.estimator_checks import check_estimator
from dplasso import *
for estimator in ({", ".join(estimators)}):
    results = check_estimator(estimator, on_fail="raise", on_skip=None)
    assert all(result["status"] == "passed" for result in results)
    assert not any(result["expected_to_fail"] for result in results)
    names = {{result["check_name"] for result in results}}
    assert len(results) > 40
    assert {{"check_array_api_input", "check_estimator_sparse_array"}} <= names
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_only_private_models_may_score_poorly():
    assert get_tags(DPLassoClassifier()).classifier_tags.poor_score
    assert not get_tags(DPLassoClassifier(epsilon=INF)).classifier_tags.poor_score
    assert get_tags(DPLassoClassifier()).input_tags.sparse
    assert get_tags(DPLassoClassifier()).classifier_tags.multi_class


def test_clone_and_set_params_keep_every_parameter():
    params = {
        "epsilon": 2.0,
        "delta": 1e-7,
        "l1_radius": 3.0,
        "n_iter": 7,
        "feature_bound": 0.5,
        "neighbors": "replace-one",
        "fit_intercept": False,
        "classes": ("a", "b"),
        "mechanism": "paper",
        "solver": "standard",
        "selector": "noisy-max",
        "drift_tol": None,
        "random_state": 3,
        "n_jobs": 2,
        "verbose": 1,
        "ledger": "team.ledger",
        "dataset": "visits",
        "purpose": "spring",
        "class_weight": {"a": 1.0, "b": 2.0},
        "n_records": 1000,
        "refit": 0.5,
        "residual_bound": 0.75,
        "rows_per_person": 2,
        "weight_bound": 3.0,
    }
    model = DPLassoClassifier(**params)
    assert model.get_params() == params
    assert clone(model).get_params() == params
    assert DPLassoClassifier().set_params(**params).get_params() == params


@pytest.mark.parametrize("fitted", [False, True])
def test_pickling(fitted):
    X, y = dense_rows(40, 5, 0), some_labels(40, 0)
    model = DPLassoClassifier(n_iter=10, epsilon=INF)
    if fitted:
        model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.get_params() == model.get_params()
    if fitted:
        assert again.transcript_ == model.transcript_
        assert again.privacy_ == model.privacy_
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    again.fit(X, y)


def test_in_a_pipeline():
    texts = ["good fine day", "bad foul day", "fine good thing", "foul bad thing"] * 50
    labels = ["up", "down"] * 100
    model = make_pipeline(
        HashingVectorizer(binary=True, norm=None, n_features=2**12),
        DPLassoClassifier(epsilon=5.0, n_iter=10, classes=("down", "up"), random_state=0),
    ).fit(texts, labels)
    assert model.score(texts, labels) > 0.95
    assert model.predict(["good fine"]) == ["up"]


def test_cross_validation():
    X = dense_rows(90, 5, 0)
    y = (X[:, 0] > X[:, 1]).astype(int)
    scores = cross_val_score(DPLassoClassifier(epsilon=INF, n_iter=30), X, y, cv=3)
    assert scores.shape == (3,)
    assert scores.min() > 0.7


class TestNames:
    def test_they_are_kept_and_checked(self, tmp_path):
        X = pandas.DataFrame(dense_rows(40, 3, 0), columns=["age", "sex", "height"])
        y = some_labels(40, 0)
        model = DPLassoClassifier(n_iter=5).fit(X, y)
        assert model.feature_names_in_.tolist() == ["age", "sex", "height"]
        with pytest.raises(ValueError, match="feature names"):
            model.predict(X[["sex", "age", "height"]])
        model.save(tmp_path / "model.npz")
        again = load(tmp_path / "model.npz")
        assert again.feature_names_in_.tolist() == ["age", "sex", "height"]
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    def test_a_later_fit_without_names_forgets_them(self):
        X, y = dense_rows(40, 3, 0), some_labels(40, 0)
        model = DPLassoClassifier(n_iter=5).fit(pandas.DataFrame(X, columns=list("abc")), y)
        model.fit(X, y)
        assert not hasattr(model, "feature_names_in_")


def test_another_number_of_columns_is_refused_in_prediction():
    X, y = sp.csr_array(dense_rows(40, 5, 0)), some_labels(40, 0)
    model = DPLassoClassifier(n_iter=5).fit(X, y)
    with pytest.raises(ValueError, match="X has 4 features, but DPLassoClassifier is expecting 5"):
        model.predict(X[:, :4])
