"""Private scores of several classes and of many labels: how far a row moves them, and coverage."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, log_loss, roc_auc_score

from dplasso import DPLinearRegression, DPLogisticRegression, PrivateSearch, private_score
from dplasso.errors import DataError
from dplasso.privacy.randomness import random_stream
from dplasso.tuning.estimates import (
    MANY_LABELS,
    SEVERAL_CLASSES,
    UNIT,
    Target,
    standard_errors,
)
from dplasso.tuning.metrics import METRICS
from dplasso.tuning.scorer import noisy_sums
from dplasso.tuning.scores import target_of

K, REPEATS = 4, 500
Z95 = standard_errors(0.95)
CLASSES = Target(("ant", "bee", "cat", "dog"))
LABELS = Target(CLASSES.classes, many_labels=True)
CASES = [
    pytest.param(name, target, id=f"{name}-{target.kind}")
    for name, one in METRICS.items()
    for target in (CLASSES, LABELS)
    if target.kind in one.kinds
]
# Whose intervals are bounds: rows that several labels or classes share are taken to err alike.
WIDE = {("auc", MANY_LABELS), ("auc_weighted", MANY_LABELS), ("f1", MANY_LABELS)}
WIDE |= {("f1_weighted", MANY_LABELS), ("auc", SEVERAL_CLASSES), ("auc_weighted", SEVERAL_CLASSES)}


@dataclass
class Given(BaseEstimator):
    """A fitted model whose predictions are the rows: probabilities of classes or of labels."""

    many: bool = False
    classes_: Any = CLASSES.classes

    def predict_proba(self, X):
        return np.asarray(X)

    def predict(self, X):
        if self.many:
            return (np.asarray(X) > 0.5).astype(int)
        return np.asarray(self.classes_)[np.nan_to_num(X, nan=-1.0).argmax(axis=1)]


def sums(name, X, y, target):
    return METRICS[name].sums(Given(target.many_labels), np.asarray(X), np.asarray(y), target)


def rows(target):
    """List rows that an adversary might choose: predictions, and a class or labels."""
    rng = np.random.default_rng(0)
    odd = [0.0, 1e-300, 0.02, 0.25, 0.5, 0.98, 1.0, math.nan, math.inf, -1.0]
    found = [rng.choice(odd, K) for _ in range(60)]
    found += [np.full(K, p) for p in odd] + [np.eye(K)[k] for k in range(K)]
    if target.many_labels:
        truths = [np.zeros(K, int), np.ones(K, int), *(rng.integers(0, 2, (2, K)))]
    else:
        truths = list(target.classes)
    return [(p, y) for p in found for y in truths]


@pytest.mark.parametrize(("name", "target"), CASES)
class TestNeighbours:
    """Neighbouring rows, in integers: what the noise is proportional to."""

    def vectors(self, name, target):
        return [sums(name, [p], [y], target).tolist() for p, y in rows(target)]

    def test_one_row_added_and_one_exchanged(self, name, target):
        found = self.vectors(name, target)
        added = max(sum(entry**2 for entry in one) for one in found)
        moved = max(
            sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
            for one in found
            for other in found
        )
        metric = METRICS[name]
        for squares, bound in ((added, metric.share(target)), (moved, metric.exchange(target))):
            assert math.sqrt(squares) / UNIT <= bound
            # And the bound is no larger than it has to be.
            assert math.sqrt(squares) / UNIT > 0.999 * bound

    def test_a_row_counts_by_itself(self, name, target):
        X, y = (list(column) for column in zip(*rows(target), strict=True))
        total = np.sum(self.vectors(name, target), axis=0)
        assert (total == sums(name, X, y, target)).all()


def test_predictions_of_another_shape_are_refused():
    """By broadcasting every row would meet every other's label."""

    class Columns(Given):
        def predict(self, X):
            return super().predict(X)[:, np.newaxis]

        def predict_proba(self, X):
            return super().predict_proba(X)[:, :2]

    X, y = np.full((3, K), 0.25), np.array(["ant", "bee", "cat"])
    for name in ("accuracy", "f1", "log_loss", "auc"):
        with pytest.raises(DataError, match="the model predicts the shape"):
            METRICS[name].sums(Columns(), X, y, CLASSES)
    with pytest.raises(DataError, match="the model predicts the shape"):
        METRICS["mae"].sums(Columns(), X, np.zeros(3), Target())


# --- Values and intervals ----------------------------------------------------------------------


@lru_cache(maxsize=4)
def population(many, size):
    """Draw rows: probabilities that are badly calibrated, and classes or labels, some rarer."""
    rng = np.random.default_rng(3)
    margins = rng.normal(0.0, 1.3, (size, K))
    balance = np.array([0.4, 0.0, -0.3, -0.8])
    if many:
        y = (margins + balance + rng.logistic(size=(size, K)) > 0.4).astype(int)
        return 1.0 / (1.0 + np.exp(-1.3 * margins)), y
    chosen = (margins + balance + rng.gumbel(size=(size, K))).argmax(axis=1)
    p = np.exp(1.3 * margins)
    return p / p.sum(axis=1, keepdims=True), np.array(CLASSES.classes)[chosen]


def estimate(name, target, X, y, sigma, stream):
    exact = sums(name, X, y, target)
    noisy = exact / UNIT if sigma == 0 else noisy_sums(exact, 1.0, sigma, stream)
    return METRICS[name].estimate(noisy, sigma, Z95, target), noisy


def test_without_noise_they_are_what_scikit_learn_computes():
    p, y = population(False, 20_000)
    predicted = np.array(CLASSES.classes)[p.argmax(axis=1)]
    expected = {
        "accuracy": accuracy_score(y, predicted),
        "confusion": accuracy_score(y, predicted),
        "auc": roc_auc_score(y, p, multi_class="ovr"),
        "auc_weighted": roc_auc_score(y, p, multi_class="ovr", average="weighted"),
        "f1": f1_score(y, predicted, average="macro"),
        "f1_weighted": f1_score(y, predicted, average="weighted"),
        "log_loss": log_loss(y, np.maximum(p, 0.01) / np.maximum(p, 0.01).sum(1, keepdims=True)),
    }
    assert expected.keys() == {name for name, one in METRICS.items() if CLASSES.kind in one.kinds}
    for name, value in expected.items():
        near = {"auc": 4e-3, "auc_weighted": 4e-3, "log_loss": 2e-2}.get(name, 1e-9)
        assert estimate(name, CLASSES, p, y, 0.0, None)[0].value == pytest.approx(value, abs=near)
    _, noisy = estimate("f1", CLASSES, p, y, 0.0, None)
    told = METRICS["f1"].details(noisy, 0.0, Z95, CLASSES)
    matrix = confusion_matrix(y, predicted, labels=CLASSES.classes)
    assert [cell.rows for cell in told.confusion] == matrix.ravel().tolist()
    shares = (matrix / matrix.sum(axis=1, keepdims=True)).ravel()
    np.testing.assert_allclose([cell.share for cell in told.confusion], shares)
    each = f1_score(y, predicted, average=None, labels=CLASSES.classes)
    np.testing.assert_allclose([one.value for one in told.by_class], each)
    assert [one.label for one in told.by_class] == list(CLASSES.classes)


def test_of_labels_too():
    p, y = population(True, 20_000)
    predicted = (p > 0.5).astype(int)
    expected = {
        "accuracy": np.mean(predicted == y),
        "auc": roc_auc_score(y, p),
        "auc_weighted": roc_auc_score(y, p, average="weighted"),
        "f1": f1_score(y, predicted, average="macro"),
        "f1_weighted": f1_score(y, predicted, average="weighted"),
        "log_loss": np.mean([log_loss(y[:, k], np.clip(p[:, k], 0.01, 0.99)) for k in range(K)]),
    }
    assert expected.keys() == {name for name, one in METRICS.items() if LABELS.kind in one.kinds}
    for name, value in expected.items():
        near = {"auc": 4e-3, "auc_weighted": 4e-3, "log_loss": 2e-3}.get(name, 1e-9)
        found, noisy = estimate(name, LABELS, p, y, 0.0, None)
        assert found.value == pytest.approx(value, abs=near)
        if name == "auc":
            told = METRICS[name].details(noisy, 0.0, Z95, LABELS).by_class
            each = roc_auc_score(y, p, average=None)
            np.testing.assert_allclose([one.value for one in told], each, atol=4e-3)
            assert [one.rows for one in told] == y.sum(axis=0).tolist()


@pytest.mark.parametrize("sigma", [2.0, 12.0])
@pytest.mark.parametrize(("name", "target"), CASES)
def test_intervals_cover_what_they_claim(name, target, sigma):
    """Over 500 samples of rows, each with noise of its own, within two and a half standard errors.

    A false alarm in 80 where coverage is exact. Bounds may cover more, by a stated amount.
    """
    stream, rng = random_stream(11), np.random.default_rng(5)
    X, y = population(target.many_labels, 400_000)
    truth = estimate(name, target, X, y, 0.0, None)[0].value
    covered = 0
    for _ in range(REPEATS):
        chosen = rng.integers(0, y.shape[0], 1500)
        found = estimate(name, target, X[chosen], y[chosen], sigma, stream)[0]
        covered += found.low <= truth <= found.high
    error = 2.5 * math.sqrt(0.95 * 0.05 / REPEATS)
    assert covered / REPEATS >= 0.95 - error
    if (name, target.kind) not in WIDE:
        assert covered / REPEATS <= 0.95 + error


@pytest.mark.parametrize("target", [CLASSES, LABELS])
@pytest.mark.parametrize("name", ["auc", "f1"])
def test_intervals_of_each_class_cover_as_well(name, target):
    stream, rng = random_stream(2), np.random.default_rng(1)
    X, y = population(target.many_labels, 400_000)

    def each(noisy, sigma):
        told = METRICS[name].details(noisy, sigma, Z95, target)
        return [*told.by_class, *told.confusion]

    truth = [
        getattr(one, "share", getattr(one, "value", None))
        for one in each(estimate(name, target, X, y, 0.0, None)[1], 0.0)
    ]
    covered = np.zeros(len(truth))
    for _ in range(300):
        chosen = rng.integers(0, y.shape[0], 2000)
        noisy = estimate(name, target, X[chosen], y[chosen], 4.0, stream)[1]
        covered += [
            one.low <= true <= one.high for one, true in zip(each(noisy, 4.0), truth, strict=True)
        ]
    assert abs(covered.mean() / 300 - 0.95) < 0.02
    assert (covered / 300 > 0.9).all()


@pytest.mark.parametrize(("name", "target"), CASES)
def test_a_class_that_nobody_has_and_noise_beyond_all_rows(name, target):
    """An interval then reaches as far as it must, and nothing fails."""
    stream = random_stream(4)
    X, y = population(target.many_labels, 20_000)
    few = X[:5], y[:5]
    for _ in range(20):
        found, noisy = estimate(name, target, *few, 500.0, stream)
        told = METRICS[name].details(noisy, 500.0, Z95, target)
        for one in (found, *told.by_class):
            assert one.low <= one.value <= one.high
            assert math.isfinite(one.value)
    if target.many_labels:
        y = y.copy()
        y[:, 3] = 0
    else:
        y = np.where(y == "dog", "ant", y)
    found, noisy = estimate(name, target, X, y, 5.0, stream)
    told = METRICS[name].details(noisy, 5.0, Z95, target).by_class
    if told and name.startswith("auc"):
        assert (told[3].low, told[3].high) == (0.0, 1.0)
    assert found.low <= found.value <= found.high


# --- Defaults ----------------------------------------------------------------------------------


def test_the_default_metric_fits_the_target():
    p, y = population(False, 2000)
    assert private_score(Given(), p, y, 5.0).metric == "accuracy"
    p, y = population(True, 2000)
    score = private_score(Given(many=True), p, y, 5.0)
    assert score.metric == "auc"
    assert [one["label"] for one in score.to_dict()["by_class"]] == list(CLASSES.classes)
    X = np.random.default_rng(0).normal(size=(800, 5))
    for labels, estimator, metric in (
        (X[:, 0] > 0, DPLogisticRegression(20.0), "auc"),
        (np.digitize(X[:, 0], [-0.5, 0.5]), DPLogisticRegression(20.0), "accuracy"),
        (X[:, 0], DPLinearRegression(20.0, target_bounds=(-4, 4)), "mae"),
    ):
        fitted = estimator.fit(X, labels)
        assert private_score(fitted, X, labels).metric == metric
        search = PrivateSearch(estimator, {"max_weights": [2, 4]}, 20.0, tries=2, law="geometric")
        search.fit(X, labels)
        assert 0.0 <= search.best_score_.low <= search.best_score_.value
        with pytest.raises(ValueError, match=r"metric must be 'accuracy' or .*got 'calibration'"):
            search.set_params(metric="calibration").fit(X, labels)


@pytest.mark.parametrize("metric", ["auc", "f1_weighted", "log_loss"])
def test_a_search_of_several_classes_may_choose_by_each(metric):
    X = np.random.default_rng(0).normal(size=(1500, 5))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    search = PrivateSearch(
        DPLogisticRegression(),
        {"max_weights": [2, 4]},
        30.0,
        tries=2,
        law="geometric",
        metric=metric,
    )
    search.fit(X, y)
    assert search.best_score_.low <= search.best_score_.value <= search.best_score_.high
    assert search.best_estimator_.classes_.tolist() == [0, 1, 2]


def test_a_model_of_labels_and_rows_of_classes_do_not_go_together():
    X = np.random.default_rng(0).normal(size=(300, 5))
    Y = (X[:, :3] > 0).astype(int)
    many = DPLogisticRegression(20.0).fit(X, Y)
    with pytest.raises(DataError, match="predicts 3 labels of each row, and y has one label"):
        private_score(many, X, Y[:, 0], 1.0)
    with pytest.raises(DataError, match="predicts 3 labels of each row, and y has 2 labels"):
        private_score(many, X, Y[:, :2], 1.0)
    with pytest.raises(DataError, match="must hold 0 and 1 only: row 1"):
        private_score(many, X, Y + 1, 1.0)
    one = DPLogisticRegression(20.0).fit(X, Y[:, 0])
    with pytest.raises(DataError, match="predicts one label of each row, and y has 3"):
        private_score(one, X, Y, 1.0)
    assert target_of(many, many.classes_, 3) == Target((0, 1, 2), many_labels=True)
