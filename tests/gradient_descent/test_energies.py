"""What follows from the energies of columns."""

import math

import numpy as np
import pytest

from dplasso.gradient_descent.energies import (
    NO_LOADS,
    largest_eigenvalue,
    loads_of,
    pays,
    relative_energies,
    scale_exponents_of,
    shrinking,
    threshold,
)
from dplasso.matrix.scaling import MOST_SCALE_EXPONENT, NO_SCALE_EXPONENTS, Scaling, constant_entry
from gradient_descent.cases import LOGISTIC, SCALINGS, UNIT, designs, laid_out, records
from gradient_descent.reference import factor, scaled

NONE = np.zeros(0, dtype=np.int64)


def released(X, scaling=SCALINGS["constant"], loads=NO_LOADS):
    """Return the energies of columns and the counts of rows without noise."""
    return laid_out(X, np.zeros(len(X)), LOGISTIC).energies(scaling, UNIT, loads) / UNIT


def test_scales_fall_with_the_energy_and_weak_columns_keep_theirs():
    given_ = np.array([-1e9, 0.0, 1.0, 2.6, 2.8, 19.0, 20.0, 1e6, 1e30, 3e38], dtype=np.float32)
    # Scale e^-.35, to the nearest power of two: from 2^(.5/.35) = 2.69 times the threshold on.
    found = scale_exponents_of(given_)
    assert found.tolist() == [0, 0, 0, 0, 1, 1, 2, 7, 35, MOST_SCALE_EXPONENT]
    assert found.dtype == np.int8
    relative = np.exp2(np.linspace(2.0, 110.0, 500)).astype(np.float32)
    exact = 0.35 * np.log2(relative.astype(np.float64))
    assert np.abs(scale_exponents_of(relative) - exact).max() <= 0.5 + 1e-6
    assert not scale_exponents_of(np.zeros(0, dtype=np.float32)).size


def test_energies_are_released_where_there_are_many_times_as_many_records():
    assert [threshold(1e9, deviation) for deviation in (1e-9, 0.5)] == [1.0, 6.0]
    assert pays(577.0, 0.5)
    assert not pays(576.0, 0.5)
    assert not pays(96.0, 1e-9)
    # Without privacy they cost nothing, and weights have no unit.
    assert threshold(2.0**20, 0.0) == 2.0 * threshold(2.0**19, 0.0) == 1.0
    assert pays(0.5, 0.0)


def test_energies_in_a_file_are_over_the_threshold():
    X, _ = records(400)
    found = relative_energies(released(X), 3.0)
    z = X * np.array([factor(row, 0.1) for row in X.tolist()])[:, np.newaxis]
    np.testing.assert_allclose(found, (z * z).sum(axis=0) / 3.0, rtol=1e-5)
    assert found.dtype == np.float32


def test_rows_shrink_by_the_root_of_the_mean_square():
    X, _ = records(400)
    X[:, 0] = 9.0
    energies_ = relative_energies(released(X, Scaling(NONE, 0.0, 3.0)), 1.0)
    scale_exponents = scale_exponents_of(energies_)
    assert scale_exponents[0] > scale_exponents[1] > 0
    z = X * np.array([factor(row, 0.0, 3.0) for row in X.tolist()])[:, np.newaxis]
    part = ((z * 0.5**scale_exponents) ** 2).sum() / (z**2).sum()
    assert shrinking(energies_) == pytest.approx(math.sqrt(part), rel=1e-5)
    # Where noise says that all columns together hold less than the strong ones, those count.
    noisy = np.array([40.0, -39.5, -500.0], dtype=np.float32)
    assert 0.0 < shrinking(noisy) == 0.5 ** scale_exponents_of(noisy)[0]
    assert shrinking(np.array([1.0, -3.0], dtype=np.float32)) == 1.0


def eigenvalue(X, constant, scale_exponents=None, loads=NO_LOADS):
    """Return the largest eigenvalue of the Gram matrix of unit rows, and its bound."""
    scale_exponents = NO_SCALE_EXPONENTS if scale_exponents is None else scale_exponents
    X = np.asarray(X, dtype=np.float64)
    own = scale_exponents if scale_exponents.size else np.zeros(X.shape[1], dtype=int)
    z = np.array([np.array(scaled(row, own)) * factor(row, constant, None, own) for row in X])
    z = np.hstack([z, np.full((len(X), 1), constant_entry(constant))])
    found = released(X, Scaling(NONE, constant, None, scale_exponents), loads)
    bound = largest_eigenvalue(found, float(len(X)), constant_entry(constant), loads)
    return np.linalg.svd(z, compute_uv=False)[0] ** 2, bound


@pytest.mark.parametrize("name", designs())
@pytest.mark.parametrize("constant", [0.0, 0.1])
def test_the_bound_is_above_the_largest_eigenvalue(name, constant):
    X = designs()[name]
    rng = np.random.default_rng(1)
    for scale_exponents in (None, rng.integers(0, 5, X.shape[1]).astype(np.int8)):
        for loads in (NO_LOADS, rng.integers(1, 257, X.shape[1])):
            exact, bound = eigenvalue(X, constant, scale_exponents, loads)
            assert exact <= bound * (1 + 1e-6)
            assert bound <= len(X) * (1 + 1e-9)
    exact, bound = eigenvalue(X, constant)
    if name == "one entry a row" and not constant:
        # A column's energy is the eigenvalue then, and the bound is no larger.
        assert bound == pytest.approx(exact, rel=1e-6)
    if name == "sparse":
        assert bound < 0.7 * len(X)


def test_loads_near_the_energies_make_the_bound_a_small_one():
    """Zipf columns: a row has few of the strong ones, and none is counted as if all were."""
    rng = np.random.default_rng(4)
    X = 1.0 * (rng.random((3000, 200)) < np.minimum(0.5, 2.0 / np.arange(1, 201)))
    found = relative_energies(released(X), 1.0)
    scale_exponents, loads = scale_exponents_of(found), loads_of(found)
    assert loads.min() >= 42
    assert loads.max() == 256
    exact, plain = eigenvalue(X, 0.1, scale_exponents)
    _, bound = eigenvalue(X, 0.1, scale_exponents, loads)
    assert exact < bound < 0.7 * plain
    # Whatever noise says.
    assert loads_of(np.array([-3.0, 0.0], dtype=np.float32)).tolist() == [43, 43]
    assert loads_of(np.array([-3.0, 5.0], dtype=np.float32)).tolist() == [43, 256]
