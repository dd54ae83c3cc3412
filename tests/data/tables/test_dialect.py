"""How text tables are written: read off the header alone, said, and asked for."""

import pyarrow as pa
import pytest

from data.row_blocks import Dialect, encode_files, first_rows, read_records
from dplasso import DataError
from dplasso.data.table_batches import TableReader, said, sniffed, with_points
from encoding.generated import write
from schemas import Bins, Categories, Schema

PLAIN = Dialect(",", ".", "utf-8")


@pytest.mark.parametrize(
    ("header", "name", "encoding", "expected"),
    [
        ("a,b,c", "t.csv", "utf-8", PLAIN),
        ("a", "t.csv", "utf-8", PLAIN),
        ("a;b;income, gross", "t.csv", "utf-8", Dialect(";", ",", "utf-8")),
        ('a,"x;y;z;u",b', "t.csv", "utf-8", PLAIN),
        ("a|b", "t.csv", "utf-8", Dialect("|", ".", "utf-8")),
        ("a\tb,c,d,e", "t.tsv", "utf-8", Dialect("\t", ".", "utf-8")),
        ("a,b", "t.tsv", "utf-8", PLAIN),
        ("it's,that's", "t.csv", "utf-8", PLAIN),
        ("größe;b", "t.csv", "cp1252", Dialect(";", ",", "cp1252")),
        ("größe,b", "t.csv", "utf-8-sig", PLAIN),
        ("größe\tb", "t.csv", "utf-16", Dialect("\t", ".", "utf-16")),
        ('{"a": "x;y;z"}', "t.jsonl", "utf-8", Dialect(encoding="utf-8")),
    ],
)
def test_the_header_says_how_a_table_is_written(written, header, name, encoding, expected):
    path = written(f"{header}\r\n", name, encoding)
    assert sniffed(path, None) == expected
    usual = {"t.csv": PLAIN, "t.tsv": Dialect("\t", ".", "utf-8")}
    as_named = usual.get(name, Dialect(encoding="utf-8"))
    assert (said(path, None) is None) == (expected == as_named)
    # Whatever the records are, they change nothing.
    other = written(f"{header}\r\n1;2;3|4|5\t6\t7,'8'\r\n" * 3, name, encoding)
    assert sniffed(other, None) == expected


def test_what_is_asked_for_holds(written):
    path = written("a;b\n1;2\n")
    asked = Dialect(",", ".", "latin-1")
    assert sniffed(path, asked) == asked
    assert Dialect("tab") == Dialect("\t")
    told = said(path, asked)
    assert told.startswith("t.csv: commas between fields, decimal point, latin-1 (as")
    assert "semicolons between fields, decimal comma" in said(path, None)


def test_numbers_with_a_comma():
    values = ["3,5", " -,5", "1.234,5", "1.234", "0.125", "a,b", "1,2,3", "12", "", "01.02.2020"]
    expected = ["3.5", " -.5", "1.234,5", "1.234", "0.125", "a,b", "1,2,3", "12", "", "01.02.2020"]
    assert with_points(values, ",", None) == expected
    asked = [*expected[:2], "1234.5", "1234", *expected[4:]]
    assert with_points(values, ",", Dialect(decimal=",")) == asked
    grouped = ["1,234.5", "12,345", "1.5", "1,23"]
    assert with_points(grouped, ".", None) == grouped
    assert with_points(grouped, ".", Dialect(decimal=".")) == ["1234.5", "12345", "1.5", "1,23"]


def test_a_table_from_elsewhere_gives_the_same_rows(tmp_path, written):
    schema = Schema((Bins("size", (1.5, 2.5)), Categories("town", ("Köln", "Bonn"))), "y")
    table = pa.table({"size": [1.25, 2.75], "town": ["Köln", "Bonn"], "y": ["ja", "nein"]})
    ours = read_records(write(tmp_path / "ours.csv", table), schema=schema)
    text = "y;size;town\r\nja;1,25;Köln\r\nnein;2,75;Bonn\r\n"
    for content, encoding, asked in (
        (text, "utf-16", None),
        (text.replace("town", "töwn"), "cp1252", None),
        (text, "latin-1", Dialect(encoding="latin-1")),
        (text.replace(";", "/"), "utf-8", Dialect("/", ",")),
        (text.replace("Köln", '"Köln"'), "utf-8", None),
    ):
        path = written(content.replace("töwn", "town" if asked else "töwn"), encoding=encoding)
        like = schema
        if "töwn" in content:
            like = Schema((schema.parts[0], Categories("töwn", ("Köln", "Bonn"))), "y")
        found = read_records(path, schema=like, dialect=asked)
        assert (found.X != ours.X).nnz == 0
        assert found.y.tolist() == ours.y.tolist()


def test_names_of_people_stay_as_they_are(written):
    """Two people whose names became one would be limited together: one would move two's rows."""
    path = written("who;x\n1.234;1,5\n1234;2,5\n1,5;0\n1.5;0\n")
    asked = Dialect(decimal=",")
    schema = Schema((Bins("x", (2.0,)),), "y")
    found = read_records(path, schema=schema, labelled=False, person_column="who", dialect=asked)
    assert len(set(found.people.tolist())) == 4
    assert found.X.toarray()[:, :2].tolist() == [[1, 0], [0, 1], [1, 0], [1, 0]]
    batch = next(TableReader(path, asked).batches(["who", "x"], 1 << 20))
    assert batch.columns["who"][0] == "1234"


def test_lines_of_utf_16_across_blocks(written):
    text = "a\tb\r\n" + "".join(f"{k}\t文Ċ{k}\n" for k in range(5000))
    path = written(text, "t.tsv", "utf-16")
    batches = list(TableReader(path, None).batches(["a", "b"], 1 << 12))
    assert len(batches) > 1
    assert [b for batch in batches for b in batch.columns["b"]] == [f"文Ċ{k}" for k in range(5000)]
    assert batches[-1].numbers[-1] == 5001


def test_what_cannot_be_is_refused(tmp_path, written):
    for options, words in (
        ({"delimiter": ""}, "delimiter must be one character or tab, got ''"),
        ({"delimiter": ";;"}, "delimiter must be one character"),
        ({"delimiter": '"'}, "delimiter must be one character"),
        ({"decimal": ";"}, "decimal must be . or , but not ';'"),
        ({"encoding": "klingon"}, "'klingon' is unknown"),
        ({"encoding": "base64"}, "'base64' is unknown"),
    ):
        with pytest.raises(DataError, match=words):
            Dialect(**options)
    schema = Schema((Categories("a", ("1",)),), "y")
    table = write(tmp_path / "t.parquet", pa.table({"a": ["1"], "y": [1]}))
    rows, lines = written("1 1:1\n", "t.svm"), written('{"a": "1", "y": 1}\n', "t.jsonl")
    asked = Dialect(";")
    with pytest.raises(DataError, match="not a text table; leave out delimiter, decimal"):
        encode_files(table, schema, dialect=asked)
    with pytest.raises(DataError, match="not a text table; leave out delimiter, decimal"):
        encode_files(rows, dialect=asked)
    with pytest.raises(DataError, match="JSON lines have no delimiter"):
        encode_files(lines, schema, dialect=asked)
    with pytest.raises(
        DataError, match=r"t\.csv, line 2: this is not UTF-8 text; set the encoding"
    ):
        first_rows(written("a\nbä\n", encoding="latin-1"), 5)
    with pytest.raises(DataError, match=r"t\.csv, line 1: this is not UTF-16 text"):
        first_rows(written("a\nbc\n"), 5, Dialect(encoding="utf-16"))
