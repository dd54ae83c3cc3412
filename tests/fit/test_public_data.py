"""A prior that is trained on public rows is a function of them, and of no private row."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from dplasso import DPLassoClassifier, DPLinearRegression, DPLogisticRegression, write_store

RNG = np.random.default_rng(5)
X = sp.csr_array(np.where(RNG.random((400, 8)) < 0.6, RNG.normal(size=(400, 8)), 0.0))
SCORE = X @ np.array([3.0, -2.0, 1.0, 0, 0, 0, 0, 0])
Y = np.where(SCORE + 0.3 * RNG.normal(size=400) > 0, "yes", "no")
PUBLIC = X[:150], Y[:150]
PRIVATE = X[150:], Y[150:]
BOUNDS = {"target_bounds": (-8.0, 8.0)}
KINDS = {"logistic": DPLogisticRegression(), "linear": DPLinearRegression(**BOUNDS)}


def fitted(kind, rows, labels, **options):
    return clone(KINDS[kind]).set_params(**options).fit(rows, labels)


def of_kind(kind, labels):
    return labels if kind == "logistic" else np.where(labels == "yes", 3.0, -3.0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_prior_of_neighbours_is_one(kind):
    rows, labels = PRIVATE[0], of_kind(kind, PRIVATE[1])
    public = PUBLIC[0], of_kind(kind, PUBLIC[1])
    others = rows.copy()
    others.data[:20] *= -50.0
    found = [
        fitted(kind, *some, public_data=public).model_.prior
        for some in ((rows, labels), (rows[1:], labels[1:]), (others, labels))
    ]
    assert len({one.digest for one in found}) == 1
    given = {"prior": found[0].weights}
    found = [
        fitted(kind, *some, **given).model_.prior
        for some in ((rows, labels), (rows[1:], labels[1:]))
    ]
    assert len({one.digest for one in found}) == 1


@pytest.mark.parametrize(
    ("model", "bound"),
    [
        (DPLogisticRegression(), 0.0),
        (DPLassoClassifier(), 0.0),
        (DPLogisticRegression(row_norm=2.0), 2.0),
    ],
)
def test_it_is_a_model_of_scikit_learn_of_rows_as_the_fit_reads_them(model, bound):
    """It is regularised as cross-validation says."""
    given = PUBLIC[0].copy()
    model.set_params(public_data=(given, PUBLIC[1])).fit(*PRIVATE)
    told = model.privacy_.prior
    assert "a LogisticRegression of scikit-learn trained on 150 public rows with C = " in told
    strength = float(told.split("C = ")[1].split(",")[0])
    lengths = np.sqrt(PUBLIC[0].multiply(PUBLIC[0]).sum(axis=1))
    unit = PUBLIC[0].toarray() * np.sqrt(0.99) / np.maximum(lengths, bound or 1e-9)[:, np.newaxis]
    same = LogisticRegression(C=strength, max_iter=1_000).fit(sp.csr_array(unit), PUBLIC[1])
    np.testing.assert_allclose(model.model_.prior.weights, same.coef_, rtol=1e-5, atol=1e-8)
    assert (given != PUBLIC[0]).nnz == 0, "the rows that were given are as they were"


def test_a_regression_learns_the_targets_within_the_interval():
    far = np.where(PUBLIC[1] == "yes", 1e9, -1e9)
    near = np.where(PUBLIC[1] == "yes", 8.0, -8.0)
    found = [
        fitted("linear", PRIVATE[0], SCORE[150:], public_data=(PUBLIC[0], y)).model_.prior.digest
        for y in (far, near)
    ]
    assert found[0] == found[1]


def test_rows_in_a_frame_are_matched_by_name_and_a_store_is_read(tmp_path):
    names = list("abcdefgh")
    frame = pd.DataFrame(PRIVATE[0].toarray(), columns=names)
    public = pd.DataFrame(PUBLIC[0].toarray(), columns=names)[["c", "a", "b"]]
    model = fitted("logistic", frame, PRIVATE[1], public_data=(public, PUBLIC[1]))
    assert "3 of 8 columns matched by name" in model.privacy_.prior
    assert (model.model_.prior.weights[0, 3:] == 0.0).all()
    labels = (PUBLIC[1] == "yes").astype(float)
    store = write_store(tmp_path / "rows", PUBLIC[0], labels)
    private = PRIVATE[0], (PRIVATE[1] == "yes").astype(int)
    read = fitted("logistic", *private, public_data=(store, None))
    same = fitted("logistic", *private, public_data=(PUBLIC[0], labels))
    assert read.model_.prior.digest == same.model_.prior.digest


@pytest.mark.parametrize("kinds", [(bool, int), (int, bool), (bool, float)])
def test_zero_and_one_stand_for_false_and_true(kinds):
    private, public = (
        (rows, (y == "yes").astype(kind))
        for (rows, y), kind in zip((PRIVATE, PUBLIC), kinds, strict=True)
    )
    classes = np.array([False, True]).astype(kinds[0])
    model = fitted("logistic", *private, classes=classes, public_data=public)
    assert "trained on" in model.privacy_.prior


def test_very_few_rows_do():
    few = [0, 1, *np.flatnonzero(PUBLIC[1] != PUBLIC[1][0])[:1]]
    model = fitted("logistic", *PRIVATE, public_data=(PUBLIC[0][few], PUBLIC[1][few]))
    assert "trained on 3 public rows with C = 1," in model.privacy_.prior


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((X[:150], Y[:149]), "public_data: Found input variables with inconsistent"),
        ((X[:150] * np.nan, Y[:150]), "public_data: Input X contains NaN"),
        (
            (X[:150], ["yes"] * 150),
            "public_data: y holds the classes yes, and the data have no, yes",
        ),
        ((X[:150], Y == "yes"), "public_data"),
        (X[:150], r"public_data must be a pair \(X, y\) .* got an object of type csr_array"),
        ((X[:150], np.where(Y[:150] == "yes", 1, 0)), "public_data: y holds the classes 0, 1"),
        ((X[:150, :5], Y[:150]), "prior has 5 columns and the data have 8"),
    ],
)
def test_public_rows_that_do_not_fit_are_refused(data, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fitted("logistic", *PRIVATE, public_data=data)
    with pytest.raises(ValueError, match="public_data: y holds a value that is not a number"):
        fitted("linear", PRIVATE[0], SCORE[150:], public_data=PUBLIC)
