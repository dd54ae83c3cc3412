"""Transposes against scipy's, and tiles: the same entries, each where its column and row say."""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso.matrix import tiles
from dplasso.matrix.compressed import compress
from dplasso.matrix.orientations import transpose
from dplasso.matrix.tiles import column_of, lay_tiles, row_of
from dplasso.matrix.unit_rows import by_rows
from dplasso.runtime.threads import thread_pool

SHAPES = [
    (100, 50, 500),
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


@pytest.mark.parametrize("values", ["mixed", "twos"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_scipy(shape, n_threads, index, values):
    matrix = random_matrix(*shape, index)
    matrix.data = matrix.data if values == "mixed" else np.full_like(matrix.data, 2.0)
    rows, _ = compress(matrix)
    rows = rows._replace(indices=rows.indices.astype(index))
    columns = transpose(rows, shape[1], n_threads)
    assert (columns.values.size, columns.constant) == (rows.values.size, rows.constant)
    assert agrees(columns, matrix.tocsc())


def entries(laid, r, b):
    """Return row, column and value of the entries of a tile."""
    span = range(laid.bounds[r, b], laid.bounds[r, b + 1])
    first, begin = laid.row_edges[r], b * laid.width
    for p in span:
        place = laid.places[p]
        value = laid.values[p] if laid.values.size else laid.constant
        yield int(first + row_of(place)), int(begin + column_of(place)), float(value)


@pytest.mark.parametrize("values", ["mixed", "threes"])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("bits", [(19, 13), (3, 2)])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("few", [0, 2**21])
def test_tiles_hold_the_entries_of_the_matrix(monkeypatch, values, form, bits, n_outputs, few):
    rng = np.random.default_rng(0)
    X = sp.random_array((50, 23), density=0.3, rng=rng, dtype=np.float64)
    X.data = X.data if values == "mixed" else np.full(X.nnz, 3.0)
    X = form(X.astype(np.float32))
    for name, own in zip(("ROW_BITS", "COLUMN_BITS", "FEW"), (*bits, few), strict=True):
        monkeypatch.setattr(tiles, name, own)
    for n_threads in (1, 3):
        with thread_pool(n_threads) as threads:
            laid = lay_tiles(by_rows(X, 1), 23, n_outputs, threads)
        assert np.diff(laid.row_edges).max() * n_outputs <= 2 ** bits[0]
        assert laid.width * n_outputs <= 2 ** bits[1]
        assert laid.n_blocks == -(-23 // laid.width)
        found, placed = np.zeros(X.shape), 0
        for r in range(laid.row_edges.size - 1):
            for b in range(laid.n_blocks):
                some = list(entries(laid, r, b))
                # Column by column, rows ascending: no entry twice.
                order = [(column, row) for row, column, _ in some]
                assert order == sorted(set(order))
                for row, column, value in some:
                    found[row, column] = value
                placed += len(some)
        assert placed == X.nnz
        np.testing.assert_array_equal(found, X.toarray())


@pytest.mark.parametrize("values", ["mixed", "threes"])
def test_chunks_of_few_entries_in_arrays_made_elsewhere_are_no_other_tiles(monkeypatch, values):
    rng = np.random.default_rng(1)
    X = sp.random_array((50, 23), density=0.3, rng=rng, format="csr")
    X.data = X.data if values == "mixed" else np.full(X.nnz, 3.0)
    rows, made = by_rows(X, 1), []

    def make(size, dtype):
        made.append(np.full(size, 7, dtype))
        return made[-1]

    for entries_at_once in (2**24, 100):
        monkeypatch.setattr(tiles, "_MOST_ENTRIES", entries_at_once)
        with thread_pool(2) as threads:
            expected = lay_tiles(rows, 23, 1, threads)
            laid = lay_tiles(rows, 23, 1, threads, make)
        assert laid.places is made[-2]
        assert laid.values is made[-1]
        most = np.diff(laid.bounds[:, [0, -1]]).max()
        assert most <= 130 if entries_at_once == 100 else laid.row_edges.size == 3
        for one, other in zip(laid, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_chunks_of_long_rows_are_divided(monkeypatch):
    """Down to a row that is too long alone, and no further."""
    lengths = np.array([1] * 30 + [5] * 6 + [50])
    X = sp.csr_array(
        (
            np.ones(lengths.sum()),
            np.concatenate([*map(np.arange, lengths)]),
            np.append(0, np.cumsum(lengths)),
        ),
        shape=(37, 50),
    )
    monkeypatch.setattr(tiles, "_MOST_ENTRIES", 12)
    with thread_pool(1) as threads:
        laid = lay_tiles(by_rows(X, 1), 50, 1, threads)
    sizes = np.diff(laid.bounds[:, [0, -1]])[:, 0]
    assert sizes[-1] == 50
    assert sizes[:-1].max() <= 12
