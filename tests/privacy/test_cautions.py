"""What is said of a weak promise: the same by the statement, on the page and in Python."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dplasso import (
    BudgetError,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    PrivacyLeakWarning,
    PrivateSearch,
    WeakPrivacyWarning,
    privacy_cost,
    private_score,
)
from dplasso.cluster import InProcessEngine
from dplasso.ledger import create_ledger
from dplasso.phases import count
from dplasso.privacy import wording

RNG = np.random.default_rng(0)
X = (RNG.random((400, 6)) < 0.4).astype(float)
Y = (X[:, 0] > X[:, 1]).astype(int)


def state(epsilon=1.0, delta=1e-6, *, seeded=None, declared=True):
    cost = privacy_cost(epsilon, delta, random_state=seeded)
    return cost if declared else replace(cost, classes="taken from y, treated as public")


@pytest.mark.parametrize(
    ("level", "words", "statement", "known"),
    [
        ("green", None, state(), {}),
        ("green", None, state(3.0), {"n_records": 100_000}),
        ("amber", "weak promise: the odds", state(3.01), {}),
        ("red", "promises very little", state(10.01), {}),
        ("amber", "large for so many records", state(), {"n_records": 100_001}),
        ("red", "not below one over the number of records", state(), {"n_records": 2e6}),
        ("red", "one record in 100;", state(delta=0.01), {}),
        ("amber", "labels were taken from the data", state(declared=False), {}),
        ("amber", "columns was taken from the data", state(), {"columns_declared": False}),
        ("red", "a seed was given", state(seeded=1), {"n_records": 2e6}),
        ("red", "draft that nobody has edited", state(), {"draft": True, "unconfirmed": True}),
        ("amber", "nobody has confirmed", state(), {"unconfirmed": True}),
    ],
)
def test_the_levels(level, words, statement, known):
    found = statement.cautions(**known)
    assert [one.level for one in found] == [level] * (level != "green")
    assert [words in one.sentence for one in found] == [True] * bool(words)
    # Python warns of what is red and was not asked for, and of labels that were not declared; of a
    # draft it warns where that encodes.
    warns = words is not None and ("labels" in words or (level == "red" and "draft" not in known))
    assert [one.warning is not None for one in found] == [warns][: len(found)]


def test_classes_from_the_data_are_listed():
    (found,) = state(declared=False).cautions(classes=["no", "yes", "yse"])
    assert "labels were taken from the data ('no', 'yes', 'yse'), which" in found.sentence
    (found,) = state(declared=False).cautions(classes=range(25))
    assert "18, 19, ...), which" in found.sentence
    assert not state().cautions(classes=["no", "yes"])


def test_red_comes_first_and_what_is_right_is_said():
    found = state(60.0, declared=False).cautions(n_records=2_000_000)
    assert [one.level for one in found] == ["red", "red", "amber"]
    assert "here at most 5e-08" in found[1].sentence
    text = state(60.0, declared=False).text()
    assert all(f"Caution: {one.sentence}." in text for one in found if "delta" not in one.sentence)
    assert "the odds that a given record was in the data may change 54.6 times" in str(state(4.0))


def fitted(**params):
    """Return what a fit warns with: kind, text and place."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DPLogisticRegression(**{"classes": [0, 1], **params}).fit(X, Y)
    return [(one.category, str(one.message), one.filename) for one in caught]


def test_a_fit_in_python_warns_of_what_is_red_and_of_nothing_else():
    for quiet in ({}, {"epsilon": 9.0}, {"epsilon": math.inf}, {"delta": 2e-4}):
        assert not fitted(**quiet), quiet
    told = fitted(epsilon=1e9, delta=0.01)
    assert [kind for kind, _, _ in told] == [WeakPrivacyWarning] * 2
    assert "an epsilon of 60 (1e+09 was asked for, but no more is spent)" in told[0][1]
    assert all(text.startswith("Caution: ") and place == __file__ for _, text, place in told)
    told = fitted(random_state=0)
    assert [kind for kind, _, _ in told] == [PrivacyLeakWarning]
    assert "a seed was given" in told[0][1]


class TestClassesFromTheData:
    """A label that one record has makes a class of its own: nothing hides it."""

    @pytest.fixture(autouse=True)
    def _nothing_said(self, monkeypatch):
        monkeypatch.setattr(wording, "_said", set())

    def warned(self, work):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            work()
        found = [one for one in caught if "labels were taken from the data" in str(one.message)]
        assert all(one.category is PrivacyLeakWarning for one in found)
        assert all("declare the classes instead" in str(one.message) for one in found)
        return [one.filename for one in found]

    @pytest.mark.parametrize("kind", [DPLogisticRegression, DPLassoClassifier])
    def test_a_label_of_one_record_is_declared_or_of_so_few_that_it_is_a_class(self, kind):
        X, y = np.ones((2_000, 1)), np.array(["no", "yes"] * 1_000, dtype="U4")
        y[7] = "yse"
        assert kind(1.0, classes=["no", "yes", "yse"]).fit(X, y).classes_.size == 3
        # Of 900 people one row each enters.
        people = np.minimum(np.arange(2_000), 899)
        assert PrivateSearch(kind(), {}, tries=2).fit(X, y, groups=people).classes_.size == 3
        with pytest.warns(PrivacyLeakWarning, match="'no', 'yes', 'yse'"):
            kind(1.0).fit(X[:900], y[:900])

    @pytest.mark.parametrize(
        ("rows", "told"),
        [
            ([7], "a label occurs in one record of 2,000"),
            ([7, 8, 1_007], "in at most 3 records, perhaps of one person, of 2"),
        ],
        ids=["a record", "a person"],
    )
    @pytest.mark.parametrize("way", ["fit", "lasso", "partitions", "search", "search of a lasso"])
    def test_a_label_that_one_person_has_is_refused(self, way, rows, told):
        given = {"X": np.ones((2_000, 1)), "y": np.array(["no", "yes"] * 1_000, dtype="U4")}
        given["y"][rows] = "yse"
        if len(rows) > 1:
            given["groups"] = np.where(np.isin(np.arange(2_000), rows), 7, np.arange(2_000))

        def fit():
            kind = DPLassoClassifier if "lasso" in way else DPLogisticRegression
            model, parts = kind(1.0, rows_per_person=len(rows)), given
            if "search" in way:
                model = PrivateSearch(model, {}, tries=2)
            if way == "partitions":
                parts = {name: [some[:1_000], some[1_000:]] for name, some in given.items()}
                parts["engine"] = InProcessEngine()
            return model.fit(**parts)

        with pytest.raises(ValueError, match=told) as caught:
            fit()
        assert "yse" not in str(caught.value)
        # Once in each of two partitions is twice.
        given["y"][1_009] = "yse"
        assert fit().classes_.size == 3

    @pytest.mark.parametrize("kind", [DPLogisticRegression, DPLassoClassifier])
    def test_a_private_fit_warns_once(self, kind):
        stray = np.where(np.arange(Y.size) == 7, 2, Y)
        quiet = {"classes": [0, 1, 2]}, {"epsilon": math.inf}, {"random_state": 0}
        for options in quiet:
            assert not self.warned(lambda own=options: kind(**own).fit(X, stray))
        assert self.warned(lambda: kind().fit(X, stray)) == [__file__]
        # The same for other data: once in a process for the same classes.
        assert not self.warned(lambda: kind().fit(X, stray[::-1]))

    def test_a_regression_and_a_label_matrix_have_no_such_classes(self):
        several = np.stack([Y, 1 - Y], axis=1)
        assert not self.warned(lambda: DPLogisticRegression().fit(X, several))
        numbers = DPLinearRegression(target_bounds=(0, 1))
        assert not self.warned(lambda: numbers.fit(X, Y))

    def test_many_fits_of_one_search_warn_once(self):
        model = DPLogisticRegression()
        behind = make_pipeline(Normalizer(), model)
        search = PrivateSearch(model, {"max_weights": [2, 3]}, 3.0, tries=3)
        for work in (
            lambda: cross_val_score(model, X, Y, cv=4),
            lambda: cross_val_score(behind, X, Y, cv=4),
            lambda: GridSearchCV(model, {"max_weights": [2, 3]}, cv=2).fit(X, Y),
            lambda: search.fit(X, Y),
        ):
            wording._said.clear()
            assert len(self.warned(work)) == 1


def test_whether_a_fit_warns_follows_from_the_released_count(monkeypatch):
    """Of 2,000 records it does; where the count says 900 it does not."""
    many = np.tile(X, (5, 1)), np.tile(Y, 5)
    model = DPLogisticRegression(2.0, 9e-4, classes=[0, 1])
    with pytest.warns(WeakPrivacyWarning, match="one over the number of records"):
        model.fit(*many)
    monkeypatch.setattr(count, "noisy_counts", lambda *_: np.array([450.0, 450.0]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*many)
    assert [str(one.message) for one in caught] == []


def test_searches_and_scores_warn_once_each():
    model = DPLogisticRegression().fit(X, Y)
    with pytest.warns(WeakPrivacyWarning, match="promises very little") as caught:
        private_score(model, X, Y, epsilon=40.0)
    assert len(caught) == 1
    search = PrivateSearch(DPLassoClassifier(classes=[0, 1]), {"max_weights": [2, 3]}, 1.0, 0.01)
    with pytest.warns(WeakPrivacyWarning, match="one record in 100") as caught:
        search.fit(X, Y)
    assert len(caught) == 1


def test_a_fit_warns_before_it_asks_the_ledger(tmp_path):
    create_ledger(tmp_path / "l", 1.0, 1e-5)
    with pytest.warns(WeakPrivacyWarning), pytest.raises(BudgetError):
        DPLogisticRegression(40.0, ledger=tmp_path / "l").fit(X, Y)
