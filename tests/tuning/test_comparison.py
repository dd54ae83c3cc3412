"""Private comparisons: what a row moves, what intervals cover, what is charged and refused."""

import itertools
import math

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error
from sklearn.pipeline import make_pipeline
from tests.tuning.models import Given

from dplasso import DPLogisticRegression, Ledger, private_comparison
from dplasso.ledger import create_ledger

RNG = np.random.default_rng(0)
X = RNG.random((2000, 1)) * 0.9 + 0.05
Y = (RNG.random(2000) < X[:, 0]).astype(int)


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


class Losing(Given):
    """A model that has this loss, a log-loss, on a row of the second class."""

    def __init__(self, loss):
        super().__init__()
        self.loss = loss

    def predict_proba(self, X):
        return np.full((len(X), 2), math.exp(-self.loss * math.log(100)))


def one_row(left, a, b, neighbors="add-remove"):
    """Return what a row adds to a comparison, and how far rows may move it."""
    private_comparison(
        Losing(a), Losing(b), [[0.0]], [1], 1.0, metric="log_loss", neighbors=neighbors
    )
    exact, moved, _, _ = left.pop()
    return [int(entry) for entry in exact], moved


def test_no_row_and_no_exchange_move_more_than_the_noise_is_made_for(left, monkeypatch):
    # Whatever losses there are: the sums do not rely on what was clipped before.
    monkeypatch.setattr(
        "dplasso.tuning.metrics.probabilities", lambda model, X, *_: model.predict_proba(X)
    )
    losses = [0.0, 1e-10, 2.0**-33, 0.1, 0.3, 0.5, 0.9999999999, 1.0, math.nan, -5.0, 7.0]
    asked = [*itertools.product(losses, losses), *((0.0, b) for b in np.linspace(0.0, 1.0, 101))]
    rows, bounds = zip(*(one_row(left, a, b) for a, b in asked), strict=True)
    assert len({*bounds}) == 1
    assert 0.99 < max(math.hypot(*row) for row in rows) / bounds[0] <= 1.0
    squares = max(
        sum((a - b) ** 2 for a, b in zip(*pair, strict=True))
        for pair in itertools.combinations(rows, 2)
    )
    _, bound = one_row(left, 0.0, 1.0, "replace-one")
    assert 0.999 * bound**2 < squares <= bound**2


@pytest.mark.parametrize(
    ("epsilon", "unlike"), [(40.0, 0.01), (40.0, 0.3), (2.0, 0.3), (0.2, 0.01)]
)
def test_intervals_cover_what_they_claim(epsilon, unlike, left, monkeypatch):
    """Losses that differ in a few rows and in many; 500 samples of 1,500 rows."""
    rng, covered, repeats = np.random.default_rng(1), 0, 500
    kinds = np.array([one_row(left, *losses)[0] for losses in ((0, 0), (0, 1), (1, 0))])
    shares = [1 - unlike, 0.7 * unlike, 0.3 * unlike]

    def of_a_sample(_, __, noise):
        exact = rng.multinomial(1500, shares) @ kinds
        return (exact + rng.normal(0.0, noise.scale, 3)).astype(np.int64)

    monkeypatch.setattr("dplasso.tuning.estimates.release", of_a_sample)
    for _ in range(repeats):
        found = private_comparison(Given(), Given(), X[:1], Y[:1], epsilon)
        covered += found.low <= 0.4 * unlike <= found.high
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
    noise = 4.0 / 2000 * (math.log(100) if metric == "log_loss" else 1.0)
    assert found.value == pytest.approx(exact(a) - exact(b), abs=noise)
    assert (found.better, found.metric) == ("a", metric)
    other = private_comparison(b, a, X, y, 50.0, metric=metric, **given)
    assert other.better == "b"
    assert str(other).startswith("b is better than a")
    assert found.to_dict()["privacy"]["about"] == "score"


def test_rows_that_do_not_tell():
    """Intervals of 95 %: of 100 comparisons with itself, 19 or more find a better one by chance
    once in 1,000,000 times; half as wide ones would do so nearly always.
    """
    rows = X[:200], Y[:200]
    found = [private_comparison(Given(), Given(), *rows, 0.01) for _ in range(100)]
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
