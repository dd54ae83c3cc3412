"""Columns and margins of unit rows, and where margins start, against plain numpy.

That no row is longer than 1 is tested by the sums (`gradient_descent/test_sums.py`).
"""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso.matrix.compressed import compress
from dplasso.matrix.orientations import transpose
from dplasso.matrix.scaling import Scaling
from dplasso.matrix.starting import StartingModel, StartingRows, useful_slope
from dplasso.matrix.unit_rows import (
    by_rows,
    keep_columns,
    row_factors,
    take_columns,
    unit_row_margins,
)
from dplasso.runtime.threads import ONE_THREAD, thread_pool
from gradient_descent.cases import records


@pytest.mark.parametrize("value", [None, 1.0, 3.0])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, np.asarray])
@pytest.mark.parametrize(("together", "few"), [(7, 0), (2**16, 2**21)])
def test_selected_columns_are_those_of_the_dense_matrix(form, value, together, few, monkeypatch):
    monkeypatch.setattr("dplasso.matrix.unit_rows._TOGETHER", together)
    monkeypatch.setattr("dplasso.matrix.unit_rows.FEW", few)
    X, _ = records()
    if value is not None:
        X = np.where(X != 0.0, value, 0.0)
    rows = by_rows(form(X), 1)
    columns = transpose(rows, X.shape[1])
    for kept in ([0], [5], [11, 2, 7], list(range(12))):
        with thread_pool(3) as threads:
            filtered = keep_columns(rows, np.sort(kept), X.shape[1], threads)
            taken = take_columns(columns, np.array(kept), columns.indices.dtype, threads)
        for part, expected in ((taken, X[:, kept].T), (filtered, X[:, np.sort(kept)])):
            values = part.values
            if not values.size:
                values = np.full(part.indices.size, part.constant)
            shape = expected.shape
            found = sp.csr_array((values, part.indices, part.indptr), shape=shape).toarray()
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("offset", [0.3, np.array([0.5, -1.0, 0.0])], ids=["one", "several"])
def test_margins_are_those_of_the_dense_unit_rows(offset):
    X, _ = records(200)
    weights = np.random.default_rng(1).normal(size=(12, *np.shape(offset)))
    rows = by_rows(X, 1)
    found = {}
    for n_threads in (1, 3):
        with thread_pool(n_threads) as threads:
            scale = row_factors(rows, 0.1, None, threads)
            found[n_threads] = unit_row_margins(rows, weights, scale, offset, threads)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    z = np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0) * np.sqrt(1 - 0.01)
    np.testing.assert_allclose(found[1], z @ weights + offset, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(found[1], found[3])


def test_a_margin_rounds_alike_whether_or_not_all_entries_are_one_value():
    """Else one record's value would show in everybody else's residual."""
    rng = np.random.default_rng(2)
    X = np.where(rng.random((300, 25)) < 0.5, 0.3, 0.0)
    other = np.vstack([X, np.full(25, 0.7)])
    weights, found = rng.normal(size=25), []
    for matrix in (X, other):
        rows = by_rows(matrix, 1)
        assert bool(rows.values.size) == (matrix is other)
        scale = row_factors(rows, 0.1, None, ONE_THREAD)
        found.append(unit_row_margins(rows, weights, scale, 0.0, ONE_THREAD)[:300])
    np.testing.assert_array_equal(*found)


EVERY = np.zeros(0, dtype=np.int64)


def starting_rows(X, columns=EVERY):
    return StartingRows(compress(sp.csr_array(X))[0], X.shape[1], columns)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_margins_are_those_of_the_rows_as_they_are_read(n_outputs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 6)) * (rng.random((20, 6)) < 0.6)
    model = StartingModel(rng.normal(size=(6, n_outputs)), rng.normal(size=n_outputs))
    factor = rng.random(20)
    expected = (X @ model.weights) * factor[:, np.newaxis] + model.intercept
    found = starting_rows(X).margins(model, factor, ONE_THREAD)
    assert found == pytest.approx(expected)
    with thread_pool(3) as threads:
        assert np.array_equal(starting_rows(X).margins(model, factor, threads), found)
    stretched = model.stretched(2.0, np.full(n_outputs, 0.5))
    again = starting_rows(X).margins(stretched, factor, ONE_THREAD)
    assert again == pytest.approx(2.0 * expected + 0.5)


def test_margins_are_finite_whatever_rows_and_weights_are():
    X = np.array([[1e308, 1e308], [1e308, -1e308], [5e-324, 1e300], [np.nan, 1.0], [np.inf, 1.0]])
    model = StartingModel(np.array([[1e308], [1e308]]), np.array([1e308])).stretched(1e9, [0.0])
    margins = starting_rows(X).margins(model, np.ones(5), ONE_THREAD)
    assert np.isfinite(margins).all()
    assert np.abs(margins).max() <= 2.0**20


def test_rows_have_their_length_in_all_columns():
    X = np.array([[3.0, 0.0, 4.0], [0.0, 2.0, 0.0]])
    plain = starting_rows(X).factors(Scaling(EVERY, 0.0, None), ONE_THREAD)
    assert plain == pytest.approx([0.2, 0.5])
    # Of records in columns 0 and 2, the second halved twice.
    around = np.array([0, 2], dtype=np.int8)
    some = starting_rows(X, np.array([0, 2]))
    found = some.factors(Scaling(EVERY, 0.0, None, around=around), ONE_THREAD)
    assert found == pytest.approx([1.0 / np.hypot(3.0, 1.0), 0.5])


def test_loud_weights_start_quieter():
    assert useful_slope(np.array([[0.0], [2.0], [-3.0]])) == useful_slope(np.zeros((3, 1))) == 1.0
    weights = np.array([[4e300], [-4e300]])
    slope = useful_slope(weights)
    assert slope == pytest.approx(1e-300)
    loud = StartingModel(weights * slope, np.zeros(1), slope)
    # Margins are those of the weights as they were given.
    X = np.array([[1e-301, 0.0], [0.0, 2e-300]])
    found = starting_rows(X).margins(loud.stretched(0.5, [1.0]), np.ones(2), ONE_THREAD)
    assert found.ravel() == pytest.approx([1.2, -3.0])
