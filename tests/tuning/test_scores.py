"""Private scores: noise, statement, charge, defaults for each target, and what is refused first."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from tests.tuning.models import Given, delta_of
from tests.tuning.test_metrics import CASES, LETTERS, MODELS, population

from dplasso import (
    BudgetError,
    DataError,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    Ledger,
    LedgerError,
    PrivateSearch,
    private_score,
    write_store,
)
from dplasso.ledger import create_ledger
from small_fits import short_runs

RNG = np.random.default_rng(0)
X = RNG.random((2000, 1))
Y = (RNG.random(2000) < X[:, 0]).astype(int)


@pytest.mark.parametrize(("metric", "kind"), CASES)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_the_noise_is_what_the_guarantee_needs(kind, metric, neighbors, left):
    """Standard deviation at least move / mu, with mu on the exact curve; and no more than 1 %."""
    p, y = population(kind, 20)
    counted = {"auc": ("several classes", "many labels"), "f1": ("many labels",)}
    n_outputs = len(LETTERS) if kind in counted.get(metric.partition("_")[0], ()) else 1
    for rows in (1, 3):
        asked = {"neighbors": neighbors, "rows_per_person": rows, "metric": metric}
        if kind == "numbers":
            asked["target_bounds"] = (-1, 3)
        private_score(MODELS[kind], p, y, 0.5, 1e-6, **asked)
        _, moved, sigma, _ = left.pop()
        # As docs/scores.md has it, in units of 2^-32.
        needed = rows * math.sqrt(n_outputs * (1 if neighbors == "add-remove" else 2)) * 2**32
        assert needed <= moved < needed * (1 + 1e-12)
        assert delta_of(moved / sigma, 0.5) <= 1e-6
        assert delta_of(1.01 * moved / sigma, 0.5) > 1e-6


def test_the_noise_is_gaussian_of_that_deviation(left):
    """Kolmogorov and Smirnov at a false alarm of 1e-6; a tenth less noise would be noticed."""
    classes = np.arange(100)
    for seed in (0, 1):
        private_score(Given(classes), np.eye(100), classes, metric="f1", random_state=seed)
    noise = np.concatenate([(noisy - exact) / sigma for exact, _, sigma, noisy in left])
    assert noise.size >= 20_000
    assert stats.kstest(noise, "norm").pvalue > 1e-6
    assert stats.kstest(noise / 0.9, "norm").pvalue < 1e-6


def test_a_score_has_a_statement_of_its_own():
    score = private_score(Given(), X, Y, 0.4, 1e-5, metric="log_loss")
    assert score.privacy.is_private
    assert 0.39 < score.privacy.epsilon <= 0.4
    assert (score.privacy.delta, score.privacy.about) == (1e-5, "score")
    for words in ("the score", "scored data", "training cost", "sums over all rows"):
        assert words in score.privacy.text()
    assert score.low < score.value < score.high
    assert score.to_dict()["privacy"]["about"] == "score"


def test_a_seed_is_told():
    one, other = (private_score(Given(), X, Y, random_state=5) for _ in range(2))
    assert one == other
    assert not one.privacy.is_private
    # The value may be 1 twice: it is clipped.
    assert private_score(Given(), X, Y) != private_score(Given(), X, Y)


def test_the_ledger_is_charged_once_and_before(tmp_path):
    ledger = tmp_path / "l"
    create_ledger(ledger, 1.0, 1e-5)
    private_score(Given(), X, Y, 0.5, ledger=ledger)
    budget = Ledger(ledger).budget()
    (entry,) = budget.entries
    charge = entry.charge
    assert (entry.state, charge.epsilon, charge.mechanism) == ("finished", 0.5, "score")
    with pytest.raises(BudgetError):
        private_score(Given(), X, Y, 0.95, ledger=ledger)
    with pytest.raises(LedgerError, match="random_state"):
        private_score(Given(), X, Y, 0.1, ledger=ledger, random_state=1)
    strange = np.where(np.arange(2000) == 7, 9, Y)
    with pytest.raises(DataError, match="row 8"):
        private_score(Given(), X, strange, 0.1, ledger=ledger)
    narrow, unsure = LogisticRegression().fit(X, Y), RidgeClassifier().fit(np.hstack([X, X]), Y)
    for model, words in (narrow, "cannot take these rows"), (unsure, "has no predict_proba"):
        with pytest.raises(DataError, match=words):
            private_score(model, np.hstack([X, X]), Y, 0.1, ledger=ledger)
    assert len(Ledger(ledger).budget().entries) == 1


def test_one_label_among_the_floats_makes_no_others_of_the_rest(tmp_path):
    """Of a list, numpy makes floats as soon as one label is one."""
    ledger, classes = tmp_path / "l", (2**53, 2**53 + 1)
    create_ledger(ledger, 9.0, 1e-5)
    labels = [classes[label] for label in Y[1:]]
    private_score(Given(classes), X[1:], labels, 1.0, ledger=ledger)
    search = PrivateSearch(DPLogisticRegression(classes=classes), {}, 1.0, tries=2, ledger=ledger)
    for refused in (
        lambda y: private_score(Given(classes), X, y, 1.0, ledger=ledger),
        lambda y: search.fit(X, y),
    ):
        with pytest.raises(DataError, match="large whole numbers of the model's classes exactly"):
            refused([float(classes[0]), *labels])
    assert len(Ledger(ledger).budget().entries) == 1


def test_rows_of_a_store_beyond_a_persons_limit_are_not_looked_at(tmp_path):
    people = [f"p{row}" for row in range(1999)] + ["p0"]
    model = DPLogisticRegression(np.inf, classes=(0, 1)).fit(X, Y)
    scores = [
        private_score(
            model,
            write_store(tmp_path / f"{label}", X, [*Y[:-1], label], groups=people),
            epsilon=50.0,
        )
        for label in (0, 7)
    ]
    assert scores[0].value == pytest.approx(scores[1].value, abs=0.01)


@pytest.mark.parametrize("metric", ["auc", "log_loss"])
def test_no_row_makes_a_score_of_our_own_model_warn(metric):
    """A warning would say that somebody's entries are huge, and end a run with `-W error`."""
    rows = RNG.normal(size=(300, 3))
    y = (rows[:, 0] > 0).astype(int) + (rows[:, 1] > 0)
    model = DPLogisticRegression(50.0, classes=[0, 1, 2]).fit(rows, y)
    rows[7] = 1.7e308 * np.sign(model.coef_[0])
    assert not np.isfinite(model.decision_function(rows)[7]).all()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        private_score(model, rows, y, metric=metric)
    assert [str(one.message) for one in told if "encountered" in str(one.message)] == []


def test_a_model_that_is_not_fitted_says_so():
    for model in (
        DPLogisticRegression(1.0),
        DPLinearRegression(1.0, target_bounds=(0, 1)),
        PrivateSearch(DPLogisticRegression(1.0), {}),
        LogisticRegression(),
    ):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            private_score(model, X, Y)


@pytest.mark.parametrize(
    ("classes", "changes", "words"),
    [
        ((0, 1), {"metric": "f2"}, "metric must be"),
        ((0, 1), {"epsilon": math.inf}, "epsilon must be positive and finite"),
        ((0, 1), {"epsilon": 1e-9}, "epsilon"),
        ((0, 1), {"confidence": 1.0}, "confidence must lie"),
        ((0, 1), {"target_bounds": (0, 1)}, "cannot be combined with"),
        ((0, 1), {"metric": "mae"}, "is for numbers, but this model predicts two classes: use ac"),
        ((0, 1), {"neighbors": "twins"}, "neighbors must be"),
        ((0, 1), {"metric": "auc_weighted"}, "is for several classes or many labels, but"),
        (tuple(range(400)), {"metric": "f1"}, "400 classes or labels are too many"),
        (None, {"metric": "mae"}, "needs target_bounds"),
        (None, {"metric": "mae", "target_bounds": (1, 1)}, "low < high"),
        (None, {"metric": "auc"}, "but this model predicts numbers: use mae"),
    ],
)
def test_what_is_wrong_is_refused(classes, changes, words):
    with pytest.raises(ValueError, match=words):
        private_score(Given(classes), X, Y, **changes)


def test_the_default_metric_fits_the_target():
    p, y = population("several classes", 2000)
    assert private_score(MODELS["several classes"], p, y, 5.0).metric == "accuracy"
    p, y = population("many labels", 2000)
    score = private_score(MODELS["many labels"], p, y, 5.0)
    assert score.metric == "auc"
    assert [one["label"] for one in score.to_dict()["by_class"]] == list(LETTERS)
    X = np.random.default_rng(0).normal(size=(800, 5))
    for labels, estimator, metric in (
        (X[:, 0] > 0, DPLogisticRegression(20.0), "auc"),
        (np.digitize(X[:, 0], [-0.5, 0.5]), DPLogisticRegression(20.0), "accuracy"),
        (np.digitize(X[:, 0], [-0.5, 0.5]), DPLassoClassifier(20.0), "accuracy"),
        (X[:, 0], DPLinearRegression(20.0, target_bounds=(-4, 4)), "mae"),
        (X[:, 0], DPLasso(20.0, target_bounds=(-4, 4)), "mae"),
    ):
        search = PrivateSearch(estimator, {"max_weights": [2, 4]}, 5.0, tries=2)
        with short_runs():
            assert private_score(estimator.fit(X, labels), X, labels).metric == metric
            search.fit(X, labels)
        assert 0.0 <= search.best_score_.low <= search.best_score_.value
        assert search.predict(X).shape == labels.shape
        assert hasattr(search, "classes_") == (metric != "mae")


def test_a_model_of_labels_and_rows_of_classes_do_not_go_together():
    X = np.random.default_rng(0).normal(size=(300, 5))
    Y = (X[:, :3] > 0).astype(int)
    many = DPLogisticRegression(20.0).fit(X, Y)
    one = DPLogisticRegression(20.0).fit(X, Y[:, 0])
    for model, y, words in (
        (many, Y[:, 0], "predicts 3 labels for each row, but y has one label"),
        (many, Y[:, :2], "predicts 3 labels for each row, but y has 2 labels"),
        (many, Y + 1, "must hold 0 and 1 only; row 1"),
        (one, Y, "predicts one label for each row, but y has 3"),
    ):
        with pytest.raises(DataError, match=words):
            private_score(model, X, y, 1.0)
    assert private_score(many, X, Y, 1.0).metric == "auc"
