"""A search: what it draws, what its tries see, what leaves it, and what it is charged."""

import math
import warnings
from collections import Counter

import numpy as np
import pandas
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy import stats
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from tests.tuning.models import ROWS, Given, X, Y, toy

from cli.conftest import charged_to
from dplasso import (
    BudgetError,
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    Ledger,
    LedgerError,
    PrivateSearch,
    load,
    write_store,
)
from dplasso.ledger import UNITS, create_ledger
from small_fits import short_runs

# Chance that a right search fails a test here.
ALARM = 1e-6


@pytest.fixture(autouse=True)
def few_steps():
    with short_runs():
        yield


def logistic(**changes):
    """Return a search of one setting with a real fit of few steps."""
    settings = {"grid": {"max_weights": [None]}, "tries": 2} | changes
    return PrivateSearch(DPLogisticRegression(), **settings)


def with_tries(monkeypatch, number):
    monkeypatch.setattr("dplasso.tuning.search.draw_tries", lambda *_: number)


# --- What is drawn -----------------------------------------------------------------------------


def test_candidates_are_drawn_uniformly_with_replacement(monkeypatch):
    """Pairs of draws that follow each other are as likely as each other, equal ones too."""
    drawn, real = [], DPLogisticRegression.fit
    monkeypatch.setattr(
        DPLogisticRegression,
        "fit",
        lambda self, *some: drawn.append(self.row_norm) or real(self, *some),
    )
    with_tries(monkeypatch, 400)
    norms = [1.0, 2.0, 3.0, 4.0]
    toy(grid={"row_norm": norms}, random_state=3).fit(X[:12], Y[:12])
    pairs = Counter(zip(drawn[::2], drawn[1::2], strict=True))
    counts = [pairs[one, other] for one in norms for other in norms]
    assert stats.chisquare(counts).pvalue > ALARM
    # Without replacement equal pairs never come: the test would notice.
    without = [0 if one == other else 200 / 12 for one in range(4) for other in range(4)]
    assert stats.chisquare(without, [12.5] * 16).pvalue < ALARM


# --- What a try may cost -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (DPLogisticRegression(), {"max_weights": [None, 3]}),
        (DPLogisticRegression(neighbors="replace-one"), {"row_norm": ["unit", 3.0]}),
        (DPFrankWolfeClassifier(), {"n_iter": [10, 100], "l1_radius": [3.0]}),
        (DPLassoClassifier(), {"max_weights": [None, 3]}),
    ],
)
def test_every_candidate_uses_what_a_try_may_cost(estimator, grid):
    """As much as the best of tries of Gaussian noise costs by dp_accounting, within 1 %."""
    search = PrivateSearch(estimator, grid, 0.3, tries=3).fit(X[:, 1:], Y)
    table = search.cv_results_
    for params, epsilon in zip(table["params"], table["epsilon_of_try"], strict=True):
        assert 0 < epsilon < 0.3
        model = clone(estimator).set_params(**params, epsilon=epsilon).fit(X[:, 1:], Y)
        event = RepeatAndSelectDpEvent(GaussianDpEvent(1.0 / model.privacy_.mu), 3.0, 0.0)
        spent = RdpAccountant(np.geomspace(1.1, 1000.0, 400)).compose(event).get_epsilon(1e-6)
        assert 0.98 * 0.3 < spent <= 1.01 * 0.3


def test_the_score_costs_as_much_as_the_fit(left):
    """Not their sum: a record is in one part only. Nor less noise than that."""
    for neighbors in ("add-remove", "replace-one"):
        estimator = DPLogisticRegression(neighbors=neighbors)
        search = PrivateSearch(estimator, {"max_weights": [None]}, tries=2).fit(X[:, 1:], Y)
        (epsilon,) = search.cv_results_["epsilon_of_try"]
        fit = estimator.set_params(epsilon=epsilon).fit(X[:, 1:], Y).privacy_
        (mu,) = {moved / sigma for _, moved, sigma, _ in left}
        assert mu == pytest.approx(fit.mu, rel=1e-3)
        left.clear()


# --- What leaves -------------------------------------------------------------------------------


def test_the_best_is_the_one_with_the_best_score(monkeypatch):
    with_tries(monkeypatch, 40)
    few = (np.arange(ROWS) < 40).astype(int)
    for metric in ("accuracy", "log_loss"):
        grid = {"class_weight": [[1.0, 0.01], [0.01, 1.0]]}
        search = toy(epsilon=30.0, metric=metric, grid=grid).fit(X, few)
        assert search.best_params_ == {"class_weight": [1.0, 0.01]}
        assert search.predict(X).mean() < 0.2


def test_nothing_tells_how_many_tries_there_were(monkeypatch):
    shown = set()
    for number in (1, 2, 60):
        with_tries(monkeypatch, number)
        search = logistic(tries=3).fit(X, Y)
        whole = {name: value for name, value in vars(search).items() if type(value) is int}
        kinds = *vars(search), *map(type, vars(search).values()), *whole.items()
        # Whether columns are scaled and centred follows from what the best model released.
        own = vars(search.best_estimator_).keys() - {"column_scale_", "column_center_"}
        shown.add((kinds, frozenset(own), search.privacy_.to_json()))
    assert len(shown) == 1


def test_a_try_that_warns_is_not_heard(monkeypatch):
    def loud(self, *some):
        warnings.warn("a try", UserWarning, stacklevel=1)
        return real(self, *some)

    real = DPLogisticRegression.fit
    monkeypatch.setattr(DPLogisticRegression, "fit", loud)
    with_tries(monkeypatch, 5)
    toy().fit(X, Y)


@pytest.mark.parametrize(
    "estimator", [DPLogisticRegression(), DPFrankWolfeClassifier(n_iter=10, l1_radius=3.0)]
)
def test_the_model_carries_the_statement_of_the_whole(estimator, tmp_path):
    search = PrivateSearch(estimator, {"fit_intercept": [True, False]}, epsilon=2.0, tries=2).fit(
        X[:, 1:], Y
    )
    best = search.best_estimator_
    assert best.epsilon < 1.8
    for statement in (search.privacy_, best.privacy_, best.model_.statement):
        assert statement.is_private
        assert 1.99 < statement.epsilon <= 2.0
        assert statement.find("search").numbers == {"tries": 2.0}
        assert "logarithmic law" in statement.find("search").words
        assert statement.epsilon_by_rows == {}
        text = statement.text()
        assert "-zCDP)" in text
        assert "GDP" not in text
        for words in ("the best of a random number of tries", "2 expected", "choice among settin"):
            assert words in text
        assert "tuned on the same records" not in text
        assert type(statement).from_json(statement.to_json()) == statement
    assert "epsilon of one try" in best._repr_mimebundle_()["text/html"]
    best.save(tmp_path / "m.npz")
    assert load(tmp_path / "m.npz").privacy_ == search.privacy_


def test_intervals_show_named_columns_and_the_epsilon_of_the_whole():
    frame = pandas.DataFrame(X, columns=[f"job={j}" for j in range(X.shape[1])])
    estimator = DPLogisticRegression(classes=[0, 1], row_norm=2.0, infer=["job"])
    search = PrivateSearch(estimator, {"fit_intercept": [True]}, epsilon=2.0, tries=2)
    table = search.fit(frame, Y).best_estimator_.inference_
    assert {*table.names, *table.references} == set(frame.columns)
    assert "epsilon 2," in table.title


def test_a_seed_repeats_the_search_and_is_told():
    grid = {"max_weights": [None, 2]}
    one, other = (logistic(grid=grid, random_state=8).fit(X[:, 1:], Y) for _ in range(2))
    assert one.best_score_ == other.best_score_
    assert not one.privacy_.is_private
    assert "a seed was given" in one.privacy_.reasons[0]
    assert not toy(random_state=1).fit(X, Y).privacy_.is_private


# --- What it is charged ------------------------------------------------------------------------


def test_one_charge_for_all_tries(monkeypatch, ledger):
    for number in (1, 7):
        with_tries(monkeypatch, number)
        search = logistic(epsilon=0.5, tries=3, ledger=ledger).fit(X[:, 1:], Y)
    one, entry = charged_to(ledger)
    assert entry.charge.rho == one.charge.rho
    assert (entry.charge.mechanism, entry.charge.n_iter) == ("search", 3)
    assert (entry.state, entry.charge.epsilon) == ("finished", 0.5)
    # Of the model that it paid for, and of the rows as a fit on them would note them.
    assert entry.release == search.best_estimator_.model_.digest
    DPLogisticRegression(0.1, ledger=ledger).fit(X[:, 1:], Y)
    assert entry.charge.fingerprint == charged_to(ledger)[-1].charge.fingerprint is not None
    assert search.best_estimator_.ledger is None


def test_a_search_within_a_budget_by_itself_takes_all_of_it(tmp_path, seen):
    whole, small = tmp_path / "whole", tmp_path / "small"
    create_ledger(whole, 1.0, 1e-6)
    create_ledger(small, 0.9, 1e-6)
    statement = toy(ledger=whole).fit(X, Y).privacy_
    budget = Ledger(whole).budget()
    assert len(budget.entries) == 1
    # What the ledger grants is less than the search costs, which alone is stated.
    assert statement.mu == toy().fit(X, Y).privacy_.mu > math.sqrt(2.0 * budget.rho / UNITS)
    seen["fit"].clear()
    for search in (toy(epsilon=1e-3, ledger=whole), toy(ledger=small)):
        with pytest.raises(BudgetError, match="cannot pay for this search"):
            search.fit(X, Y)
    assert not seen["fit"]


OWN = X, Y
STRANGERS = Given(), make_pipeline(Normalizer(), DPLogisticRegression()), logistic(), [DPLasso(), 3]
STRANGER = "must be an estimator of dplasso, or a list of them.*the search is the last step"
LASSO, LOGISTIC = DPLassoClassifier, DPLogisticRegression
# Estimators that are not searched, or not together, or not here.
NOT_SEARCHED = [
    *((one, STRANGER) for one in STRANGERS),
    ([], "empty list"),
    ([DPLasso(), LASSO()], "must all predict classes, or numbers"),
    ([LASSO(neighbors="replace-one"), LASSO()], "must agree on neighbors"),
    ([LASSO(classes=[0, 1]), LASSO(classes=[0, 2])], "must agree on classes"),
    (LOGISTIC(random_state=1), "set random_state of PrivateSearch"),
    (LOGISTIC(ledger="x"), "set ledger of PrivateSearch"),
    (DPFrankWolfeClassifier(mechanism="paper", n_iter=5, l1_radius=3.0), "private"),
]
REAL = {"estimator": LOGISTIC(classes=(0, 1)), "grid": {"max_weights": [None]}}
NUMBERS = {"estimator": DPLinearRegression(target_bounds=(0, 1)), "grid": {}, "metric": "mae"}


@pytest.mark.parametrize(
    ("changes", "words", "data"),
    [
        *(({"estimator": one, "grid": {}}, words, OWN) for one, words in NOT_SEARCHED),
        ({"estimator": [LASSO(), LOGISTIC()], "grid": [{}]}, "1 entries for 2 estimators", OWN),
        ({"grid": {"epsilon": [1.0]}}, "epsilon cannot be tuned", OWN),
        ({"grid": []}, "holds no settings", OWN),
        ({"grid": {"nothing": [1]}}, "Invalid parameter 'nothing'", OWN),
        ({"metric": "average_precision"}, r"f1_macro.*roc_auc_ovr.*got 'average_prec", OWN),
        ({"metric": "mae"}, "is for numbers, but this model predicts two classes", OWN),
        ({"held_out": 1.0}, "held_out must lie", OWN),
        ({"tries": 0.5}, "tries must be above 1", OWN),
        *(({"tries": tries}, "tries must", OWN) for tries in (-1, 0, 1, 1001, math.inf, math.nan)),
        ({"epsilon": math.inf}, "positive and finite", OWN),
        ({"delta": 2.0}, "delta must lie", OWN),
        ({"random_state": 1}, "random_state", OWN),
        ({}, "only one class", (X, np.zeros(ROWS))),
        ({"metric": "auc_weighted"}, "is for several classes or many labels", OWN),
        (REAL, "a label that is not one of", (X, np.where(X[:, 0] == 3, 5, Y))),
        (NUMBERS, "y holds a value that is not a number", (X, np.full(ROWS, "high"))),
        ({"held_out": 1e-12}, "too few", OWN),
        (REAL, "hash them to fewer", (csr_array((ROWS, 2**40)), Y)),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_charged(changes, words, data, ledger):
    with pytest.raises((ValueError, TypeError, MemoryError, LedgerError), match=words):
        toy(ledger=ledger).set_params(**changes).fit(*data)
    assert charged_to(ledger) == []


def test_every_try_starts_from_the_same_prior_matched_by_name(monkeypatch, ledger):
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    fitted = []
    real = DPLogisticRegression.fit
    monkeypatch.setattr(
        DPLogisticRegression, "fit", lambda self, *some: fitted.append(real(self, *some)) or self
    )
    prior = {"c1": 2.0, "other": 1.0}
    search = PrivateSearch(
        DPLogisticRegression(prior=prior), {"max_weights": [None, 1]}, tries=3, ledger=ledger
    ).fit(frame, Y)
    assert search.best_estimator_.feature_names_in_.tolist() == list(frame.columns)
    told = search.privacy_.prior
    assert told.startswith("a table of weights, 1 of")
    assert {one.model_.prior.digest for one in fitted} == {search.best_estimator_.prior.digest}
    assert search.best_estimator_.model_.prior.weights[0, 1] == 2.0
    assert charged_to(ledger)[0].charge.prior == told
    assert search.estimator.prior is prior


# --- As in scikit-learn ------------------------------------------------------------------------


class TestAsInScikitLearn:
    def test_the_table_holds_what_was_released(self):
        search = toy().fit(X, Y)
        table = pandas.DataFrame(search.cv_results_)
        assert table["params"].tolist() == [{"fit_intercept": True}, {"fit_intercept": False}]
        assert table["param_fit_intercept"].tolist() == [True, False]
        assert (table["epsilon_of_try"] < 1.0).all()
        (place,) = np.flatnonzero(table["released"])
        assert table["params"][place] == search.best_params_
        assert table["mean_test_score"][place] == search.best_score_.value
        assert table["mean_test_score"].isna().sum() == 1

    def test_the_score_is_that_of_the_metric_and_larger_is_better(self):
        found = toy(metric="accuracy").fit(X, Y)
        assert found.score(X, Y) == pytest.approx(np.mean(found.predict(X) == Y), abs=1e-9)
        found = toy(metric="neg_log_loss").fit(X, Y)
        p = found.predict_proba(X)[np.arange(ROWS), Y]
        assert found.metric_ == "log_loss"
        assert found.score(X, Y) == pytest.approx(np.log(p).mean(), abs=1e-6)
        target = np.clip(X[:, 1], -1.0, 1.0)
        bounded = DPLinearRegression(target_bounds=(-1.0, 1.0))
        found = PrivateSearch(bounded, {"max_weights": [None]}, 20.0).fit(X[:, 1:], target)
        lost = np.abs(np.clip(found.predict(X[:, 1:]), -1.0, 1.0) - target).mean()
        assert found.score(X[:, 1:], target) == pytest.approx(-lost, abs=1e-6)

    def test_several_estimators(self):
        estimators = [DPLassoClassifier(), DPLogisticRegression(), DPFrankWolfeClassifier(n_iter=9)]
        grids = [{"max_weights": [2, 5]}, {"row_norm": [3.0]}, {}]
        settings = {"tries": 3, "metric": "roc_auc"}
        search = PrivateSearch(estimators, grids, 5.0, **settings).fit(X, Y)
        table = search.cv_results_
        names = ["DPLassoClassifier"] * 2 + ["DPLogisticRegression", "DPFrankWolfeClassifier"]
        assert table["estimator"].tolist() == names
        assert table["param_max_weights"].mask.tolist() == [False, False, True, True]
        assert search.metric_ == "auc"
        assert search.predict(X).shape == (ROWS,)
        assert search.privacy_.epsilon <= 5.0


def test_no_try_is_scored_on_rows_that_it_was_fitted_on(monkeypatch, seen):
    with_tries(monkeypatch, 6)
    toy().fit(X, Y)
    # One division for the whole search, or a row would be in both parts of different tries.
    fitted, scored = seen["fit"][0], seen["score"][0]
    assert seen == {"fit": [fitted] * 6, "score": [scored] * 6}
    assert sorted(fitted + scored) == X[:, 0].tolist()


def test_the_division_does_not_look_at_the_data(seen):
    def parts(rows, labels):
        seen["fit"].clear()
        toy(random_state=4).fit(rows, labels)
        return seen["fit"][0]

    turned = X.copy()
    turned[:, 1:] *= -1e6
    assert parts(X, Y) == parts(turned, np.roll(Y, 7))


def test_rows_are_held_out_independently_of_each_other(monkeypatch, seen):
    """So a record more or less changes no other record's part."""
    with_tries(monkeypatch, 1)
    for seed in range(100):
        toy(random_state=seed, held_out=0.3).fit(X, Y)
    sizes = [len(rows) for rows in seen["score"]]
    assert stats.binomtest(sum(sizes), 100 * ROWS, 0.3).pvalue > ALARM
    # Rows that know of each other make a number that varies less, or more.
    squares = 99 * np.var(sizes, ddof=1) / (ROWS * 0.3 * 0.7)
    assert ALARM < stats.chi2.cdf(squares, 99) < 1 - ALARM


def test_all_rows_of_a_person_are_in_one_part(seen):
    people = np.arange(ROWS) // 4
    search = toy(estimator=DPLogisticRegression(rows_per_person=2))
    with pytest.raises(ValueError, match="needs groups"):
        search.fit(X, Y)
    assert not seen["fit"]
    search.fit(X, Y, groups=people)
    one, other = (Counter(row // 4 for row in seen[part][0]) for part in ("fit", "score"))
    assert not one.keys() & other.keys()
    assert max((one + other).values()) == 2


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_a_search_in_a_store_is_that_in_memory(neighbors, tmp_path, monkeypatch):
    with_tries(monkeypatch, 3)
    labels = np.where(Y, "yes", "no")
    store = write_store(tmp_path / "rows", X[:, 1:], labels)
    model = DPLogisticRegression(neighbors=neighbors)
    search = PrivateSearch(model, {"max_weights": [None, 3]}, 5.0, random_state=1)
    first, again = (clone(search).fit(*rows) for rows in ((X[:, 1:], labels), (store,)))
    assert again.best_score_ == first.best_score_
    weights = [each.best_estimator_.weights(dense=True) for each in (first, again)]
    np.testing.assert_array_equal(*weights)
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
