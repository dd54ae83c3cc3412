"""Words that stand for a missing value: declared by a schema, and told of by a draft."""

import json
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv

from cli.conftest import done
from dplasso import DataError, DPLogisticRegression, PublicEncoder
from schemas import Bins, Categories, Date, Hashed, Schema, schema_of


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
    with pytest.raises(
        DataError, match="row 2 of those that enter; it differs from a class only in"
    ):
        model.fit([[1.0], [0.0]], ["no", "Yes"])
