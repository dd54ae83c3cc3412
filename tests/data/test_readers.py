"""What every reader of records has to do, whatever the format of the files."""

import os
import threading

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from data.row_blocks import (
    NUMBERED,
    SUFFIXES,
    check_same,
    gather,
    open_rows,
    write_rows,
    write_table,
)
from dplasso import DataError
from dplasso.data.blocks import BlockSource, RowBlock, binarized
from dplasso.data.blocks import gather as gather_in_memory
from dplasso.data.formats import block_source, is_table, read_data

every_format = pytest.mark.parametrize("suffix", SUFFIXES)
of_numbered_columns = pytest.mark.parametrize("suffix", NUMBERED)


@st.composite
def records(draw):
    """Draw a matrix, and labels of one kind."""
    rows = draw(st.lists(st.sets(st.integers(0, 30), max_size=8), min_size=1, max_size=30))
    values = st.sampled_from([1.0, 0.5, -3.0, 1e-30, 3e38, 0.0])
    indices = [column for row in rows for column in sorted(row)]
    data = draw(st.lists(values, min_size=len(indices), max_size=len(indices)))
    indptr = np.cumsum([0] + [len(row) for row in rows])
    X = csr_array((np.array(data, np.float32), indices, indptr), shape=(len(rows), 31))
    return X, np.array(draw(st.lists(st.integers(-1, 2), min_size=len(rows), max_size=len(rows))))


@every_format
@given(found=records(), group=st.integers(1, 7), memory=st.sampled_from([1, 100, 2000, 1 << 20]))
@settings(max_examples=15, deadline=None)
def test_any_records_in_any_blocks_and_files(tmp_path_factory, suffix, found, group, memory):
    X, y = found
    folder = tmp_path_factory.mktemp("records")
    first = write_rows(folder / f"part-2{suffix}", X, y, row_group_size=group)
    write_rows(folder / f"part-10{suffix}", X[:1], y[:1])
    source = open_rows(folder / f"part-*{suffix}", 31)
    assert source.name == f"{first} and 1 more"
    expected, labels = csr_array(sp.vstack([X, X[:1]])), np.append(y, y[0])
    for _ in range(2):  # each call starts again
        seen = []
        blocks = source.blocks(memory, lambda *at, seen=seen: seen.append(at))
        check_same(*gather(blocks, 31)[:2], expected, labels)
        assert seen == sorted(seen)
        assert seen[-1] == (source.total, source.total)
        assert source.total == sum(path.stat().st_size for path in folder.iterdir())
    check_same(*gather_in_memory(source)[:2], expected, labels)


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(1)
    X = csr_array(sp.random_array((1000, 400), density=0.05, rng=rng, dtype=np.float32))
    X.sort_indices()
    return X, rng.integers(0, 2, 1000)


@every_format
def test_memory_bounds_the_blocks(tmp_path, large, suffix, monkeypatch):
    monkeypatch.setattr("dplasso.data.svmlight._LEAST_TEXT", 2000)
    source = open_rows(write_rows(tmp_path / f"t{suffix}", *large))
    assert source.n_features == (400 if suffix == ".npz" else None)
    blocks = list(source.blocks(40_000))
    assert max(block.indices.nbytes + block.values.nbytes for block in blocks) <= 40_000
    assert 3 < len(blocks) < 1200
    check_same(*gather(blocks, 400)[:2], *large)


@of_numbered_columns
def test_columns_are_declared_or_counted(tmp_path, large, suffix):
    path = write_rows(tmp_path / f"t{suffix}", *large)
    assert gather_in_memory(open_rows(path))[0].shape == (1000, 400)
    wide = open_rows(path, 500)
    assert (wide.n_features, wide.columns_declared) == (500, True)
    assert gather_in_memory(wide)[0].shape == (1000, 500)
    with pytest.raises(DataError, match=rf"t{suffix}.*declared"):
        list(open_rows(path, 10).blocks(1 << 20))
    with pytest.raises(DataError, match="n_features must be from 1"):
        open_rows(path, 0)


@of_numbered_columns
def test_columns_beyond_32_bits(tmp_path, suffix):
    X = csr_array((np.ones(2, np.float32), np.array([3, 2**40]), np.array([0, 2])))
    path = write_rows(tmp_path / f"t{suffix}", X, np.zeros(1))
    found = gather_in_memory(open_rows(path))[0]
    assert found.shape == (1, 2**40 + 1)
    assert found.indices.tolist() == [3, 2**40]
    (block,) = open_rows(write_rows(path, X[:, :4], np.zeros(1)), 2**41).blocks(1 << 20)
    assert block.indices.dtype == np.int64


@every_format
def test_labels_of_one_kind_and_finite(tmp_path, large, suffix):
    X, y = large[0][:2], large[1][:2]
    one, other = tmp_path / f"1{suffix}", tmp_path / f"2{suffix}"
    write_rows(one, X, y)
    if suffix == ".npz" or is_table(one):
        write_rows(other, X, np.array(["a", "b"]))
        assert gather(open_rows(other).blocks(1))[1].tolist() == ["a", "b"]
        with pytest.raises(DataError, match=r"2\..*row 1: the label is not a number, as the first"):
            list(open_rows([one, other]).blocks(1))
        write_rows(other, X, np.array([True, False]))
        assert gather(open_rows(other).blocks(1))[1].dtype == bool
    write_rows(other, X, np.array([0, np.nan]))
    with pytest.raises(DataError, match=r"label (1 )?is (not a finite number|NaN or infinite)"):
        list(open_rows(other).blocks(1))


# --- files that are missing, cut or changed -----------------------------------------------


def grow(path):
    with path.open("ab") as file:
        file.write(b"1 1:1\n")


def rewrite(path):
    """The same size and other content."""
    content = path.read_bytes()
    path.write_bytes(content.replace(b"1", b"2", 1))
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1_000_000))


def replace(path):
    """Another file of the same size and time."""
    found = path.stat()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
    other.replace(path)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


@every_format
@pytest.mark.parametrize("change", [grow, rewrite, replace, cut])
def test_a_file_that_changes(tmp_path, large, suffix, change, monkeypatch):
    monkeypatch.setattr("dplasso.data.svmlight._LEAST_TEXT", 2000)
    path = write_rows(tmp_path / f"t{suffix}", *large, row_group_size=100)
    source = open_rows(path)
    blocks = source.blocks(1)
    next(blocks)
    if (suffix, change) != (".arrow", cut):  # a mapped file that is cut ends the process
        change(path)
        with pytest.raises(DataError, match="the file changed during reading"):
            list(blocks)
    else:
        blocks.close()
        change(path)
    with pytest.raises(DataError, match="the file changed during reading"):
        next(source.blocks(1))


@every_format
@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_a_file_cut_short(tmp_path, large, suffix, keep):
    path = write_rows(tmp_path / f"t{suffix}", *large)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    if suffix == ".svm" and keep:
        return
    with pytest.raises(DataError, match=rf"t{suffix}.*(damaged|no records)"):
        gather_in_memory(open_rows(path))


@every_format
def test_what_is_no_data_file(tmp_path, large, suffix):
    path = write_rows(tmp_path / f"t{suffix}", *large)
    missing, folder = tmp_path / f"none{suffix}", tmp_path / f"folder{suffix}"
    folder.mkdir()
    for paths, problem in (
        (missing, "no such file"),
        ([path, missing], "no such file"),
        (folder, "is a folder"),
        ([path, path], "the file is named twice"),
    ):
        with pytest.raises(DataError, match=problem):
            open_rows(paths)
    path.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(DataError, match=r"damaged|the file name lacks"):
        list(open_rows(path).blocks(1))


@every_format
def test_a_reader_that_is_left_ends_its_threads(tmp_path, large, suffix):
    path = write_rows(tmp_path / f"t{suffix}", *large)
    source = open_rows(path)

    def interrupt(done, total):
        raise KeyboardInterrupt

    before = threading.active_count()
    blocks = source.blocks(1)
    next(blocks)
    blocks.close()
    with pytest.raises(KeyboardInterrupt):
        gather_in_memory(source, interrupt)
    assert threading.active_count() == before
    # A file that only gets another link or other permissions has not changed.
    blocks = source.blocks(1)
    next(blocks)
    path.chmod(0o600)
    (tmp_path / "link").hardlink_to(path)
    assert len(list(blocks))


def test_formats_that_are_not_rows(tmp_path):
    for name in ("t.csv", "t.csv.gz", "t.parquet", "t.zip", "t.svm.7z", "t.svm", "t.npz"):
        (tmp_path / name).write_text("1 1:1\n")
    for names, problem in (
        (["t.csv"], r"end in \.csv cannot be read; pass svmlight"),
        (["t.csv.gz"], r"end in \.csv cannot be read"),
        (["t.parquet"], r"end in \.parquet cannot be read"),
        (["t.zip"], r"end in \.zip cannot be read"),
        (["t.svm.7z"], r"end in \.7z cannot be read"),
        (["t.svm", "t.npz"], r"t\.npz and .*t\.svm have different formats"),
    ):
        with pytest.raises(DataError, match=problem):
            block_source([tmp_path / name for name in names])


def test_labels_beside_a_file(tmp_path, large):
    paths = [write_rows(tmp_path / f"{k}.npz", *large) for k in range(2)]
    with pytest.raises(DataError, match="a file of labels needs a single"):
        block_source(paths, labels_path=tmp_path / "y.npy")
    text = write_rows(tmp_path / "t.svm", *large)
    with pytest.raises(DataError, match="svmlight text contains its labels"):
        read_data(text, labels_path=tmp_path / "y.npy")


# --- changes to blocks, and matrices ------------------------------------------------------


def source(values=(2.0, 0.0, -3.0, 0.5), labels=("a", "b", "a")):
    """Return three records in blocks of two and one."""
    values, labels = np.array(values, np.float32), np.array(labels)
    given = [
        RowBlock(np.array([0, 2, 3]), np.array([0, 3, 2], np.int32), values[:3], labels[:2]),
        RowBlock(np.array([0, 1]), np.array([1], np.int32), values[3:], labels[2:]),
    ]
    return BlockSource("given", 4, lambda _memory, _progress=None: iter(given), None), given


def test_non_zeros_become_ones_and_nothing_given_changes():
    rows, given = source()
    X, y, n_blocks = gather(binarized(rows).blocks(1 << 20))
    assert X.data.tolist() == [1.0, 0.0, 1.0, 1.0]
    assert X.dtype == np.float32
    assert (y.tolist(), n_blocks) == (["a", "b", "a"], 2)
    assert given[0].values.tolist() == [2.0, 0.0, -3.0]
    for at, row, value in ((0, 1, np.nan), (2, 2, np.inf), (3, 3, -np.inf)):
        values = np.ones(4)
        values[at] = value
        with pytest.raises(DataError, match=f"^given: row {row} holds NaN or infinity"):
            list(binarized(source(values)[0]).blocks(1 << 20))


def test_blocks_of_two_types_meet():
    (rows, _), blocks = source(), []
    for block, kind in zip(rows.blocks(1), (np.float32, np.float64), strict=True):
        index = block.indices.astype(np.int64 if kind == np.float64 else np.int32)
        blocks.append(block._replace(values=block.values.astype(kind), indices=index))
    X, _, _ = gather_in_memory(BlockSource("given", 4, lambda *_: (b for b in blocks), None))
    assert (X.dtype, X.indices.dtype, X.indptr.dtype) == (np.float64, np.int64, np.int64)
    assert X.data.tolist() == [2.0, 0.0, -3.0, 0.5]


# --- tables of Arrow ------------------------------------------------------------------------------


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
    "column 'y', row 2: the label is missing": {"y": [0, None], **ROWS},
    "column 'y', row 1: the label is missing": {"y": ["", "a"], **ROWS},
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
