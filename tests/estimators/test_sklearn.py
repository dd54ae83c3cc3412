"""scikit-learn's own checks, and life inside its tools; the interface that all estimators share."""

import ast
import inspect
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pandas
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils import get_tags

from dplasso import load
from estimators.kinds import (
    CLASSIFIERS,
    EVERY,
    each_kind,
    each_sort,
    every_kind,
    few,
    fitted,
    make,
    numbers,
    outputs,
    sort_of,
)

INF = float("inf")


@every_kind
def test_the_interface_is_the_documented_one(kind):
    """Which parameters there are, in which order, and what they are by default."""
    parameters, text = inspect.signature(EVERY[kind]).parameters, EVERY[kind].__doc__
    described = re.findall(r"^    (\w*[a-z]) : .*?(?:default=(.+))?$", text, re.MULTILINE)
    # What has to be given is described without a default, which is None.
    defaults = {name: ast.literal_eval(default or "None") for name, default in described}
    assert list(defaults.items()) == [(name, one.default) for name, one in parameters.items()]
    positional = [name for name, one in parameters.items() if one.kind is not one.KEYWORD_ONLY]
    assert positional == ["epsilon", "delta"]
    assert ">>> " in text


# All, of which a regression needs bounds on its targets; without noise more checks say something.
CHECKED = [
    *("DPLassoClassifier(inf)", "DPLogisticRegression()", "DPFrankWolfeClassifier(n_iter=20)"),
    *("DPLasso(target_bounds=(-100, 100))", "DPLinearRegression(inf, target_bounds=(-100, 100))"),
]
# These want the same model, to seven digits, of a row of weight 3 as of three rows. No private fit
# can pass them: the row is one record, which counts for no more than one.
EXPECTED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "a weighted row is one record"
    for kind in ("dense", "sparse")
}


def test_all_checks_pass():
    """In a process of its own: some of the checks want the array API switched on at import."""
    script = f"""
import warnings
from math import inf
from sklearn.utils.estimator_checks import check_estimator
from dplasso import *
from dplasso.gradient_descent import schedule
# The checks fit 500 times. Hundreds of steps take most of that, and nothing here needs so many.
schedule.FEWEST_STEPS, schedule.MOST_STEPS = 4, 12
# Of a few dozen records.
warnings.filterwarnings("ignore", ".*may be no better than chance", NoiseWarning)
warnings.filterwarnings("ignore", ".?sample_weight.? holds weights above", UserWarning)
for estimator in ({", ".join(CHECKED)}):
    results = check_estimator(
        estimator, on_fail="raise", on_skip=None, expected_failed_checks={EXPECTED}
    )
    assert all(result["status"] == "passed" for result in results if not result["expected_to_fail"])
    names = {{result["check_name"] for result in results}}
    assert len(results) > 40
    assert {{"check_array_api_input", "check_estimator_sparse_array"}} <= names
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:Caution:RuntimeWarning", "-c", script],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@each_kind
def test_tags(kind):
    tags = get_tags(make(kind))
    assert tags.input_tags.sparse
    if kind in CLASSIFIERS:
        # Only private models may score poorly.
        assert tags.classifier_tags.poor_score
        assert tags.classifier_tags.multi_class
        assert not get_tags(make(kind, epsilon=INF)).classifier_tags.poor_score


@each_kind
def test_a_clone_has_the_same_fitted_prior(kind):
    X, y = few(kind)
    public = make(kind, INF).fit(X, y)
    model = make(kind, prior=public)
    assert clone(model).prior is public
    assert clone(clone(model)).fit(X, y).privacy_.prior.startswith("a model of dplasso")
    rows = X, y
    assert clone(make(kind, public_data=rows)).public_data is rows
    again = pickle.loads(pickle.dumps(model)).fit(X, y)
    assert again.model_.prior.digest == model.fit(X, y).model_.prior.digest
    scores = cross_val_score(model, X, y, cv=2)
    assert np.isfinite(scores).all()


@each_sort
def test_pickles_and_files_hold_a_model(sort, tmp_path):
    model, X = fitted(sort), sort_of(sort)[1]
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert type(loaded) is type(model)
    assert type(loaded.coef_) is type(model.coef_)
    for again in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(numbers(again), numbers(model))
        np.testing.assert_array_equal(outputs(again, X), outputs(model, X))
        own = {name: getattr(model, name, None) for name in ("random_state", "classes")}
        assert again.get_params() | own == model.get_params() | own
        for name in ("transcript_", "coef_standard_error_", "n_records_", "n_iter_", "privacy_"):
            np.testing.assert_equal(getattr(again, name, None), getattr(model, name, None))
        if hasattr(model, "classes_"):
            assert again.classes_.tolist() == model.classes_.tolist()
    of_the_fit_alone = {"work_", "history_"}
    assert vars(loaded).keys() == vars(model).keys() - of_the_fit_alone
    statement = model.privacy_
    assert type(statement).from_json(statement.to_json()) == statement


@each_kind
def test_weights_and_groups_are_routed(kind):
    X, y = few(kind)
    given = {"sample_weight": np.linspace(0.0, 1.0, y.size), "groups": np.arange(y.size) // 2}
    model = make(kind, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = clone(model).set_fit_request(sample_weight=True, groups=True)
        routed = make_pipeline(MaxAbsScaler(), asked).fit(X, y, **given)[-1]
    direct = model.fit(MaxAbsScaler().fit_transform(X), y, **given)
    np.testing.assert_array_equal(numbers(routed), numbers(direct))
    with pytest.raises(TypeError, match="unexpected keyword argument 'weight'"):
        model.fit(X, y, weight=given["sample_weight"])


@each_kind
def test_column_names_are_kept_and_checked(kind, tmp_path):
    X, y = few(kind)
    frame = pandas.DataFrame(X.toarray(), columns=[f"word {j}" for j in range(12)])
    model = make(kind).fit(frame, y)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.feature_names_in_.tolist() == list(frame.columns)
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])
    assert not hasattr(model.fit(X, y), "feature_names_in_")
    with pytest.raises(ValueError, match=f"X has 11 features, but {type(model).__name__} is exp"):
        model.predict(X[:, :-1])


@each_kind
def test_an_unfitted_model_says_so(kind, tmp_path):
    model, (X, _) = make(kind), few(kind)
    asked = [(name, ()) for name in ("weights", "top_features")] + [("predict", (X,))]
    asked += [("save", (tmp_path / "model.npz",))]
    if kind in CLASSIFIERS:
        asked += [("predict_proba", (X,)), ("decision_function", (X,)), ("to_sklearn", ())]
    for name, arguments in asked:
        with pytest.raises(NotFittedError):
            getattr(model, name)(*arguments)
    assert not list(tmp_path.iterdir())
