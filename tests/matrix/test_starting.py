"""Where margins start: a product with public weights, finite whatever the rows hold."""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso.matrix.compressed import compress
from dplasso.matrix.scaling import Scaling
from dplasso.matrix.starting import StartingModel, StartingRows, starting_model, useful_slope
from dplasso.runtime.threads import ONE_THREAD, thread_pool

EVERY = np.zeros(0, dtype=np.int64)


def starting_rows(X, columns=EVERY):
    return StartingRows(compress(sp.csr_array(X))[0], columns, X.shape[1])


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
    loud = starting_model(np.array([[4e300], [-4e300]]), np.zeros(1))
    assert loud.useful_slope == pytest.approx(1e-300)
    # Margins are those of the weights as they were given.
    X = np.array([[1e-301, 0.0], [0.0, 2e-300]])
    found = starting_rows(X).margins(loud.stretched(0.5, [1.0]), np.ones(2), ONE_THREAD)
    assert found.ravel() == pytest.approx([1.2, -3.0])
