"""All pairs of columns as features, and which of them enter a fit."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from dplasso import DPLassoClassifier, DPLogisticRegression, PrivateSearch, PublicEncoder, load
from dplasso.cluster import InProcessEngine
from fit.cases import releases
from schemas import Categories, Date, Hashed, Levels, Number, Pairs, Schema, schema_of

AGE, JOB = Levels("age", 0, 100, (2, 4)), Categories("job", ("clerk", "cook"))


def test_a_record_has_one_feature_of_each_pair():
    schema = Schema((AGE, JOB, Number("height", 200), Pairs()))
    offset = schema.offsets[3]
    # Bins of the coarsest level, and a missing value; two jobs, an unknown and a missing one.
    assert schema.pairs == ((offset, 3, 4),)
    table = pd.DataFrame({"age": [10, 80, None], "job": ["cook", "smith", None], "height": 170})
    X = PublicEncoder(schema).transform(table).toarray()[:, offset:]
    assert X.sum(axis=1).tolist() == [1, 1, 1]
    names = ["age<50 & job=cook", "age>=50 & job (unknown)", "age (missing) & job (missing)"]
    assert schema.names(offset + X.argmax(axis=1)) == names
    assert {schema.columns_of(offset + k) for k in range(12)} == {("age", "job")}
    assert schema.columns_of(0) == ("age",)


def test_pairs_are_of_all_columns_that_one_part_encodes():
    dates = Date("day", "month"), Date("day", "weekday")
    schema = Schema((AGE, *dates, JOB, Hashed(("city", "street"), 3), Pairs()))
    assert schema.parts[-1].columns == ("age", "job", "city", "street")
    assert len(schema.pairs) == 6
    plain = {"kind": "pairs"}
    document = schema.to_json()
    assert document["parts"][-1] == plain | {"columns": ["age", "job", "city", "street"]}
    assert schema_of(document) == schema
    document["parts"][-1] = plain
    assert schema_of(document) == schema
    document["parts"][-1] = plain | {"columns": ["job", "age"]}
    assert schema_of(document).pairs[0][1:] == (4, 3)


def test_a_pair_lacks_records_whose_value_is_ignored():
    job = Categories("job", ("clerk",), unknown="ignore", missing="ignore")
    schema = Schema((AGE, job, Pairs()))
    table = pd.DataFrame({"age": [10, 10], "job": ["clerk", "cook"]})
    X = PublicEncoder(schema).transform(table).toarray()[:, schema.offsets[2] :]
    assert X.sum(axis=1).tolist() == [1, 0]


def test_a_column_of_many_codes_is_hashed_to_sixteen():
    schema = Schema((Hashed(("city",), 10), JOB, Pairs()))
    offset = schema.offsets[2]
    assert schema.pairs == ((offset, 16, 4),)
    cities = [f"city {k}" for k in range(200)]
    X = PublicEncoder(schema).transform(pd.DataFrame({"city": cities, "job": "cook"}))
    cells = X.toarray()[:, offset:].argmax(axis=1)
    # All of the 16, none of them far too often.
    assert np.bincount(cells // 4, minlength=16).min() > 2
    names = schema.names(offset + np.unique(cells))
    assert names[0] == "city[1 of 16] & job=cook"
    assert len(set(names)) == 16


SCHEMA = Schema([Categories(name, tuple("uvw")) for name in "abcdef"] + [Pairs()])


@pytest.fixture(scope="module")
def table():
    """Draw records; the label follows from the pair of a and b, and from c."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, (20_000, 6))
    margin = 1.5 * np.where((codes[:, 0] == 0) == (codes[:, 1] == 0), 1, -1) + (codes[:, 2] == 1)
    frame = pd.DataFrame(
        {name: np.array(list("uvw"))[codes[:, k]] for k, name in enumerate("abcdef")}
    )
    return frame, (rng.random(20_000) < 1 / (1 + np.exp(-margin))).astype(int)


def fitted(table, kind=DPLogisticRegression, **options):
    X = PublicEncoder(SCHEMA).transform(table[0])
    return kind(1.0, classes=[0, 1], random_state=0, **options).fit(X, table[1])


def entered(model):
    pairs = {SCHEMA.columns_of(column) for column in releases(model).get("pairs-columns", ())}
    return {columns for columns in pairs if len(columns) == 2}


def test_a_fit_finds_the_pair_that_matters(table, tmp_path):
    model = fitted(table)
    assert ("a", "b") in entered(model)
    assert len(entered(model)) <= 6
    released, offset = releases(model), SCHEMA.offsets[-2]
    columns = released["pairs-columns"]
    assert released["gradients-columns"].tolist() == columns.tolist()
    assert columns[columns < offset].tolist() == list(range(offset))
    # Halved only where noise might be the reason.
    assert released["pairs-energies"][np.searchsorted(columns, SCHEMA.pairs[0][0])] == 0.0
    only = Schema(SCHEMA.parts[:-1])
    plain = DPLogisticRegression(1.0, classes=[0, 1], random_state=0)
    plain.fit(PublicEncoder(only).transform(table[0]), table[1])
    accuracy = (model.predict(table[0]) == table[1]).mean()
    assert accuracy > (plain.predict(table[0]) == table[1]).mean() + 0.1
    weights = dict(model.weights())
    assert weights["a=u & b=u"] > 0 > weights["a=u & b=v"]
    parts = model.explain(table[0].head(3))
    assert all(one.parts[0].column == "a, b" for one in parts)
    for one, margin in zip(parts, model.decision_function(table[0].head(3)), strict=True):
        assert one.intercept + sum(part.effect for part in one.parts) == pytest.approx(margin)
    stated = model.privacy_.find("pairs")
    assert stated.numbers["sensitivity"] == 0.5
    assert 0.09 < released["pairs-share"] <= 0.1
    model.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        assert file["shares"].sum() == pytest.approx(1.0)
    loaded = load(tmp_path / "m.npz")
    X = PublicEncoder(SCHEMA).transform(table[0])
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_workers_choose_the_same_pairs(table):
    model = fitted(table)
    X = PublicEncoder(SCHEMA).transform(table[0])
    parts = [PublicEncoder(SCHEMA).transform(part) for part in (table[0][:9_000], table[0][9_000:])]
    other = DPLogisticRegression(1.0, classes=[0, 1], random_state=0)
    other.fit(parts, [table[1][:9_000], table[1][9_000:]], engine=InProcessEngine())
    assert entered(other) == entered(model)
    np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))


def test_tries_of_a_search_choose_pairs(table):
    grid = {"fit_intercept": [True]}
    search = PrivateSearch(
        DPLogisticRegression(classes=[0, 1]), grid, 20.0, tries=2, random_state=0
    )
    search.fit(PublicEncoder(SCHEMA).transform(table[0]), table[1])
    assert ("a", "b") in entered(search.best_estimator_)


def test_the_cost_of_a_try_counts_the_draws_of_pairs(table):
    X, y = PublicEncoder(SCHEMA).transform(table[0][:500]), table[1][:500]
    search = PrivateSearch(DPLogisticRegression(classes=[0, 1]), {}, 30.0, tries=2)
    of_pairs = search.fit(X, y).privacy_.sampling_delta
    without = search.fit(csr_array((X.data, X.indices, X.indptr), X.shape), y)
    assert of_pairs > without.privacy_.sampling_delta


def test_without_enough_records_no_pair_is_looked_at(table):
    few = table[0][:2_000], table[1][:2_000]
    first, last = (releases(fitted(few), last=last) for last in (False, True))
    assert "pairs-columns" not in last
    assert first["gradients-share"] == last["gradients-share"]
    assert last["gradients-columns"].tolist() == list(range(SCHEMA.offsets[-2]))


def test_other_fits_take_all_pairs_as_columns(table):
    model = fitted(table, DPLassoClassifier, max_weights=10)
    assert any(SCHEMA.columns_of(column) == ("a", "b") for column in model.weights().columns)
    assert fitted(table, row_norm=5.0).coef_.shape == (1, SCHEMA.n_features)


def test_without_noise_pairs_enter_that_sampling_does_not_explain(table):
    X = PublicEncoder(SCHEMA).transform(table[0])
    model = DPLogisticRegression(np.inf, classes=[0, 1]).fit(X, table[1])
    assert entered(model) == {("a", "b")}
