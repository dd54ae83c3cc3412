"""Drafts of schemas: reasonable for a person to edit, and marked as not private."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cli.conftest import done, refused, run_command
from dplasso import DataError, PrivacyLeakWarning, PublicEncoder
from encoding.generated import write
from schemas import Categories, Date, Hashed, Levels, Text, schema_of

suggest = PublicEncoder.suggest


def drafted_of(path, *options):
    return json.loads(done("schema", "draft", path, *options).stdout)


def drafted(values, **table):
    schema = suggest(pa.table({"x": values} | table))
    assert schema_of(schema.to_json()) == schema
    return schema.parts[0]


def test_kinds_of_columns():
    assert drafted([True, None, False]) == Categories("x", (False, True))
    assert drafted([3, 1, 1, None]) == Categories("x", (1, 3))
    assert drafted(["b", " a", "", "  ", None]) == Categories("x", ("a", "b"))
    assert drafted(pa.array(["b", "a"]).dictionary_encode()) == Categories("x", ("a", "b"))
    assert drafted(["1", "30", "", "2"]) == Categories("x", (1, 2, 30))
    words = [f"w{k % 40}" for k in range(80)]
    assert drafted(words) == Hashed(("x",), 9)
    assert drafted([f"{word} is what was said" for word in words]) == Text("x")


def test_ranges_that_a_person_can_read():
    rng = np.random.default_rng(0)
    assert drafted(rng.uniform(0, 99, 5000)) == Levels("x", 0, 100, linear=True)
    incomes = np.exp(rng.normal(10, 1, 5000))
    assert drafted(incomes) == Levels("x", 0, 1e6, spacing="signed-log", linear=True)
    # Amounts that are mostly 0, and some below it.
    mostly = np.where(rng.random(5000) < 0.9, 0, incomes)
    assert drafted(mostly) == Levels("x", 0, 5e5, spacing="signed-log", linear=True)
    mostly[:100] = -8_000.0
    assert drafted(mostly) == Levels("x", -1e4, 5e5, spacing="signed-log", linear=True)
    assert drafted([-3.0, 4.5, 0.5, 1.5]) == Levels("x", -3, 5, linear=True)
    assert isinstance(drafted([0.5, 0.5, 0.5]), Levels)
    # Most bins between whole numbers would stay empty.
    assert drafted(list(range(1, 17)) * 2).levels == (4, 16)
    assert drafted(list(range(1, 41)) * 2).levels == (4, 16, 64)


def test_pairs_that_everybody_knows_are_proposed_whole():
    """What can only be one of two tells nothing of the records, even where one alone occurs."""
    for found, pair in (
        (["yes", "yes"], ("no", "yes")),
        (["Yes", "No"], ("No", "Yes")),
        (["NEIN"], ("NEIN", "JA")),
        (["F", "T"], ("F", "T")),
        ([1, 1], (0, 1)),
        (["0", "1"], (0, 1)),
    ):
        schema = suggest(pa.table({"x": found}))
        assert schema.parts == (Categories("x", pair),)
        assert schema.confirm == ("",)
    assert suggest(pa.table({"x": ["maybe", "no"]})).confirm[0].startswith("these")


def test_dates():
    years = ["2019-01-05", "2024-12-31", None]
    table = pa.table({"x": pa.array(years)})
    schema = suggest(table)
    edges = tuple(range(2019, 2025))
    assert schema.parts == (Date("x", "year", edges), Date("x", "month"))
    assert schema.confirm[0].startswith("the range comes from the records")
    assert not schema.confirm[1]
    assert suggest(pa.table({"x": table["x"].cast(pa.date32())})) == schema
    short = [Date("x", take, format="%d.%m.%Y") for take in ("month", "weekday")]
    assert suggest(pa.table({"x": ["31.12.2024", "1.1.2024"]})).parts == (*short,)
    # 6/12 may be in June or in December.
    either = suggest(pa.table({"x": ["6/12/2024", "1/2/2024"]}))
    assert "which number is the month" in either.confirm[0]
    for when in ("2024-12-31T08:30:00Z", "31/12/2024 08:30"):
        encoder = PublicEncoder(suggest(pa.table({"x": [when]})))
        with pytest.warns(PrivacyLeakWarning, match="nobody has edited"):
            found = encoder.fit_transform(pd.DataFrame({"x": [when]}))
        names = encoder.get_feature_names_out()
        assert names[found.indices].tolist() == ["month(x)=Dec", "weekday(x)=Tue"]


def test_codes_are_no_amounts():
    codes = [10115 + 7 * (k % 60) for k in range(120)]
    assert suggest(pa.table({"zip_code": codes})).parts == (Hashed(("zip_code",), 9),)
    # An id may recur; few values are kept, whatever their column is called.
    people = {"visit id": codes, "Patient": codes, "user": [f"u{code}" for code in codes]}
    with pytest.raises(DataError, match="no column of numbers, text, dates or bools"):
        suggest(pa.table(people | {"row": list(range(120))}))
    assert suggest(pa.table({"member": ["yes", "no"], "patient_age": codes[:2]})).columns == [
        "member",
        "patient_age",
    ]


def test_the_likely_label(tmp_path):
    def guess(**columns):
        frame = pd.DataFrame(columns)
        frame.to_csv(tmp_path / "t.csv", index=False)
        told = done("schema", "draft", tmp_path / "t.csv").stderr.splitlines()[0]
        match = re.match("the draft takes '(.*)' as the label", told)
        assert match or told.startswith("no column looks like the label")
        return match and match[1]

    x, when, back = [1.5, 2.5, 3.5], ["a", "b", "c"], ["no", "no", "yes"]
    assert guess(x=x, when=when, back=back) == "back"
    assert guess(x=x, Target=when, z=back) == "Target"
    assert guess(back=back) is None
    assert guess(y2=[0, 1] * 20, x=[k / 7 for k in range(40)]) is None


def test_label_and_identifiers_are_left_out():
    ids = [f"id{k}" for k in range(100)]
    empty = pa.array([None] * 100, pa.float64())
    table = pa.table({"id": ids, "none": empty, "when": pa.array([0] * 100, pa.time32("s")),
                      "a": [1] * 100, "label": [0, 1] * 50})  # fmt: skip
    schema = suggest(table)
    assert schema.columns == ["a"]
    assert schema.label == "label"
    assert schema.note.startswith("this draft is not private: its columns")
    assert schema.note.endswith(
        " (left out: id, none, when; ids of people belong in --person-column)"
    )
    assert suggest(table, "a").columns == ["label"]
    with pytest.raises(DataError, match="no column 'y'; there are"):
        suggest(table, "y")
    with pytest.raises(DataError, match="no column of numbers, text, dates"):
        suggest(table.select(["id", "label"]))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv", ".jsonl"])
def test_the_first_rows(tmp_path, monkeypatch, suffix):
    """Of a table of many columns they are fewer."""
    monkeypatch.setattr("dplasso.encoding.data_files._DRAFT_FIELDS", 8)
    table = pa.table({"a": ["v", None, "w", "x", "y", "z"], "y": [0, 1] * 3})
    path = write(tmp_path / f"t{suffix}", table)
    for options, n_values in (((), 3), (("--rows", 2), 1), (("--rows", 3), 2), (("--rows", 9), 5)):
        categories = drafted_of(path, *options)["parts"][0]["categories"]
        assert categories == list("vwxyz")[:n_values]
    write(tmp_path / f"u{suffix}", table.slice(0, 1))
    assert drafted_of(tmp_path / f"*{suffix}") == drafted_of(path)
    path.rename(tmp_path / "t.svm")
    refused(run_command("schema", "draft", tmp_path / "t.svm"), "is not a table; draft")
    (tmp_path / "empty.csv").write_text("a,y\n")
    refused(run_command("schema", "draft", tmp_path / "empty.csv"), "has no records")
