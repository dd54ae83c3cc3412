"""Whether a first line is a header: a record must not become the names of columns."""

import pytest

from data.row_blocks import Dialect, first_rows, read_records
from dplasso import DataError
from schemas import Bins, Categories, Schema

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
        first_rows(written(text))
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
        assert first_rows(path).column_names == text.split("\n")[0].split(",")


@pytest.mark.parametrize("text", [",\n1,2\n", "\t"])
def test_columns_without_names_are_refused(written, text):
    with pytest.raises(DataError):
        read_records(written(text), schema=Schema((Bins("age", (40,)),), "label"))


def test_a_file_without_a_header_has_the_columns_that_are_named(written):
    schema = Schema((Bins("age", (40,)), Categories("work", ("Private", "State-gov"))), "label")
    ours = read_records(written(f"{NAMES}\n{RECORDS}"), schema=schema)
    bare = written(RECORDS, "bare.csv")
    found = read_records(bare, schema=schema, dialect=Dialect(columns=NAMES))
    assert found.X.shape[0] == 4
    assert (found.X != ours.X).nnz == 0
    assert found.y.tolist() == ours.y.tolist()
    numbered = first_rows(bare, dialect=Dialect(header=False))
    assert numbered.column_names == ["column_1", "column_2", "column_3", "column_4"]
    assert numbered.num_rows == 4
    # Said to be a header, it is one.
    assert first_rows(bare, dialect=Dialect(header=True)).num_rows == 3


def test_no_record_says_how_a_file_without_a_header_is_written(written):
    path = written("1;a,b;0\n2;c,d;0\n")
    asked = Dialect(header=False)
    assert first_rows(path, dialect=asked).column_names == ["column_1", "column_2"]
    assert first_rows(path, dialect=Dialect(";", columns="n,s,t")).num_columns == 3


def test_nor_in_what_characters(written):
    asked = Dialect(columns="word,number")
    assert first_rows(written("文,1\nb,2\n"), dialect=asked).column("word")[0].as_py() == "文"
    assert first_rows(written("文,1\n", encoding="utf-16"), dialect=asked).num_rows == 1
    with pytest.raises(DataError, match="line 1: this is not UTF-8 text"):
        first_rows(written("é,1\nb,2\n", encoding="cp1252"), dialect=asked)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("age,work", "--columns names 2 columns, but the first line has 4 fields"),
        (NAMES.upper(), "the first line already holds the names in --columns"),
    ],
)
def test_names_that_do_not_fit_are_refused(written, columns, words):
    with pytest.raises(DataError, match=words):
        first_rows(written(f"{NAMES}\n{RECORDS}"), dialect=Dialect(columns=columns))


@pytest.mark.parametrize("columns", ["a,a", "a,,b", ""])
def test_names_are_different(columns):
    with pytest.raises(DataError, match="different names"):
        Dialect(columns=columns)


def test_the_note_of_excel_is_no_header(written):
    path = written("sep=;\nage;pay\n71;1,5\n34;2,5\n")
    table = first_rows(path)
    assert table.column_names == ["age", "pay"]
    assert table.column("pay").to_pylist() == ["1.5", "2.5"]
    bare = written("sep=;\n71;1,5\n34;2,5\n")
    assert first_rows(bare, dialect=Dialect(columns="age,pay")).num_rows == 2


def test_blanks_around_names_and_values_do_not_count(written):
    schema = Schema((Categories("work", ("Private", "none")),), "label")
    found = read_records(
        written("age, work , label\n1, Private, no\n2, none, yes\n"), schema=schema
    )
    assert found.X.toarray()[:, :2].tolist() == [[1, 0], [0, 1]]
    assert found.y.tolist() == ["no", "yes"]


def test_a_name_in_other_letters_is_found(written):
    schema = Schema((Categories("Work", ("Private",)),), "label")
    with pytest.raises(DataError, match="no column 'Work': write 'work' with the same case"):
        read_records(written(f"{NAMES}\n{RECORDS}"), schema=schema)


@pytest.mark.parametrize(
    ("value", "decimal"), [("1.234,50", ","), ("1,234.50", "."), ("12.345.678,1", ",")]
)
def test_thousands_are_read_where_the_option_says_so(written, value, decimal):
    path = written(f'pay|label\n"{value}"|1\n800|0\n')
    schema = Schema((Bins("pay", (1000,)),), "label")
    with pytest.raises(DataError, match=f"thousands.*--decimal {decimal}"):
        read_records(path, schema=schema)
    found = read_records(path, schema=schema, dialect=Dialect(decimal=decimal))
    assert found.X.toarray()[:, 1].tolist() == [1, 0]
