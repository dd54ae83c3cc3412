"""Metrics: how far one row moves their sums, and that their intervals cover what they claim."""

import math
from functools import lru_cache

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss, mean_absolute_error, r2_score, roc_auc_score
from tests.tuning.models import Given

from dplasso.privacy.randomness import random_stream
from dplasso.tuning.counts import CALIBRATION_BINS
from dplasso.tuning.estimates import NUMBERS, TWO_CLASSES, UNIT, Target, standard_errors
from dplasso.tuning.metrics import METRICS
from dplasso.tuning.scorer import noisy_sums

BOUNDS = (-1.0, 3.0)
Z95 = standard_errors(0.95)
REPEATS = 1000


# Those of two classes and of numbers; several classes and labels are in test_several_classes.py.
NAMES = [name for name, one in METRICS.items() if {TWO_CLASSES, NUMBERS} & set(one.kinds)]


def of_numbers(name):
    return METRICS[name].kinds == (NUMBERS,)


def model_of(name):
    return Given(None if of_numbers(name) else (0, 1))


def target_of(name):
    return Target(bounds=BOUNDS) if of_numbers(name) else Target((0, 1))


def sums(name, X, y):
    rows = np.asarray(X).reshape(-1, 1)
    return METRICS[name].sums(model_of(name), rows, np.asarray(y), target_of(name))


def extremes(name):
    """List rows that an adversary might choose: prediction and label or target."""
    if not of_numbers(name):
        predictions = [0.0, 1e-300, 0.005, 0.3, 0.5, 0.7, 0.995, 1.0, math.nan, -1.0, 2.0, math.inf]
        return [(p, label) for p in predictions for label in (0, 1)]
    values = [-1.0, 0.0, 1.0, 1.7, 3.0, -1e300, 1e300, math.nan, math.inf, -math.inf]
    return [(p, target) for p in values for target in (-1.0, 0.3, 1.0, 2.9, 3.0, -1e300, 1e300)]


@pytest.mark.parametrize("name", NAMES)
class TestNeighbours:
    """Neighbouring rows, in integers: what the noise is proportional to."""

    BASE = ([0.2, 0.9, 0.6], [0, 1, 1])

    def moved(self, name, one, other):
        with np.errstate(all="ignore"):
            difference = sums(name, *one) - sums(name, *other)
        return math.sqrt(sum(int(entry) ** 2 for entry in difference)) / UNIT

    def with_row(self, row):
        X, y = self.BASE
        return [*X, row[0]], [*y, row[1]]

    def test_one_row_added(self, name):
        moves = [self.moved(name, self.with_row(row), self.BASE) for row in extremes(name)]
        assert max(moves) <= METRICS[name].share(target_of(name))
        # The bound is no larger than it has to be.
        assert max(moves) > 0.999 * METRICS[name].share(target_of(name))

    def test_one_row_replaced(self, name):
        rows = [self.with_row(row) for row in extremes(name)]
        moves = [self.moved(name, one, other) for one in rows for other in rows]
        assert max(moves) <= METRICS[name].exchange(target_of(name))
        assert max(moves) > 0.999 * METRICS[name].exchange(target_of(name))

    def test_a_row_counts_by_itself(self, name):
        X, y = (list(column) for column in zip(*extremes(name), strict=True))
        with np.errstate(all="ignore"):
            single = sum(sums(name, [p], [label]) for p, label in zip(X, y, strict=True))
            assert (single == sums(name, X, y)).all()


def test_the_share_of_a_loss_is_no_longer_than_one_anywhere():
    """The third sum is free for every loss, in integers and for both relations."""
    losses = np.concatenate([np.linspace(0.0, 1.0, 2001), [1e-10, 1.0 - 1e-10, 2.0**-33]])
    targets = -1.0 + 4.0 * losses
    vectors = np.array([sums("mae", [-1.0], [target]) for target in targets], dtype=object)
    norms = [sum(int(entry) ** 2 for entry in vector) for vector in vectors]
    assert max(norms) <= int(UNIT) ** 2
    some = vectors[::20]
    for one in some:
        for other in some:
            exchanged = sum(int(a - b) ** 2 for a, b in zip(one, other, strict=True))
            assert exchanged <= 2 * int(UNIT) ** 2


# --- Values without noise ----------------------------------------------------------------------


@lru_cache(maxsize=2)
def population(seed, rows):
    """Draw rows: probabilities that are badly calibrated, labels, a target and its prediction."""
    rng = np.random.default_rng(seed)
    margin = rng.normal(0.0, 1.5, rows)
    y = (rng.random(rows) < 1.0 / (1.0 + np.exp(0.5 - 1.2 * margin))).astype(int)
    p = 1.0 / (1.0 + np.exp(-margin))
    target = np.clip(rng.normal(0.8, 0.7, rows), *BOUNDS)
    prediction = np.clip(target + rng.normal(0.0, 0.5, rows), *BOUNDS)
    return p, y, prediction, target


def columns(name, drawn):
    p, y, prediction, target = drawn
    return (prediction, target) if of_numbers(name) else (p, y)


def estimate(name, X, y, sigma, stream):
    exact = sums(name, X, y)
    noisy = exact / UNIT if sigma == 0 else noisy_sums(exact, 1.0, sigma, stream)
    return METRICS[name].estimate(noisy, sigma, Z95, target_of(name))


def test_without_noise_they_are_what_scikit_learn_computes():
    drawn = population(3, 5000)
    p, y, prediction, target = drawn
    expected = {
        "accuracy": (np.mean((p > 0.5) == y), 1e-9),
        "auc": (roc_auc_score(y, p), 3e-3),
        "log_loss": (log_loss(y, np.clip(p, 0.01, 0.99)), 2e-3),
        "mae": (mean_absolute_error(target, prediction), 1e-6),
        "r2": (r2_score(target, prediction), 1e-6),
        "calibration": (y.mean(), 1e-9),
        "confusion": (np.mean((p > 0.5) == y), 1e-9),
        "f1": (f1_score(y, p > 0.5), 1e-9),
        "f1_weighted": (f1_score(y, p > 0.5, average="weighted"), 1e-9),
    }
    assert expected.keys() == set(NAMES)
    for name, (value, tolerance) in expected.items():
        found = estimate(name, *columns(name, drawn), 0.0, None)
        assert found.value == pytest.approx(value, abs=tolerance)
        assert found.low < found.value < found.high


@pytest.mark.parametrize("sigma", [2.0, 10.0])
@pytest.mark.parametrize("name", NAMES)
def test_intervals_cover_what_they_claim(name, sigma):
    """Over 1,000 samples of rows, each with noise of its own, within two standard errors.

    The interval of R^2 claims at least as much.
    """
    stream = random_stream(11)
    everybody = population(0, 1_000_000)
    truth = estimate(name, *columns(name, everybody), 0.0, None).value
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(REPEATS):
        chosen = rng.integers(0, 1_000_000, 1500)
        X, y = (column[chosen] for column in columns(name, everybody))
        found = estimate(name, X, y, sigma, stream)
        covered += found.low <= truth <= found.high
    error = 2.0 * math.sqrt(0.95 * 0.05 / REPEATS)
    assert covered / REPEATS >= 0.95 - error
    if name != "r2":
        assert covered / REPEATS <= 0.95 + error


def test_the_curve_covers_as_well():
    stream = random_stream(2)
    p, y, _, _ = population(0, 1_000_000)
    place = np.minimum((p * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    truth = [y[place == k].mean() for k in range(CALIBRATION_BINS)]
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        chosen = rng.integers(0, 1_000_000, 3000)
        counts = sums("calibration", p[chosen], y[chosen])
        noisy = noisy_sums(counts, 1.0, 5.0, stream)
        curve = METRICS["calibration"].details(noisy, 5.0, Z95, Target((0, 1))).curve
        covered += sum(
            point.low <= true <= point.high for point, true in zip(curve, truth, strict=True)
        )
    assert abs(covered / 2000 - 0.95) < 0.02


@pytest.mark.parametrize("name", NAMES)
def test_noise_beyond_all_rows_says_nothing_and_does_not_fail(name):
    stream = random_stream(4)
    for seed in range(30):
        X, y = columns(name, population(seed, 5))
        found = estimate(name, X, y, 500.0, stream)
        assert math.isfinite(found.value)
        assert found.low <= found.value <= found.high
