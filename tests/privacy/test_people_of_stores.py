"""A person of many rows moves no statistic further than one, where a store knows whose rows are."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dplasso import DPLogisticRegression, PrivateSearch, private_score
from dplasso.cluster import InProcessEngine
from dplasso.data.people import WORDS, hash_people
from dplasso.data.store import write_store
from dplasso.encoding.files import encode_files
from dplasso.encoding.parts import Categories, Number
from dplasso.encoding.schema import Schema
from recorder import compare

CITIES = tuple(f"c{k}" for k in range(20))
SCHEMA = Schema((Categories("city", CITIES), Number("age", bound=100.0)), "y")
LOGISTIC = DPLogisticRegression(5.0, classes=[0, 1])


def first_words(names):
    return hash_people(names, str)[0][::WORDS]


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Stores of 80 people with a row each, and of one more with six; that one comes last."""
    rng = np.random.default_rng(0)
    city, age = rng.integers(0, 20, 80).tolist(), rng.integers(20, 90, 80).tolist()
    people = [f"p{k}" for k in range(80)]
    largest = first_words(people).max()
    other = next(name for name in map("q{}".format, range(10_000)) if first_words([name]) > largest)

    def store(extra):
        place = tmp_path_factory.mktemp("people")
        columns = {
            "city": [CITIES[c] for c in city] + ["c1"] * extra,
            "age": age + [50] * extra,
            "y": [int(c % 2 == 0) for c in city] + [1] * extra,
            "person": people + [other] * extra,
        }
        pq.write_table(pa.table(columns), place / "rows.parquet")
        records = encode_files(place / "rows.parquet", SCHEMA, person_column="person")
        return write_store(
            records.source, place / "rows.store", memory=1 << 24, origin=records.origin
        )

    return store(0), store(6)


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
        table = pq.read_table(store.path.parent / "rows.parquet")[:9]
        named = table.set_column(3, "person", pa.array([f"r{k}" for k in range(9)]))
        pq.write_table(named, store.path.parent / "others.parquet")
        records = encode_files(store.path.parent / "others.parquet", SCHEMA, person_column="person")
        write_store(records.source, place, memory=1 << 24, origin=records.origin)
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
