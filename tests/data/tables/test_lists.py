"""Parquet and Arrow tables of lists: types, order, and errors that name rows."""

import numpy as np
import pyarrow as pa
import pytest

from data.row_blocks import gather, write_table
from dplasso.data.table_batches import ListColumns, list_source
from dplasso.errors import DataError

MEMORY = 1 << 20
ROWS = [[3, 0], [], [7], [1, 2, 9], []]
VALUES = [[0.5, -2.0], [], [0.25], [1.0, 3.0, 4.0], []]


@pytest.fixture(params=[".parquet", ".arrow"])
def suffix(request):
    return request.param


def read(path, columns, lists=ListColumns("x"), memory=MEMORY, **options):  # noqa: B008
    write_table(path, pa.table(columns), **options)
    return gather(list_source(path, lists, label_column="y").blocks(memory), lists.n_features)


KINDS = [
    *((ROWS, pa.list_(pa.int8()), None), (ROWS, pa.large_list(pa.uint16()), None)),
    *((ROWS, pa.list_(pa.int32()), None), (ROWS, pa.large_list(pa.uint64()), None)),
    ([[4, 1], [0, 5]], pa.list_(pa.int32(), 2), None),
    *((ROWS, pa.list_(pa.int64()), kind) for kind in (pa.float16(), pa.float32(), pa.float64())),
]


@pytest.mark.parametrize(("rows", "kind", "value"), KINDS, ids=str)
def test_lists_and_their_types(tmp_path, suffix, rows, kind, value):
    y = [1, -1, 1, 1, -1][: len(rows)]
    values = [[1.0] * len(row) for row in rows] if value is None else VALUES
    columns = {"y": pa.array(y, pa.int8()), "other": y, "x": pa.array(rows, kind)}
    if value is not None:
        given = [np.array(row, value.to_pandas_dtype()) for row in values]
        columns["v"] = pa.array(given, pa.list_(value))
    lists = ListColumns("x", None if value is None else "v", 12)
    X, labels, _ = read(tmp_path / f"t{suffix}", columns, lists)
    expected = np.zeros((len(rows), 12))
    for i, row in enumerate(rows):
        expected[i, row] = values[i]
    np.testing.assert_array_equal(X.toarray(), expected)
    assert X.data.dtype == (np.float64 if value == pa.float64() else np.float32)
    assert labels.tolist() == y


WRONG = [
    ([[0], [1, 1]], None, "column 'x', row 2: an index appears twice"),
    ([[0], [2, 3, 2]], None, "row 2: an index appears twice"),
    ([[0], [-4]], None, "row 2: an index is not 0 or more"),
    ([[0], None], None, "column 'x', row 2: the value is missing"),
    ([[0], [1, None]], None, "column 'x', row 2: an item of the list is missing"),
    (
        [[0.5], [1.0]],
        None,
        "column 'x': the column must hold lists of whole numbers, not of double",
    ),
    ([0, 1], None, "column 'x': the column must hold lists, not int64"),
    ([[0], [1]], [[1.0], [1.0, 2.0]], "column 'v', row 2: 2 values for 1 indices"),
    ([[0], [1]], [[1.0], [float("nan")]], "column 'v', row 2: a value is not finite"),
    ([[0], [1]], [[1.0], [float("inf")]], "column 'v', row 2: a value is not finite"),
    ([[0], [1]], [[1.0], [None]], "column 'v', row 2: an item of the list is missing"),
    (
        [[0], [1]],
        [["a"], ["b"]],
        "column 'v': the column must hold lists of numbers, not of string",
    ),
    (pa.array([[0], [2**64 - 1]], pa.list_(pa.uint64())), None, "row 2: an index is not 0 or"),
]


@pytest.mark.parametrize(("rows", "values", "message"), WRONG)
def test_each_error_names_the_file_the_column_and_the_row(tmp_path, suffix, rows, values, message):
    columns = {"y": [0, 1], "x": rows} | ({} if values is None else {"v": values})
    with pytest.raises(DataError) as caught:
        read(tmp_path / f"t{suffix}", columns, ListColumns("x", None if values is None else "v"))
    assert f"t{suffix}, " in str(caught.value)
    assert message in str(caught.value)


def test_rows_are_counted_over_the_file_not_the_block(tmp_path, suffix):
    columns = {"y": [0] * 10, "x": [[1]] * 7 + [[1, 1]] + [[1]] * 2}
    with pytest.raises(DataError, match="row 8: an index appears twice"):
        read(tmp_path / f"t{suffix}", columns, memory=1, row_group_size=3)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (pa.array([0, 1, 1], pa.int8()), "i"),
        (pa.array([0.5, 1.0, 1.0], pa.float32()), "f"),
        (pa.array(["no", "yes", "yes"]), "U"),
        (pa.array(["no", "yes", "yes"]).dictionary_encode(), "U"),
        (pa.array([False, True, True]), "b"),
    ],
)
def test_kinds_of_labels(tmp_path, suffix, labels, kind):
    _, y, _ = read(tmp_path / f"t{suffix}", {"y": labels, "x": [[1], [2], [3]]})
    assert y.dtype.kind == kind
    assert y.tolist() == labels.to_pylist()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, None], "column 'y', row 2: the value is missing"),
        ([0.0, float("nan")], "column 'y', row 2: the label is not a finite number"),
        ([[1], [2]], "column 'y': labels must be numbers, strings or bools, not list"),
    ],
)
def test_labels_that_are_refused(tmp_path, suffix, labels, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path / f"t{suffix}", {"y": labels, "x": [[1], [2]]})


def test_columns_that_are_not_there_once(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    names = ["x", "x", "y"]
    write_table(path, pa.table([pa.array([[1]]), pa.array([[1]]), pa.array([0])], names))
    for column, label, problem in (
        ("z", "y", "no column 'z'; there are 'x', 'x', 'y'"),
        ("y", "z", "no column 'z'"),
        ("x", "y", "more than one column 'x'"),
    ):
        with pytest.raises(DataError, match=problem):
            next(list_source(path, ListColumns(column), label_column=label).blocks(MEMORY))
    with pytest.raises(ValueError, match="cannot be both label and feature"):
        list_source(path, ListColumns("x"), label_column="x")


def test_damage_within_a_parquet_page(tmp_path):
    columns = pa.table({"y": np.zeros(500), "x": [[i, i + 1] for i in range(500)]})
    path = write_table(tmp_path / "t.parquet", columns, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a complete, undamaged Parquet file"):
        list(list_source(path, ListColumns("x"), label_column="y").blocks(MEMORY))
