"""Parquet and Arrow tables: labels, columns and damage, with errors that name the place."""

import numpy as np
import pyarrow as pa
import pytest

from data.row_blocks import gather, open_rows, write_table
from dplasso import DataError


def test_damage_within_a_parquet_page(tmp_path):
    rows = {"x": [[i, i + 1] for i in range(500)], "v": [[1.0, 1.0]] * 500}
    table = pa.table({"y": np.zeros(500), **rows})
    path = write_table(tmp_path / "t.parquet", table, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a complete, undamaged Parquet file"):
        list(open_rows(path).blocks(1 << 20))


ROWS = {"x": [[1], [2]], "v": [[1.0], [1.0]]}
LABELS = pa.array([0.5, 1.0], pa.float32())
PROBLEMS = {
    "column 'y', row 2: the value is missing": {"y": [0, None], **ROWS},
    "column 'y', row 2: the label is not a finite number": {"y": [0.0, float("nan")], **ROWS},
    "column 'y': labels must be numbers, strings or bools, not list": {"y": [[1], [2]], **ROWS},
    "no column 'y'; there are 'w', 'x', 'v'": {"w": LABELS, **ROWS},
    "no column 'v'": {"y": LABELS, "x": ROWS["x"]},
    "more than one column 'y'": {"y": LABELS, "y ": LABELS, **ROWS},
}


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_labels_and_columns(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    for problem, columns in PROBLEMS.items():
        table = pa.table(columns).rename_columns([name.strip() for name in columns])
        with pytest.raises(DataError, match=problem):
            list(open_rows(write_table(path, table)).blocks(1 << 20))
    words = LABELS.cast(pa.string()).dictionary_encode()
    for labels, kind in ((LABELS, "f"), (words, "U")):
        write_table(path, pa.table({"y": labels, **ROWS}))
        found = gather(open_rows(path).blocks(1 << 20))[1]
        assert (found.dtype.kind, found.tolist()) == (kind, labels.to_pylist())
