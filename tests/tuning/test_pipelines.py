"""Searches and scores behind the steps of a pipeline."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dplasso
from dplasso import DataError, DPLogisticRegression, Ledger, PrivateSearch, private_score

RNG = np.random.default_rng(0)
WORDS = ["calm", "clear", "dizzy", "fever"]
NUMBER = RNG.integers(0, 4, (600, 2))
TEXTS = [" ".join(WORDS[k] for k in row) for row in NUMBER]
ILL = NUMBER.sum(axis=1) > 3
VECTORIZER = CountVectorizer(vocabulary=WORDS, binary=True)
LAST = DPLogisticRegression()


def search(estimator=LAST):
    settings = {"tries": 2, "random_state": 1, "epsilon": 20.0}
    return PrivateSearch(estimator, {"max_weights": [None, 3]}, **settings)


def test_behind_steps_it_is_the_search_on_their_rows(tmp_path):
    found = make_pipeline(VECTORIZER, search()).fit(TEXTS, ILL)
    plain = search().fit(VECTORIZER.fit_transform(TEXTS), ILL)
    assert found[-1].privacy_ == plain.privacy_
    assert found[-1].best_params_ == plain.best_params_
    dplasso.save(found, tmp_path / "m.npz")
    read = dplasso.load(tmp_path / "m.npz")
    assert read[-1].privacy_ == plain.privacy_
    np.testing.assert_array_equal(read.predict(TEXTS), found.predict(TEXTS))
    assert set(dplasso.top_features(found).index) <= set(WORDS)


class TestScore:
    @pytest.mark.parametrize("metric", ["accuracy", "auc"])
    def test_it_is_the_score_of_the_last_step_on_its_rows(self, metric):
        whole = make_pipeline(VECTORIZER, LAST).fit(TEXTS, ILL)
        rows = whole[:-1].transform(TEXTS)
        settings = {"epsilon": 5.0, "metric": metric, "random_state": 3}
        assert private_score(whole, TEXTS, ILL, **settings) == private_score(
            whole[-1], rows, ILL, **settings
        )

    def test_what_a_search_has_chosen_is_scored_on_raw_rows(self):
        settings = {"epsilon": 5.0, "random_state": 3}
        behind = make_pipeline(VECTORIZER, search()).fit(TEXTS, ILL)
        assert private_score(behind, TEXTS, ILL, **settings).value > 0.8
        leaky = make_pipeline(StandardScaler(), search())
        leaky.fit(NUMBER * 1.0, ILL)
        with pytest.raises(ValueError, match="learns from the records"):
            private_score(leaky, NUMBER * 1.0, ILL, **settings)

    def test_a_step_that_learnt_is_refused_before_a_model_of_ours(self, ledger):
        X = NUMBER.astype(float)
        leaky = make_pipeline(StandardScaler(), LAST).fit(X, ILL)
        with pytest.raises(ValueError, match="learns from the records"):
            private_score(leaky, X, ILL, 5.0, ledger=ledger)
        assert not Ledger(ledger).budget().entries
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
