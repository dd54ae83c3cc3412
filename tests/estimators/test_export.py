"""A fitted model without this package: scikit-learn, ONNX, shap."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, OneHotEncoder

from dplasso import (
    DPFrankWolfeClassifier,
    DPLogisticRegression,
    PrivacyStatement,
    PublicEncoder,
    load,
    save,
    to_onnx,
)
from phases.cases import PLANS, Case, rows, small

RNG = np.random.default_rng(1)
# Plans of classes, of rows that scikit-learn can scale. Few vertices make margins that are equal.
PLAIN = {name: case for name, case in PLANS.items() if case.targets in (2, 3) and not case.schema}
OTHERS = ("intervals", "frank-wolfe")
EXPORTED = {name: case for name, case in PLAIN.items() if not name.startswith(OTHERS)} | {
    "not private": Case(DPLogisticRegression(np.inf)),
    "not private, short list": Case(DPLogisticRegression(np.inf, max_weights=2)),
    "not private, three classes": Case(DPLogisticRegression(np.inf), 3),
    "vertices": Case(
        DPFrankWolfeClassifier(30.0, n_iter=30, feature_bound=0.5, residual_bound=1.0)
    ),
}
X, SCORE = rows(Case(None, "numbers"))
X[0] = 0.0
Y = np.where(SCORE > 1.5, "yes", "no")


@pytest.fixture(scope="module", params=EXPORTED)
def fitted(request):
    case = EXPORTED[request.param]
    with small(case):
        return clone(case.estimator).set_params(random_state=7).fit(X, rows(case)[1])


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_it_predicts_as_the_model_does(fitted, scale):
    plain, rows = fitted.to_sklearn(), scale * X
    margins = fitted.decision_function(rows)
    np.testing.assert_allclose(plain.decision_function(rows), margins, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(plain.predict(rows), fitted.predict(rows))
    np.testing.assert_array_equal(plain.classes_, fitted.classes_)
    assert b"dplasso" not in pickle.dumps(plain)
    # No linear model of scikit-learn has clipped probabilities: refused rather than wrong.
    stated = fitted.privacy_.find("gradients") or fitted.privacy_.find("vertices")
    bound = stated.numbers["residual_bound"]
    sigmoid = bound == 1.0 if fitted.classes_.size == 2 else bound == math.sqrt(2.0)
    assert isinstance(plain[-1], LogisticRegression if sigmoid else SGDClassifier)
    assert hasattr(plain, "predict_proba") == sigmoid
    if sigmoid:
        expected = fitted.predict_proba(rows)
        np.testing.assert_allclose(plain.predict_proba(rows), expected, rtol=2e-7, atol=1e-12)


def test_without_scaling_it_is_the_linear_part_and_takes_sparse_rows(fitted):
    linear = fitted.to_sklearn(scaling=False)
    kept = fitted.to_sklearn()[:-1].transform(X)
    rows = kept if kept.shape == X.shape else np.zeros_like(X)
    if kept.shape != X.shape:
        rows[:, np.unique(fitted.coef_.indices)] = kept
    np.testing.assert_allclose(
        linear.decision_function(sp.csr_array(rows)), fitted.decision_function(X), atol=1e-7
    )


def test_names_of_columns_go_along():
    frame = pd.DataFrame(X, columns=[f"name {j}" for j in range(30)])
    plain = DPFrankWolfeClassifier(epsilon=30.0, n_iter=5, l1_radius=9.0).fit(frame, Y).to_sklearn()
    assert list(plain.feature_names_in_) == list(frame.columns)
    assert plain.predict(frame).shape == (90,)
    with pytest.raises(ValueError, match="feature names should match"):
        plain.predict(frame.rename(columns={"name 0": "other"}))


def test_a_scaling_that_scikit_learn_does_not_have_is_refused():
    model = DPLogisticRegression(epsilon=30.0, row_norm=2.0).fit(X, Y)
    with pytest.raises(ValueError, match=r"pass scaling=False and divide the rows by max\(2, "):
        model.to_sklearn()
    rows = X / np.maximum(2.0, np.sqrt((X**2).sum(axis=1, keepdims=True)))
    margins = model.to_sklearn(scaling=False).decision_function(rows)
    np.testing.assert_allclose(margins, model.decision_function(X), atol=1e-7)


def run_onnx(model, graph, given):
    """Return what a graph makes of rows; it holds the statement of the model."""
    import onnxruntime

    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    statement = session.get_modelmeta().custom_metadata_map["privacy"]
    assert PrivacyStatement.from_json(statement) == model.privacy_
    return session.run(["label", "probabilities"], given)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e-30])
def test_onnx(fitted, scale):
    rows = (scale * X).astype(np.float32)
    labels, given = run_onnx(fitted, to_onnx(fitted), {"X": rows})
    np.testing.assert_allclose(given, fitted.predict_proba(rows), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(labels, fitted.predict(rows))


@pytest.mark.parametrize("many", [0, 2])
@pytest.mark.parametrize("kind", [str, int, bool, float])
def test_onnx_of_labels_of_every_kind_and_of_many(many, kind):
    rows = X.astype(np.float32)
    if many:
        y = (X @ RNG.normal(size=(30, many)) > 0).astype(kind if kind is not str else int)
    else:
        y = (X[:, 0] > 0).astype(kind)
    model = DPLogisticRegression(20.0, row_norm=2.0).fit(X, y)
    labels, given = run_onnx(model, to_onnx(model), {"X": rows})
    np.testing.assert_array_equal(labels, model.predict(rows))
    np.testing.assert_allclose(given, model.predict_proba(rows), rtol=1e-6, atol=1e-9)
    if many:
        with pytest.raises(ValueError, match=r"no linear model for many labels; use to_onnx\(\)"):
            model.to_sklearn()


JOBS = [["clerk", "nurse", "cook", "none"][k % 4] for k in range(400)]
TABLE = pd.DataFrame({"job": JOBS, "age": 20.0 + np.arange(400) % 50})
WORDS, TEXTS = [[job] for job in JOBS], [f"a {job}" for job in JOBS]
CODES = OneHotEncoder(categories=[["clerk", "cook", "nurse"]], handle_unknown="ignore")
COLUMNS = make_column_transformer((CODES, ["job"]), (Binarizer(threshold=40.5), ["age"]))
OF_TABLE = {"job": TABLE[["job"]].to_numpy(object), "age": TABLE[["age"]].to_numpy()}


def behind(step, rows):
    """Return a model behind a step."""
    y = np.where((TABLE.age > 40) ^ (TABLE.job == "cook"), "yes", "no")
    return make_pipeline(step, DPLogisticRegression(20.0, classes=["no", "yes"])).fit(rows, y)


@pytest.mark.parametrize(
    ("step", "rows", "given"),
    [
        (COLUMNS, TABLE, OF_TABLE),
        (FeatureHasher(16, input_type="string"), WORDS, {"X": np.array(WORDS, dtype=object)}),
    ],
    ids=["table", "words"],
)
@pytest.mark.parametrize("kept", [False, True])
def test_steps_and_model_are_one_graph(step, rows, given, kept, tmp_path):
    pipeline = behind(step, rows)
    if kept:
        save(pipeline, tmp_path / "m.npz")
        pipeline = load(tmp_path / "m.npz")
    labels, found = run_onnx(pipeline[-1], to_onnx(pipeline, rows[:3]), given)
    np.testing.assert_allclose(found, pipeline.predict_proba(rows), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(labels, pipeline.predict(rows))


BINS = PublicEncoder({"parts": [{"kind": "bins", "column": "age", "edges": [40]}]})


@pytest.mark.parametrize(
    ("step", "rows"), [(HashingVectorizer(n_features=16), TEXTS), (BINS, TABLE)]
)
def test_a_step_without_an_operator_is_named(step, rows):
    pipeline, name = behind(step, rows), type(step).__name__
    with pytest.raises(ValueError, match=rf"^{name} cannot be part .*pipeline\[-1\].to_onnx"):
        to_onnx(pipeline, rows[:1])
    with pytest.raises(ValueError, match="example is missing"):
        to_onnx(pipeline)


# On import: colour maps made in a way that a later matplotlib will not know.
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_shap(fitted):
    import shap

    plain = fitted.to_sklearn()
    rows = plain[:-1].transform(X)
    values = shap.LinearExplainer(plain[-1], rows)(rows)
    total = values.values.sum(axis=1) + values.base_values
    np.testing.assert_allclose(total, fitted.decision_function(X), atol=1e-6)
