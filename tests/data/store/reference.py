"""What a store must hold, computed slowly and obviously from a matrix in memory."""

import numpy as np
import scipy.sparse as sp

from dplasso.data.blocks import BlockSource, RowBlock


def block_source(X, y, *, declared=True, step=7, name="records", dtypes=None):
    """Return a CSR matrix as blocks of `step` rows; `dtypes` are their value types in turn."""

    def blocks(memory_bytes, progress=None):
        for number, begin in enumerate(range(0, X.shape[0], step)):
            part = X[begin : begin + step]
            values = part.data if dtypes is None else part.data.astype(dtypes[number % len(dtypes)])
            index = part.indices
            yield RowBlock(part.indptr.astype(np.int64), index, values, y[begin : begin + step])
            if progress is not None:
                progress(min(begin + step, X.shape[0]), X.shape[0])

    return BlockSource(name, X.shape[1] if declared else None, blocks, X.shape[0])


def expected_arrays(X):
    """Return all arrays of the store of a CSR matrix with sorted indices, by name."""
    n_rows, n_columns = X.shape
    counts = [0] * n_columns
    for j in X.indices:
        counts[j] += 1
    original = sorted(range(n_columns), key=lambda j: (-counts[j], j))
    internal = [0] * n_columns
    for k, j in enumerate(original):
        internal[j] = k
    by_column = [[] for _ in range(n_columns)]
    for i in range(n_rows):
        for p in range(X.indptr[i], X.indptr[i + 1]):
            by_column[internal[X.indices[p]]].append((i, X.data[p]))
    entries = [entry for column in by_column for entry in column]
    return {
        "internal_column": internal,
        "original_column": original,
        "rows.indptr": list(X.indptr),
        "rows.indices": [internal[j] for j in X.indices],
        "rows.values": list(X.data),
        "columns.indptr": np.cumsum([0] + [len(column) for column in by_column]).tolist(),
        "columns.indices": [row for row, _ in entries],
        "columns.values": [value for _, value in entries],
    }


def store_arrays(store):
    """Return the same arrays as an opened store has them, values that were left out filled in."""
    arrays = {
        "internal_column": store.internal_column,
        "original_column": store.original_column,
    }
    for name, side in (("rows", store.rows), ("columns", store.columns)):
        values = side.values
        if store.header.constant is not None:
            assert values.size == 0
            values = np.full(store.nnz, side.constant, store.X.dtype)
        arrays |= {f"{name}.indptr": side.indptr, f"{name}.indices": side.indices}
        arrays[f"{name}.values"] = values
    return arrays


def assert_holds(store, X, y):
    """Compare a store with what it was made of, bit for bit."""
    expected, found = expected_arrays(X), store_arrays(store)
    assert set(expected) == set(found)
    for name, array in found.items():
        assert np.array_equal(array, np.array(expected[name], array.dtype)), name
    assert store.shape == X.shape
    assert store.nnz == X.nnz
    assert np.array_equal(store.y, y)


def random_matrix(n_rows, n_columns, density, seed=0, *, binary=False):
    """Return a CSR matrix of float32 with columns of very different popularity."""
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, n_columns + 1)
    chance = np.minimum(1, density * n_columns * weight / weight.sum())
    present = rng.random((n_rows, n_columns)) < rng.permutation(chance)
    values = np.ones if binary else lambda shape: rng.standard_normal(shape)
    X = sp.csr_array(present * values(present.shape).astype(np.float32))
    X.indices = X.indices.astype(np.int32)
    return X
