"""Whether a first line is a header: a record must not become the names of columns."""

import pytest

from data.row_blocks import Dialect, gather_table
from dplasso import DataError
from schemas import Bins, Categories, Hashed, Schema


def read(path, *parts, dialect=None):
    """Encode a table by these parts, dense."""
    X, y, _ = gather_table(path, Schema(parts, "label"), dialect=dialect)
    return X.toarray(), y.tolist()


def rows_of(path, names, dialect=None):
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
        ("x,yes \nz, yes\n", "1 of its 2 fields occur again"),
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
        "0,1,2\n5,6,7\n5,6,7\n",
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


@pytest.mark.parametrize("text", [",\n1,2\n", "\t"])
def test_columns_without_names_are_refused(written, text):
    with pytest.raises(DataError):
        read(written(text), Bins("age", (40,)))


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


def test_no_record_says_how_a_file_without_a_header_is_written(written):
    path = written("1;a,b;0\n2;c,d;0\n")
    asked = Dialect(header=False)
    assert rows_of(path, ["column_1", "column_2"], asked) == 2
    with pytest.raises(DataError, match="no column 'column_3'"):
        rows_of(path, ["column_3"], asked)
    assert rows_of(path, "nst", Dialect(";", columns="n,s,t")) == 2


def test_nor_in_what_characters(written):
    asked, words = Dialect(columns="word,label"), Categories("word", ("文", "b"))
    assert read(written("文,1\nb,2\n"), words, dialect=asked)[0][:, :2].tolist() == [[1, 0], [0, 1]]
    utf_16 = written("文,1\n", encoding="utf-16")
    assert read(utf_16, words, dialect=asked)[0][:, :2].tolist() == [[1, 0]]
    with pytest.raises(DataError, match="line 1: this is not UTF-8 text"):
        read(written("é,1\nb,2\n", encoding="cp1252"), words, dialect=asked)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("age,work", "--columns names 2 columns, but the first line has 4 fields"),
        (NAMES.upper(), "the first line already holds the names in --columns"),
    ],
)
def test_names_that_do_not_fit_are_refused(written, columns, words):
    with pytest.raises(DataError, match=words):
        rows_of(written(f"{NAMES}\n{RECORDS}"), ["age"], Dialect(columns=columns))


@pytest.mark.parametrize("columns", ["a,a", "a,,b", ""])
def test_names_are_different(columns):
    with pytest.raises(DataError, match="different names"):
        Dialect(columns=columns)


def test_the_note_of_excel_is_no_header(written):
    bins = Bins("pay", (2.0,), "ignore")
    for header, dialect in (("label;pay\n", None), ("", Dialect(columns="label,pay"))):
        path = written(f"sep=;\n{header}71;1,5\n34;2,5\n")
        X, y = read(path, bins, dialect=dialect)
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
