"""Every damage to a store ends in one clear sentence, never in a wrong number or a crash."""

import io
import json
import shutil
from itertools import pairwise
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.store.reference import (
    assert_holds,
    block_source,
    edit_header,
    random_matrix,
    write_blocks,
)
from dplasso import DataError, StoreError, open_store

# Bytes before the data of an array, as docs/store.md says.
DATA_OFFSET = 128
X = random_matrix(40, 90, 0.08)
Y = np.array(["no", "yes"] * 20)
FILES = (
    "header.json",
    "labels.npy",
    "rows.indices.npy",
    "rows.indptr.npy",
    "rows.values.npy",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "train.store"
    write_blocks(block_source(X, Y), path)
    return path


@pytest.fixture
def damaged(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "train.store")


def overwrite(path, name, at, data):
    with (path / name).open("r+b") as file:
        file.seek(at)
        file.write(data)


def forge(path, name, at, data):
    """Change data and make their checksums fit again, as a bad program would."""
    overwrite(path, name, DATA_OFFSET + at, data)
    content = (path / name).read_bytes()[DATA_OFFSET:]

    def change(header):
        header["arrays"][name.removesuffix(".npy")]["pieces"] = [[len(content), crc32(content)]]

    edit_header(path, change)


def test_the_files_are_the_documented_ones(whole):
    assert tuple(sorted(file.name for file in whole.iterdir())) == FILES
    for name in FILES:
        if name.endswith(".npy"):
            array = np.load(whole / name, mmap_mode="r")
            assert array.offset == DATA_OFFSET
            file = io.BytesIO()
            np.save(file, array)
            assert (whole / name).read_bytes() == file.getvalue()
    assert_holds(open_store(whole, verify=True), X, Y)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_missing_cut_or_longer(damaged, name):
    path = damaged / name
    content = path.read_bytes()
    # The line feed at the end of the header is no content.
    for cut in (1, 10, len(content)):
        path.write_bytes(content[: -cut - (name == "header.json")])
        with pytest.raises(StoreError, match="damaged"):
            open_store(damaged)
    if name != "header.json":
        path.write_bytes(content + b"\0")
        with pytest.raises(StoreError, match=f"{name} is damaged: .* bytes long instead of"):
            open_store(damaged)
    path.unlink()
    with pytest.raises(StoreError, match=name):
        open_store(damaged)
    path.mkdir()
    with pytest.raises((StoreError, OSError), match=name):
        open_store(damaged)


@settings(max_examples=60)
@given(data=st.data())
def test_where_checksums_fit_the_kernels_stay_inside_their_arrays(whole, data):
    """Whatever a bad program wrote, its entries are checked before they are used."""
    name = data.draw(st.sampled_from([name for name in FILES if name.endswith(".npy")]))
    path, header = whole / name, whole / "header.json"
    content, promised = path.read_bytes(), header.read_bytes()
    place = st.integers(0, len(content) - DATA_OFFSET - 1)
    # Drawn before anything is written: a draw may end the example.
    changes = data.draw(st.lists(st.tuples(place, st.integers(0, 255)), min_size=1, max_size=4))
    try:
        for at, byte in changes:
            forge(whole, name, at, bytes([byte]))
        store = open_store(whole, verify=True)
    except StoreError:
        pass
    else:
        assert_safe(store)
    finally:
        path.write_bytes(content)
        header.write_bytes(promised)


def assert_safe(store):
    """Whatever its entries are, none leads outside an array, and none counts twice."""
    indptr, indices = store.rows.indptr, store.rows.indices
    assert indptr[0] == 0
    assert indptr[-1] == indices.size == store.nnz
    assert (np.diff(indptr) >= 0).all()
    assert indices.min() >= 0
    assert indices.max() < store.shape[1]
    for begin, end in pairwise(indptr):
        assert len(set(indices[begin:end])) == end - begin


@pytest.mark.parametrize("block", [1, 5, 2**17])
@pytest.mark.parametrize("index", [-1, 90, 2**31 - 1, -(2**31), None])
def test_an_index_that_is_out_of_range_or_counts_twice(damaged, monkeypatch, index, block):
    monkeypatch.setattr("dplasso.data.store.opening._BLOCK_ENTRIES", block)
    if index is None:
        row = repeat_a_column(damaged)
    else:
        forge(damaged, "rows.indices.npy", 4 * 17, np.int32(index).tobytes())
        row = int(np.searchsorted(open_store(damaged).rows.indptr, 17, side="right"))
    problem = f"damaged: row {row} has columns that do not ascend, or a column outside"
    with pytest.raises(StoreError, match=problem):
        open_store(damaged, verify=True)
    with pytest.raises(StoreError, match=problem):
        open_store(damaged).X.tocsr()


def test_pointers_that_do_not_ascend_and_labels_without_a_word(damaged):
    forge(damaged, "labels.npy", 0, np.int32(2).tobytes())
    with pytest.raises(StoreError, match="a number does not stand for a text label"):
        _ = open_store(damaged).y
    forge(damaged, "rows.indptr.npy", 8, np.int64(10**9).tobytes())
    problem = r"rows\.indptr\.npy is damaged: the row pointers do not ascend"
    with pytest.raises(StoreError, match=problem):
        open_store(damaged)


def repeat_a_column(path):
    """Put an entry into the column of the one before it, and return its row."""
    rows = open_store(path).rows
    row = np.flatnonzero(np.diff(rows.indptr) > 1)[0]
    first = int(rows.indptr[row])
    forge(path, "rows.indices.npy", 4 * (first + 1), rows.indices[first : first + 1].tobytes())
    return int(row) + 1


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".npy")])
def test_a_file_that_changes_after_the_store_was_opened(damaged, name):
    store = open_store(damaged)
    last = (damaged / name).stat().st_size - 1
    overwrite(damaged, name, last, b"\x55")
    with pytest.raises(StoreError, match=f"{name} is damaged: the checksum of bytes"):
        store.X.tocsr()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_value_that_is_not_finite(tmp_path, value, kind):
    X = random_matrix(40, 90, 0.08).astype(kind)
    X.data[::2] = np.finfo(kind).max
    X.data[1::2] = np.finfo(kind).min
    path = tmp_path / "s"
    write_blocks(block_source(X, np.arange(40) % 2), path)
    open_store(path, verify=True)
    at = np.dtype(kind).itemsize * 5
    forge(path, "rows.values.npy", at, kind(value).tobytes())
    problem = "rows.values.npy is damaged: a value is not a finite number"
    with pytest.raises(StoreError, match=problem):
        open_store(path, verify=True)


def other(**changes):
    return lambda header: header.update(changes)


def other_array(name, **changes):
    return lambda header: header["arrays"][name].update(changes)


def other_value(**changes):
    return lambda header: header["value"].update(changes)


WRONG = [
    *(other(shape=shape) for shape in ([41, 90], [-1, 90], [1, 2, 3], None)),
    *(other(nnz=nnz) for nnz in (0, 2**70, True, "12")),
    *(other(version="1"), other(more=1), other(origin=3), other(label_words=[1, 2])),
    *((lambda header, name=name: header.pop(name)) for name in ("version", "origin")),
    *(other_value(constant=1.0), other_value(constant="1"), other_value(largest=-1.0)),
    *(other_value(dtype="<f8"), other_value(dtype="<c8"), other(arrays=[])),
    lambda header: header["arrays"].pop("labels"),
    lambda header: header["arrays"].update(more=header["arrays"]["labels"]),
    *(other_array("labels", dtype="|O"), other_array("labels", dtype="?!")),
    *(other_array("labels", more=1), other_array("rows.indices", dtype="<f4")),
    *(other_array("rows.indices", pieces=[]), other_array("rows.indices", pieces=[[1]])),
    other_array("labels", pieces=[[2, 0], [158, 0]]),
]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        *((change, r"header.json is damaged") for change in WRONG),
        (other(version=4), "has version 4 of the store.*install a newer dplasso"),
        *(
            (other(version=old), f"has version {old} of the store.*convert the data again")
            for old in (0, 1, 2)
        ),
        (other(format="other"), "not the header of a dplasso store"),
    ],
)
def test_a_header_that_contradicts_itself(damaged, change, problem):
    edit_header(damaged, change)
    with pytest.raises(StoreError, match=problem):
        open_store(damaged)


def test_a_header_with_a_wrong_sum_or_none(damaged):
    header = json.loads((damaged / "header.json").read_text())
    header["value"]["largest"] = 1.0
    (damaged / "header.json").write_text(json.dumps(header))
    with pytest.raises(StoreError, match="its checksum is wrong"):
        open_store(damaged)
    for text in ("", "[", "[]", "NaN", "1", "{}", "[" * 100_000, "\0", "\ud800"):
        (damaged / "header.json").write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(StoreError, match="header"):
            open_store(damaged)


def test_what_is_no_store(tmp_path):
    (tmp_path / "file").write_text("1 1:1")
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("none", "no such store"),
        ("file", "is a file, not a dplasso store"),
        ("empty", "is not a dplasso store: it has no header.json"),
    ):
        with pytest.raises(StoreError, match=f"{name}.*{message}"):
            open_store(tmp_path / name)
    assert issubclass(StoreError, DataError)
