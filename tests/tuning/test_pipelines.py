"""Searches and scores of pipelines: the last step is searched and scored behind the others."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, StandardScaler

import dplasso
from dplasso import (
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    NoiseWarning,
    PrivateSearch,
    private_score,
)
from dplasso.data.blocks import matrix_source
from dplasso.data.store import write_store
from dplasso.errors import DataError
from dplasso.ledger import create_ledger, read_budgets

RNG = np.random.default_rng(0)
WORDS = ["calm", "clear", "dizzy", "fever"]
NUMBER = RNG.integers(0, 4, (600, 2))
TEXTS = [" ".join(WORDS[k] for k in row) for row in NUMBER]
ILL = NUMBER.sum(axis=1) > 3
VECTORIZER = CountVectorizer(vocabulary=WORDS, binary=True)
LAST = DPLogisticRegression(n_iter=10)


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
            (None, {"rows__binary": [True]}, "no setting of the last step 'model'"),
            (None, {"max_weights": [3]}, "write model__NAME"),
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
        with pytest.raises(DataError, match="must depend on its own record alone"):
            wrong.fit(NUMBER.astype(float), ILL)
        assert not read_budgets(ledger)[0].entries

    def test_a_search_that_can_find_nothing_says_so_before_it_spends(self, ledger):
        last = DPLassoClassifier(n_records=600)
        few = search(last, {"feature_bound": [1.0]}, epsilon=0.1, ledger=ledger, random_state=None)
        X = np.eye(900)[RNG.integers(0, 900, 600)]
        with pytest.warns(NoiseWarning, match="^a try: with 600 records"):
            few.fit(X, ILL)

    def test_of_a_store_there_is_nothing_to_make(self, tmp_path):
        store = write_store(matrix_source(NUMBER.astype(float), ILL * 1.0), tmp_path / "s")
        with pytest.raises(DataError, match="give the last step of the pipeline"):
            search(pipeline(Binarizer())).fit(store)


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
        last = DPLinearRegression(20.0, target_bounds=(0, 1), n_iter=10)
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

    def test_rows_that_depend_on_others_are_refused(self):
        batch = FunctionTransformer(lambda X: X - X.mean(axis=0))
        X = NUMBER.astype(float)
        whole = make_pipeline(batch, LogisticRegression()).fit(X, ILL)
        with pytest.raises(DataError, match="must depend on its own record alone"):
            private_score(whole, X, ILL, 5.0)

    def test_columns_in_another_order_are_refused(self):
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame(NUMBER * 1.0, columns=["a", "b"])
        fitted = DPLogisticRegression(20.0, n_iter=10).fit(X, ILL)
        assert private_score(fitted, X, ILL, 5.0).metric == "auc"
        with pytest.raises(DataError, match="other columns than the model"):
            private_score(fitted, X[["b", "a"]], ILL, 5.0)
