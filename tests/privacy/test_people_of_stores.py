"""A person of many rows moves no statistic further than one, where a store knows whose rows are."""

import numpy as np
import pytest

from dplasso import DPLogisticRegression, PrivateSearch, private_score, write_store
from dplasso.cluster import InProcessEngine
from people import hashes_of
from recorder import compare

LOGISTIC = DPLogisticRegression(5.0, classes=[0, 1])


def rows(count, seed=0):
    """Return rows of a city and an age, and labels that the city tells."""
    rng = np.random.default_rng(seed)
    city = rng.integers(0, 20, count)
    return np.column_stack([np.eye(20)[city], rng.uniform(0.2, 0.9, count)]), city % 2


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Stores of 80 people with a row each, and of one more with six; that one comes last."""
    place, (X, y) = tmp_path_factory.mktemp("people"), rows(80)
    people = [f"p{k}" for k in range(80)]
    largest = hashes_of(people)[:, 0].max()
    other = next(q for q in map("q{}".format, range(10_000)) if hashes_of([q])[0, 0] > largest)
    own, label = rows(1, seed=1)
    return [
        write_store(
            place / f"{extra}.store",
            np.vstack([X, *[own] * extra]),
            np.concatenate([y, *[label] * extra]),
            groups=[*people, *[other] * extra],
        )
        for extra in (0, 6)
    ]


def scored(metric):
    def work(store, **given):
        model = DPLogisticRegression(5.0, classes=[0, 1], random_state=0).fit(store)
        return private_score(model, store, epsilon=1.0, metric=metric, **given)

    return work


def searched(store):
    search = PrivateSearch(LOGISTIC, {"max_weights": [None, 4]}, 5.0, tries=3, random_state=4)
    return search.fit(store)


def others(store):
    """Return a partition of other people, beside a store of these."""
    place = store.path.parent / "others.store"
    if not place.exists():
        write_store(place, *rows(9, seed=2), groups=[f"r{k}" for k in range(9)])
    return place


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "work",
    [
        lambda store: LOGISTIC.fit(store),
        scored("accuracy"),
        scored("auc"),
        lambda store: scored("f1")(store, groups=store.people),
        lambda store: scored("accuracy")(store, confidence=0.9),
        searched,
        lambda store: LOGISTIC.fit([store, others(store)], engine=InProcessEngine()),
    ],
    ids=["fit", "accuracy", "auc", "f1, people given", "wider", "search", "partitions"],
)
def test_they_count_for_one_row(work, stores):
    comparison = compare(work, *stores)
    assert not comparison.violations
    assert comparison.statistics


def test_several_rows_of_a_person_count_where_they_are_declared(stores):
    """And the first of them only: a person may move two rows' worth, and does."""
    one, other = stores
    comparison = compare(lambda store: scored("accuracy")(store, rows_per_person=2), one, other)
    assert not comparison.violations
    assert comparison.largest == pytest.approx(1.0)
