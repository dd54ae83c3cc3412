"""PublicEncoder: a transformer that learns nothing, for every kind of data frame."""

import datetime as dt
import json
import pickle
import warnings
from contextlib import suppress
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from cli.conftest import done
from dplasso import (
    DataError,
    DPLassoClassifier,
    DPLogisticRegression,
    PrivacyLeakWarning,
    PrivateSearch,
    PublicEncoder,
    load,
    open_store,
)
from dplasso.cluster import InProcessEngine
from schemas import Bins, Categories, Date, Hashed, Number, Schema, Text

SCHEMA = Schema(
    (Categories("sex", ("F", "M")), Bins("age", (18, 65)), Number("bmi", 60.0), Text("note", 6)),
    "y",
)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 400
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M", "X", None], n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(0, 100, n)),
            "bmi": rng.uniform(15, 90, n),
            "note": rng.choice(["fine", "bad heart", ""], n),
            "y": np.arange(n) % 2,
        }
    )


def test_each_value_has_its_column():
    frame = pd.DataFrame(
        {
            "sex": ["M", "X", None],
            "age": [17.999, 65, np.nan],
            "bmi": [30.0, -1e300, np.inf],
            "note": ["", None, "fine fine"],
        }
    )
    encoder = PublicEncoder(SCHEMA)
    names, X = encoder.get_feature_names_out(), encoder.fit_transform(frame)
    found = [
        {names[j]: X.data[k] for k, j in enumerate(X.indices) if X.indptr[i] <= k < X.indptr[i + 1]}
        for i in range(3)
    ]
    assert found[0] == {"sex=M": 1, "age<18": 1, "bmi": 0.5, "note (missing)": 1}
    assert found[1] == {"sex (unknown)": 1, "age>=65": 1, "bmi": -1, "note (missing)": 1}
    (word,) = set(found[2]) - {"sex (missing)", "age (missing)", "bmi"}
    assert found[2]["bmi"] == found[2][word] == 1


@pytest.mark.parametrize(
    "values",
    [
        [12_345_678_901, 2, None],
        [12_345_678_901, 2, 0.5],
        [*(Decimal(tenths) / 10 for tenths in range(30)), None, Decimal("2.12345678901234")],
        [pd.Timestamp("2020-01-01 10:00"), pd.Timestamp("2020-01-01 10:00:00.123456789")],
        [pd.Timedelta("10 s"), pd.Timedelta("1 ns")],
    ],
    ids=["missing", "fraction", "decimals", "times", "durations"],
)
def test_a_record_does_not_change_the_words_of_others(values):
    """It may change the type of their column, and so how the values of all are written."""
    whole = pd.DataFrame({"a": pd.Series(values)})
    others = pd.DataFrame({"a": pd.Series(values[:-1])})
    edges = [tenths / 10 for tenths in range(1, 30)]
    parts = [Hashed("a", 12), Categories("a", ["12345678901", "2"])]
    parts += [] if whole["a"].dtype.kind in "mM" else [Bins("a", edges)]
    encoder = PublicEncoder(Schema(parts))
    found, expected = encoder.transform(whole), encoder.transform(others)
    assert found[:-1].toarray().tolist() == expected.toarray().tolist()


def test_whole_numbers_that_lost_digits_are_refused():
    ids = pd.DataFrame({"a": [2**60 + 1, 2, None]})
    with pytest.raises(DataError, match=r"column 'a': floats have lost digits .* from 2\^53 on"):
        PublicEncoder(Schema([Hashed("a", 8)])).transform(ids)
    # Numbers are compared as floats, whatever the column holds.
    numbers = PublicEncoder(Schema([Categories("a", [2**60, 2], unknown="error")]))
    assert numbers.transform(ids).toarray().tolist() == np.eye(3).tolist()


def test_frames_of_every_kind_give_one_matrix(table):
    expected = PublicEncoder(SCHEMA).transform(table)
    arrow = pa.Table.from_pandas(table)
    coded = table.assign(sex=table["sex"].astype("category"))
    chunks = pa.concat_tables([arrow.slice(0, 7), arrow.slice(7)])
    polars = pl.from_pandas(table)
    for other in (
        *(arrow, arrow.combine_chunks().to_batches()[0], coded, chunks),
        *(polars, polars.with_columns(pl.col("sex").cast(pl.Categorical)), polars.rechunk()),
    ):
        assert abs(PublicEncoder(SCHEMA).transform(other) - expected).nnz == 0
    assert PublicEncoder(SCHEMA).transform(table[:0]).shape == (0, expected.shape[1])
    assert PublicEncoder.suggest(polars).columns == PublicEncoder.suggest(table).columns
    model = make_pipeline(PublicEncoder(SCHEMA), DPLogisticRegression(classes=[0, 1]))
    model.fit(polars, pl.Series([0, 1] * (len(table) // 2)))
    assert (model.predict_proba(polars) == model.predict_proba(table)).all()


def test_the_output_stays_sparse(table):
    """scikit-learn has no sparse data frame: any other output is refused by it, in words."""
    assert PublicEncoder(SCHEMA).set_output(transform="default").fit_transform(table).nnz
    for container in ("pandas", "polars"):
        encoder = PublicEncoder(SCHEMA).set_output(transform=container)
        with pytest.raises(ValueError, match="sparse"):
            encoder.fit_transform(table)


def test_many_rows_are_encoded_in_pieces(monkeypatch, table):
    expected = PublicEncoder(SCHEMA).transform(table)
    monkeypatch.setattr("dplasso.encoding.encoder._ROWS_AT_ONCE", 7)
    assert abs(PublicEncoder(SCHEMA).transform(table) - expected).nnz == 0
    with pytest.raises(DataError, match="column 'age', row 9: the value is not a number"):
        PublicEncoder(SCHEMA).transform(table.astype({"age": object}).replace({"age": {
            table["age"][8]: "x"}}).astype({"age": str}))  # fmt: skip


def test_nothing_is_learnt(tmp_path, table):
    encoder = PublicEncoder(SCHEMA)
    before = dict(vars(encoder))
    encoder.fit(table[:1])
    assert vars(encoder) == before
    one = encoder.transform(table)
    assert abs(PublicEncoder(SCHEMA).transform(table) - one).nnz == 0  # without fit
    assert encoder.feature_names_in_.tolist() == ["sex", "age", "bmi", "note"]
    assert encoder.n_features_in_ == 4
    again = pickle.loads(pickle.dumps(clone(encoder)))
    assert abs(again.transform(table) - one).nnz == 0
    # The schema may be in a file.
    path = tmp_path / "s.json"
    path.write_text(json.dumps(SCHEMA.to_json()))
    for schema in (path, str(path)):
        assert abs(PublicEncoder(schema).fit_transform(table) - one).nnz == 0


@pytest.mark.parametrize(
    ("column", "one_more"),
    [
        (pd.Series([0.1, 0.2], dtype=np.float32), [0.25]),
        (pd.Series([2**64 - 1, 3], dtype=np.uint64), [np.nan]),
        (pd.Series([pd.Timestamp("2020-01-01 00:00:00.000000001")] * 2), [pd.NaT]),
        (pd.Series([pd.Timestamp("2020-01-01 00:00:00.000000001")] * 2), [None]),
        (pd.Series([1, 2]), [2.5]),
        (pd.Series([1, 2]), [None]),
    ],
    ids=["float32", "uint64", "times", "objects", "fraction", "missing"],
)
@pytest.mark.parametrize("is_categorical", [False, True])
def test_a_record_does_not_change_the_type_of_others(column, one_more, is_categorical):
    """Refusals aside, as of floats that have lost digits."""
    encoder = PublicEncoder(Schema((Hashed("x", 12),)))
    rows = []
    for values in (column, pd.concat([column, pd.Series(one_more)], ignore_index=True)):
        frame = pd.DataFrame({"x": values.astype("category") if is_categorical else values})
        with suppress(DataError):
            rows.append(encoder.transform(frame).toarray()[:2])
    assert (rows[0] == rows[-1]).all()


# Values of each type that a frame's column of objects may hold, first those of a number or word.
OF_TYPES = (
    *(3, 2**60 + 1, 0.25, np.float32(0.1), np.float16(0.1), np.float64(0.1), np.int8(5)),
    *(np.uint64(7), Decimal("1.50"), True, np.bool_(True), "3", np.str_("q")),
    *(dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3), dt.time(3, 4), dt.timedelta(1)),
    *(dt.datetime(2020, 1, 2, 23, tzinfo=dt.timezone(dt.timedelta(hours=h))) for h in (0, 5)),
    *(pd.Timestamp("2020-01-02"), pd.Timedelta(5), np.datetime64("2020-01-02")),
    *(None, float("nan"), np.float32("nan"), pd.NA, pd.NaT),
)


def encoded_column(part, values):
    try:
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        return PublicEncoder(Schema((part,))).transform(frame).toarray()
    except DataError:
        return None


@pytest.mark.parametrize(
    "part",
    [Hashed("x", 10), Number("x", 9.0), Date("x", "weekday")],
    ids=["hashed", "number", "weekday"],
)
def test_a_value_of_any_type_leaves_all_others_as_they_are(part):
    alone = [encoded_column(part, [value]) for value in OF_TYPES]
    together = 0
    for (value, own), other in product(zip(OF_TYPES, alone, strict=True), OF_TYPES):
        for place, values in enumerate(([value, other], [other, value])):
            rows = encoded_column(part, values)
            if rows is not None and own is not None:
                assert (rows[place] == own[0]).all(), (value, other)
                together += 1
    assert together > 2 * len(OF_TYPES)


def test_what_is_no_table(table):
    for X, message in (
        (np.eye(3), "table with named columns .* not ndarray"),
        (pl.from_pandas(table).lazy(), r"not LazyFrame: call its collect\(\)"),
        (table.drop(columns="age"), "the table has no column 'age'; there are 'sex', 'bmi'"),
        (pd.concat([table, table[["age"]]], axis=1), "more than one column 'age'"),
        *(
            (
                table.assign(sex=pd.Series(values * 200, dtype=object)),
                "column 'sex' of the table: the values are of different types or time zones, or no",
            )
            # A float made 1 and 0 of all bools, and the text's message had quoted a character.
            for values in ([{1}, 2], [0.5, True], ["F", "\ud800"])
        ),
    ):
        with pytest.raises(DataError, match=message):
            PublicEncoder(SCHEMA).fit(X).transform(X)


def test_a_draft_says_that_it_is_not_private(table):
    draft = PublicEncoder.suggest(table, "y")
    assert "not private" in draft.note
    with pytest.warns(PrivacyLeakWarning, match="a draft that nobody has edited"):
        PublicEncoder(draft).fit(table)
    without = draft.to_json() | {"note": ""}
    with pytest.warns(PrivacyLeakWarning, match="nobody has edited: confirm the parts for"):
        PublicEncoder(without).fit(table)
    parts = [{k: v for k, v in part.items() if k != "confirm"} for part in without["parts"]]
    edited = without | {"parts": parts}
    with pytest.warns(PrivacyLeakWarning, match="nobody has confirmed"):
        PublicEncoder(edited).fit(table)
    edited |= {"confirmed": True}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PublicEncoder(edited).fit(table)


def test_every_fit_with_a_draft_warns_once(table, tmp_path):
    """However its rows came to the fit: the draft leaves with the model."""
    draft, files = PublicEncoder.suggest(table, "y"), (tmp_path / "t.parquet", tmp_path / "s")
    pq.write_table(pa.Table.from_pandas(table), files[0])
    (tmp_path / "s.json").write_text(json.dumps(draft.to_json()))
    done("convert", *files, "--schema", tmp_path / "s.json")
    store = open_store(files[1])
    told = done(
        "fit", files[0], "--schema", tmp_path / "s.json", "--epsilon", 1, "--classes", "0,1"
    )
    assert " ".join(told.stderr.split()).count("nobody has edited") == 1
    X, y = PublicEncoder(draft).transform(table), table["y"]
    model = DPLogisticRegression(classes=[0, 1])
    search = PrivateSearch(model, {"max_weights": [1, 2]}, tries=2)
    for fit in (
        lambda: model.fit(X, y),
        lambda: model.fit(X, y),
        lambda: model.fit(store),
        lambda: model.fit([store], engine=InProcessEngine()),
        lambda: search.fit(X, y),
        lambda: make_pipeline(PublicEncoder(draft), model).fit(table, y),
        lambda: make_pipeline(PublicEncoder(draft), Normalizer(), model).fit(table, y),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit()
        said = [one.category for one in caught if "nobody has edited" in str(one.message)]
        assert said == [PrivacyLeakWarning]


@pytest.mark.parametrize("family", [DPLassoClassifier, DPLogisticRegression])
def test_a_model_in_a_pipeline_keeps_the_schema(tmp_path, table, family):
    model = make_pipeline(PublicEncoder(SCHEMA), family(epsilon=20.0, random_state=0)).fit(
        table, table["y"]
    )
    model[-1].save(tmp_path / "m.npz")
    loaded = load(tmp_path / "m.npz")
    assert loaded.model_.origin.schema == SCHEMA
    expected = model.predict_proba(table)
    np.testing.assert_array_equal(loaded.predict_proba(table), expected)
    X = PublicEncoder(SCHEMA).transform(table)
    np.testing.assert_array_equal(loaded.predict_proba(X), expected)
    X = X[:]  # a slice does not know how it was made, and is taken at its word
    np.testing.assert_array_equal(loaded.predict_proba(X), expected)
    other = Schema((*SCHEMA.parts[:-1], Text("note", 6, lowercase=False)), "y")
    with pytest.raises(DataError, match=r"a different schema than the model's: .* part 4 on"):
        loaded.predict(PublicEncoder(other).transform(table))
    # Of numbered columns nobody knows that they differ.
    numbered = family(epsilon=20.0).fit(X, table["y"])
    assert numbered.model_.origin is None
    numbered.predict(PublicEncoder(SCHEMA).transform(table))
