"""A search: what it draws, what its tries see, what leaves it, and what it is charged."""

import math
import pickle
import warnings
from collections import Counter
from functools import lru_cache, partial

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array
from sklearn.base import clone
from tests.tuning.models import Given, NoisyShare

from dplasso import (
    BudgetError,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    LedgerError,
    PrivateSearch,
    load,
    private_score,
)
from dplasso.data.blocks import matrix_source
from dplasso.data.store import write_store
from dplasso.fit.records import local_records
from dplasso.ledger import affords, charge_of, create_ledger, read_budgets
from dplasso.model.release import digest_of
from dplasso.privacy.randomness import random_stream
from dplasso.tuning import candidates, division
from dplasso.tuning import search as search_module
from dplasso.tuning.candidates import (
    Candidate,
    cost_of_try,
    draw_candidate,
    give_epsilon,
    list_candidates,
)
from dplasso.tuning.cost import search_cost
from dplasso.tuning.division import divided
from dplasso.tuning.scores import Scorer
from dplasso.tuning.tries import tries_of
from fit.cases import four_classes

RNG = np.random.default_rng(0)
ROWS = 400
X = np.column_stack([np.arange(ROWS, dtype=float), RNG.normal(size=(ROWS, 5))])
Y = (X[:, 1] > 0).astype(int)
GRID = {"bias": [-2.0, 2.0]}
# Chance that a right search fails a test here.
ALARM = 1e-6


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Forget what was seen, and account the same event only once."""
    NoisyShare.seen.clear()
    monkeypatch.setattr(candidates, "rho_of_event", lru_cache(candidates.rho_of_event))


def toy(**changes):
    settings = {"tries": 3.0, "law": "logarithmic", "metric": "accuracy"}
    return PrivateSearch(NoisyShare(), GRID, **(settings | changes))


def logistic(**changes):
    """Return a search of one setting with a real fit of few steps."""
    settings = {"grid": {"max_weights": [None]}, "tries": 2, "law": "geometric"} | changes
    return PrivateSearch(DPLogisticRegression(n_iter=10), **settings)


def with_tries(monkeypatch, number):
    monkeypatch.setattr(search_module, "draw_tries", lambda *_: number)


# --- What is drawn -----------------------------------------------------------------------------


def test_candidates_are_drawn_uniformly_with_replacement():
    """Pairs of draws that follow each other are as likely as each other, equal ones too."""
    listed = [Candidate({"k": k}, None) for k in range(4)]
    stream = random_stream(3)
    drawn = [draw_candidate(listed, stream).params["k"] for _ in range(8000)]
    pairs = Counter(zip(drawn[::2], drawn[1::2], strict=True))
    counts = [pairs[one, other] for one in range(4) for other in range(4)]
    assert stats.chisquare(counts).pvalue > ALARM
    # Without replacement equal pairs never come: the test would notice.
    without = [0 if one == other else 4000 / 12 for one in range(4) for other in range(4)]
    assert stats.chisquare(without, [250.0] * 16).pvalue < ALARM


def test_the_number_of_tries_is_drawn_anew_by_its_law():
    """Counted from outside, by the fits that an estimator saw."""
    numbers = []
    for _ in range(200):
        NoisyShare.seen.clear()
        toy().fit(X, Y)
        numbers.append(sum(kind == "fit" for kind, _ in NoisyShare.seen))
    law = stats.logser(1.0 - tries_of(3.0, "logarithmic").gamma)
    counts = [numbers.count(k) for k in (1, 2, 3)]
    expected = [200 * law.pmf(k) for k in (1, 2, 3)]
    counts.append(200 - sum(counts))
    expected.append(200 - sum(expected))
    assert stats.chisquare(counts, expected).pvalue > ALARM
    assert stats.chisquare([0, 0, 200, 0], expected).pvalue < ALARM


# --- What the tries see ------------------------------------------------------------------------


def test_no_try_is_scored_on_rows_that_it_was_fitted_on(monkeypatch):
    with_tries(monkeypatch, 6)
    toy().fit(X, Y)
    fitted = [set(rows) for kind, rows in NoisyShare.seen if kind == "fit"]
    scored = [set(rows) for kind, rows in NoisyShare.seen if kind == "score"]
    assert len(fitted) == len(scored) == 6
    # One division for the whole search, or a row would be in both parts of different tries.
    assert all(one == fitted[0] for one in fitted)
    assert all(one == scored[0] for one in scored)
    assert not fitted[0] & scored[0]
    assert fitted[0] | scored[0] == set(X[:, 0])


def test_the_division_does_not_look_at_the_data():
    def parts(rows, labels):
        NoisyShare.seen.clear()
        toy(random_state=4).fit(rows, labels)
        return NoisyShare.seen[0][1]

    turned = X.copy()
    turned[:, 1:] *= -1e6
    assert parts(X, Y) == parts(turned, np.roll(Y, 7))


def test_rows_are_held_out_independently_of_each_other():
    """So a record more or less changes no other record's part."""
    held = np.zeros(ROWS)
    together = 0
    for seed in range(150):
        NoisyShare.seen.clear()
        toy(random_state=seed, held_out=0.3).fit(X, Y)
        scored = next(np.array(rows, dtype=int) for kind, rows in NoisyShare.seen if kind != "fit")
        held[scored] += 1
        together += {0, 1} <= set(scored.tolist())
    assert stats.binomtest(int(held.sum()), 150 * ROWS, 0.3).pvalue > ALARM
    assert stats.chisquare([*held]).pvalue > ALARM
    assert stats.binomtest(together, 150, 0.09).pvalue > ALARM


def test_all_rows_of_a_person_are_in_one_part():
    class Several(NoisyShare):
        def __init__(self, epsilon=1.0, delta=1e-6, bias=0.0, classes=None, rows_per_person=2):
            super().__init__(epsilon, delta, bias, classes)
            self.rows_per_person = rows_per_person

    people = np.arange(ROWS) // 4
    search = PrivateSearch(Several(), GRID, tries=3, law="logarithmic", metric="accuracy")
    with pytest.raises(ValueError, match="needs groups"):
        search.fit(X, Y)
    assert NoisyShare.seen == []
    search.fit(X, Y, groups=people)
    one, other = (
        next({int(row) // 4 for row in rows} for kind, rows in NoisyShare.seen if kind == wanted)
        for wanted in ("fit", "score")
    )
    assert not one & other
    entered = [row for _, rows in NoisyShare.seen[:2] for row in rows]
    assert max(Counter(int(row) // 4 for row in entered).values()) == 2


def test_a_store_is_divided_row_by_row(monkeypatch, tmp_path):
    """In pieces, whatever their size; both parts are gone after the block."""
    kept = np.where(np.abs(X) > 0.8, X, 0.0)
    for binary in (False, True):
        values = (kept != 0).astype(float) if binary else kept
        store = write_store(matrix_source(values, np.where(Y, "yes", "no")), tmp_path / f"{binary}")
        rows = np.flatnonzero(np.arange(ROWS) % 5)
        held = RNG.random(rows.size) < 0.3
        monkeypatch.setattr(division, "_cut", partial(_small_pieces, division._cut))
        with divided(local_records(DPLogisticRegression(), store, None), rows, held) as parts:
            for part, chosen in zip(parts, (rows[~held], rows[held]), strict=True):
                assert np.array_equal(part.X.X.tocsr().toarray(), values[chosen])
                assert part.y.tolist() == part.X.y.tolist() == store.y[chosen].tolist()
            assert len(list(tmp_path.glob("*search*"))) == 1
        monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["False", "True"]


def _small_pieces(cut, store, rows, _memory):
    return cut(store, rows, 40 * 7)


def test_a_search_in_a_store(monkeypatch, tmp_path):
    store = write_store(matrix_source(X[:, 1:], Y), tmp_path / "x.store")
    search = logistic()
    for given in ((store,), (store.X, store.y)):
        assert search.fit(*given).predict(store.X).shape == (ROWS,)
    assert not list(tmp_path.glob("*.search-*"))
    with pytest.raises(ValueError, match="not known to read stores"):
        toy().fit(store)
    assert NoisyShare.seen == []


# --- What a try may cost -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (DPLogisticRegression(), {"max_weights": [None, 3], "n_iter": [50, 300]}),
        (DPLogisticRegression(neighbors="replace-one"), {"residual_bound": [0.5, 1.0]}),
        (DPLassoClassifier(), {"n_iter": [10, 100], "l1_radius": [3.0]}),
        (DPLassoClassifier(), {"refit": [None, 0.3]}),
        (NoisyShare(), GRID),
    ],
)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_every_candidate_uses_what_a_try_may_cost(estimator, grid, epsilon):
    cost = search_cost(epsilon, 1e-6, tries_of(3), draw_variation=1e-12)
    for candidate in list_candidates(estimator, grid, 1e-6):
        give_epsilon(candidate, cost.try_rho, 1e-6, 50)
        spent, _ = cost_of_try(candidate.estimator, 50)
        assert 0.999 * cost.try_rho < spent <= cost.try_rho
        assert 0 < candidate.estimator.epsilon < epsilon


def test_the_score_costs_as_much_as_the_fit(monkeypatch):
    """Not their sum: a record is in one part only. Nor less noise than that."""
    for neighbors, move in (("add-remove", 1.0), ("replace-one", math.sqrt(2.0))):
        seen = []
        monkeypatch.setattr(
            search_module,
            "Scorer",
            lambda *given, seen=seen: seen.append(given[3]) or Scorer(*given),
        )
        estimator = DPLogisticRegression(neighbors=neighbors, n_iter=20)
        search = PrivateSearch(estimator, {"max_weights": [None]}, tries=2, law="geometric")
        search.fit(X[:, 1:], Y)
        cost = search_cost(1.0, 1e-6, tries_of(2, "geometric"), neighbors=neighbors)
        (sigma,) = set(seen)
        mu = move / sigma
        assert 0.999 * cost.try_rho < mu * mu / 2.0 <= cost.try_rho


# --- What leaves -------------------------------------------------------------------------------


def test_the_best_is_the_one_with_the_best_score(monkeypatch):
    with_tries(monkeypatch, 40)
    few = (np.arange(ROWS) < 40).astype(int)
    for metric in ("accuracy", "log_loss"):
        search = toy(epsilon=30.0, metric=metric).fit(X, few)
        assert search.best_params_ == {"bias": -2.0}
        assert (search.predict(X) == 0).all()
        assert search.predict_proba(X)[0, 1] == pytest.approx(1 / (1 + math.exp(2)))


def test_nothing_tells_how_many_tries_there_were(monkeypatch):
    sizes, kinds = set(), set()
    for number in (1, 2, 60):
        with_tries(monkeypatch, number)
        search = toy().fit(X, Y)
        kinds.add(tuple((name, type(value)) for name, value in vars(search).items()))
        own = {k: v for k, v in vars(search.best_estimator_).items() if k != "share_"}
        sizes.add((tuple(own), search.privacy_.to_json()))
    assert len(kinds) == len(sizes) == 1


def test_a_try_that_warns_is_not_heard(monkeypatch):
    class Loud(NoisyShare):
        def fit(self, X, y):
            warnings.warn("a try", UserWarning, stacklevel=1)
            return super().fit(X, y)

    with_tries(monkeypatch, 5)
    PrivateSearch(Loud(), GRID, tries=3, law="geometric", metric="accuracy").fit(X, Y)


def test_without_a_try_the_model_is_made_of_public_facts(monkeypatch, tmp_path):
    ledger = tmp_path / "l"
    create_ledger(ledger, 1.0, 1e-6)
    with_tries(monkeypatch, 0)
    searches = []
    for labels in (Y, 1 - Y):
        search = toy(law="poisson")
        with pytest.warns(UserWarning, match="the random number of tries came out as zero"):
            search.fit(X, labels)
        assert NoisyShare.seen == []
        assert (search.best_params_, search.best_score_) == (None, None)
        assert (search.predict(X) == 0).all()
        assert (search.predict_proba(X) == 0.5).all()
        assert search.privacy_.epsilon > 0.99
        searches.append(pickle.dumps(search))
    assert searches[0] == searches[1]
    with pytest.warns(UserWarning, match="the random number of tries came out as zero"):
        toy(law="poisson", ledger=ledger).fit(X, Y)
    # It is the outcome of a private draw like any other, and paid for.
    (entry,) = read_budgets(ledger)[0].entries
    assert (entry.state, entry.release) == ("finished", None)


@pytest.mark.parametrize(
    "estimator", [DPLogisticRegression(n_iter=20), DPLassoClassifier(n_iter=10, l1_radius=3.0)]
)
def test_the_model_carries_the_statement_of_the_whole(estimator, tmp_path):
    search = PrivateSearch(
        estimator, {"fit_intercept": [True, False]}, epsilon=2.0, tries=2, law="logarithmic"
    ).fit(X[:, 1:], Y)
    best = search.best_estimator_
    assert best.epsilon < 1.8
    for statement in (search.privacy_, best.privacy_, best.model_.statement):
        assert statement.is_private
        assert 1.99 < statement.epsilon <= 2.0
        assert (statement.tries, statement.tries_law) == (2.0, "logarithmic")
        assert statement.epsilon_by_rows == {}
        text = statement.text()
        for words in ("the best of a random number of tries", "2 expected", "choice among settin"):
            assert words in text
        assert "tuned on the same records" not in text
        assert type(statement).from_json(statement.to_json()) == statement
    best.save(tmp_path / "m.npz")
    assert load(tmp_path / "m.npz").privacy_ == search.privacy_


def test_names_of_columns_are_kept():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:, 1:], columns=list("abcde"))
    search = logistic().fit(frame, Y)
    assert search.best_estimator_.feature_names_in_.tolist() == list("abcde")
    assert search.predict(frame).shape == (ROWS,)


def test_a_seed_repeats_the_search_and_is_told():
    grid = {"max_weights": [None, 2]}
    one, other = (logistic(grid=grid, random_state=8).fit(X[:, 1:], Y) for _ in range(2))
    assert one.best_score_ == other.best_score_
    assert not one.privacy_.is_private
    assert "random_state" in one.privacy_.reasons[0]
    assert not toy(random_state=1).fit(X, Y).privacy_.is_private


def test_other_targets(monkeypatch):
    class NoisyMean(NoisyShare):
        def predict(self, X):
            return np.full(len(X), self.bias)

    target = X[:, 1].clip(-2, 2)
    search = PrivateSearch(
        NoisyMean(), {"bias": [0.0, 1.9]}, epsilon=30.0, tries=10, metric="mae", law="geometric",
        target_bounds=(-2, 2),
    )  # fmt: skip
    assert search.fit(X, target).best_params_ in ({"bias": 0.0}, {"bias": 1.9})
    assert not hasattr(search, "classes_")
    with_tries(monkeypatch, 0)
    with pytest.warns(UserWarning, match="the random number of tries came out as zero"):
        search.fit(X, target)
    assert search.privacy_.target_bounds == (-2, 2)
    with_tries(monkeypatch, 2)
    for kind, metric in ((DPLinearRegression, "mae"), (DPLasso, "r2")):
        estimator = kind(n_iter=5, target_bounds=(-2, 2))
        search = PrivateSearch(estimator, {"fit_intercept": [True]}, metric=metric)
        assert search.fit(X[:, 1:], target).best_estimator_.privacy_.target_bounds == (-2, 2)
        assert "numbers" in search.privacy_.text() or "targets" in search.privacy_.text()


@pytest.mark.parametrize(
    ("estimator", "metric"),
    [
        (DPLassoClassifier(n_iter=4), "accuracy"),
        (DPLogisticRegression(n_iter=10), "log_loss"),
        (DPLasso(n_iter=4, target_bounds=(0, 3)), "r2"),
        (DPLinearRegression(n_iter=10, target_bounds=(0, 3)), "mae"),
    ],
)
def test_four_classes_or_numbers(estimator, metric):
    X, names = four_classes()
    y = names if metric in ("accuracy", "log_loss") else np.arange(names.size) % 4
    search = PrivateSearch(
        estimator, {"n_iter": [4, 6]}, epsilon=3.0, tries=5, metric=metric, law="geometric"
    ).fit(X, y)
    assert search.privacy_.is_private
    assert search.privacy_.epsilon <= 3.0
    assert type(search.best_estimator_) is type(estimator)
    assert search.predict(X).shape == y.shape
    if metric in ("accuracy", "log_loss"):
        assert search.predict_proba(X).shape == (y.size, 4)
        assert "class labels" in search.privacy_.text()
    else:
        assert "the interval of the targets (0 to 3" in search.privacy_.text()
    score = private_score(search.best_estimator_, X, y, 0.5, metric=metric)
    assert score.privacy.is_private


# --- What it is charged ------------------------------------------------------------------------


def test_one_charge_for_all_tries(monkeypatch, tmp_path):
    ledger = tmp_path / "l"
    create_ledger(ledger, 5.0, 1e-5)
    with_tries(monkeypatch, 7)
    search = logistic(epsilon=0.5, tries=3, law="auto", ledger=str(ledger)).fit(X[:, 1:], Y)
    (budget,) = read_budgets(ledger)
    (entry,) = budget.entries
    expected = charge_of(search_cost(0.5, 1e-6, tries_of(3)))
    assert entry.charge.rho == pytest.approx(expected.rho, rel=1e-6)
    assert (entry.charge.mechanism, entry.charge.n_iter) == ("search", 3)
    assert (entry.state, entry.charge.epsilon) == ("finished", 0.5)
    # Of the model that it paid for, and of the rows as a fit on them would note them.
    assert entry.release == digest_of(search.best_estimator_.model_.release)
    DPLogisticRegression(0.1, n_iter=10, ledger=str(ledger)).fit(X[:, 1:], Y)
    fit = read_budgets(ledger)[0].entries[-1]
    assert entry.charge.fingerprint == fit.charge.fingerprint is not None
    assert search.best_estimator_.ledger is None


def test_a_search_within_a_budget_by_itself_takes_all_of_it(tmp_path):
    ledger = tmp_path / "l"
    create_ledger(ledger, 1.0, 1e-6)
    toy(ledger=ledger).fit(X, Y)
    (budget,) = read_budgets(ledger)
    assert len(budget.entries) == 1
    tiny = search_cost(1e-3, 1e-6, tries_of(3))
    assert not affords(budget, charge_of(tiny))
    with pytest.raises(BudgetError, match="cannot pay for this search"):
        toy(epsilon=1e-3, ledger=ledger).fit(X, Y)
    NoisyShare.seen.clear()
    small = tmp_path / "s"
    create_ledger(small, 0.9, 1e-6)
    with pytest.raises(BudgetError, match="cannot pay for this search"):
        toy(ledger=small).fit(X, Y)
    assert NoisyShare.seen == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"grid": {"epsilon": [1.0]}}, "epsilon cannot be tuned"),
        ({"grid": []}, "holds no settings"),
        ({"grid": {"nothing": [1]}}, "Invalid parameter 'nothing'"),
        ({"metric": "calibration"}, "metric must be"),
        ({"metric": "r2"}, "needs target_bounds"),
        ({"held_out": 1.0}, "held_out must lie"),
        ({"tries": 0.5}, "tries must lie"),
        ({"epsilon": math.inf}, "positive and finite"),
        ({"delta": 2.0}, "delta must lie"),
        ({"estimator": DPLogisticRegression(random_state=1)}, "give random_state to PrivateSearch"),
        ({"estimator": DPLogisticRegression(ledger="x")}, "give the ledger to PrivateSearch"),
        ({"estimator": DPLassoClassifier(mechanism="paper", n_iter=5, l1_radius=3.0)}, "private"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_charged(changes, words, tmp_path):
    ledger = tmp_path / "l"
    create_ledger(ledger, 100.0, 1e-5)
    if isinstance(changes.get("estimator"), DPLogisticRegression | DPLassoClassifier):
        changes = changes | {"grid": {"n_iter": [10]}}
    search = toy(ledger=ledger).set_params(**changes)
    with pytest.raises(ValueError, match=words):
        search.fit(X, Y)
    assert read_budgets(ledger)[0].entries == ()


def test_data_that_are_wrong_are_refused_before_anything_is_charged(tmp_path):
    ledger = tmp_path / "l"
    create_ledger(ledger, 100.0, 1e-5)
    declared = PrivateSearch(
        DPLogisticRegression(classes=(0, 1)), {"n_iter": [10]}, ledger=str(ledger)
    )
    for search, labels, words in (
        (toy(ledger=ledger), np.zeros(ROWS), "only one class"),
        (toy(ledger=ledger, metric="auc"), np.arange(ROWS) % 3, "two classes; there are 3"),
        (declared, np.where(np.arange(ROWS) == 3, 5, Y), "a label that is not one of"),
        (
            toy(ledger=ledger, metric="mae", target_bounds=(0.0, 1.0)),
            np.full(ROWS, "high"),
            "y holds something that is not a number",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            search.fit(X, labels)
    with pytest.raises(ValueError, match="too few"):
        toy(ledger=ledger, held_out=1e-12).fit(X, Y)
    wide = csr_array((ROWS, 2**40))
    with pytest.raises(MemoryError, match="hash them to fewer"):
        PrivateSearch(DPLogisticRegression(), {"n_iter": [10]}, ledger=str(ledger)).fit(wide, Y)
    with pytest.raises(LedgerError, match="random_state"):
        toy(ledger=ledger, random_state=1).fit(X, Y)
    assert read_budgets(ledger)[0].entries == ()


class Silent(NoisyShare):
    privacy_event = property()


@pytest.mark.parametrize(
    ("estimator", "grid", "words"),
    [
        (Given(), {"classes_": [(0, 1)]}, "no parameter epsilon"),
        (Silent(), GRID, "needs a method privacy_event"),
        (logistic(), {"estimator__n_iter": [10]}, "estimator is a PrivateSearch itself; give the"),
    ],
)
def test_an_estimator_that_states_no_cost_is_refused(estimator, grid, words):
    with pytest.raises(TypeError, match=words):
        PrivateSearch(estimator, grid).fit(X, Y)


def test_it_is_cloned_as_scikit_learn_does():
    search = toy(epsilon=0.7)
    assert clone(search).get_params()["estimator__bias"] == 0.0
    assert clone(search).epsilon == 0.7
