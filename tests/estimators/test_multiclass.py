"""More than two classes: one joint fit, its cost, classes and probabilities."""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso import DPLassoClassifier, DPLogisticRegression
from estimators.kinds import each_classifier, make, numbers
from fit.cases import COLUMNS, NAMES, four_classes


@pytest.fixture(scope="module")
def models():
    """Models of both estimators that know the classes well, the LASSO's of 20 columns."""
    options = {"epsilon": 20.0, "random_state": 7}
    lasso = DPLassoClassifier(max_weights=20, **options).fit(*four_classes())
    return {"lasso": lasso, "logistic": DPLogisticRegression(**options).fit(*four_classes())}


def matrix(model):
    return numbers(model)[:-4].reshape(4, COLUMNS)


@each_classifier
def test_a_joint_fit_has_a_row_of_weights_for_each_class(models, kind):
    (X, y), model = four_classes(), models[kind]
    assert model.coef_.shape == (4, COLUMNS)
    assert model.intercept_.shape == (4,)
    assert model.classes_.tolist() == NAMES.tolist()
    margins = model.decision_function(X)
    np.testing.assert_array_equal(NAMES[margins.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    # Three columns tell each class.
    for k in range(4):
        assert matrix(model)[k, :12].reshape(4, 3).mean(axis=1).argmax() == k
    assert model.score(X, y) > 0.8
    if kind == "lasso":
        assert set(range(12)) <= set(model.coef_.indices.tolist())
        assert abs(model.n_records_ - 900) < 100


@each_classifier
def test_the_table_of_weights_names_the_classes(models, kind):
    model = models[kind]
    dense, found, rows = matrix(model), model.weights(), model.top_features(5).rows()
    where = np.searchsorted(NAMES, found.labels), found.columns
    np.testing.assert_array_equal(dense[where], found.values)
    np.testing.assert_array_equal(model.weights(dense=True), dense)
    if kind == "logistic":
        error = model.coef_standard_error_[rows[0]["column"]]
        assert rows[0]["z"] == rows[0]["weight"] / error
    assert rows[0]["class"] in repr(model.top_features(1))
    assert f"{rows[0]['class']}: column {rows[0]['column']}<" in model._repr_html_inner()
    assert "ant, bee, cat, dog" in model._repr_html_inner()


@pytest.mark.parametrize(
    ("kind", "name", "moved"),
    [("frank-wolfe", "vertices", 0.5), ("logistic", "gradients", np.sqrt(0.75))],
)
def test_its_cost_is_that_of_one_fit(kind, name, moved):
    """However many classes: the noise of a weight does not grow but by the residual's norm."""
    X, y = (part[:100] for part in four_classes())
    two, joint = (make(kind).fit(X, labels).privacy_ for labels in (y == "ant", y))
    assert joint.is_private
    assert joint.epsilon <= 1.0
    assert joint.n_classes == 4
    assert joint.find(name).numbers["sensitivity"] == pytest.approx(moved)
    assert joint.number("eps0") == (two.number("eps0") and pytest.approx(two.number("eps0")))
    assert joint.mu == pytest.approx(two.mu)
    text = joint.text()
    assert "the 4 class labels (they were taken from the data)" in text
    assert "noisy counts of the 4 classes" in text


@pytest.mark.parametrize(
    ("kind", "epsilon", "columns", "p"),
    [("lasso", 8.0, 100, [0.8, 0.15, 0.05]), ("logistic", 2.0, 1, [0.9, 0.07, 0.03])],
)
def test_probabilities_are_calibrated(kind, epsilon, columns, p):
    """Without columns that tell anything they are the shares of the classes, by the bounded link.

    The plain softmax of the same margins is too far off to pass, so the check has power.
    """
    rng = np.random.default_rng(5)
    y = rng.choice(3, 20_000, p=p)
    X = sp.csr_array((rng.random((y.size, columns)) < 0.01).astype(np.float32))
    model = make(kind, epsilon, max_weights=5 if kind == "lasso" else None, random_state=0).fit(
        X, y
    )
    shares = np.bincount(y) / y.size
    np.testing.assert_allclose(model.predict_proba(X).mean(axis=0), shares, atol=0.03)
    plain = np.exp(model.decision_function(X))
    plain /= plain.sum(axis=1, keepdims=True)
    assert np.abs(plain.mean(axis=0) - shares).max() > 0.03
