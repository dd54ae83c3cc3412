"""Tables of every kind by a schema: the columns no record decides, and errors that name rows."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv
from sklearn.feature_extraction import FeatureHasher

from cli.conftest import done
from data.row_blocks import gather_table
from dplasso import DataError, DPLogisticRegression, PublicEncoder
from encoding.generated import write
from schemas import Bins, Categories, Date, Hashed, Number, Schema, Text, schema_of
from secrets_in_messages import refused

CITIES = {"size": [0, 1, 2], "city": ["Lima", "Oslo"], "new": [False, True]}


def declared(unknown="error", **lists):
    parts = [Categories(name, found, unknown, "ignore") for name, found in lists.items()]
    return Schema(parts, "y")


@pytest.fixture(params=[".parquet", ".arrow", ".csv"])
def suffix(request):
    return request.param


class TestCategories:
    def table(self, **changes):
        columns = {
            "city": ["Oslo", "Lima", None, "Oslo"],
            "size": pa.array([2, 1, 1, 2]),
            "new": [True, True, False, True],
            "y": [0, 1, 0, 1],
        }
        return pa.table(columns | changes)

    def test_a_value_that_is_not_declared(self, tmp_path, suffix):
        path = write(tmp_path / f"t{suffix}", self.table(city=["Oslo", "Lima", "Oslo", "Bonn"]))
        place = "line 5" if suffix == ".csv" else "row 4"
        with pytest.raises(
            DataError, match=rf"'city', {place}: the value is not one of the declared"
        ):
            gather_table(path, declared(**CITIES))
        X, _, _ = gather_table(path, declared("ignore", **CITIES))
        assert X.toarray()[3].tolist() == [0, 0, 1, 0, 0, 0, 1]
        X, _, _ = gather_table(path, declared("column", city=["Lima", "Oslo"]))
        assert X.toarray()[3].tolist() == [0, 0, 1]

    def test_words_and_numbers_meet(self, tmp_path, suffix):
        path = write(tmp_path / f"t{suffix}", self.table())
        words, numbers = declared(size=["1", "2"]), declared(size=[1.0, 2])
        assert abs(gather_table(path, words)[0] - gather_table(path, numbers)[0]).nnz == 0


class TestHashed:
    def test_as_scikit_learn_hashes(self, tmp_path, suffix):
        rng = np.random.default_rng(0)
        table = pa.table(
            {
                "city": pa.array(rng.choice(["Rome", "Oslo", "Lima"], 200)).dictionary_encode(),
                "zip": rng.integers(0, 90, 200),
                "y": rng.integers(0, 2, 200),
            }
        )
        schema = Schema([Hashed(("city", "zip"), 5, missing="ignore")], "y")
        X, _, n_blocks = gather_table(write(tmp_path / f"t{suffix}", table), schema, 10_000)
        assert n_blocks > 1
        hasher = FeatureHasher(32, input_type="string", alternate_sign=False)
        words = [[f"city={row['city']}", f"zip={row['zip']}"] for row in table.to_pylist()]
        expected = hasher.transform(words).toarray()
        assert expected.max() == 2  # two values of one record in one column are one entry
        np.testing.assert_array_equal(X.toarray(), np.minimum(expected, 1))

    @pytest.mark.parametrize(("missing", "entries"), [("ignore", 0), ("column", 1)])
    def test_missing_values(self, tmp_path, suffix, missing, entries):
        table = pa.table({"a": pa.array([None, "x", None]), "b": ["u", "v", "w"], "y": [0, 1, 0]})
        schema = Schema([Hashed(("a", "b"), 8, missing)], "y")
        X, _, _ = gather_table(write(tmp_path / f"t{suffix}", table), schema)
        assert np.diff(X.indptr).tolist() == [1 + entries, 2, 1 + entries]
        empty = write(tmp_path / f"e{suffix}", table.select(["a", "y"]).slice(0, 1))
        X, _, _ = gather_table(empty, Schema([Hashed("a", 8, missing)], "y"))
        assert X.indices.tolist() == [256] * entries

    def test_what_is_no_category_and_no_text(self, tmp_path):
        for part, values, problem in (
            (Hashed("a", 8), [[1], [2]], "column 'a': nested values cannot be categories"),
            (Text("a", 8), [1, 2], "column 'a': the column must hold text, not int64 values"),
            (Text("a", 8, missing="error"), ["x", None], "column 'a', row 2: the value is missing"),
        ):
            path = write(tmp_path / "t.parquet", pa.table({"a": values, "y": [0, 1]}))
            with pytest.raises(DataError, match=problem):
                gather_table(path, Schema([part], "y"))


class TestNumbers:
    def test_what_is_no_number(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text('a,y\n 1 ,0\n"x\ny",1\n')
        with pytest.raises(
            DataError, match=r"t\.csv, column 'a', line 3: the value is not a number"
        ):
            gather_table(path, Schema([Number("a", 2)], "y"))
        for values, kind in (([[1.0]], "nested values"), (pa.array([1], pa.date32()), "date32")):
            path = write(tmp_path / "t.parquet", pa.table({"a": values, "y": [0]}))
            with pytest.raises(DataError, match=f"'a': the column must hold numbers, not {kind}"):
                gather_table(path, Schema([Bins("a", (2,))], "y"))

    @pytest.mark.parametrize("part", [Number("a", 2, missing="error"), Bins("a", (2,), "error")])
    def test_missing_values_may_be_an_error(self, tmp_path, suffix, part):
        path = write(tmp_path / f"t{suffix}", pa.table({"a": [1.5, None], "y": [0, 1]}))
        with pytest.raises(DataError, match=r"column 'a', (row 2|line 3): the value is missing"):
            gather_table(path, Schema([part], "y"))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None, 3], pa.uint8()),
        pa.array([1, None, 3], pa.float16()),
        pa.array([Decimal(1), None, Decimal(3)], pa.decimal128(5, 2)),
        pa.array(["1", None, " 3"]).dictionary_encode(),
        pa.array(["1", None, "3.0"], pa.large_string()),
        pa.array(["1", None, "3.0"], pa.string_view()),
        pa.array([1, float("nan"), 3]),
    ],
    ids=lambda values: str(values.type),
)
def test_numbers_of_every_type(tmp_path, values):
    path = write(tmp_path / "t.parquet", pa.table({"a": values, "y": [0, 1, 0]}))
    X, _, _ = gather_table(path, Schema([Number("a", 4)], "y"))
    assert X.toarray().tolist() == [[0.25, 0], [0, 1], [0.75, 0]]


def test_targets_may_be_decimals(tmp_path):
    amounts = pa.array([Decimal("0.1"), Decimal("-2.35"), Decimal("1e9")], pa.decimal128(20, 4))
    path = write(tmp_path / "t.parquet", pa.table({"a": [1, 2, 3], "y": amounts}))
    _, y, _ = gather_table(path, Schema([Number("a", 4)], "y"))
    assert y.tolist() == [0.1, -2.35, 1e9]


@pytest.mark.parametrize(
    "categories", [[False, True], ["False", "True"], ["false", "true"], ["FALSE", "TRUE"]]
)
def test_bools_are_the_same_categories_as_their_words(tmp_path, categories):
    """A data frame has bools where the file that it was written to has words."""
    schema = Schema([Categories("a", categories)], "y")
    for place, values in enumerate(([True, False, True], ["True", "False", "TRUE"])):
        path = write(tmp_path / f"{place}.parquet", pa.table({"a": values, "y": [0, 1, 0]}))
        assert gather_table(path, schema)[0].toarray()[:, :2].tolist() == [[0, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize("kind", [pl.Categorical, pl.String])
def test_arrow_files_of_polars(tmp_path, kind):
    """Their texts, and the dictionaries of their categories, are views of strings."""
    frame = pl.DataFrame({"a": ["u", None, "u"], "y": ["n", "y", "y"]})
    frame.with_columns(pl.all().cast(kind)).write_ipc(tmp_path / "t.arrow")
    X, y, _ = gather_table(tmp_path / "t.arrow", Schema([Categories("a", ["u"])], "y"))
    assert X.toarray().tolist() == [[1, 0, 0], [0, 0, 1], [1, 0, 0]]
    assert y.tolist() == ["n", "y", "y"]
    drafted = done("schema", "draft", tmp_path / "t.arrow", "--label-column", "y").stdout
    assert [part["column"] for part in json.loads(drafted)["parts"]] == ["a"]


# --- dates --------------------------------------------------------------------------------------

# Where a day begins before that of Greenwich.
EAST = timezone(timedelta(hours=9))
DAYS = [date(1969, 12, 31), date(1970, 1, 1), None, date(2024, 2, 29), date(1600, 3, 1)]


def codes(part, values):
    schema = Schema((part,))
    assert schema_of(schema.to_json()) == schema
    names = schema.names(range(schema.n_features))
    X = PublicEncoder(schema).transform(pa.table({"d": values})).tocoo()
    found = dict(zip(X.row.tolist(), X.col.tolist(), strict=True))
    return [names[found[row]] if row in found else None for row in range(len(values))]


@pytest.mark.parametrize(
    "values",
    [
        pa.array(DAYS),
        pa.array(DAYS, pa.date64()),
        pa.array([d and datetime(d.year, d.month, d.day, 23, 59) for d in DAYS]),
        pa.array([d and datetime(d.year, d.month, d.day, 1, tzinfo=UTC) for d in DAYS]),
        pa.array([d and datetime(d.year, d.month, d.day, 0, tzinfo=EAST) for d in DAYS]),
        pa.array([d and f" {d}" for d in DAYS]),
        pa.array([str(d or "") for d in DAYS]).dictionary_encode(),
    ],
    ids=["days", "milliseconds", "times", "zoned", "east", "words", "dictionary"],
)
def test_what_is_taken_of_a_date(values):
    """As the standard library says it."""
    for take, code in (("month", "%b"), ("weekday", "%a")):
        expected = [f"{take}(d)={d:{code}}" if d else f"{take}(d) (missing)" for d in DAYS]
        assert codes(Date("d", take=take), values) == expected
        assert codes(Date("d", take=take, missing="ignore"), values)[2] is None
    assert codes(Date("d", take="year", edges=[1970, 2000]), values) == [
        *("year(d)<1970", "1970<=year(d)<2000", "year(d) (missing)", "year(d)>=2000"),
        "year(d)<1970",
    ]


def test_formats_and_what_is_no_date():
    spoken = pa.array(["31.12.2024 23:00", "01.02.2024 00:00"])
    found = codes(Date("d", take="month", format="%d.%m.%Y %H:%M"), spoken)
    assert found == ["month(d)=Dec", "month(d)=Feb"]
    assert (
        codes(Date("d", take="month"), pa.array([None, None], pa.null()))
        == ["month(d) (missing)"] * 2
    )
    for values, words in (
        (pa.array(["2024-01-01", "2024-13-01"]), "row 2: the value is not a date in the format"),
        (pa.array([1, 2]), "must hold dates, not int64"),
        (pa.array([["a"]]), "must hold dates, not nested values"),
    ):
        with pytest.raises(DataError, match=words):
            codes(Date("d", take="month"), values)
    with pytest.raises(DataError, match="row 3: the value is missing"):
        codes(Date("d", take="month", missing="error"), pa.array(DAYS))


def test_no_message_quotes_a_value_that_arrow_refuses(tmp_path):
    """A date of milliseconds that is no whole number of days."""
    milliseconds = pa.array([739173917391, 0], pa.int64())
    days = pa.Array.from_buffers(pa.date64(), 2, milliseconds.buffers())
    path = write(tmp_path / "t.arrow", pa.table({"d": days, "y": [0, 1]}))
    with pytest.raises(DataError, match=r"column 'd' .* its type, date64\[ms\],") as caught:
        gather_table(path, Schema([Date("d", "month")], "y"))
    assert "7391" not in str(caught.value)


def test_no_message_quotes_a_value_that_python_refuses():
    """A day that Python has no date for, in a column that is declared as text."""
    days = pa.table({"d": pa.array([1739173917, None], pa.int32()).cast(pa.date32())})
    encoder = PublicEncoder(Schema((Text("d", 8),)))
    refused(lambda: encoder.transform(days), words=["the column must hold text, not date32"])


def test_a_column_without_any_value_may_have_any_type():
    """One record with a value decides nothing about records that have none."""
    nothing = pd.DataFrame({"d": [np.nan, np.nan]})
    for part, width in ((Date("d", "month"), 13), (Text("d", 3), 9), (Bins("d", (1,)), 3)):
        found = PublicEncoder(Schema((part,))).transform(nothing).toarray()
        assert found.tolist() == 2 * [[0.0] * (width - 1) + [1.0]]


# --- missing values -----------------------------------------------------------------------------


def rows(schema, **columns):
    return PublicEncoder(schema).transform(pd.DataFrame(columns)).toarray().astype(int).tolist()


def test_no_number_and_no_date_is_one_of_the_usual_words():
    words = ["5", "n/a", " NaN ", "NULL", "?", "none"]
    found = rows(Schema((Bins("x", (3,)),)), x=words)
    assert found == [[0, 1, 0]] + 5 * [[0, 0, 1]]
    month = Schema((Date("d", "month"),))
    assert [row[-1] for row in rows(month, d=["2026-01-31", "NA"])] == [0, 1]


def test_a_schema_declares_words_of_its_own():
    parts = (Categories("x", ("a", "NA")), Hashed(("x",), 3), Bins("n", (3,)))
    x, n = ["a", "NA", "unknown ", "?"], ["1", "UNKNOWN", "?", "4"]
    declared = Schema(parts, missing=("na", "unknown"))
    found = rows(declared, x=x, n=n)
    # A declared category is a value; other parts of that column take the word for missing.
    assert [row[:4] for row in found] == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    assert [row[12] for row in found] == [0, 1, 1, 0]
    assert [row[-1] for row in found] == [0, 1, 1, 0]
    assert [row[:4] for row in rows(Schema(parts), x=x, n=["1"] * 4)][2] == [0, 0, 1, 0]
    assert schema_of(declared.to_json()) == declared
    assert not declared.same_columns(Schema(parts))


def test_a_declared_value_is_missing_however_it_is_stored():
    number = Schema((Bins("x", (3,)),), missing=("-9",))
    for pair in ([-9, 4], [-9.0, 4.0], ["-9", "4"], ["-9.0", "4"], [Decimal("-9"), Decimal(4)]):
        assert rows(number, x=pair) == [[0, 0, 1], [0, 1, 0]]
    day = Schema((Date("d", "month"),), missing=("1900-01-01",))
    for days in (["1900-01-01"], pd.to_datetime(["1900-01-01"])):
        assert rows(day, d=days)[0][-1] == 1
        assert rows(Schema(day.parts), d=days)[0][-1] == 0


def test_a_draft_says_what_counts_as_missing():
    numbers = [str(k % 80) for k in range(92)] + ["NA"] * 8
    table = pa.table({"age": numbers, "work": ["a", "b", "?", "c"] * 25, "y": ["no", "yes"] * 50})
    draft = PublicEncoder.suggest(table, "y")
    kinds = [part["kind"] for part in draft.to_json()["parts"]]
    assert kinds == ["levels", "categories"]
    assert draft.parts[1].categories == ("a", "b", "c")
    assert {"NA", "N/A", "null", "?"} <= set(draft.missing)
    assert draft.confirm[0].startswith("92 % numbers, the rest 'NA', which counts as missing; ")
    assert draft.confirm[1].startswith("75 % words, the rest '?', which counts as missing; ")


def test_a_draft_says_which_words_stand_among_numbers(tmp_path):
    table = pa.table(
        {"pay": [str(k % 80) for k in range(95)] + ["not known"] * 5, "y": [0, 1] * 50}
    )
    draft = PublicEncoder.suggest(table, "y")
    assert draft.to_json()["parts"][0]["kind"] == "levels"
    assert "95 % numbers, the rest 'not known', words: list those" in draft.confirm[0]
    csv.write_csv(table, tmp_path / "t.csv")
    draft = ("schema", "draft", tmp_path / "t.csv", "--label-column", "y", "--missing", "Not known")
    known = json.loads(done(*draft).stdout)
    assert "the rest 'not known', which counts as missing" in known["parts"][0]["confirm"]
    assert rows(schema_of(known), pay=["not known"])[0][-1] == 1


def test_a_draft_says_how_thousands_are_read():
    table = pa.table(
        {"pay": ["1.234,50", "800.5"] * 9, "b": ["12.345,5", "9"] * 9, "y": [0, 1] * 9}
    )
    with pytest.raises(DataError, match=r"in pay, b have thousands separators; .* --decimal ,"):
        PublicEncoder.suggest(table, "y")


def test_labels_in_other_capitals_are_told_of():
    model = DPLogisticRegression(1.0, classes=["no", "yes"])
    with pytest.raises(DataError, match="row 2 of the rows used; it differs from a class only in"):
        model.fit([[1.0], [0.0]], ["no", "Yes"])
