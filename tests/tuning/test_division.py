"""What the tries of a search see: two parts of the records, whatever the records hold."""

from collections import Counter

import numpy as np
import pytest
from evidence.matrices import matrix_source
from scipy import stats
from sklearn.base import clone
from tests.tuning.models import GRID, ROWS, NoisyShare, X, Y, seen, toy

from dplasso import DPLogisticRegression, PrivateSearch
from dplasso.data.store import write_store
from dplasso.tuning import search as search_module

# Chance that a right division fails a test here.
ALARM = 1e-6


def test_no_try_is_scored_on_rows_that_it_was_fitted_on(monkeypatch):
    monkeypatch.setattr(search_module, "draw_tries", lambda *_: 6)
    toy().fit(X, Y)
    # One division for the whole search, or a row would be in both parts of different tries.
    fitted, scored = seen("fit")[0], seen("score")[0]
    assert seen("fit") == [fitted] * 6
    assert seen("score") == [scored] * 6
    assert sorted(fitted + scored) == X[:, 0].tolist()


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
        scored = seen("score")[0]
        held[scored] += 1
        together += {0, 1} <= set(scored)
    assert stats.binomtest(int(held.sum()), 150 * ROWS, 0.3).pvalue > ALARM
    assert stats.chisquare([*held]).pvalue > ALARM
    assert stats.binomtest(together, 150, 0.09).pvalue > ALARM


def test_all_rows_of_a_person_are_in_one_part():
    people = np.arange(ROWS) // 4
    search = PrivateSearch(NoisyShare(rows_per_person=2), GRID, tries=3, metric="accuracy")
    with pytest.raises(ValueError, match="needs groups"):
        search.fit(X, Y)
    assert NoisyShare.seen == []
    search.fit(X, Y, groups=people)
    one, other = (Counter(row // 4 for row in seen(part)[0]) for part in ("fit", "score"))
    assert not one.keys() & other.keys()
    assert max((one + other).values()) == 2


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_a_search_in_a_store_is_that_in_memory(neighbors, tmp_path, monkeypatch):
    monkeypatch.setattr(search_module, "draw_tries", lambda *_: 3)
    labels = np.where(Y, "yes", "no")
    store = write_store(matrix_source(X[:, 1:], labels), tmp_path / "rows")
    model = DPLogisticRegression(neighbors=neighbors)
    search = PrivateSearch(model, {"max_weights": [None, 3]}, 5.0, random_state=1)
    first, again = (clone(search).fit(*rows) for rows in ((X[:, 1:], labels), (store,)))
    assert again.best_score_ == first.best_score_
    weights = [each.best_estimator_.weights(dense=True) for each in (first, again)]
    np.testing.assert_array_equal(*weights)
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_a_search_in_a_store(tmp_path):
    store = write_store(matrix_source(X[:, 1:], Y), tmp_path / "x.store")
    search = PrivateSearch(DPLogisticRegression(), {"max_weights": [None]})
    for given in ((store,), (store.X, store.y)):
        assert search.fit(*given).predict(store.X).shape == (ROWS,)
