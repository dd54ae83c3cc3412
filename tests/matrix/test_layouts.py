"""Transposes against scipy's, and how large tiles are; sums over records test what they hold."""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso.matrix import tiles
from dplasso.matrix.compressed import compress
from dplasso.matrix.orientations import transpose
from dplasso.matrix.tiles import lay_tiles
from dplasso.matrix.unit_rows import by_rows
from dplasso.runtime.threads import thread_pool

SHAPES = [
    (100, 50, 500),
    (200, 70_000, 5_000),
    (1_000, 300_001, 20_000),
    (5, 200_000, 0),
]


@pytest.mark.parametrize("values", ["mixed", "twos"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_scipy(shape, n_threads, index, values):
    n_rows, n_columns, n_entries = shape
    rng = np.random.default_rng(0)
    places = rng.integers(0, n_rows, n_entries), rng.integers(0, n_columns, n_entries)
    numbers = rng.random(n_entries, dtype=np.float32)
    matrix = sp.coo_array((numbers, places), shape=(n_rows, n_columns)).tocsr()
    if values == "twos":
        matrix.data[:] = 2.0
    rows, _ = compress(matrix)
    rows = rows._replace(indices=rows.indices.astype(index))
    columns, expected = transpose(rows, n_columns, n_threads), matrix.tocsc()
    assert (columns.values.size, columns.constant) == (rows.values.size, rows.constant)
    np.testing.assert_array_equal(columns.indptr, expected.indptr)
    np.testing.assert_array_equal(columns.indices, expected.indices)
    if columns.values.size:
        np.testing.assert_array_equal(columns.values, expected.data)


@pytest.mark.parametrize("few", [0, 2**21])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_tiles_are_in_order_and_no_larger_than_their_numbers_say(n_outputs, few, monkeypatch):
    """Chunks of long rows are divided, down to a row that is too long alone, and no further."""
    lengths = np.array([1] * 30 + [5] * 6 + [50])
    ends = np.append(0, np.cumsum(lengths))
    columns = np.concatenate([*map(np.arange, lengths)])
    X = sp.csr_array((np.ones(lengths.sum()), columns, ends), shape=(37, 50))
    monkeypatch.setattr(tiles, "FEW", few)
    monkeypatch.setattr(tiles, "_MOST_ENTRIES", 12)
    monkeypatch.setattr(tiles, "ROW_BITS", 3)
    monkeypatch.setattr(tiles, "COLUMN_BITS", 2)
    with thread_pool(1) as threads:
        laid = lay_tiles(by_rows(X, 1), 50, n_outputs, threads)
    sizes = np.diff(laid.bounds[:, [0, -1]])[:, 0]
    assert sizes[-1] == 50
    assert sizes[:-1].max() <= 12
    assert np.diff(laid.row_edges).max() * n_outputs <= 8
    assert laid.width * n_outputs <= 4
    # Column by column, rows ascending.
    for places in np.split(laid.places.astype(np.int64), np.unique(laid.bounds)[1:-1]):
        assert (np.diff(places) > 0).all()
    # The numbers of so few rows are near, unless nothing is.
    assert tiles.entries_ahead(laid, scaled=False) is None
    monkeypatch.setattr(tiles, "_NEAR_ROWS", 1)
    assert tiles.entries_ahead(laid, scaled=False)


def test_a_place_holds_the_last_row_and_column_of_a_tile():
    row, column = 2**tiles.ROW_BITS - 1, 2**tiles.COLUMN_BITS - 1
    place = np.uint32(column << tiles.ROW_BITS | row)
    assert (tiles.row_of(place), tiles.column_of(place)) == (row, column)
