"""Many labels at once: one joint fit of a matrix of 0 and 1, its noise, and what it predicts."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import MultiLabelBinarizer, normalize

from dplasso import (
    DPFrankWolfeClassifier,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    PrivateSearch,
    private_score,
    write_store,
)
from dplasso.cluster import InProcessEngine

N, D, L = 4000, 12, 5
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.5)
X[0, 0] = 1.0
X = sp.csr_array(normalize(X))
WEIGHTS = RNG.normal(0.0, 5.0, (D, L))
# From a label that half of the rows have to one that a few have.
Y = (X @ WEIGHTS + RNG.logistic(size=(N, L)) > np.array([0.0, 0.5, 1.5, 3.0, 5.0])).astype(int)
NAMES = ["ant", "bee", "cat", "dog", "eel"]


@pytest.fixture(scope="module")
def model():
    return DPLogisticRegression(20.0, classes=NAMES, random_state=5).fit(X, Y)


def test_a_joint_fit_has_a_row_of_weights_for_each_label(model):
    assert model.coef_.shape == (L, D)
    assert model.classes_.tolist() == NAMES
    margins, given = model.decision_function(X), model.predict_proba(X)
    assert margins.shape == given.shape == (N, L)
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted, (given > 0.5).astype(int))
    np.testing.assert_array_equal(predicted, (margins > 0).astype(int))
    assert model.score(X, Y) > 0.3  # all five labels right
    for label in range(L):
        assert roc_auc_score(Y[:, label], margins[:, label]) > 0.8
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), given)


def test_probabilities_mean_what_they_say(model):
    """In tenths of the predictions, a share within four of its standard errors and .06."""
    given = model.predict_proba(X)
    for label in range(L):
        order = np.argsort(given[:, label]).reshape(10, -1)
        said, seen = given[order, label].mean(axis=1), Y[order, label].mean(axis=1)
        error = 4.0 * np.sqrt(seen * (1.0 - seen) / order.shape[1])
        assert (np.abs(said - seen) < 0.06 + error).all()


def test_the_noise_is_for_all_labels_together():
    """A record's residuals are sqrt(L) times as long as one label's."""
    many, one = (
        DPLogisticRegression(1e-2, fit_intercept=False, random_state=1).fit(X, y)
        for y in (Y, Y[:, 0])
    )
    bounds, moved = (
        [fit.privacy_.find("gradients").numbers[name] for fit in (many, one)]
        for name in ("residual_bound", "sensitivity")
    )
    assert bounds[0] == pytest.approx(0.5 * math.sqrt(L))
    assert moved[0] == pytest.approx(math.sqrt(L) * moved[1])
    assert many.privacy_.mu == pytest.approx(one.privacy_.mu)


def test_the_statement_says_that_the_labels_are_released_together(model):
    statement = model.privacy_
    assert (statement.many_labels, statement.n_classes) == (True, L)
    assert statement.classes == "declared"
    private = DPLogisticRegression(1.0).fit(X, Y).privacy_
    assert private.is_private
    assert private.classes == "declared"  # columns of y are public, as those of X
    text = private.text()
    assert "for all 5 labels together" in text
    assert "the 5 labels that a record may have" in text
    assert type(private).from_json(private.to_json()) == private
    with pytest.raises(ValueError, match="two or more"):
        type(private).from_dict({**private.to_dict(), "n_classes": 1})


def test_every_form_gives_the_same_bits():
    def weights(rows, labels, **given):
        fit = DPLogisticRegression(1.0, random_state=4).fit(rows, labels, **given)
        return np.concatenate([fit.coef_.ravel(), fit.intercept_])

    expected = weights(X, Y)
    frame = pd.DataFrame(Y, columns=NAMES)
    binarized = MultiLabelBinarizer(classes=range(L), sparse_output=True).fit_transform(
        [np.flatnonzero(row) for row in Y]
    )
    for labels in (Y.tolist(), Y.astype(bool), Y.astype(np.float32), frame, binarized):
        np.testing.assert_array_equal(weights(X, labels), expected)
    np.testing.assert_array_equal(weights(X.tocsc(), Y, groups=np.arange(N)), expected)
    parts = [X[:1500], X[1500:]], [Y[:1500], Y[1500:]]
    np.testing.assert_array_equal(weights(*parts, engine=InProcessEngine()), expected)


@pytest.mark.parametrize(
    ("estimator", "y", "words"),
    [
        (DPLogisticRegression(), 2 * Y, "must hold 0 and 1 only; row 1 of"),
        (DPLogisticRegression(), np.where(Y, "a", "b"), "0 and 1 only|not a number"),
        (DPLogisticRegression(), np.where(Y, np.nan, 0.0), "NaN"),
        (DPLogisticRegression(classes=["a", "b"]), Y, "5 columns, and classes names 2"),
        (DPLogisticRegression(class_weight=[1, 2]), Y, "class_weight is for one label in"),
        (DPLogisticRegression(), Y[:-1], "inconsistent numbers of samples"),
        (DPLogisticRegression(class_weight="balanced"), Y, "class_weight is for one la"),
        (
            DPLogisticRegression(public_data=(X[1:], Y[1:, :3])),
            Y,
            r"public_data: y has the shape \(3999, 3\); it needs one column for each of 5",
        ),
        (DPLogisticRegression(public_data=(X[1:], 2 * Y[1:])), Y, "public_data: y has a column"),
        (DPLogisticRegression(public_data=(X[1:], Y[1:])), Y[:, 0], "public_data: y should be a"),
        (DPLassoClassifier(), Y, "only DPLogisticRegression learns"),
        (DPFrankWolfeClassifier(n_iter=3), Y, "only DPLogisticRegression learns"),
        (DPLinearRegression(target_bounds=(0, 1)), Y, "y should be a 1d array"),
        (PrivateSearch(DPLassoClassifier(), {}), Y, "only DPLogisticRegression learns"),
        (PrivateSearch(DPLogisticRegression(), {"class_weight": [[1, 2]]}), Y, "class_weight must"),
        (PrivateSearch(DPLinearRegression(target_bounds=(0, 1)), {}), Y, "y should be a 1d array"),
    ],
)
def test_what_cannot_be_learnt_is_refused(estimator, y, words):
    with pytest.raises(ValueError, match=words):
        estimator.fit(X, y)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array])
def test_labels_in_parts_add_up_in_their_order_whatever_other_rows_do(model, form):
    """The parts of a row's labels come to 0 and 1 in stored order alone; the last row descends."""
    parts = np.repeat([[1e30, -1e30, 1e30, -1e30]], Y.size, axis=0)
    entries = np.column_stack([parts, Y.ravel()]).ravel()
    row, label = (np.repeat(places.ravel(), 5) for places in np.indices(Y.shape))
    label[-5 * L :] = np.repeat(np.arange(L)[::-1], 5)
    entries[-5 * L :] = entries[-5 * L :].reshape(L, 5)[::-1].ravel()
    ends = np.arange(N + 1) * 5 * L
    stored = sp.csr_array((entries, label, ends), shape=Y.shape)
    if form is sp.coo_array:
        stored = sp.coo_array((entries, (row, label)), shape=Y.shape)
    again = DPLogisticRegression(20.0, classes=NAMES, random_state=5).fit(X, form(stored))
    assert again.model_.digest == model.model_.digest


def test_each_label_has_the_standard_error_of_its_slope():
    short = DPLogisticRegression(20.0, max_weights=3, random_state=0).fit(X, Y)
    columns = np.unique(short.coef_.indices)
    assert short.coef_standard_error_.shape == (L, 3)
    for row in short.weights().rows():
        place = np.searchsorted(columns, row["column"])
        assert row["standard_error"] == short.coef_standard_error_[row["class"], place]


def test_public_rows_and_models_of_each_label_are_starts():
    public, few = slice(0, 200), slice(500, 2500)
    ones = LogisticRegression(C=10.0)
    starts = (
        {"public_data": (X[public], Y[public])},
        {"prior": np.vstack([ones.fit(X[public], y).coef_ for y in Y[public].T])},
    )
    alone, *others = (
        DPLogisticRegression(0.05, random_state=0, **start).fit(X[few], Y[few])
        for start in ({}, *starts)
    )
    assert "a LogisticRegression of scikit-learn for each label" in others[0].privacy_.prior
    for fit in others:
        assert fit.score(X[2500:], Y[2500:]) > alone.score(X[2500:], Y[2500:]) + 0.05
    # One that no public row has says nothing of the columns.
    missing = np.column_stack([Y[:40, :4], np.zeros(40, int)])
    fit = DPLogisticRegression(0.05, public_data=(X[:40], missing))
    prior = fit.fit(X[few], Y[few]).model_.prior
    assert prior.weights[:4].any(axis=1).all()
    assert not prior.weights[4].any()
    assert prior.intercept[4] == 0.0


def test_a_search_tries_settings_for_all_labels(tmp_path):
    search = PrivateSearch(
        DPLogisticRegression(classes=NAMES), {"row_norm": ["unit", 1.0]}, epsilon=5.0, tries=4
    )
    store = write_store(tmp_path / "rows.store", X, Y[:, 0])
    for rows in (X, store):
        search.fit(rows, Y)
        statement = search.privacy_
        assert (statement.many_labels, statement.n_classes) == (True, L)
        assert statement.epsilon <= 5.0
        assert search.metric_ == "auc"
        assert search.best_score_.value > 0.7
        assert search.predict_proba(X).shape == (N, L)
        assert search.classes_.tolist() == NAMES
        assert private_score(search, X, Y, 1.0).value > 0.7
    assert search.fit(X, Y, groups=np.arange(N)).classes_.tolist() == NAMES


def test_partitions_of_different_labels_are_refused():
    parts = [X[:1500], X[1500:]], [Y[:1500], Y[1500:, :3]]
    with pytest.raises(ValueError, match=r"partition 2: y has the shape \(2500, 3\)"):
        DPLogisticRegression().fit(*parts, engine=InProcessEngine())
    with pytest.raises(ValueError, match="only DPLogisticRegression learns"):
        DPLassoClassifier().fit([X], [Y], engine=InProcessEngine())
