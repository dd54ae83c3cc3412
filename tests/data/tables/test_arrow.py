"""Parquet and Arrow tables: labels, columns and damage, with errors that name the place."""

import numpy as np
import pyarrow as pa
import pytest

from data.row_blocks import gather, open_rows, write_table
from dplasso import DataError

MEMORY = 1 << 20
ROWS = {"x": [[1], [2], [3]], "v": [[1.0], [1.0], [1.0]]}


@pytest.fixture(params=[".parquet", ".arrow"])
def suffix(request):
    return request.param


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
    path = write_table(tmp_path / f"t{suffix}", pa.table({"y": labels, **ROWS}))
    _, y, _ = gather(open_rows(path).blocks(MEMORY))
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
    rows = {name: lists[:2] for name, lists in ROWS.items()}
    path = write_table(tmp_path / f"t{suffix}", pa.table({"y": labels, **rows}))
    with pytest.raises(DataError, match=message):
        list(open_rows(path).blocks(MEMORY))


def test_columns_that_are_not_there_once(tmp_path, suffix):
    path, y = tmp_path / f"t{suffix}", pa.array([0, 1, 1])
    for columns, problem in (
        ({"w": y, **ROWS}, "no column 'y'; there are 'w', 'x', 'v'"),
        ({"y": y, "x": ROWS["x"]}, "no column 'v'"),
    ):
        write_table(path, pa.table(columns))
        with pytest.raises(DataError, match=problem):
            next(open_rows(path).blocks(MEMORY))
    twice = pa.table([pa.array(ROWS["x"]), pa.array(ROWS["v"]), y, y], ["x", "v", "y", "y"])
    with pytest.raises(DataError, match="more than one column 'y'"):
        next(open_rows(write_table(path, twice)).blocks(MEMORY))


def test_damage_within_a_parquet_page(tmp_path):
    rows = {"x": [[i, i + 1] for i in range(500)], "v": [[1.0, 1.0]] * 500}
    table = pa.table({"y": np.zeros(500), **rows})
    path = write_table(tmp_path / "t.parquet", table, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a complete, undamaged Parquet file"):
        list(open_rows(path).blocks(MEMORY))
