"""What a store must hold, computed slowly and obviously from a matrix in memory."""

import json
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from dplasso.data import store as stores
from dplasso.data.blocks import BlockSource, RowBlock

# Writes a stream of blocks, as conversions do.
write_blocks = stores.write_blocks


def block_source(X, y, *, declared=True, step=7, name="records", dtypes=None, people=None):
    """Return a CSR matrix as blocks of `step` rows; `dtypes` are their value types in turn.

    `people` has two numbers for each row, as hashes have.
    """

    def blocks(memory_bytes, progress=None):
        for number, begin in enumerate(range(0, X.shape[0], step)):
            part = X[begin : begin + step]
            values = part.data if dtypes is None else part.data.astype(dtypes[number % len(dtypes)])
            whose = None if people is None else people[begin : begin + step].ravel()
            labels, starts = y[begin : begin + step], part.indptr.astype(np.int64)
            yield RowBlock(starts, part.indices, values, labels, whose)
            if progress is not None:
                progress(min(begin + step, X.shape[0]), X.shape[0])

    return BlockSource(name, X.shape[1] if declared else None, blocks, X.shape[0])


def assert_holds(store, X, y):
    """Compare a store with what it was made of, bit for bit."""
    rows = store.rows
    if store.header.constant is not None:
        assert rows.values.size == 0
        rows = rows._replace(values=np.full(store.nnz, rows.constant, store.X.dtype))
    for name, array in (("indptr", X.indptr), ("indices", X.indices), ("values", X.data)):
        assert np.array_equal(getattr(rows, name), array), name
    assert store.X.dtype == X.dtype
    assert store.shape == X.shape
    assert store.nnz == X.nnz
    assert np.array_equal(store.y, y)


def edit_header(path, change):
    """Change the header and make its checksum fit again, as a bad program would."""
    header = json.loads((path / "header.json").read_text())
    change(header)
    header.pop("crc32", None)
    text = json.dumps(header, sort_keys=True, separators=(",", ":"))
    header["crc32"] = crc32(text.encode())
    (path / "header.json").write_text(json.dumps(header))


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
