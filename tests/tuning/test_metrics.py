"""What every metric has to do for every kind of target: how far a row moves it, what it covers."""

import math
import warnings
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import f1_score, log_loss, mean_absolute_error, roc_auc_score
from tests.tuning.models import Given

from dplasso import DataError
from dplasso.privacy.randomness import random_stream
from dplasso.tuning.estimates import (
    MANY_LABELS,
    NUMBERS,
    SEVERAL_CLASSES,
    TWO_CLASSES,
    UNIT,
    Target,
    noisy_sums,
)
from dplasso.tuning.metrics import METRICS

K, REPEATS = 4, 500
Z95 = float(norm.ppf(0.975))
LETTERS = ("ant", "bee", "cat", "dog")
TARGETS = {
    NUMBERS: Target(bounds=(-1.0, 3.0)),
    TWO_CLASSES: Target((0, 1)),
    SEVERAL_CLASSES: Target(LETTERS),
    MANY_LABELS: Target(LETTERS, many_labels=True),
}
CASES = [
    pytest.param(name, kind, id=f"{name}-{kind}")
    for name, one in METRICS.items()
    for kind in TARGETS
    if kind in one.kinds
]
# Whose intervals are bounds: rows that several labels or classes share are taken to err alike.
WIDE = {(name, MANY_LABELS) for name in ("auc", "auc_weighted", "f1", "f1_macro", "f1_weighted")}
WIDE |= {("auc", SEVERAL_CLASSES), ("auc_weighted", SEVERAL_CLASSES)}


MODELS = {
    NUMBERS: Given(None),
    TWO_CLASSES: Given(),
    SEVERAL_CLASSES: Given(LETTERS),
    MANY_LABELS: Given(LETTERS, many_labels=True),
}


def sums(name, kind, X, y, model: Any = None):
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    with np.errstate(all="ignore"):
        return METRICS[name].sums(model or MODELS[kind], X, y, TARGETS[kind])


def estimate(name, kind, X, y, sigma=0.0, stream=None):
    """Return what noisy sums say, and the sums."""
    exact = sums(name, kind, X, y)
    noisy = exact / UNIT if sigma == 0 else noisy_sums(exact, 1.0, sigma, stream)
    return METRICS[name].estimate(noisy, sigma, Z95, TARGETS[kind]), noisy


@lru_cache
def hostile(kind):
    """List rows that an adversary might choose: predictions, and a target, class or labels."""
    rng = np.random.default_rng(0)
    if kind == NUMBERS:
        values = [-1.0, 0.0, 1.0, 1.7, 3.0, -1e300, 1e300, math.nan, math.inf, -math.inf]
        return [([p], y) for p in values for y in (-1.0, 0.3, 1.0, 2.9, 3.0, -1e300, 1e300)]
    odd = [0.0, 1e-300, 0.005, 0.02, 0.25, 0.5, 0.98, 0.995, 1.0, math.nan, math.inf, -1.0, 2.0]
    if kind == TWO_CLASSES:
        return [([p], y) for p in odd for y in (0, 1)]
    found = [rng.choice(odd, K) for _ in range(16)]
    found += [np.full(K, p) for p in odd] + [np.eye(K)[k] for k in range(K)]
    truths = list(LETTERS)
    if kind == MANY_LABELS:
        truths = [np.zeros(K, int), np.ones(K, int), *(rng.integers(0, 2, (2, K)))]
    return [(p, y) for p in found for y in truths]


@pytest.mark.parametrize(("name", "kind"), CASES)
class TestNeighbours:
    """Neighbouring rows, in integers: what the noise is proportional to."""

    def vectors(self, name, kind):
        return [sums(name, kind, [p], [y]).tolist() for p, y in hostile(kind)]

    def test_one_row_added_and_one_exchanged(self, name, kind):
        found = self.vectors(name, kind)
        added = max(sum(entry**2 for entry in one) for one in found)
        moved = max(
            sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
            for one in found
            for other in found
        )
        metric, target = METRICS[name], TARGETS[kind]
        for squares, bound in (
            (added, metric.bound(target, "add-remove")),
            (moved, 2.0 * metric.bound(target, "replace-one")),
        ):
            assert math.sqrt(squares) / UNIT <= bound
            # And the bound is no larger than it has to be.
            assert math.sqrt(squares) / UNIT > 0.999 * bound

    def test_a_row_counts_by_itself(self, name, kind):
        X, y = (list(column) for column in zip(*hostile(kind), strict=True))
        total = np.sum(self.vectors(name, kind), axis=0)
        assert (total == sums(name, kind, X, y)).all()


def test_the_share_of_a_loss_is_no_longer_than_one_anywhere():
    """The third sum is free for every loss, in integers and for both relations."""
    losses = np.concatenate([np.linspace(0.0, 1.0, 2001), [1e-10, 1.0 - 1e-10, 2.0**-33]])
    vectors = np.array(
        [sums("mae", NUMBERS, [[-1.0]], [-1.0 + 4.0 * loss]) for loss in losses], dtype=object
    )
    norms = [sum(int(entry) ** 2 for entry in vector) for vector in vectors]
    assert max(norms) <= int(UNIT) ** 2
    some = vectors[::20]
    for one in some:
        for other in some:
            exchanged = sum(int(a - b) ** 2 for a, b in zip(one, other, strict=True))
            assert exchanged <= 2 * int(UNIT) ** 2


@pytest.mark.parametrize("bounds", [(0.0, 0.5), (0.0, 1e-300), (-1.7e308, 1.7e308)])
def test_no_target_makes_a_score_warn(bounds):
    """A warning would say that somebody's target is huge, and end a run with `-W error`."""
    compute, target = METRICS["mae"].sums, Target(bounds=bounds)
    low, high = bounds
    far = [low, high, -1.79e308, 1.79e308, math.nan, math.inf, -math.inf]
    for p in far:
        y = np.array([y for y in far if math.isfinite(y)])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = compute(Given(None), np.full((y.size, 1), p), y, target) / UNIT
        assert not told
        clipped = low if math.isnan(p) else min(max(p, low), high)
        half = 0.5 * high - 0.5 * low
        errors = np.abs(0.5 * np.clip(y, low, high) - 0.5 * clipped) / half
        assert found[0] == pytest.approx(errors.sum(), abs=1e-8)


def test_predictions_of_another_shape_are_refused():
    """By broadcasting every row would meet every other's label."""

    class Columns(Given):
        def predict(self, X):
            return super().predict(X)[:, np.newaxis]

        def predict_proba(self, X):
            return super().predict_proba(X)[:, :2]

    X, y = np.full((3, K), 0.25), np.array(["ant", "bee", "cat"])
    for name in ("accuracy", "f1", "log_loss", "auc"):
        with pytest.raises(DataError, match="the model's predictions have the shape"):
            sums(name, SEVERAL_CLASSES, X, y, Columns(LETTERS))
    with pytest.raises(DataError, match="the model's predictions have the shape"):
        sums("mae", NUMBERS, X, np.zeros(3), Columns(None))


# --- Values and intervals ----------------------------------------------------------------------


@lru_cache(maxsize=8)
def population(kind, size, seed=3):
    """Draw rows: predictions that err or are badly calibrated, and what is true, some rarer."""
    rng = np.random.default_rng(seed)
    if kind == NUMBERS:
        target = np.clip(rng.normal(0.8, 0.7, size), -1.0, 3.0)
        return np.clip(target + rng.normal(0.0, 0.5, size), -1.0, 3.0)[:, np.newaxis], target
    if kind == TWO_CLASSES:
        margin = rng.normal(0.0, 1.5, (size, 1))
        y = (rng.random(size) < 1.0 / (1.0 + np.exp(0.5 - 1.2 * margin[:, 0]))).astype(int)
        return 1.0 / (1.0 + np.exp(-margin)), y
    margins = rng.normal(0.0, 1.3, (size, K))
    balance = np.array([0.4, 0.0, -0.3, -0.8])
    if kind == MANY_LABELS:
        y = (margins + balance + rng.logistic(size=(size, K)) > 0.4).astype(int)
        return 1.0 / (1.0 + np.exp(-1.3 * margins)), y
    chosen = (margins + balance + rng.gumbel(size=(size, K))).argmax(axis=1)
    p = np.exp(1.3 * margins)
    return p / p.sum(axis=1, keepdims=True), np.array(LETTERS)[chosen]


def by_scikit_learn(kind, X, y):
    """Return what scikit-learn computes, by metric."""
    if kind == NUMBERS:
        return {"mae": mean_absolute_error(y, X[:, 0])}
    predicted, p = MODELS[kind].predict(X), X[:, 0] if kind == TWO_CLASSES else X
    average = "binary" if kind == TWO_CLASSES else "macro"
    clipped = np.maximum(X, 0.01)
    losses = {
        TWO_CLASSES: lambda: log_loss(y, np.clip(p, 0.01, 0.99)),
        SEVERAL_CLASSES: lambda: log_loss(y, clipped / clipped.sum(axis=1, keepdims=True)),
        MANY_LABELS: lambda: np.mean(
            [log_loss(y[:, k], np.clip(p[:, k], 0.01, 0.99)) for k in range(K)]
        ),
    }
    found = {
        "accuracy": np.mean(predicted == y),
        "auc": roc_auc_score(y, p, multi_class="ovr"),
        "f1": f1_score(y, predicted, average=average),
        "f1_macro": f1_score(y, predicted, average="macro"),
        "f1_weighted": f1_score(y, predicted, average="weighted"),
        "log_loss": losses[kind](),
    }
    if kind != TWO_CLASSES:
        found["auc_weighted"] = roc_auc_score(y, p, multi_class="ovr", average="weighted")
    return found


@pytest.mark.parametrize("kind", TARGETS)
def test_without_noise_they_are_what_scikit_learn_computes(kind):
    X, y = population(kind, 20_000)
    expected = by_scikit_learn(kind, X, y)
    assert expected.keys() == {name for name, one in METRICS.items() if kind in one.kinds}
    loss = 2e-2 if kind == SEVERAL_CLASSES else 2e-3
    near = {"auc": 4e-3, "auc_weighted": 4e-3, "log_loss": loss, "mae": 1e-6}
    for name, value in expected.items():
        found, _ = estimate(name, kind, X, y)
        assert found.value == pytest.approx(value, abs=near.get(name, 1e-9))
        assert found.low < found.value < found.high


def test_without_noise_each_class_is_what_scikit_learn_computes():
    X, y = population(SEVERAL_CLASSES, 20_000)
    predicted = MODELS[SEVERAL_CLASSES].predict(X)
    _, noisy = estimate("f1", SEVERAL_CLASSES, X, y)
    by_class = METRICS["f1"].by_class(noisy, 0.0, Z95, TARGETS[SEVERAL_CLASSES])
    each = f1_score(y, predicted, average=None, labels=LETTERS)
    np.testing.assert_allclose([one.value for one in by_class], each)
    assert [one.label for one in by_class] == list(LETTERS)
    X, y = population(MANY_LABELS, 20_000)
    _, noisy = estimate("auc", MANY_LABELS, X, y)
    by_class = METRICS["auc"].by_class(noisy, 0.0, Z95, TARGETS[MANY_LABELS])
    each = roc_auc_score(y, X, average=None)
    np.testing.assert_allclose([one.value for one in by_class], each, atol=4e-3)
    assert [one.rows for one in by_class] == y.sum(axis=0).tolist()


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_intervals_cover_what_they_claim(name, kind):
    """Over 500 samples of rows, with little noise and with much, within 2.5 standard errors.

    A false alarm in 80 for each noise where coverage is exact. Bounds may cover more.
    """
    stream, rng = random_stream(11), np.random.default_rng(1)
    X, y = population(kind, 20_000)
    truth = estimate(name, kind, X, y)[0].value
    covered = {2.0: 0, 12.0: 0}
    for _ in range(REPEATS):
        chosen = rng.integers(0, len(y), 1500)
        exact = sums(name, kind, X[chosen], y[chosen])
        for sigma in covered:
            noisy = noisy_sums(exact, 1.0, sigma, stream)
            found = METRICS[name].estimate(noisy, sigma, Z95, TARGETS[kind])
            covered[sigma] += found.low <= truth <= found.high
    error = 2.5 * math.sqrt(0.95 * 0.05 / REPEATS)
    for found in covered.values():
        assert found / REPEATS >= 0.95 - error
        if (name, kind) not in WIDE:
            assert found / REPEATS <= 0.95 + error


@pytest.mark.parametrize("name", ["auc", "f1"])
@pytest.mark.parametrize("kind", [SEVERAL_CLASSES, MANY_LABELS])
def test_intervals_of_each_class_cover_as_well(name, kind):
    stream, rng = random_stream(2), np.random.default_rng(1)
    X, y = population(kind, 20_000)

    def each(noisy, sigma):
        return METRICS[name].by_class(noisy, sigma, Z95, TARGETS[kind])

    truth = [part.value for part in each(estimate(name, kind, X, y)[1], 0.0)]
    assert len(truth) == K
    covered = np.zeros(len(truth))
    for _ in range(300):
        chosen = rng.integers(0, len(y), 2000)
        noisy = estimate(name, kind, X[chosen], y[chosen], 4.0, stream)[1]
        covered += [
            part.low <= true <= part.high
            for part, true in zip(each(noisy, 4.0), truth, strict=True)
        ]
    assert abs(covered.mean() / 300 - 0.95) < 0.02
    assert (covered / 300 > 0.9).all()


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_noise_beyond_all_rows_and_a_class_that_nobody_has(name, kind):
    """An interval then reaches as far as it must, and nothing fails."""
    stream = random_stream(4)
    for seed in range(20):
        found, noisy = estimate(name, kind, *population(kind, 5, seed), 500.0, stream)
        for one in (found, *METRICS[name].by_class(noisy, 500.0, Z95, TARGETS[kind])):
            assert one.low <= one.value <= one.high
            assert math.isfinite(one.value)
    if kind not in (SEVERAL_CLASSES, MANY_LABELS):
        return
    X, y = population(kind, 20_000)
    y = y.copy()
    if kind == MANY_LABELS:
        y[:, 3] = 0
    else:
        y[y == "dog"] = "ant"
    found, noisy = estimate(name, kind, X, y, 5.0, stream)
    by_class = METRICS[name].by_class(noisy, 5.0, Z95, TARGETS[kind])
    if by_class and name.startswith("auc"):
        assert (by_class[3].low, by_class[3].high) == (0.0, 1.0)
    assert found.low <= found.value <= found.high
