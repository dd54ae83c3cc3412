"""Private comparisons: what a row moves, what intervals cover, what is charged and refused."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error
from sklearn.pipeline import make_pipeline
from tests.tuning.models import Given

from dplasso import DPLogisticRegression, Ledger, private_comparison, private_score
from dplasso.ledger import create_ledger
from dplasso.privacy.randomness import random_stream
from dplasso.tuning.comparison import _PAIRED
from dplasso.tuning.estimates import UNIT, difference_estimate, noisy_sums
from dplasso.tuning.metrics import LARGEST_LOSS, difference_sums

RNG = np.random.default_rng(0)
X = RNG.random((2000, 1)) * 0.9 + 0.05
Y = (RNG.random(2000) < X[:, 0]).astype(int)
STREAM = random_stream(3)


class Flat(Given):
    """A model that knows less."""

    edge = 0.2

    def predict_proba(self, X):
        p = 0.5 + 0.4 * (np.asarray(X)[:, 0] - self.edge)
        return np.column_stack([1.0 - p, p])

    def predict(self, X):
        if self.classes_ is None:
            return np.full(len(X), 0.5)
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


def one_row(a, b):
    return [int(entry) for entry in difference_sums(np.array([a]), np.array([b]))]


def test_no_row_and_no_exchange_move_more_than_the_noise_is_made_for():
    losses = [0.0, 1e-10, 2.0**-33, 0.1, 0.3, 0.5, 0.9999999999, 1.0, math.nan, -5.0, 7.0]
    rows = [one_row(a, b) for a, b in itertools.product(losses, losses)]
    rows += [one_row(0.0, b) for b in np.linspace(0.0, 1.0, 101)]
    assert 0.99 < max(math.hypot(*row) for row in rows) / UNIT <= 1.0
    squares = max(
        sum((a - b) ** 2 for a, b in zip(*pair, strict=True))
        for pair in itertools.combinations(rows, 2)
    )
    assert squares <= (_PAIRED.one_exchange * UNIT) ** 2
    assert squares > (0.999 * _PAIRED.one_exchange * UNIT) ** 2


@pytest.mark.parametrize("sigma", [0.0, 2.0, 20.0])
@pytest.mark.parametrize("unlike", [0.01, 0.3])
def test_intervals_cover_what_they_claim(sigma, unlike):
    """Losses that differ in a few rows and in many; 500 samples of 1,500 rows."""
    rng, covered, repeats = np.random.default_rng(1), 0, 500
    truth = 0.4 * unlike
    for _ in range(repeats):
        differ = rng.random(1500) < unlike
        d = np.where(differ, np.where(rng.random(1500) < 0.7, 1.0, -1.0), 0.0)
        exact = difference_sums(np.maximum(-d, 0.0), np.maximum(d, 0.0))
        sums = noisy_sums(exact, 1.0, sigma, STREAM) if sigma else exact / UNIT
        _, low, high = difference_estimate(sums, sigma, float(norm.ppf(0.975)))
        covered += low <= truth <= high
    assert 0.925 <= covered / repeats <= 0.985


@pytest.mark.parametrize("metric", ["accuracy", "log_loss", "mae"])
def test_the_difference_is_that_of_two_scores(metric):
    given, classes, y = {}, (0, 1), Y
    if metric == "mae":
        given, classes, y = {"target_bounds": (0, 1)}, None, X[:, 0] ** 2
    a, b = Given(classes), Flat(classes)
    found = private_comparison(a, b, X, y, 50.0, metric=metric, **given)
    exact = {
        "accuracy": lambda m: accuracy_score(y, m.predict(X)),
        "log_loss": lambda m: -log_loss(y, m.predict_proba(X)),
        "mae": lambda m: -mean_absolute_error(y, m.predict(X)),
    }[metric]
    noise = 4.0 / 2000 * (LARGEST_LOSS if metric == "log_loss" else 1.0)
    assert found.value == pytest.approx(exact(a) - exact(b), abs=noise)
    assert (found.better, found.metric) == ("a", metric)
    other = private_comparison(b, a, X, y, 50.0, metric=metric, **given)
    assert other.better == "b"
    assert str(other).startswith("b is better than a")
    assert found.to_dict()["privacy"]["about"] == "score"


def test_it_is_sharper_than_the_difference_of_two_scores():
    """Two scores at half the epsilon each have intervals that together are twice as wide."""
    similar = Flat()
    similar.edge = 0.45
    paired = private_comparison(Given(), similar, X, Y, 1.0)
    each = private_score(Given(), X, Y, 0.5, metric="accuracy")
    width = paired.high - paired.low
    assert width < 0.75 * math.sqrt(2.0) * (each.high - each.low)


def test_rows_that_do_not_tell():
    """Intervals of 95 %: of 100 comparisons with itself, 19 or more find a better one by chance
    once in 1,000,000 times; half as wide ones would do so nearly always.
    """
    found = [private_comparison(Given(), Given(), X, Y, 0.01) for _ in range(100)]
    silent = [one for one in found if one.better is None]
    assert len(silent) > 81
    assert all("do not show" in str(one) for one in silent)


def test_each_model_takes_rows_in_its_own_way():
    texts = [f"word{k % 7} word{k % 5}" for k in range(300)]
    y = np.arange(300) % 7 < 3
    a, b = (
        make_pipeline(
            HashingVectorizer(n_features=n), DPLogisticRegression(20.0, classes=[0, 1])
        ).fit(texts, y.astype(int))
        for n in (64, 2)
    )
    found = private_comparison(a, b, texts, y.astype(int), 20.0)
    assert found.better == "a"


@pytest.mark.parametrize(
    ("b", "changes", "words"),
    [
        (Flat(), {"metric": "auc"}, "metric must be one of accuracy, log_loss, mae"),
        (Flat((1, 2)), {}, "the same classes"),
        (Flat(None), {}, "needs target_bounds"),
        (Flat(), {"epsilon": 0.0}, "epsilon"),
        (Flat(), {"metric": "mae"}, "is for numbers"),
        ("m.npz", {}, "only a fitted model can be scored, got 'm.npz'"),
    ],
)
def test_what_is_refused(b, changes, words, tmp_path):
    ledger, y = tmp_path / "l", np.ones(2000, int)
    create_ledger(ledger, 1.0, 1e-5)
    with pytest.raises((TypeError, ValueError), match=words):
        private_comparison(Given(), b, X, y, **({"epsilon": 0.5, "ledger": ledger} | changes))
    assert Ledger(ledger).budget().entries == ()


def test_models_that_disagree_on_the_interval_of_the_target():
    a, b = Given(None), Flat(None)
    a.target_bounds, b.target_bounds = (0, 1), (0, 2)
    with pytest.raises(ValueError, match="different intervals"):
        private_comparison(a, b, X, X[:, 0])
    assert private_comparison(a, b, X, X[:, 0], target_bounds=(0, 1)).metric == "mae"
