"""How text tables are written: read off the header alone, said, and asked for.

A record must not become the names of columns.
"""

import re

import pyarrow as pa
import pytest

from cli.conftest import refused, run_command
from data.row_blocks import DETECTED, Dialect, check_same, encode_files, gather_table
from data.store.reference import write_blocks
from dplasso import DataError
from encoding.generated import write
from schemas import Bins, Categories, Hashed, Schema

USUAL = "commas between fields, decimal point, UTF-8"


@pytest.fixture
def written(tmp_path):
    """Give what writes a text table in the encoding that a test asks for."""

    def write(text, name="t.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def said(path, *options):
    """Return how a draft says that it reads a table, or None."""
    words = " ".join(run_command("schema", "draft", path, *options).stderr.split())
    match = re.search(rf"{path.name}: (\S+ between fields, .*?) \((as .*?)[;)]", words)
    return match and match.groups()


@pytest.mark.parametrize(
    ("header", "name", "encoding", "expected"),
    [
        ("a,b,c", "t.csv", "utf-8", None),
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


def entries(path, column, words, asked=DETECTED, memory=1 << 20):
    """Return which words a column of a table holds, and in how many blocks."""
    schema = Schema((Categories(column, tuple(words), unknown="error"),))
    X, _, n_blocks = gather_table(path, schema, memory, labelled=False, dialect=asked)
    return [name.partition("=")[2] for name in schema.names(X.indices)], n_blocks


def test_numbers_with_a_comma(written):
    values = ["3,5", "-,5", "1.234,5", "1.234", "0.125", "a,b", "1,2,3", "12", "", "01.02.2020"]
    expected = ["3.5", "-.5", "1.234,5", "1.234", "0.125", "a,b", "1,2,3", "12", "", "01.02.2020"]
    asked = [*expected[:2], "1234.5", "1234", *expected[4:]]
    path = written("a;b\n" + "".join(f"{value};x\n" for value in values))
    for dialect, found in ((DETECTED, expected), (Dialect(decimal=","), asked)):
        assert entries(path, "a", filter(None, found), dialect)[0] == found
    grouped, asked = ["1,234.5", "12,345", "1.5", "1,23"], ["1234.5", "12345", "1.5", "1,23"]
    path = written("a|b\n" + "".join(f"{value}|x\n" for value in grouped))
    for dialect, found in ((DETECTED, grouped), (Dialect(decimal="."), asked)):
        assert entries(path, "a", found, dialect)[0] == found


def test_a_table_from_elsewhere_gives_the_same_rows(tmp_path, written):
    schema = Schema((Bins("size", (1.5, 2.5)), Categories("town", ("Köln", "Bonn"))), "y")
    table = pa.table({"size": [1.25, 2.75], "town": ["Köln", "Bonn"], "y": ["ja", "nein"]})
    ours = gather_table(write(tmp_path / "ours.csv", table), schema)
    text = "y;size;town\r\nja;1,25;Köln\r\nnein;2,75;Bonn\r\n"
    for content, encoding, asked in (
        (text, "utf-16", DETECTED),
        (text.replace("town", "töwn"), "cp1252", DETECTED),
        (text, "latin-1", Dialect(encoding="latin-1")),
        (text.replace(";", "/"), "utf-8", Dialect("/", ",")),
        (text.replace("Köln", '"Köln"'), "utf-8", DETECTED),
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
    store = write_blocks(given, tmp_path / "s")
    assert len(set(store.people.tolist())) == 4
    assert store.X.tocsr().toarray()[:, :2].tolist() == [[1, 0], [0, 1], [1, 0], [1, 0]]
    # Those of other columns do not.
    assert entries(path, "who", ("1234", "1.5"), asked)[0] == ["1234", "1234", "1.5", "1.5"]


def test_lines_of_utf_16_across_blocks(written):
    words = [f"文Ċ{k}" for k in range(500)]
    text = "a\tb\r\n" + "".join(f"{k}\t{word}\n" for k, word in enumerate(words))
    path = written(text, "t.tsv", "utf-16")
    found, n_blocks = entries(path, "b", words, memory=1 << 10)
    assert found == words
    assert n_blocks > 1
    with pytest.raises(DataError, match="column 'b', line 501: "):
        entries(path, "b", words[:-1], memory=1 << 10)


def test_what_cannot_be_is_refused(tmp_path, written):
    for options, words in (
        ({"delimiter": ""}, "delimiter must be one character or tab, got ''"),
        ({"delimiter": ";;"}, "delimiter must be one character"),
        ({"delimiter": '"'}, "delimiter must be one character"),
        ({"decimal": ";"}, "decimal must be . or , but not ';'"),
        ({"encoding": "klingon"}, "'klingon' is unknown"),
        ({"encoding": "base64"}, "'base64' is unknown"),
        *(({"columns": columns}, "different names") for columns in ("a,a", "a,,b", "")),
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


# --- headers ------------------------------------------------------------------------------------


def read(path, *parts, dialect=DETECTED):
    """Encode a table by these parts, dense."""
    X, y, _ = gather_table(path, Schema(parts, "label"), dialect=dialect)
    return X.toarray(), y.tolist()


def rows_of(path, names, dialect=DETECTED):
    """Return the number of rows of a table that has these columns."""
    schema = Schema([Hashed((name,), 1) for name in names])
    return gather_table(path, schema, labelled=False, dialect=dialect)[0].shape[0]


RECORDS = (
    "39,State-gov,77516,no\n50,Private,83311,yes\n38,Private,215646,no\n28,State-gov,338409,no\n"
)
NAMES = "age,work,weight,label"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (RECORDS, "2 of its 4 fields occur again in their column"),
        ("71,3,120\n34,1,80\n", "all its fields are numbers"),
        ("C1;1619,19;rent\nC2;2000,5;own\n", "1 of its 3 fields are numbers with a sign or"),
        ("a,-4\nb,3\n", "1 of its 2 fields are numbers with a sign"),
        ("I was very ill.,4a\nMe too,5b\n", "1 of its 2 fields are sentences"),
    ],
)
def test_a_first_line_that_looks_like_a_record_is_refused(written, text, words):
    with pytest.raises(DataError, match="looks like a record") as caught:
        rows_of(written(text), "a")
    assert words in str(caught.value)
    assert "--columns" in str(caught.value)
    # Nothing of the record is quoted; the path before the first colon may hold anything.
    said = str(caught.value).partition(":")[2]
    for field in ("39", "State-gov", "1619", "ill", "yes"):
        assert field not in said


@pytest.mark.parametrize(
    "text",
    [
        f"{NAMES}\n{RECORDS}",
        "2019,2020,2021\n1,2,3\n",
        "age,2019,2020\n71,2,3\n",
        "How old are you?,yes or no\n71,yes\n",
        # Two files behind one another: their headers say nothing.
        "a,b\n1,x\na,b\n2,y\n",
        "a\n",
    ],
)
def test_headers_are_taken_for_headers(written, text):
    path = written(text)
    if text != "a\n":
        assert rows_of(path, text.split("\n")[0].split(",")) == text.count("\n") - 1


def test_a_file_without_a_header_has_the_columns_that_are_named(written):
    parts = Bins("age", (40,)), Categories("work", ("Private", "State-gov"))
    X, y = read(written(f"{NAMES}\n{RECORDS}"), *parts)
    bare = written(RECORDS, "bare.csv")
    found, labels = read(bare, *parts, dialect=Dialect(columns=NAMES))
    assert found.tolist() == X.tolist()
    assert labels == y == ["no", "yes", "no", "no"]
    numbered = ["column_1", "column_2", "column_3", "column_4"]
    assert rows_of(bare, numbered, Dialect(header=False)) == 4
    # Said to be a header, it is one.
    assert rows_of(bare, RECORDS.split("\n")[0].split(","), Dialect(header=True)) == 3
    for columns, words in (
        ("age,work", "--columns names 2 columns, but the first line has 4 fields"),
        (NAMES.upper(), "the first line already holds the names in --columns"),
    ):
        with pytest.raises(DataError, match=words):
            rows_of(written(f"{NAMES}\n{RECORDS}"), ["age"], Dialect(columns=columns))
    for text in (",\n1,2\n", "\t"):
        with pytest.raises(DataError):
            read(written(text), parts[0])


def test_no_record_says_how_a_file_without_a_header_is_written(written):
    path = written("1;a,b;0\n2;c,d;0\n")
    asked = Dialect(header=False)
    assert rows_of(path, ["column_1", "column_2"], asked) == 2
    with pytest.raises(DataError, match="no column 'column_3'"):
        rows_of(path, ["column_3"], asked)
    assert rows_of(path, "nst", Dialect(";", columns="n,s,t")) == 2
    # Nor in what characters.
    asked, words = Dialect(columns="word,label"), Categories("word", ("文", "b"))
    assert read(written("文,1\nb,2\n"), words, dialect=asked)[0][:, :2].tolist() == [[1, 0], [0, 1]]
    utf_16 = written("文,1\n", encoding="utf-16")
    marked = Dialect(columns="word,label", encoding="utf-16")
    assert read(utf_16, words, dialect=marked)[0][:, :2].tolist() == [[1, 0]]
    for path in (utf_16, written("é,1\nb,2\n", "e.csv", "cp1252")):
        with pytest.raises(DataError, match="line 1: this is not UTF-8 text"):
            read(path, words, dialect=asked)
    # A record may look like the note of Excel.
    noted = written('sep=;\n"1,5"\n')
    assert rows_of(noted, ["pay"], Dialect(columns="pay")) == 2
    assert entries(noted, "pay", ("sep=;", "1,5"), Dialect(columns="pay"))[0] == ["sep=;", "1,5"]


@pytest.mark.parametrize(
    ("name", "header", "end", "record"),
    [
        ("t.csv", "word,label\n", "\n", "{},1"),
        ("t.csv", "word,label\r", "\r", "{},1"),
        ("t.csv", "word,label\r", "\n", "{},1"),
        ("t.jsonl", "", "\n", '{{"word": "{}", "label": 1}}'),
    ],
    ids=["LF", "CR", "CR after the header", "JSON lines"],
)
def test_no_record_says_how_others_are_read(written, name, header, end, record):
    words = Categories("word", ("Köln", "Bonn"))
    others = [record.format("Köln"), record.format("Bonn")]
    for one in ("Rom", "a;b;c;d;e|f|g|h|i"):
        X, _ = read(written(header + end.join([record.format(one), *others]), name), words)
        assert X[1:, :2].tolist() == [[1, 0], [0, 1]]
    path = written("", name)
    strange = record.format("Ré").encode("cp1252")
    path.write_bytes(end.encode().join([header.encode() + strange, *map(str.encode, others)]))
    with pytest.raises(DataError, match=f"line {1 + bool(header)}: this is not UTF-8 text; set"):
        read(path, words)


def test_the_note_of_excel_is_no_header(written):
    bins = Bins("pay", (2.0,), "ignore")
    for end, encoding in (("\n", "utf-8"), ("\r", "utf-8"), ("\n", "utf-16")):
        path = written("sep=;\nlabel;pay\n71;1,5\n34;2,5\n".replace("\n", end), "t.csv", encoding)
        X, y = read(path, bins)
        assert (X.tolist(), y) == ([[1, 0], [0, 1]], [71, 34])


def test_blanks_around_names_and_values_do_not_count(written):
    path = written("age, work , label\n1, Private, no\n2, none, yes\n")
    X, y = read(path, Categories("work", ("Private", "none")))
    assert (X[:, :2].tolist(), y) == ([[1, 0], [0, 1]], ["no", "yes"])


def test_a_name_in_other_letters_is_found(written):
    with pytest.raises(DataError, match="no column 'Work': write 'work' with the same case"):
        read(written(f"{NAMES}\n{RECORDS}"), Categories("Work", ("Private",)))


@pytest.mark.parametrize(
    ("value", "decimal"), [("1.234,50", ","), ("1,234.50", "."), ("12.345.678,1", ",")]
)
def test_thousands_are_read_where_the_option_says_so(written, value, decimal):
    path = written(f'pay|label\n"{value}"|1\n800|0\n')
    bins = Bins("pay", (1000,))
    with pytest.raises(DataError, match=f"thousands.*--decimal {decimal}"):
        read(path, bins)
    assert read(path, bins, dialect=Dialect(decimal=decimal))[0][:, 1].tolist() == [1, 0]
