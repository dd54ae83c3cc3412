import pickle
import zipfile

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix

from data.row_blocks import block_source, check_same, gather, npz_parts, write_npz
from dplasso import DataError


@pytest.fixture(name="X")
def matrix():
    dense = np.zeros((4, 6), np.float32)
    dense[0, [1, 5]] = 0.5, -2
    dense[2, [0, 1, 4]] = 1, 3, 0.25
    dense[3, 2] = 7
    return csr_array(dense)


@pytest.fixture(name="y")
def labels_of_matrix():
    return np.array([1, -1, -1, 1])


def save(path, **arrays):
    """An .npz of any arrays at all."""
    np.savez(path, **arrays)
    return path


def read_npz(path, labels_path=None):
    """Read all rows of a file at once."""
    source = block_source(path, labels_path=labels_path)
    return gather(source.blocks(1 << 30), source.n_features)[:2]


def check_equal(X, expected):
    check_same(X, 0, expected, 0)


@pytest.mark.parametrize(
    ("value_type", "index_type", "labels"),
    [
        (np.float32, np.int32, [1, -1, -1, 1]),
        (np.float64, np.int64, [0.5, 1, 1, 0.5]),
        (np.float32, np.int64, [True, False, True, True]),
        (np.float64, np.int32, ["ham", "spam", "ham", "Ω"]),
    ],
)
def test_round_trip(tmp_path, X, value_type, index_type, labels):
    X = csr_array(
        (X.data.astype(value_type), X.indices.astype(index_type), X.indptr.astype(index_type)),
        shape=X.shape,
    )
    y = np.array(labels)
    write_npz(tmp_path / "data.npz", X, y)
    again, again_y = read_npz(tmp_path / "data.npz")
    check_equal(again, X)
    (block,) = block_source(tmp_path / "data.npz").blocks(1 << 30)
    assert block.indices.dtype == index_type
    assert again_y.dtype == y.dtype
    np.testing.assert_array_equal(again_y, y)
    check_equal(scipy.sparse.load_npz(tmp_path / "data.npz"), X)


@pytest.mark.parametrize("form", [csr_array, csr_matrix, csc_array, coo_array])
def test_files_of_scipy(tmp_path, X, y, form):
    scipy.sparse.save_npz(tmp_path / "data.npz", form(X))
    np.save(tmp_path / "data.y.npy", y)
    np.save(tmp_path / "other.npy", -y)
    again, labels = read_npz(tmp_path / "data.npz")
    check_equal(again, X)
    np.testing.assert_array_equal(labels, y)
    labels = read_npz(tmp_path / "data.npz", labels_path=tmp_path / "other.npy")[1]
    np.testing.assert_array_equal(labels, -y)
    path = save(tmp_path / "data.npz", **npz_parts(X, y=None, labels=2 * y))
    np.testing.assert_array_equal(read_npz(path)[1], 2 * y)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (bool, np.float32),
        (np.int8, np.float32),
        (np.uint16, np.float32),
        (np.float16, np.float32),
        (np.int32, np.float64),
        (np.int64, np.float64),
        (">f4", np.float32),
    ],
)
def test_other_types_of_values(tmp_path, X, stored, expected):
    X = csr_array((np.abs(X.data).astype(stored), X.indices, X.indptr), shape=X.shape)
    indices = {"indices": X.indices.astype(np.uint16), "indptr": X.indptr.astype(">i4")}
    again = read_npz(save(tmp_path / "data.npz", **npz_parts(X, **indices)))[0]
    check_equal(again, X.astype(expected))


CSC, EMPTY = {"format": np.array(b"csc")}, dict.fromkeys(("data", "indices"), np.zeros(0, int))
WHOLE = "array 'indices': it must hold whole numbers"
NO_MATRIX = "the arrays do not form a csr matrix"
MISMATCHES = [
    ("array 'format' is missing", {"format": None}),
    ("array 'row' is missing", {"format": np.array(b"coo")}),
    ("sparse format 'bsr' cannot be read", {"format": np.array(b"bsr")}),
    ("array 'shape': it must be two", {"shape": np.array([4])}),
    (NO_MATRIX, {"shape": np.array([5, 6]), "y": np.zeros(5)}),
    (NO_MATRIX, {"indptr": np.array([0, 2, 6])}),
    (NO_MATRIX, {"indptr": np.array([0, 4, 2, 5, 6])}),
    (NO_MATRIX, {"indptr": np.array([1, 2, 2, 5, 6])}),
    (NO_MATRIX, {"indptr": np.array([0, 2, 2, 5, 5])}),
    (NO_MATRIX, {"indptr": np.zeros(0, int)}),
    ("do not form a csc matrix", CSC | EMPTY | {"indptr": np.array([0, 0, 0, 9, 0, 0, 0])}),
    (NO_MATRIX, {"indices": np.array([1, 5, 6, 1, 4, 2])}),
    (NO_MATRIX, {"indices": np.array([-1, 5, 0, 1, 4, 2])}),
    (NO_MATRIX, {"indices": np.array([1, 5, 0, 1, 4])}),
    ("array 'indptr': 2 dimensions instead of 1", {"indptr": np.zeros((5, 1), int)}),
    (WHOLE, {"indices": np.array([1.0, 5, 0, 1, 4, 2])}),
    (WHOLE, {"indices": np.array([2**64 - 1] * 6, np.uint64)}),
    (r"row 2 \(from 0\) has two entries", {"indices": np.array([1, 5, 0, 1, 1, 2])}),
    ("array 'data': entry 3 is not a finite", {"data": np.array([1, 2, 3, np.nan, 5, 6])}),
    ("array 'data': values of type complex128", {"data": np.ones(6, complex)}),
    ("array 'y': 3 labels for 4 records", {"y": np.zeros(3)}),
    ("array 'y': labels must be a one-dimensional .* 2 dimensions", {"y": np.zeros((4, 1))}),
    ("row 3: the label is not a finite", {"y": np.array([0, 1, np.nan, 1])}),
    ("not an undamaged .npz of plain arrays", {"y": np.array([1, "a", 2, 3], object)}),
    ("array 'y': a label holds an invalid", {"y": np.full(4, 0x110000, "<u4").view("<U1")}),
    ("array 'y': a label holds an invalid", {"y": np.full(4, 0x110000, ">u4").view(">U1")}),
    (r"no labels; .* beside it as data\.y\.npy", {"y": None}),
]


@pytest.mark.parametrize(("problem", "changes"), MISMATCHES)
def test_arrays_that_do_not_fit(tmp_path, X, problem, changes):
    path = save(tmp_path / "data.npz", **npz_parts(X, **changes))
    with pytest.raises(DataError, match=problem) as caught:
        read_npz(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("n_rows", [10**9, 2**62, 2**63])
def test_a_claim_of_more_rows_than_labels_takes_no_memory(tmp_path, X, layout, n_rows):
    shape = np.array([n_rows, 6], np.uint64)
    path = save(
        tmp_path / "data.npz", **npz_parts(X, format=np.array(layout.encode()), shape=shape)
    )
    with pytest.raises(DataError, match=r"4 labels for|sizes must be below"):
        read_npz(path)


def test_few_rows(tmp_path):
    path = tmp_path / "data.npz"
    write_npz(path, csr_array((0, 3)), np.zeros(0))
    with pytest.raises(DataError, match="holds no records"):
        read_npz(path)
    # Equal columns of neighbouring rows are no duplicates.
    X = csr_array(np.array([[0, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0], [0, 1, 1.0], [0, 0, 1]]))
    write_npz(path, X, np.zeros(6))
    check_equal(read_npz(path)[0], X)


def test_foreign_files(tmp_path, X, y):
    path = tmp_path / "data.npz"
    for content in (b"", b"1 1:1\n", pickle.dumps({"a": 1}), b"PK\x03\x04 and no more"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"data\.npz: not an undamaged \.npz of plain arrays"):
            read_npz(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("format.npy", "not an array")
    with pytest.raises(DataError, match=r"data\.npz: sparse format 'not an array' cannot be read"):
        read_npz(path)
    save(path, **npz_parts(X, y=y))
    content = bytearray(path.read_bytes())
    content[content.index(X.data.tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"data\.npz: not an undamaged .* \(BadZipFile\)"):
        read_npz(path)
    with pytest.raises(DataError, match="no such file"):
        read_npz(tmp_path / "missing.npz")
    np.save(tmp_path / "y.npy", np.array([None, 1, 2, 3]), allow_pickle=True)
    write_npz(path, X, y)
    with pytest.raises(DataError, match=r"y\.npy: not an undamaged \.npy of plain labels"):
        read_npz(path, labels_path=tmp_path / "y.npy")
    with pytest.raises(DataError, match=r"none\.npy: no such file"):
        read_npz(path, labels_path=tmp_path / "none.npy")
