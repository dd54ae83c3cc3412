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
from sklearn.feature_extraction import FeatureHasher

from data.row_blocks import gather
from dplasso.data.tables.arrow import Categories, HashedCategories, ListColumns, arrow_source
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
        source = arrow_source(path, ListColumns("x"), label_column="y")
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
        source = arrow_source(path, ListColumns("x", "v", 12), label_column="y")
        assert source.n_features == 12
        X, _, _ = gather(source.blocks(MEMORY), 12)
        np.testing.assert_array_equal(X.toarray(), dense(self.ROWS, 12, self.VALUES))
        assert X.data.dtype == expected

    def test_fixed_size_lists(self, tmp_path, suffix):
        table = pa.table({"y": [0, 1], "x": pa.array([[4, 1], [0, 5]], pa.list_(pa.int32(), 2))})
        path = write(tmp_path / f"t{suffix}", table)
        X, _, _ = gather(arrow_source(path, ListColumns("x"), label_column="y").blocks(MEMORY))
        np.testing.assert_array_equal(X.toarray(), dense([[4, 1], [0, 5]], 6))

    def test_columns_beyond_32_bits(self, tmp_path, suffix):
        table = pa.table({"y": [0, 1], "x": [[2**40, 3], [5]]})
        path = write(tmp_path / f"t{suffix}", table)
        (block,) = arrow_source(path, ListColumns("x"), label_column="y").blocks(MEMORY)
        assert block.indices.dtype == np.int64
        assert block.indices.tolist() == [3, 2**40, 5]
        declared = ListColumns("x", n_features=2**41)
        (block,) = arrow_source(path, declared, label_column="y").blocks(MEMORY)
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
            source = arrow_source([path, again], ListColumns("x", n_features=51), label_column="y")
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
        source = arrow_source(path, ListColumns("x"), label_column="y")
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
            ([[0], [1, 1]], None, "column 'x', row 2: index 1 is there twice"),
            ([[0], [2, 3, 2]], None, "row 2: index 2 is there twice"),
            ([[0], [-4]], None, "row 2: index -4; they count from 0"),
            ([[0], None], None, "column 'x', row 2: the value is missing"),
            ([[0], [1, None]], None, "column 'x', row 2: an item of the list is missing"),
            ([[0.5], [1.0]], None, "column 'x': lists of whole numbers are needed, not of double"),
            ([0, 1], None, "column 'x': lists are needed, not int64"),
            ([[0], [1]], [[1.0], [1.0, 2.0]], "column 'v', row 2: 2 values for 1 indices"),
            ([[0], [1]], [[1.0], [float("nan")]], "column 'v', row 2: value nan is not finite"),
            ([[0], [1]], [[1.0], [float("inf")]], "column 'v', row 2: value inf is not finite"),
            ([[0], [1]], [[1.0], [None]], "column 'v', row 2: an item of the list is missing"),
            ([[0], [1]], [["a"], ["b"]], "column 'v': lists of numbers are needed, not of string"),
        ],
    )
    def test_records(self, tmp_path, suffix, rows, values, message):
        columns = {"y": [0, 1], "x": rows} | ({} if values is None else {"v": values})
        path = write(tmp_path / f"t{suffix}", pa.table(columns))
        encoding = ListColumns("x", None if values is None else "v")
        with pytest.raises(DataError) as caught:
            list(arrow_source(path, encoding, label_column="y").blocks(MEMORY))
        assert str(path) in str(caught.value)
        assert message in str(caught.value)

    def test_rows_are_counted_over_the_file_not_the_block(self, tmp_path, suffix):
        table = pa.table({"y": [0] * 10, "x": [[1]] * 7 + [[1, 1]] + [[1]] * 2})
        path = write(tmp_path / f"t{suffix}", table, row_group_size=3)
        with pytest.raises(DataError, match="row 8: index 1 is there twice"):
            list(arrow_source(path, ListColumns("x"), label_column="y").blocks(1))

    def test_an_index_beyond_the_declared_columns(self, tmp_path):
        path = write(tmp_path / "t.parquet", pa.table({"y": [0, 1], "x": [[4], [5]]}))
        source = arrow_source(path, ListColumns("x", n_features=5), label_column="y")
        with pytest.raises(DataError, match="row 2: index 5; 0 to 4 are declared"):
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
        _, y, _ = gather(arrow_source(path, ListColumns("x"), label_column="y").blocks(MEMORY))
        assert y.dtype.kind == kind
        assert y.tolist() == labels.to_pylist()

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            ([0, None], "column 'y', row 2: the value is missing"),
            ([0.0, float("nan")], "column 'y', row 2: the label is nan, not a finite number"),
            ([[1], [2]], "column 'y': labels must be numbers, strings or bools, not list"),
        ],
    )
    def test_refused(self, tmp_path, suffix, labels, message):
        path = write(tmp_path / f"t{suffix}", pa.table({"y": labels, "x": [[1], [2]]}))
        with pytest.raises(DataError, match=message):
            list(arrow_source(path, ListColumns("x"), label_column="y").blocks(MEMORY))


CITIES = {"city": ["Rome", "Oslo", "Lima"], "size": [1, 2], "new": [False, True]}


class TestCategories:
    def table(self, **changes):
        columns = {
            "city": ["Oslo", "Lima", None, "Oslo"],
            "size": [2, 1, 1, 2],
            "new": [True, True, False, True],
            "y": [0, 1, 0, 1],
        }
        return pa.table(columns | changes)

    def test_columns_follow_the_declared_lists(self, tmp_path, suffix):
        path = write(tmp_path / f"t{suffix}", self.table())
        source = arrow_source(path, Categories(CITIES), label_column="y")
        assert source.n_features == 7
        X, _, _ = gather(source.blocks(MEMORY), 7)
        expected = dense([[1, 4, 6], [2, 3, 6], [3, 5], [1, 4, 6]], 7)
        np.testing.assert_array_equal(X.toarray(), expected)

    def test_nothing_is_taken_from_the_data(self, tmp_path, suffix):
        """Columns stay the same when other values occur, dictionaries in the file or not."""
        plain = self.table()
        coded = plain.set_column(0, "city", plain.column("city").dictionary_encode())
        found = []
        for i, table in enumerate((plain, coded, coded.slice(1), plain.slice(3))):
            path = write(tmp_path / f"{i}{suffix}", table)
            source = arrow_source(path, Categories(CITIES), label_column="y")
            assert source.n_features == 7
            found.append(gather(source.blocks(MEMORY), 7)[0].toarray())
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0][1:], found[2])
        np.testing.assert_array_equal(found[0][3:], found[3])

    def test_a_value_that_is_not_declared(self, tmp_path, suffix):
        path = write(tmp_path / f"t{suffix}", self.table(city=["Oslo", "Lima", "Oslo", "Bonn"]))
        source = arrow_source(path, Categories(CITIES), label_column="y")
        with pytest.raises(DataError, match=r"'city', row 4: 'Bonn' is not among the declared"):
            list(source.blocks(MEMORY))
        ignored = arrow_source(path, Categories(CITIES, "ignore"), label_column="y")
        X, _, _ = gather(ignored.blocks(MEMORY), 7)
        assert X.toarray()[3].tolist() == [0, 0, 0, 0, 1, 0, 1]

    def test_categories_of_another_kind(self, tmp_path, suffix):
        path = write(tmp_path / f"t{suffix}", self.table())
        source = arrow_source(path, Categories({"size": ["small"]}), label_column="y")
        with pytest.raises(DataError, match=r"'size': it holds int64, .* are like 'small'"):
            list(source.blocks(MEMORY))

    @pytest.mark.parametrize(
        ("lists", "message"),
        [
            ({}, "at least one column"),
            ({"a": []}, "column 'a' must be a list of at least one"),
            ({"a": "xyz"}, "column 'a' must be a list of at least one"),
            ({"a": [1, "x"]}, "all strings, all numbers or all bools"),
            ({"a": [None]}, "all strings, all numbers or all bools"),
            ({"a": ["x", "x"]}, "column 'a' hold one twice"),
        ],
    )
    def test_lists_that_make_no_sense(self, tmp_path, lists, message):
        with pytest.raises(ValueError, match=message):
            arrow_source(tmp_path / "t.parquet", Categories(lists), label_column="y")


class TestHashedCategories:
    def test_as_scikit_learn_hashes(self, tmp_path, suffix):
        rng = np.random.default_rng(0)
        table = pa.table(
            {
                "city": pa.array(rng.choice(["Rome", "Oslo", "Lima"], 200)).dictionary_encode(),
                "zip": rng.integers(0, 90, 200),
                "y": rng.integers(0, 2, 200),
            }
        )
        path = write(tmp_path / f"t{suffix}", table)
        source = arrow_source(path, HashedCategories(["city", "zip"], 5), label_column="y")
        assert source.n_features == 32
        X, _, n_blocks = gather(source.blocks(10_000), 32)
        assert n_blocks > 1
        hasher = FeatureHasher(32, input_type="string", alternate_sign=False)
        words = [[f"city={row['city']}", f"zip={row['zip']}"] for row in table.to_pylist()]
        expected = hasher.transform(words).toarray()
        assert expected.max() == 2  # two values of one record in one column are one entry
        np.testing.assert_array_equal(X.toarray(), np.minimum(expected, 1))

    def test_missing_values_have_no_entry(self, tmp_path, suffix):
        table = pa.table({"a": pa.array([None, "x", None]), "y": [0, 1, 0]})
        path = write(tmp_path / f"t{suffix}", table)
        source = arrow_source(path, HashedCategories(["a"], 8), label_column="y")
        X, _, _ = gather(source.blocks(MEMORY), 256)
        assert np.diff(X.indptr).tolist() == [0, 1, 0]
        empty = write(tmp_path / f"e{suffix}", table.slice(0, 1))
        source = arrow_source(empty, HashedCategories(["a"], 8), label_column="y")
        assert gather(source.blocks(MEMORY), 256)[0].nnz == 0

    @pytest.mark.parametrize("bits", [0, 31, 2.5, "8"])
    def test_bits(self, tmp_path, bits):
        with pytest.raises(ValueError, match="whole number from 1 to 30"):
            arrow_source(tmp_path / "t.parquet", HashedCategories(["a"], bits), label_column="y")

    def test_lists_are_no_categories(self, tmp_path, suffix):
        path = write(tmp_path / f"t{suffix}", pa.table({"a": [[1], [2]], "y": [0, 1]}))
        source = arrow_source(path, HashedCategories(["a"], 8), label_column="y")
        with pytest.raises(DataError, match=r"column 'a': .*list.* is not a category"):
            list(source.blocks(MEMORY))


class TestFiles:
    @pytest.fixture
    def path(self, tmp_path, suffix):
        table = pa.table({"y": np.arange(500) % 2, "x": [[i, i + 1] for i in range(500)]})
        return write(tmp_path / f"t{suffix}", table)

    def test_missing_columns_are_named(self, path):
        for columns, missing in ((("z", "y"), "'z'"), (("x", "z"), "'z'")):
            source = arrow_source(path, ListColumns(columns[0]), label_column=columns[1])
            with pytest.raises(DataError, match=f"no column {missing}; there are 'y', 'x'"):
                next(source.blocks(MEMORY))

    def test_a_column_that_is_there_twice(self, tmp_path, suffix):
        table = pa.table([pa.array([[1]]), pa.array([[1]]), pa.array([0])], ["x", "x", "y"])
        path = write(tmp_path / f"t{suffix}", table)
        with pytest.raises(DataError, match="more than one column 'x'"):
            list(arrow_source(path, ListColumns("x"), label_column="y").blocks(MEMORY))

    def test_no_file(self, tmp_path, suffix):
        with pytest.raises(DataError, match="no such file"):
            arrow_source(tmp_path / f"none{suffix}", ListColumns("x"), label_column="y")

    def test_another_kind_of_file(self, tmp_path, suffix):
        (tmp_path / f"t{suffix}").write_text("+1 1:1\n")
        with pytest.raises(DataError, match="not a complete, undamaged"):
            arrow_source(tmp_path / f"t{suffix}", ListColumns("x"), label_column="y")
        (tmp_path / "t.svm").write_text("+1 1:1\n")
        with pytest.raises(DataError, match=r"must end in one of \.parquet"):
            arrow_source(tmp_path / "t.svm", ListColumns("x"), label_column="y")

    @pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
    def test_a_file_cut_short(self, path, keep):
        content = path.read_bytes()
        path.write_bytes(content[: int(keep * len(content))])
        with pytest.raises(DataError, match="not a complete, undamaged"):
            list(arrow_source(path, ListColumns("x"), label_column="y").blocks(MEMORY))

    def test_any_damaged_byte_is_told_or_harmless(self, path):
        """Neither a crash nor another exception, wherever the damage is."""
        content, rng = path.read_bytes(), np.random.default_rng(0)
        told = 0
        for place in rng.choice(len(content), 150, replace=False):
            damaged = bytearray(content)
            damaged[place] ^= int(rng.integers(1, 256))
            path.write_bytes(damaged)
            try:
                source = arrow_source(path, ListColumns("x"), label_column="y")
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
            list(arrow_source(path, ListColumns("x"), label_column="y").blocks(MEMORY))

    def test_a_file_that_changes_meanwhile(self, path):
        source = arrow_source(path, ListColumns("x"), label_column="y")
        blocks = source.blocks(1000)
        next(blocks)
        os.utime(path, ns=(1, 1))
        with pytest.raises(DataError, match="the file changed while it was being read"):
            list(blocks)
        with pytest.raises(DataError, match="the file changed while it was being read"):
            next(source.blocks(1000))

    def test_a_pattern_means_its_files_in_order(self, path):
        source = arrow_source(f"{path.parent}/t*", ListColumns("x"), label_column="y")
        one = arrow_source(path, ListColumns("x"), label_column="y")
        (found,), (expected,) = list(source.blocks(MEMORY)), list(one.blocks(MEMORY))
        np.testing.assert_array_equal(found.indices, expected.indices)
        assert source.name == str(path)

    def test_settings(self, path):
        with pytest.raises(ValueError, match="named twice"):
            arrow_source([path, path], ListColumns("x"), label_column="y")
        with pytest.raises(ValueError, match="give at least one"):
            arrow_source([], ListColumns("x"), label_column="y")
        with pytest.raises(ValueError, match="cannot be both label and feature"):
            arrow_source(path, ListColumns("x"), label_column="x")
        with pytest.raises(ValueError, match="n_features must be from 1"):
            arrow_source(path, ListColumns("x", n_features=0), label_column="y")
        with pytest.raises(ValueError, match="each once"):
            arrow_source(path, HashedCategories(["a", "a"], 8), label_column="y")
        with pytest.raises(ValueError, match="'error' or 'ignore'"):
            arrow_source(path, Categories({"a": ["x"]}, "drop"), label_column="y")


def test_without_pyarrow_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import dplasso.data.text.reader\n"  # needs it for tables only
        "try:\n    import dplasso.data.tables.arrow\n"
        "except ImportError as error:\n    print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "pip install 'dplasso[arrow]'" in result.stdout
