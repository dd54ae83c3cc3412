"""Parquet and Arrow: the same matrix as from Python's objects; columns that no record decides."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.row_blocks import gather
from dplasso.data.tables.lists import ListColumns, list_source
from dplasso.errors import DataError

MEMORY = 1 << 20


def write(path, table, **options):
    """Write a table in the kind of file that the name says."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, **options)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=options.get("row_group_size"))
    return path


def dense(rows, n_features, values=None):
    """Put lists of indices into a dense matrix, entry by entry."""
    X = np.zeros((len(rows), n_features))
    for i, row in enumerate(rows):
        for k, j in enumerate(row):
            X[i, j] = 1.0 if values is None else values[i][k]
    return X


@pytest.fixture(params=[".parquet", ".arrow"])
def suffix(request):
    return request.param


class TestLists:
    ROWS = ([3, 0], [], [7], [1, 2, 9], [])
    VALUES = ([0.5, -2.0], [], [0.25], [1.0, 3.0, 4.0], [])

    def table(self, lists=pa.list_, kind=None):
        return pa.table(
            {
                "y": pa.array([1, -1, 1, 1, -1], pa.int8()),
                "other": ["not", "to", "be", "read", "."],
                "x": pa.array(self.ROWS, lists(kind or pa.int64())),
                "v": pa.array(self.VALUES, pa.list_(pa.float32())),
            }
        )

    @pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int32(), pa.uint64()])
    @pytest.mark.parametrize("lists", [pa.list_, pa.large_list])
    def test_indices_alone_are_ones(self, tmp_path, suffix, kind, lists):
        path = write(tmp_path / f"t{suffix}", self.table(lists, kind))
        source = list_source(path, ListColumns("x"), label_column="y")
        assert source.n_features is None
        X, y, _ = gather(source.blocks(MEMORY))
        np.testing.assert_array_equal(X.toarray(), dense(self.ROWS, 10))
        assert X.data.dtype == np.float32
        np.testing.assert_array_equal(y, [1, -1, 1, 1, -1])

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [
            (pa.float32(), np.float32),
            (pa.float64(), np.float64),
            (pa.float16(), np.float32),
        ],
    )
    def test_values_keep_their_type(self, tmp_path, suffix, kind, expected):
        values = pa.array(
            [np.array(row, kind.to_pandas_dtype()) for row in self.VALUES], pa.list_(kind)
        )
        table = self.table().set_column(3, "v", values)
        path = write(tmp_path / f"t{suffix}", table)
        source = list_source(path, ListColumns("x", "v", 12), label_column="y")
        assert source.n_features == 12
        X, _, _ = gather(source.blocks(MEMORY), 12)
        np.testing.assert_array_equal(X.toarray(), dense(self.ROWS, 12, self.VALUES))
        assert X.data.dtype == expected

    def test_fixed_size_lists(self, tmp_path, suffix):
        table = pa.table({"y": [0, 1], "x": pa.array([[4, 1], [0, 5]], pa.list_(pa.int32(), 2))})
        path = write(tmp_path / f"t{suffix}", table)
        X, _, _ = gather(list_source(path, ListColumns("x"), label_column="y").blocks(MEMORY))
        np.testing.assert_array_equal(X.toarray(), dense([[4, 1], [0, 5]], 6))

    def test_columns_beyond_32_bits(self, tmp_path, suffix):
        table = pa.table({"y": [0, 1], "x": [[2**40, 3], [5]]})
        path = write(tmp_path / f"t{suffix}", table)
        (block,) = list_source(path, ListColumns("x"), label_column="y").blocks(MEMORY)
        assert block.indices.dtype == np.int64
        assert block.indices.tolist() == [3, 2**40, 5]
        declared = ListColumns("x", n_features=2**41)
        (block,) = list_source(path, declared, label_column="y").blocks(MEMORY)
        assert block.indices.dtype == np.int64

    @given(
        rows=st.lists(st.lists(st.integers(0, 50), unique=True, max_size=8), min_size=1),
        group=st.integers(1, 7),
        memory=st.sampled_from([1, 2000, 10**6]),
    )
    def test_any_lists_in_any_blocks(self, tmp_path_factory, rows, group, memory):
        folder = tmp_path_factory.mktemp("lists")
        table = pa.table(
            {"x": pa.array(rows, pa.list_(pa.int32())), "y": np.arange(len(rows)) % 2 == 0}
        )
        for name in ("t.parquet", "t.arrow"):
            path = write(folder / name, table, row_group_size=group)
            again = folder / f"again{path.suffix}"
            again.write_bytes(path.read_bytes())
            source = list_source([path, again], ListColumns("x", n_features=51), label_column="y")
            X, y, n_blocks = gather(source.blocks(memory), 51)
            np.testing.assert_array_equal(X.toarray(), np.tile(dense(rows, 51), (2, 1)))
            np.testing.assert_array_equal(y, np.tile(np.arange(len(rows)) % 2 == 0, 2))
            if memory == 1:
                assert n_blocks == 2 * len(rows)

    def test_memory_bounds_the_blocks(self, tmp_path, suffix):
        rng = np.random.default_rng(0)
        rows = [rng.choice(1000, 50, replace=False) for _ in range(2000)]
        table = pa.table({"x": rows, "y": np.zeros(2000)})
        path = write(tmp_path / f"t{suffix}", table)
        seen = []
        source = list_source(path, ListColumns("x"), label_column="y")
        blocks = list(source.blocks(100_000, lambda done, total: seen.append((done, total))))
        assert max(block.indices.nbytes + block.values.nbytes for block in blocks) < 50_000
        # Not absurdly small either.
        assert len(blocks) < 400
        assert seen == sorted(seen)
        assert seen[-1] == (source.total, source.total)
        assert source.total == path.stat().st_size


class TestBadLists:
    """Each error names the file, the column and the row, counted from 1."""

    @pytest.mark.parametrize(
        ("rows", "values", "message"),
        [
            ([[0], [1, 1]], None, "column 'x', row 2: an index appears twice"),
            ([[0], [2, 3, 2]], None, "row 2: an index appears twice"),
            ([[0], [-4]], None, "row 2: an index is not 0 or more"),
            ([[0], None], None, "column 'x', row 2: the value is missing"),
            ([[0], [1, None]], None, "column 'x', row 2: an item of the list is missing"),
            ([[0.5], [1.0]], None, "column 'x': lists of whole numbers are needed, not of double"),
            ([0, 1], None, "column 'x': lists are needed, not int64"),
            ([[0], [1]], [[1.0], [1.0, 2.0]], "column 'v', row 2: 2 values for 1 indices"),
            ([[0], [1]], [[1.0], [float("nan")]], "column 'v', row 2: a value is not finite"),
            ([[0], [1]], [[1.0], [float("inf")]], "column 'v', row 2: a value is not finite"),
            ([[0], [1]], [[1.0], [None]], "column 'v', row 2: an item of the list is missing"),
            ([[0], [1]], [["a"], ["b"]], "column 'v': lists of numbers are needed, not of string"),
        ],
    )
    def test_records(self, tmp_path, suffix, rows, values, message):
        columns = {"y": [0, 1], "x": rows} | ({} if values is None else {"v": values})
        path = write(tmp_path / f"t{suffix}", pa.table(columns))
        encoding = ListColumns("x", None if values is None else "v")
        with pytest.raises(DataError) as caught:
            list(list_source(path, encoding, label_column="y").blocks(MEMORY))
        assert str(path) in str(caught.value)
        assert message in str(caught.value)

    def test_rows_are_counted_over_the_file_not_the_block(self, tmp_path, suffix):
        table = pa.table({"y": [0] * 10, "x": [[1]] * 7 + [[1, 1]] + [[1]] * 2})
        path = write(tmp_path / f"t{suffix}", table, row_group_size=3)
        with pytest.raises(DataError, match="row 8: an index appears twice"):
            list(list_source(path, ListColumns("x"), label_column="y").blocks(1))

    def test_an_index_beyond_the_declared_columns(self, tmp_path):
        path = write(tmp_path / "t.parquet", pa.table({"y": [0, 1], "x": [[4], [5]]}))
        source = list_source(path, ListColumns("x", n_features=5), label_column="y")
        with pytest.raises(DataError, match="row 2: an index is not 0 to 4, as declared"):
            list(source.blocks(MEMORY))


class TestLabels:
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
    def test_kinds(self, tmp_path, suffix, labels, kind):
        path = write(tmp_path / f"t{suffix}", pa.table({"y": labels, "x": [[1], [2], [3]]}))
        _, y, _ = gather(list_source(path, ListColumns("x"), label_column="y").blocks(MEMORY))
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
    def test_refused(self, tmp_path, suffix, labels, message):
        path = write(tmp_path / f"t{suffix}", pa.table({"y": labels, "x": [[1], [2]]}))
        with pytest.raises(DataError, match=message):
            list(list_source(path, ListColumns("x"), label_column="y").blocks(MEMORY))


class TestFiles:
    @pytest.fixture
    def path(self, tmp_path, suffix):
        table = pa.table({"y": np.arange(500) % 2, "x": [[i, i + 1] for i in range(500)]})
        return write(tmp_path / f"t{suffix}", table)

    def test_missing_columns_are_named(self, path):
        for columns, missing in ((("z", "y"), "'z'"), (("x", "z"), "'z'")):
            source = list_source(path, ListColumns(columns[0]), label_column=columns[1])
            with pytest.raises(DataError, match=f"no column {missing}; there are 'y', 'x'"):
                next(source.blocks(MEMORY))

    def test_a_column_that_is_there_twice(self, tmp_path, suffix):
        table = pa.table([pa.array([[1]]), pa.array([[1]]), pa.array([0])], ["x", "x", "y"])
        path = write(tmp_path / f"t{suffix}", table)
        with pytest.raises(DataError, match="more than one column 'x'"):
            list(list_source(path, ListColumns("x"), label_column="y").blocks(MEMORY))

    def test_no_file(self, tmp_path, suffix):
        with pytest.raises(DataError, match="no such file"):
            list_source(tmp_path / f"none{suffix}", ListColumns("x"), label_column="y")

    def test_another_kind_of_file(self, tmp_path, suffix):
        (tmp_path / f"t{suffix}").write_text("+1 1:1\n")
        with pytest.raises(DataError, match="not a complete, undamaged"):
            list_source(tmp_path / f"t{suffix}", ListColumns("x"), label_column="y")
        (tmp_path / "t.svm").write_text("+1 1:1\n")
        with pytest.raises(DataError, match=r"must end in one of \.parquet"):
            list_source(tmp_path / "t.svm", ListColumns("x"), label_column="y")

    @pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
    def test_a_file_cut_short(self, path, keep):
        content = path.read_bytes()
        path.write_bytes(content[: int(keep * len(content))])
        with pytest.raises(DataError, match="not a complete, undamaged"):
            list(list_source(path, ListColumns("x"), label_column="y").blocks(MEMORY))

    def test_any_damaged_byte_is_told_or_harmless(self, path):
        """Neither a crash nor another exception, wherever the damage is."""
        content, rng = path.read_bytes(), np.random.default_rng(0)
        told = 0
        for place in rng.choice(len(content), 150, replace=False):
            damaged = bytearray(content)
            damaged[place] ^= int(rng.integers(1, 256))
            path.write_bytes(damaged)
            try:
                source = list_source(path, ListColumns("x"), label_column="y")
                for block in source.blocks(5000):
                    assert block.indptr[-1] == block.indices.size
            except DataError:
                told += 1
        assert told > 5

    def test_damage_within_a_parquet_page(self, tmp_path):
        table = pa.table({"y": np.zeros(500), "x": [[i, i + 1] for i in range(500)]})
        path = write(tmp_path / "t.parquet", table, write_page_checksum=True)
        content = bytearray(path.read_bytes())
        content[200] ^= 0xFF
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a complete, undamaged Parquet file"):
            list(list_source(path, ListColumns("x"), label_column="y").blocks(MEMORY))

    def test_a_file_that_changes_meanwhile(self, path):
        source = list_source(path, ListColumns("x"), label_column="y")
        blocks = source.blocks(1000)
        next(blocks)
        os.utime(path, ns=(1, 1))
        with pytest.raises(DataError, match="the file changed while it was being read"):
            list(blocks)
        with pytest.raises(DataError, match="the file changed while it was being read"):
            next(source.blocks(1000))

    def test_a_pattern_means_its_files_in_order(self, path):
        source = list_source(f"{path.parent}/t*", ListColumns("x"), label_column="y")
        one = list_source(path, ListColumns("x"), label_column="y")
        (found,), (expected,) = list(source.blocks(MEMORY)), list(one.blocks(MEMORY))
        np.testing.assert_array_equal(found.indices, expected.indices)
        assert source.name == str(path)

    def test_settings(self, path):
        with pytest.raises(ValueError, match="named twice"):
            list_source([path, path], ListColumns("x"), label_column="y")
        with pytest.raises(ValueError, match="give at least one"):
            list_source([], ListColumns("x"), label_column="y")
        with pytest.raises(ValueError, match="cannot be both label and feature"):
            list_source(path, ListColumns("x"), label_column="x")
        with pytest.raises(ValueError, match="n_features must be from 1"):
            list_source(path, ListColumns("x", n_features=0), label_column="y")


def test_without_pyarrow_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import dplasso.encoding.source\n"  # needs it for tables only
        "try:\n    import dplasso.data.tables.lists\n"
        "except ImportError as error:\n    print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "pip install 'dplasso[arrow]'" in result.stdout
