"""What a store holds is what went in, whatever the memory, the threads and the blocks."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from data.row_blocks import block_source as files_source
from data.row_blocks import write_npz
from data.store.reference import (
    assert_holds,
    block_source,
    edit_header,
    random_matrix,
    write_blocks,
)
from dplasso import DataError, StoreError, open_store


def labels_of(X):
    return np.arange(X.shape[0]) % 2 * 2.0 - 1


@settings(max_examples=40)
@given(
    rows=st.lists(st.sets(st.integers(0, 12), max_size=8), min_size=1, max_size=14),
    values=st.lists(st.sampled_from([1.0, 1.0, 0.5, -3.0, 0.0]), min_size=112, max_size=112),
    same=st.booleans(),
    step=st.integers(1, 5),
    extra=st.integers(0, 3),
    wide=st.booleans(),
)
def test_any_matrix(tmp_path_factory, rows, values, same, step, extra, wide):
    index = np.array([j for row in rows for j in sorted(row)], np.int64 if wide else np.int32)
    indptr = np.cumsum([0] + [len(row) for row in rows])
    data = np.array([1.0] * 112 if same else values, np.float32)[: index.size]
    n_columns = int(index.max(initial=0)) + 1 + extra
    X = sp.csr_array((data, index, indptr), shape=(len(rows), n_columns))
    X.indices = index
    y = labels_of(X)
    path = tmp_path_factory.mktemp("any") / "s"
    source = block_source(X, y, step=step)
    store = write_blocks(source, path)
    assert_holds(store, X, y)
    # Without entries it is 1.
    alike = (data == data[:1]).all()
    assert store.header.constant == ([*data, 1.0][0] if alike else None)
    assert store.header.largest_value == np.abs(X.data).max(initial=0.0)
    back = open_store(path, verify=True).X.tocsr()
    assert np.array_equal(back.indices, X.indices)
    assert (back.dtype, (back != X).nnz) == (np.float32, 0)


def test_the_blocks_do_not_change_a_byte(tmp_path, monkeypatch):
    monkeypatch.setattr("dplasso.data.store.writer.PIECE_BYTES", 64)
    X, words = random_matrix(30, 40, 0.3), np.array(list("cab" * 10))
    one, other = (
        write_blocks(block_source(X, words, step=step), tmp_path / f"{step}") for step in (4, 30)
    )
    assert_holds(one, X, words)
    for path in one.path.iterdir():
        assert path.read_bytes() == (other.path / path.name).read_bytes(), path.name


@pytest.mark.parametrize("first", [np.float32, np.float64])
def test_values_become_wide_when_one_block_has_wide_ones(tmp_path, first):
    X = random_matrix(30, 40, 0.1)
    other = np.float64 if first == np.float32 else np.float32
    source = block_source(X, labels_of(X), step=10, dtypes=[first, other, first])
    store = write_blocks(source, tmp_path / "s")
    assert store.X.dtype == np.float64
    assert_holds(store, X.astype(np.float64), labels_of(X))
    open_store(tmp_path / "s", verify=True)


def test_wide_column_numbers_are_kept(tmp_path, monkeypatch):
    # Here the limit between the types is moved instead.
    monkeypatch.setattr("dplasso.data.store.writer.INT32_MAX", 19)
    X = random_matrix(30, 60, 0.1)
    X = sp.csr_array(sp.vstack([X[:10] * (np.arange(60) < 15), X[10:]]))
    store = write_blocks(block_source(X, labels_of(X), step=5), tmp_path / "s")
    assert store.rows.indices.dtype == np.int64
    assert_holds(store, X, labels_of(X))


def test_labels_of_two_number_types_meet(tmp_path):
    source = block_source(random_matrix(2, 20, 0.2), np.zeros(2))
    (block,) = source.blocks(1)

    def written(*labels):
        blocks = [block._replace(labels=y) for y in labels]
        return write_blocks(replace(source, blocks=lambda *_: iter(blocks)), tmp_path / "s")

    with pytest.raises(DataError, match="row 3: the label is not a number"):
        written(np.array([0, 1]), np.array(["a", "b"]))
    y = written(np.zeros(2, np.int8), np.ones(2)).y
    assert (y.dtype, y.tolist()) == (np.float64, [0, 0, 1, 1])


def test_what_a_store_may_be_used_for(tmp_path):
    X = random_matrix(10, 2000, 0.2)
    store = write_blocks(block_source(X, labels_of(X)), tmp_path / "s")
    # Written to, its arrays never reach the file.
    assert store.rows.values.flags.writeable
    store.rows.values[:] = 7
    assert_holds(open_store(tmp_path / "s", verify=True), X, labels_of(X))
    # It is pickled as its place, and not copied by accident.
    data = pickle.dumps(store)
    assert len(data) < 500
    assert_holds(pickle.loads(data), X, labels_of(X))
    with pytest.raises(TypeError, match="tocsr"):
        np.asarray(store.X)
    assert (store.X.shape, store.X.nnz, store.X.ndim) == (X.shape, X.nnz, 2)


@pytest.mark.parametrize("n_features", [None, 50])
def test_whether_the_columns_were_declared_is_kept(tmp_path, n_features):
    X = random_matrix(10, 20, 0.2)
    write_npz(tmp_path / "a.npz", X, labels_of(X))
    source = files_source(tmp_path / "a.npz", n_features=n_features)
    assert write_blocks(source, tmp_path / "s").columns_declared is (n_features is not None)


@pytest.mark.parametrize("origin", [None, {"route": "text"}, {"columns_declared": "yes"}])
def test_a_store_that_does_not_say_so_is_refused(tmp_path, origin):
    X = random_matrix(10, 20, 0.2)
    store = write_blocks(block_source(X, labels_of(X)), tmp_path / "s")
    edit_header(store.path, lambda header: header.update(origin=origin))
    with pytest.raises(StoreError, match=r"does not say whether the columns .*; convert again"):
        open_store(store.path)
    with pytest.raises(ValueError, match="origin"):
        write_blocks(block_source(X, labels_of(X)), tmp_path / "none", origin={"a": object()})
    assert list(tmp_path.iterdir()) == [store.path]


def source_of(indptr, indices, values, labels, n_features=None):
    source = block_source(random_matrix(1, 20, 0.2), np.zeros(1), name="bad.svm")
    (block,) = source.blocks(1)
    block = block._replace(
        indptr=np.array(indptr, np.int64),
        indices=np.array(indices, np.int32),
        values=np.array(values, np.float32),
        labels=np.array(labels),
    )
    return replace(source, n_features=n_features, blocks=lambda *_: iter([block]))


NAN = float("nan")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (([0, 1, 3], [0, 4, 4], [1, 1, 1], [0, 1]), "row 2 has columns that do not ascend"),
        (([0, 1, 3], [0, 4, 2], [1, 1, 1], [0, 1]), "row 2 has columns that do not ascend, or"),
        (([0, 1, 2], [0, -1], [1, 1], [0, 1]), "row 2 has columns that do not ascend"),
        (([0, 1, 2], [0, 5], [1, 1], [0, 1], 5), "outside the 5 possible columns"),
        (([0, 2, 1], [0, 5], [1, 1], [0, 1]), "row 2"),
        (([0, 1, 9], [0, 5], [1, 1], [0, 1]), "row 2"),
        (([0, 1], [0, 5], [1, 1], [0]), "the row pointers do not match"),
        (([0, 1, 2], [0, 5], [1, NAN], [0, 1]), "row 2 holds NaN or infinity"),
        (([0, 0, 2], [0, 5], [1, np.inf], [0, 1]), "row 2 holds NaN or infinity"),
        (([0, 1, 2], [0, 5], [1, 1], [0, NAN]), "row 2: the label is not a finite number"),
        (([0], [], [], []), "holds no record"),
        (([0, 0], [], [], [1]), "no record has an entry; set the number of columns"),
    ],
)
def test_a_source_that_breaks_its_promise(tmp_path, broken, message):
    with pytest.raises(DataError, match=f"bad.svm.*{message}"):
        write_blocks(source_of(*broken), tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_rows_without_entries_are_a_store_if_columns_are_declared(tmp_path):
    store = write_blocks(source_of([0, 0, 0], [], [], [1, 0], 4), tmp_path / "s")
    assert (store.shape, store.nnz) == ((2, 4), 0)
    assert store.X.tocsr().nnz == 0
    open_store(store.path, verify=True)


def test_too_many_different_labels(tmp_path, monkeypatch):
    monkeypatch.setattr("dplasso.data.store.writer._MOST_WORDS", 3)
    X = random_matrix(4, 20, 0.2)
    with pytest.raises(DataError, match="the first 4 rows have more than 3 different labels"):
        write_blocks(block_source(X, np.array(["a", "b", "c", "d"])), tmp_path / "s")
