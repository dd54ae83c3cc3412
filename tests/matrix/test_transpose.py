"""The transpose against scipy's, through one block of columns and through many."""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso.matrix import orientations as module
from dplasso.matrix.compressed import compress
from dplasso.matrix.orientations import transpose

SHAPES = [
    (100, 50, 500),
    (300, 9_000, 5_000),
    (200, 70_000, 5_000),
    (1_000, 300_001, 20_000),
    (5, 200_000, 0),
]


def random_matrix(n_rows, n_columns, n_entries, index, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, n_rows, n_entries)
    columns = rng.integers(0, n_columns, n_entries)
    entries = (rng.random(n_entries, dtype=np.float32), (rows, columns))
    matrix = sp.coo_array(entries, shape=(n_rows, n_columns)).tocsr()
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    return matrix


def agrees(result, expected):
    return (
        np.array_equal(result.indptr, expected.indptr)
        and np.array_equal(result.indices, expected.indices)
        and (result.values.size == 0 or np.array_equal(result.values, expected.data))
    )


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_scipy(shape, n_threads, index):
    matrix = random_matrix(*shape, index)
    rows, _ = compress(matrix)
    rows = rows._replace(indices=rows.indices.astype(index))
    assert agrees(transpose(rows, shape[1], n_threads), matrix.tocsc())


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_constant_matrix_needs_no_values(n_threads):
    matrix = random_matrix(200, 70_000, 5_000, np.int32)
    matrix.data[:] = 2.0
    rows, _ = compress(matrix)
    result = transpose(rows, 70_000, n_threads)
    assert result.values.size == 0
    assert result.constant == 2.0
    assert agrees(result, matrix.tocsc())


def test_a_block_left_unsorted_is_noticed(monkeypatch):
    """Power: dealing without sorting must not pass for a transpose."""
    matrix = random_matrix(200, 70_000, 5_000, np.int32)
    rows, _ = compress(matrix)
    monkeypatch.setattr(module, "_sort_block", lambda *arguments: None)
    assert not agrees(transpose(rows, 70_000, 2), matrix.tocsc())
