"""A fitted model without this package: scikit-learn, ONNX, skops, shap, fairlearn."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, SGDClassifier

from dplasso import DPLassoClassifier, DPLogisticRegression
from dplasso.gradient_descent.release import scales_of

RNG = np.random.default_rng(1)
X = RNG.normal(size=(400, 6)) * (RNG.random((400, 6)) < 0.7)
X[0] = 0.0
Y = np.where(X[:, 0] - X[:, 1] + RNG.normal(size=400) > 0, "yes", "no")

ESTIMATORS = {
    "lasso": DPLassoClassifier(
        epsilon=30.0, n_iter=30, l1_radius=10.0, feature_bound=0.5, residual_bound=1.0
    ),
    "drawn": DPLassoClassifier(epsilon=30.0, n_iter=3, refit=None),
    "refit": DPLassoClassifier(epsilon=30.0, n_iter=3, refit=0.5),
    "default": DPLassoClassifier(epsilon=30.0),
    "logistic": DPLogisticRegression(epsilon=30.0),
    "sigmoid": DPLogisticRegression(epsilon=30.0, residual_bound=1.0, fit_intercept=False),
    "short": DPLogisticRegression(epsilon=30.0, max_weights=2),
    "scaled": DPLogisticRegression(epsilon=np.inf, n_iter=60),
    "scaled short": DPLogisticRegression(epsilon=np.inf, n_iter=60, max_weights=2),
}


@pytest.fixture(scope="module", params=list(ESTIMATORS))
def fitted(request):
    return ESTIMATORS[request.param].fit(X, Y)


def test_it_decides_as_the_model_does(fitted):
    plain, long = fitted.to_sklearn(), 3.0 * X
    margins = fitted.decision_function(long)
    np.testing.assert_allclose(plain.decision_function(long), margins, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(plain.predict(long), fitted.predict(long))
    if fitted.privacy_.residual_bound == 1.0:
        assert isinstance(plain[-1], LogisticRegression)
        np.testing.assert_allclose(plain.predict_proba(long), fitted.predict_proba(long), rtol=1e-6)
    else:
        # No model of scikit-learn has these probabilities: refused rather than wrong.
        assert isinstance(plain[-1], SGDClassifier)
        assert not hasattr(plain, "predict_proba")
    assert "dplasso" not in {type(step).__module__.split(".")[0] for _, step in plain.steps}


def test_without_scaling_it_is_the_linear_part_and_takes_sparse_rows(fitted):
    linear = fitted.to_sklearn(scaling=False)
    if isinstance(fitted, DPLassoClassifier) and not hasattr(fitted, "coef_standard_error_"):
        rows = np.clip(X, -fitted.feature_bound, fitted.feature_bound)
    else:
        kept, release = X, fitted.model_.release.refitted
        halves, columns = scales_of(release.energies), fitted.model_.release.columns
        if columns.size:
            kept = np.zeros_like(X)
            kept[:, columns] = X[:, columns]
            halves = np.ones(1) if halves.size == 1 else np.bincount(columns, halves, 6)
        kept = kept * halves
        length = np.sqrt((kept**2).sum(axis=1, keepdims=True))
        rows = np.divide(kept, length, where=length > 0, out=np.zeros_like(X))
    np.testing.assert_allclose(
        linear.decision_function(sp.csr_array(rows)), fitted.decision_function(X), atol=1e-7
    )


def test_names_of_columns_go_along():
    frame = pd.DataFrame(X, columns=[f"name {j}" for j in range(6)])
    plain = DPLassoClassifier(epsilon=30.0, n_iter=5, l1_radius=9.0).fit(frame, Y).to_sklearn()
    assert list(plain.feature_names_in_) == list(frame.columns)
    assert plain.predict(frame).shape == (400,)
    with pytest.raises(ValueError, match="feature names should match"):
        plain.predict(frame.rename(columns={"name 0": "other"}))


def test_a_scaling_that_scikit_learn_does_not_have_is_refused():
    model = DPLogisticRegression(epsilon=30.0, row_norm=2.0).fit(X, Y)
    with pytest.raises(ValueError, match=r"row_norm=2.0 .* scaling=False, divide the rows by max"):
        model.to_sklearn()
    rows = X / np.maximum(2.0, np.sqrt((X**2).sum(axis=1, keepdims=True)))
    margins = model.to_sklearn(scaling=False).decision_function(rows)
    np.testing.assert_allclose(margins, model.decision_function(X), atol=1e-7)


def test_onnx(fitted):
    import onnxruntime
    from skl2onnx import to_onnx

    rows = X.astype(np.float32)
    plain = fitted.to_sklearn()
    options = {"zipmap": False} if hasattr(plain, "predict_proba") else {"raw_scores": True}
    graph = to_onnx(plain, rows[:1], options={id(plain): options})
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    labels = session.run(None, {"X": rows})[0]
    sure = np.abs(fitted.decision_function(rows)) > 1e-4
    np.testing.assert_array_equal(labels[sure], fitted.predict(rows)[sure])
    assert sure.sum() > 390


def test_skops(fitted, tmp_path):
    import skops.io

    skops.io.dump(fitted.to_sklearn(), tmp_path / "model.skops")
    assert skops.io.get_untrusted_types(file=tmp_path / "model.skops") == []
    again = skops.io.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


# On import: colour maps made in a way that a later matplotlib will not know.
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_shap(fitted):
    import shap

    plain = fitted.to_sklearn()
    rows = plain[:-1].transform(X)
    values = shap.LinearExplainer(plain[-1], rows)(rows)
    total = values.values.sum(axis=1) + values.base_values
    np.testing.assert_allclose(total, fitted.decision_function(X), atol=1e-6)


def test_fairlearn(fitted):
    from fairlearn.metrics import MetricFrame, selection_rate

    frame = MetricFrame(
        metrics={"rate": lambda _, predicted: selection_rate(Y, predicted, pos_label="yes")},
        y_true=Y,
        y_pred=fitted.predict(X),
        sensitive_features=X[:, 2] > 0,
    )
    rates = [np.mean(fitted.predict(X)[part] == "yes") for part in (X[:, 2] <= 0, X[:, 2] > 0)]
    np.testing.assert_allclose(frame.by_group["rate"].astype(float), rates)
