"""How text tables are written: read off the header alone, said, and asked for."""

import re

import pyarrow as pa
import pytest

from cli.conftest import refused, run_command
from data.row_blocks import Dialect, check_same, encode_files, gather_table
from dplasso import DataError
from dplasso.data.store import write_store
from encoding.generated import write
from schemas import Bins, Categories, Schema

USUAL = "commas between fields, decimal point, UTF-8"


def said(path, *options):
    """Return how a draft says that it reads a table, or None."""
    words = " ".join(run_command("schema", "draft", path, *options).stderr.split())
    match = re.search(rf"{path.name}: (\S+ between fields, .*?) \((as .*?)[;)]", words)
    return match and match.groups()


@pytest.mark.parametrize(
    ("header", "name", "encoding", "expected"),
    [
        ("a,b,c", "t.csv", "utf-8", None),
        ("a", "t.csv", "utf-8", None),
        ("a;b;income, gross", "t.csv", "utf-8", "semicolons between fields, decimal comma, UTF-8"),
        ('a,"x;y;z;u",b', "t.csv", "utf-8", None),
        ("a|b", "t.csv", "utf-8", "bars between fields, decimal point, UTF-8"),
        ("a\tb,c,d,e", "t.tsv", "utf-8", None),
        ("a,b", "t.tsv", "utf-8", USUAL),
        ("it's,that's", "t.csv", "utf-8", None),
        ("größe;b", "t.csv", "cp1252", "semicolons between fields, decimal comma, cp1252"),
        ("größe,b", "t.csv", "utf-8-sig", None),
        ("größe\tb", "t.csv", "utf-16", "tabs between fields, decimal point, utf-16"),
        ('{"a": "x;y;z"}', "t.jsonl", "utf-8", None),
    ],
)
def test_the_header_says_how_a_table_is_written(written, header, name, encoding, expected):
    # Whatever the records are, they change nothing.
    for records in ("", "1;2;3|4|5\t6\t7,'8'\r\n" * 3):
        path = written(f"{header}\r\n{records}", name, encoding)
        assert said(path) == (expected and (expected, "as its header shows"))


def test_what_is_asked_for_holds(written):
    path = written("a;b\n1;2\n")
    asked = ("--delimiter", ",", "--decimal", ".", "--encoding", "latin-1")
    assert said(path, *asked) == (USUAL.replace("UTF-8", "latin-1"), "as asked")
    assert said(path, "--delimiter", "tab")[0].startswith("tabs between fields")


def entries(path, column, words, asked=None, memory=1 << 20):
    """Return which words a column of a table holds, and in how many blocks."""
    schema = Schema((Categories(column, tuple(words), unknown="error"),))
    X, _, n_blocks = gather_table(path, schema, memory, labelled=False, dialect=asked)
    return [name.partition("=")[2] for name in schema.names(X.indices)], n_blocks


def test_numbers_with_a_comma(written):
    values = ["3,5", "-,5", "1.234,5", "1.234", "0.125", "a,b", "1,2,3", "12", "", "01.02.2020"]
    expected = ["3.5", "-.5", "1.234,5", "1.234", "0.125", "a,b", "1,2,3", "12", "", "01.02.2020"]
    asked = [*expected[:2], "1234.5", "1234", *expected[4:]]
    path = written("a;b\n" + "".join(f"{value};x\n" for value in values))
    for dialect, found in ((None, expected), (Dialect(decimal=","), asked)):
        assert entries(path, "a", filter(None, found), dialect)[0] == found
    grouped, asked = ["1,234.5", "12,345", "1.5", "1,23"], ["1234.5", "12345", "1.5", "1,23"]
    path = written("a|b\n" + "".join(f"{value}|x\n" for value in grouped))
    for dialect, found in ((None, grouped), (Dialect(decimal="."), asked)):
        assert entries(path, "a", found, dialect)[0] == found


def test_a_table_from_elsewhere_gives_the_same_rows(tmp_path, written):
    schema = Schema((Bins("size", (1.5, 2.5)), Categories("town", ("Köln", "Bonn"))), "y")
    table = pa.table({"size": [1.25, 2.75], "town": ["Köln", "Bonn"], "y": ["ja", "nein"]})
    ours = gather_table(write(tmp_path / "ours.csv", table), schema)
    text = "y;size;town\r\nja;1,25;Köln\r\nnein;2,75;Bonn\r\n"
    for content, encoding, asked in (
        (text, "utf-16", None),
        (text.replace("town", "töwn"), "cp1252", None),
        (text, "latin-1", Dialect(encoding="latin-1")),
        (text.replace(";", "/"), "utf-8", Dialect("/", ",")),
        (text.replace("Köln", '"Köln"'), "utf-8", None),
    ):
        path = written(content, encoding=encoding)
        town = Categories("töwn" if "töwn" in content else "town", ("Köln", "Bonn"))
        like = Schema((schema.parts[0], town), "y")
        check_same(*gather_table(path, like, dialect=asked)[:2], *ours[:2])


def test_names_of_people_stay_as_they_are(tmp_path, written):
    """Two people whose names became one would be limited together: one would move two's rows."""
    path = written("who;x\n1.234;1,5\n1234;2,5\n1,5;0\n1.5;0\n")
    asked = Dialect(decimal=",")
    schema = Schema((Bins("x", (2.0,)),), "y")
    given = encode_files(path, schema, labelled=False, person_column="who", dialect=asked)
    store = write_store(given.source, tmp_path / "s")
    assert len(set(store.people.tolist())) == 4
    assert store.X.tocsr().toarray()[:, :2].tolist() == [[1, 0], [0, 1], [1, 0], [1, 0]]
    # Those of other columns do not.
    assert entries(path, "who", ("1234", "1.5"), asked)[0] == ["1234", "1234", "1.5", "1.5"]


def test_lines_of_utf_16_across_blocks(written):
    words = [f"文Ċ{k}" for k in range(2000)]
    text = "a\tb\r\n" + "".join(f"{k}\t{word}\n" for k, word in enumerate(words))
    path = written(text, "t.tsv", "utf-16")
    found, n_blocks = entries(path, "b", words, memory=1 << 12)
    assert found == words
    assert n_blocks > 1
    with pytest.raises(DataError, match="column 'b', line 2001: "):
        entries(path, "b", words[:-1], memory=1 << 12)


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
    draft = "schema", "draft", written("a\nbä\n", encoding="latin-1")
    refused(run_command(*draft), "t.csv, line 2: this is not UTF-8 text; set the encoding")
    written("a\nbc\n")
    with pytest.raises(DataError, match=r"t\.csv, line 1: this is not UTF-16 text"):
        entries(draft[-1], "a", "x", Dialect(encoding="utf-16"))
