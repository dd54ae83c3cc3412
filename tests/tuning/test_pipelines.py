"""Searches and scores of pipelines: the last step is searched and scored behind the others."""

import itertools
from typing import ClassVar

import numpy as np
import pytest
from evidence.matrices import matrix_source
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, StandardScaler

import dplasso
from dplasso import (
    DPLinearRegression,
    DPLogisticRegression,
    PrivateSearch,
    private_score,
)
from dplasso.data.store import write_store
from dplasso.errors import DataError
from dplasso.ledger import create_ledger, read_budgets
from dplasso.tuning import candidates as candidates_module
from dplasso.tuning import plan as plan_module
from dplasso.tuning import search as search_module
from dplasso.tuning.candidates import give_epsilon

RNG = np.random.default_rng(0)
WORDS = ["calm", "clear", "dizzy", "fever"]
NUMBER = RNG.integers(0, 4, (600, 2))
TEXTS = [" ".join(WORDS[k] for k in row) for row in NUMBER]
ILL = NUMBER.sum(axis=1) > 3
VECTORIZER = CountVectorizer(vocabulary=WORDS, binary=True)
LAST = DPLogisticRegression()


def pipeline(step=VECTORIZER, last=LAST):
    return Pipeline([("rows", step), ("model", last)])


def search(estimator=None, grid=None, **options):
    settings = {"law": "logarithmic", "tries": 2, "random_state": 1, "epsilon": 20.0} | options
    return PrivateSearch(
        estimator or pipeline(), grid or {"model__max_weights": [None, 3]}, **settings
    )


@pytest.fixture
def ledger(tmp_path):
    create_ledger(tmp_path / "l", 100.0, 1e-5)
    return str(tmp_path / "l")


class TestSearch:
    def test_it_is_the_search_of_the_last_step_on_its_rows(self):
        found = search().fit(TEXTS, ILL)
        rows = VECTORIZER.fit_transform(TEXTS)
        plain = search(LAST, {"max_weights": [None, 3]}).fit(rows, ILL)
        assert found.privacy_ == plain.privacy_
        assert found.best_score_ == plain.best_score_
        assert found.best_params_ == {"model__max_weights": plain.best_params_["max_weights"]}
        assert isinstance(found.best_estimator_, Pipeline)
        assert found.classes_.tolist() == [False, True]
        np.testing.assert_array_equal(found.predict(TEXTS), plain.predict(rows))
        np.testing.assert_array_equal(found.predict_proba(TEXTS), plain.predict_proba(rows))

    def test_what_it_chose_is_saved_with_the_statement_of_the_search(self, tmp_path):
        found = search().fit(TEXTS, ILL)
        for chosen in (found, found.best_estimator_):
            dplasso.save(chosen, tmp_path / "m.npz")
            read = dplasso.load(tmp_path / "m.npz")
            assert read[-1].privacy_ == found.privacy_
            np.testing.assert_array_equal(read.predict(TEXTS), found.predict(TEXTS))
        assert set(dplasso.top_features(found).index) <= set(WORDS)

    @pytest.mark.parametrize(
        ("estimator", "grid", "told"),
        [
            (pipeline(TfidfVectorizer()), None, "learns from the records"),
            (pipeline(StandardScaler()), None, "learns from the records"),
            (None, {"rows__vocabulary": [WORDS, None]}, "learns from the records"),
            (None, {"rows": [VECTORIZER, StandardScaler()]}, "learns from the records"),
            (None, {"rows__bits": [3]}, "Invalid parameter 'bits' for estimator CountVectorizer"),
            (
                None,
                {"max_weights": [3]},
                "not a setting of a step; write STEP__NAME, or mod",
            ),
            (None, {"memory": [None]}, "not a setting of a step"),
            (None, {"model": [LAST]}, "not a setting of a step"),
            (None, {"model__epsilon": [3]}, "epsilon cannot be tuned"),
        ],
    )
    def test_what_is_wrong_is_found_before_anything_is_spent(self, ledger, estimator, grid, told):
        wrong = search(estimator, grid, ledger=ledger, random_state=None)
        for work in (wrong.check, lambda: wrong.fit(TEXTS, ILL)):
            with pytest.raises(ValueError, match=told):
                work()
        assert not read_budgets(ledger)[0].entries

    def test_rows_that_depend_on_others_spend_nothing(self, ledger):
        batch = FunctionTransformer(lambda X: X - X.mean(axis=0))
        wrong = search(pipeline(batch), ledger=ledger, random_state=None)
        with pytest.raises(DataError, match="must depend on its own record only"):
            wrong.fit(NUMBER.astype(float), ILL)
        assert not read_budgets(ledger)[0].entries

    def test_of_a_store_there_is_nothing_to_make(self, tmp_path):
        store = write_store(matrix_source(NUMBER.astype(float), ILL * 1.0), tmp_path / "s")
        with pytest.raises(DataError, match="pass the last step of the pipeline"):
            search(pipeline(Binarizer())).fit(store)


class TestSteps:
    """Settings of the steps before the last."""

    GRID: ClassVar[dict] = {
        "rows__n_features": [2**6, 2**10],
        "rows__ngram_range": [(1, 1), (1, 2)],
    }

    def hashed(self, monkeypatch, tries=4, **options):
        """Search all four settings, one try each; return the search and each try's fit."""
        turns, fits = itertools.count(), []
        monkeypatch.setattr(search_module, "draw_tries", lambda *_: tries)
        monkeypatch.setattr(
            candidates_module, "draw_candidate", lambda among, _: among[next(turns) % len(among)]
        )
        fit = DPLogisticRegression.fit
        monkeypatch.setattr(
            DPLogisticRegression,
            "fit",
            lambda self, *to: fits.append((self, *to)) or fit(self, *to),
        )
        found = search(pipeline(HashingVectorizer()), self.GRID, **options)
        return found.fit(TEXTS, ILL), fits

    def test_each_candidate_is_fitted_on_the_rows_its_own_steps_make(self, monkeypatch):
        _, fits = self.hashed(monkeypatch)
        for (_, X, y), settings in zip(fits, ParameterGrid(self.GRID), strict=True):
            own = {name.removeprefix("rows__"): value for name, value in settings.items()}
            rows = HashingVectorizer(**own).fit_transform(TEXTS)
            assert X.shape[1] == rows.shape[1] == own["n_features"]
            # The same people are held out of every try.
            assert y is not None
            np.testing.assert_array_equal(y, fits[0][2])
            assert X.nnz < rows.nnz
            among = {tuple(row) for row in rows.toarray()}
            assert {tuple(row) for row in X[:20].toarray()} <= among

    def test_each_candidate_has_the_epsilon_of_its_own_columns(self, monkeypatch):
        asked = []
        monkeypatch.setattr(
            plan_module,
            "give_epsilon",
            lambda one, *given: asked.append(one.rows.shape[1]) or give_epsilon(one, *given),
        )
        _, fits = self.hashed(monkeypatch)
        assert asked == [X.shape[1] for _, X, _ in fits]
        assert len(set(asked)) == 2

    def test_the_best_predicts_by_its_own_steps(self, monkeypatch, tmp_path):
        found, _ = self.hashed(monkeypatch)
        wanted = found.best_params_
        assert set(wanted) == set(self.GRID)
        step = found.best_estimator_[0]
        assert (step.n_features, step.ngram_range) == (
            wanted["rows__n_features"],
            wanted["rows__ngram_range"],
        )
        assert found.n_features_in_ == step.n_features
        assert (found.predict(TEXTS) == ILL).mean() > 0.9
        dplasso.save(found, tmp_path / "m.npz")
        read = dplasso.load(tmp_path / "m.npz")
        np.testing.assert_array_equal(read.predict(TEXTS), found.predict(TEXTS))

    def test_the_accounting_is_that_of_any_search(self, monkeypatch, ledger):
        found, _ = self.hashed(monkeypatch, ledger=ledger, random_state=None, epsilon=2.0)
        plain = search(LAST, {"max_weights": [None, 3]}, epsilon=2.0, random_state=None)
        stated = plain.fit(VECTORIZER.transform(TEXTS), ILL).privacy_
        assert found.privacy_.epsilon == pytest.approx(stated.epsilon, rel=1e-6)
        assert found.privacy_.number("tries") == stated.number("tries")
        assert found.privacy_.delta == stated.delta
        (entry,) = read_budgets(ledger)[0].entries
        assert entry.release == found.best_estimator_[-1].model_.digest

    def test_without_a_try_the_constant_stands_behind_the_first_steps(self, monkeypatch):
        with pytest.warns(UserWarning, match="of tries is zero"):
            found, fits = self.hashed(monkeypatch, tries=0)
        assert not fits
        assert found.best_params_ is None
        assert found.predict(TEXTS[:3]).tolist() == [False] * 3

    def test_rows_are_made_once_for_the_same_settings_of_the_steps(self, monkeypatch):
        made = []
        real = candidates_module.rows_of
        monkeypatch.setattr(
            candidates_module, "rows_of", lambda *of, **how: made.append(of) or real(*of, **how)
        )
        grid = {"rows__binary": [True, False], "model__max_weights": [None, 2, 3]}
        search(grid=grid).fit(TEXTS, ILL)
        assert len(made) == 2

    def test_a_step_may_be_exchanged_or_left_out(self):
        rows = VECTORIZER.fit_transform(TEXTS)
        grid = {"rows": [Binarizer(), "passthrough", Normalizer()]}
        found = search(pipeline(Binarizer()), grid).fit(rows, ILL)
        assert (found.predict(rows) == ILL).mean() > 0.9


class TestScore:
    @pytest.mark.parametrize("metric", ["accuracy", "auc", "calibration"])
    def test_it_is_the_score_of_the_last_step_on_its_rows(self, metric):
        whole = pipeline().fit(TEXTS, ILL)
        rows = whole[:-1].transform(TEXTS)
        settings = {"epsilon": 5.0, "metric": metric, "random_state": 3}
        assert private_score(whole, TEXTS, ILL, **settings) == private_score(
            whole[-1], rows, ILL, **settings
        )

    def test_what_a_search_has_chosen_is_scored_on_raw_rows(self):
        found = search().fit(TEXTS, ILL)
        settings = {"epsilon": 5.0, "random_state": 3}
        one = private_score(found, TEXTS, ILL, **settings)
        assert one == private_score(found.best_estimator_, TEXTS, ILL, **settings)
        behind = make_pipeline(VECTORIZER, search(LAST, {"max_weights": [None]})).fit(TEXTS, ILL)
        assert private_score(behind, TEXTS, ILL, **settings).value > 0.8
        leaky = make_pipeline(StandardScaler(), search(LAST, {"max_weights": [None]}))
        leaky.fit(NUMBER * 1.0, ILL)
        with pytest.raises(ValueError, match="learns from the records"):
            private_score(leaky, NUMBER * 1.0, ILL, **settings)

    def test_numbers(self):
        last = DPLinearRegression(20.0, target_bounds=(0, 1))
        whole = pipeline(last=last).fit(TEXTS, ILL * 1.0)
        assert private_score(whole, TEXTS, ILL * 1.0, 5.0, metric="mae").high < 0.5

    def test_a_step_that_learnt_is_refused_before_a_model_of_ours(self, ledger):
        X = NUMBER.astype(float)
        leaky = make_pipeline(StandardScaler(), LAST).fit(X, ILL)
        with pytest.raises(ValueError, match="learns from the records"):
            private_score(leaky, X, ILL, 5.0, ledger=ledger)
        assert not read_budgets(ledger)[0].entries
        # What others' training cost is another matter.
        plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, ILL)
        assert private_score(plain, X, ILL, 5.0).value > 0.8

    def test_columns_in_another_order_are_refused(self):
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame(NUMBER * 1.0, columns=["a", "b"])
        fitted = DPLogisticRegression(20.0).fit(X, ILL)
        assert private_score(fitted, X, ILL, 5.0).metric == "auc"
        with pytest.raises(DataError, match="must have the columns of the fitted model"):
            private_score(fitted, X[["b", "a"]], ILL, 5.0)
