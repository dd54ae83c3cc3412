"""Margins of new rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso.matrix.compressed import compress
from dplasso.matrix.margins import margins
from frank_wolfe.cases import dense_rows


def by_both(X, *options):
    matrices = compress(sp.csr_array(X)), compress(sp.csc_array(X))
    return [margins(*matrix, X.shape[0], *options) for matrix in matrices]


@pytest.mark.parametrize("bound", [0.4, 1.0, 100.0])
def test_margins_are_those_of_clipped_rows(bound):
    X = dense_rows(30, 9, seed=0)
    weights = np.random.default_rng(0).normal(size=9)
    weights[4] = 0.0
    expected = np.clip(X.astype(float), -bound, bound) @ weights - 0.7
    one, other = by_both(X, weights, bound, -0.7)
    np.testing.assert_allclose(one, expected, atol=1e-12)
    # Rows are summed in the order of the columns either way.
    np.testing.assert_array_equal(one, other)


def test_constant_entries():
    X = np.where(dense_rows(30, 9, seed=1) != 0, np.float32(3.0), np.float32(0.0))
    weights = np.random.default_rng(0).normal(size=9)
    one, other = by_both(X, weights, 2.0, 0.25)
    np.testing.assert_allclose(one, np.minimum(X, 2.0) @ weights + 0.25, atol=1e-12)
    np.testing.assert_array_equal(one, other)


def test_zero_weights_give_the_offset():
    for found in by_both(dense_rows(5, 3, seed=2), np.zeros(3), 1.0, 1.5):
        np.testing.assert_array_equal(found, np.full(5, 1.5))
