"""At most so many rows of a person enter, from a table, a store or arrays alike."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn

from cli.conftest import done, refused, run_command
from dplasso import (
    DataError,
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    PrivacyStatement,
    PrivateSearch,
    PublicEncoder,
    open_store,
    private_comparison,
    private_quantiles,
    private_score,
    write_store,
)
from dplasso.cluster import InProcessEngine
from estimators.kinds import numbers
from schemas import Bins, Categories, Number, Schema

CITIES = tuple(f"c{k}" for k in range(20))
SCHEMA = Schema((Categories("city", CITIES), Number("age", 100.0)), "y")
MODELS = {
    "few columns": DPLassoClassifier(20.0),
    "vertices": DPFrankWolfeClassifier(20.0, n_iter=10, l1_radius=3.0),
    "lasso of numbers": DPLasso(20.0, target_bounds=(0, 1)),
    "logistic": DPLogisticRegression(20.0),
    "short list": DPLogisticRegression(20.0, max_weights=3),
    "linear": DPLinearRegression(20.0, target_bounds=(0, 1)),
    "replace-one": DPLogisticRegression(20.0, neighbors="replace-one"),
}


def conversion(place, *tables, person="patient"):
    """Return the command that makes a store of visits, and of whose they are."""
    schema = place.with_suffix(".json")
    schema.write_text(json.dumps(SCHEMA.to_json()))
    return "convert", *tables, place, "--schema", schema, "--person-column", person


def write(path, *, patients, **columns):
    """Write visits, in the format that the path ends with."""
    n_rows = len(patients)
    visits = {"city": ["c1"] * n_rows, "age": [3] * n_rows, "y": [0] * n_rows, "patient": patients}
    visits = pa.table(visits | columns)
    if path.suffix == ".parquet":
        pq.write_table(visits, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in visits.to_pylist()))
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    city = rng.integers(0, 20, 400)
    columns = {"city": [CITIES[c] for c in city], "age": rng.integers(20, 90, 400)}
    columns["y"] = (city % 2 == 0).astype(int)
    patients = [f"p{k}" for k in rng.integers(0, 150, 400)]
    place = tmp_path_factory.mktemp("table") / "visits.parquet"
    return write(place, patients=patients, **columns)


@pytest.fixture(scope="module")
def arrays(table):
    frame = pd.read_parquet(table)
    return PublicEncoder(SCHEMA).transform(frame), frame["y"].to_numpy(), list(frame["patient"])


@pytest.fixture(scope="module")
def store(table, tmp_path_factory):
    place = tmp_path_factory.mktemp("store") / "visits.store"
    done(*conversion(place, table))
    return open_store(place)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("rows", [1, 2])
def test_the_same_model_from_every_form(model, rows, arrays, store):
    model = sklearn.clone(model).set_params(rows_per_person=rows, random_state=4)
    X, y, names = arrays
    first = sklearn.clone(model).fit(X, y, groups=store.people)
    again = sklearn.clone(model).fit(X, y, groups=names)
    np.testing.assert_array_equal(numbers(again), numbers(first))
    for given, labels in ((store, None), (store.X, store.y)):
        from_store = sklearn.clone(model).fit(given, labels)
        np.testing.assert_array_equal(numbers(from_store), numbers(first))
        assert from_store.privacy_ == first.privacy_
    everything = sklearn.clone(model).fit(X, y)
    assert not np.array_equal(numbers(everything), numbers(first))


def test_statements_about_people_say_so(arrays, store, table, tmp_path):
    """Without one of a person's rows another one enters: no promise is about single rows."""
    X, y, names = arrays
    model = DPLogisticRegression(classes=(0, 1)).fit(X, y)
    plain = write_store(tmp_path / "plain.store", X, y)
    search = PrivateSearch(DPLogisticRegression(classes=(0, 1)), {"fit_intercept": [True]})
    bins = Schema([Bins("age", [50])])

    def statements(given, labels, groups):
        yield sklearn.clone(model).fit(given, labels, groups=groups).privacy_
        yield sklearn.clone(search).fit(given, labels, groups=groups).privacy_
        yield private_score(model, given, labels, groups=groups).privacy
        yield private_comparison(model, model, given, labels, groups=groups).privacy

    edged = private_quantiles(
        pd.read_parquet(table), bins, {"age": (0, 99)}, epsilon=1, groups=names
    )
    every = [edged.edges.statement, *statements(store, None, None), *statements(X, y, names)]
    for statement in every:
        assert "each person, of whom only the first row entered" in statement.text()
        assert "If all rows of any one person were added or removed" in statement.text()
        assert (statement.protected, statement.epsilon_by_rows) == ("each person", {})
        assert PrivacyStatement.from_json(statement.to_json()) == statement
    for statement in (*statements(plain, None, None), *statements(X, y, None)):
        assert "any one record were added or removed" in statement.text()
        assert statement.protected == "each row"


@pytest.mark.parametrize("engine", [None, InProcessEngine()])
def test_the_label_of_a_row_beyond_the_limit_is_not_looked_at(tmp_path, engine):
    X, y = np.eye(4)[np.arange(40) % 4], np.arange(40) % 2
    X, y, people = np.vstack([X, X[:1]]), np.append(y, 7), [*range(40), 0]
    store = write_store(tmp_path / "s.store", X, y, groups=people)
    for classes in (None, [0, 1]):
        model = DPLogisticRegression(20.0, classes=classes)
        model.fit(store if engine is None else [store], engine=engine)
        assert model.classes_.tolist() == [0, 1]


def test_other_groups_may_be_given_for_a_store(store):
    model = DPLassoClassifier(5.0, random_state=0)
    alone = sklearn.clone(model).fit(store, groups=np.arange(400))
    assert not np.array_equal(numbers(alone), numbers(model.fit(store)))
    with pytest.raises(DataError, match="one entry for each of 400 rows"):
        model.fit(store, groups=[1, 2])


def test_a_store_keeps_no_name(store):
    kept = b"".join(path.read_bytes() for path in store.path.iterdir())
    assert b"p17" not in kept
    assert np.unique(store.people).size == len(
        {row["patient"] for row in pq.read_table(store.header.source).to_pylist()}
    )


def test_people_of_a_store_have_numbers_without_gaps(store, arrays):
    """A search draws a word for each number up to the largest."""
    assert np.unique(store.people).tolist() == list(range(len(set(arrays[2]))))


def test_a_column_of_a_table_says_whose_rows_they_are_and_nothing_else(table, tmp_path):
    for column, words in (
        ("nobody", "no column 'nobody'"),
        ("city", "column 'city' identifies people, so it cannot be"),
        ("y", "column 'y' identifies people, so it cannot be"),
    ):
        refused(run_command(*conversion(tmp_path / "s.store", table, person=column)), words)


def test_names_are_of_one_kind_in_all_files(tmp_path):
    texts = write(tmp_path / "a.jsonl", patients=["7", "8"])
    numbers = write(tmp_path / "b.jsonl", patients=[7])
    place, words = tmp_path / "s.store", "b.jsonl, column 'patient', line 1: the id has another"
    refused(run_command(*conversion(place, texts, numbers)), words)
    done(*conversion(place, write(tmp_path / "exact.parquet", patients=[2**60, 2**60 + 1])))
    assert len(set(open_store(place).people)) == 2


def test_ids_are_of_one_type_in_all_stores(tmp_path):
    stores = []
    for name, patients in {"texts": ["007", "8"], "more": ["007", "9"], "numbers": [7, 8]}.items():
        visits = np.ones((2, 21)), [0, 0]
        stores.append(write_store(tmp_path / f"{name}.store", *visits, groups=patients))
    model = DPLogisticRegression(20.0, classes=[0, 1])
    model.fit(stores[:2], engine=InProcessEngine())
    with pytest.raises(DataError, match=r"some ids of people are texts and some are whole numbers"):
        model.fit(stores, engine=InProcessEngine())
