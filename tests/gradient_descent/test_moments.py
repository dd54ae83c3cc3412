"""Sums that intervals follow from: the reference's integers, one record's share, every layout."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dplasso.gradient_descent.gradient_rows import build_gradient_rows
from dplasso.gradient_descent.row_sums import Units
from dplasso.losses.logistic import Logistic
from dplasso.losses.loss import gradient
from dplasso.losses.squared import Squared
from dplasso.losses.targets import targets_of
from dplasso.matrix.scaling import Scaling
from dplasso.phases.moments import symmetric, triangle_size
from dplasso.runtime.threads import ONE_THREAD
from gradient_descent.cases import HOSTILE, records
from gradient_descent.reference import moments

NONE = np.zeros(0, dtype=np.int64)
UNITS, WITHOUT_SQUARES = Units(2.0**32, 2.0**34, 2.0**31), Units(2.0**30, 2.0**32, 0.0)
LOSSES = {"logistic": Logistic(1.0), "clipped": Logistic(0.5), "squared": Squared(0.5)}
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def model(size, length=3.0):
    return np.random.default_rng(8).normal(0.0, length, size)


def released(X, y, loss, weights=None, *, scaling, units=UNITS, threads=ONE_THREAD, length=3.0):
    """Return the exact sums."""
    size = X.shape[1] + int(scaling.constant != 0.0)
    found = build_gradient_rows(
        X, loss, targets_of(np.asarray(y, dtype=np.float64), weights), threads
    )
    return found.moments(loss, scaling, model(size, length), units)


@each_loss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("values", ["mixed", "threes"])
@pytest.mark.parametrize(("weighted", "units"), [(False, UNITS), (True, WITHOUT_SQUARES)])
@pytest.mark.parametrize(("constant", "norm_bound"), [(0.5, 4.0), (0.0, 1.5)])
def test_sums_are_those_of_the_reference(
    loss, dtype, values, weighted, constant, norm_bound, units
):
    X, y = records(dtype=dtype)
    X = np.where(X != 0.0, 3.0, 0.0).astype(dtype) if values == "threes" else X
    weights = np.random.default_rng(1).random(40) if weighted else None
    options = {"weights": weights, "constant": constant, "norm_bound": norm_bound}
    expected = moments(X, y, model(12 + (constant > 0)), loss, units, **options).sum(axis=0)
    scaling = Scaling(NONE, constant, norm_bound)
    found = released(X, y, loss, weights, scaling=scaling, units=units)
    # The compiled exponential may differ from the interpreted one in its last bit.
    assert np.abs((found - expected).astype(np.float64)).max() <= 2**8
    assert found.any()


@each_loss
@given(
    row=st.lists(HOSTILE, min_size=1, max_size=12),
    label=st.sampled_from([0.0, 1.0]),
    weight=st.floats(),
    constant=st.sampled_from([0.0, 0.5]),
    norm_bound=st.sampled_from([1e-3, 1.0, 1e10]),
    length=st.sampled_from([0.0, 3.0, 1e150, 1e308]),
)
@example(row=[1.0] * 12, label=0.0, weight=1.0, constant=0.5, norm_bound=1.0, length=1e150)
@example(row=[1.7e308] * 12, label=1.0, weight=1.0, constant=0.0, norm_bound=1.0, length=0.0)
def test_a_record_moves_each_sum_by_at_most_its_bound(
    loss, row, label, weight, constant, norm_bound, length
):
    """In integers, and in L2, whatever the record is."""
    scaling, X = Scaling(NONE, constant, norm_bound), np.array([row])
    given = {"scaling": scaling, "length": length}
    # Interpreted kernels warn of what compiled ones pass over.
    with np.errstate(all="ignore"):
        found = released(X, [label], loss, np.array([weight]), **given)
    size = len(row) + int(constant > 0.0)
    parts = np.split(found, [size, size + triangle_size(size)])
    bounds = loss.residual_bound, loss.curvature, loss.residual_bound**2
    for part, bound, unit in zip(parts, bounds, UNITS, strict=True):
        assert sum(t * t for t in part.tolist()) <= Fraction(bound * unit) ** 2


@each_loss
def test_a_record_may_use_its_bounds_up(loss):
    X, scaling = np.array([[2.0, 0.0, 2.0]]), Scaling(NONE, 0.0, 1.0)
    sums = build_gradient_rows(X, loss, targets_of(np.array([1.0])), ONE_THREAD)
    at_once = sums.moments(loss, scaling, np.array([-40.0, 0.0, -40.0]), UNITS)
    gradient, squares = at_once[:3] / UNITS.gradient, at_once[9:] / UNITS.squares
    assert np.linalg.norm(gradient) == pytest.approx(loss.residual_bound)
    assert np.linalg.norm(squares) == pytest.approx(loss.residual_bound**2)
    labels = targets_of(np.array([0.5]))
    curvature = build_gradient_rows(X, loss, labels, ONE_THREAD).moments(
        loss, scaling, np.zeros(3), UNITS
    )
    assert np.linalg.norm(curvature[3:9]) / UNITS.curvature == pytest.approx(loss.curvature)


@pytest.mark.parametrize(
    "changed",
    [{"scale_exponents": np.array([0, 3, 0], np.int8)}, {"length": 0.5}],
    ids=["halved", "shorter"],
)
def test_rows_that_these_sums_would_make_longer_than_1_are_refused(changed):
    """Halved columns, and rows of a part of the columns: a record would exceed its bound."""
    scaling = Scaling(NONE, 0.0, 1.0)._replace(**changed)
    with pytest.raises(ValueError, match="as long as they are"):
        released(np.array([[0.1, 9.0, 0.1]]), [1.0], LOSSES["clipped"], scaling=scaling)


def named_sums(X, y, loss, size, weights=None):
    """Return the sums of a named column, with weights of the given size."""
    model = np.random.default_rng(8).normal(0.0, 1.0, (X.shape[1], 3)) * size
    targets = targets_of(np.asarray(y, dtype=np.float64), weights)
    rows = build_gradient_rows(X, loss, targets, ONE_THREAD)
    return rows.named_sums(loss, model, np.array([0.1, -0.2, 0.0]), UNITS), model


@each_loss
def test_sums_of_a_named_column_are_those_of_the_reference(loss):
    X, y = records()
    weights = np.random.default_rng(1).random(len(y))
    found, model = named_sums(X, y, loss, 0.5, weights)
    margins = X @ model + [0.1, -0.2, 0.0]
    z, x = np.clip(margins[:, 1:], -1.0, 1.0).T
    pairs = zip(margins[:, 0].tolist(), y, strict=True)
    q = weights * [gradient(loss, margin, label) for margin, label in pairs]
    expected = [-q @ z, weights @ (z * x), (q * z) @ (q * z)]
    assert (np.abs(z) < 1.0).any()
    assert (np.abs(z) == 1.0).any()
    np.testing.assert_allclose(found / np.array(UNITS), expected, rtol=1e-6)


@each_loss
@given(
    row=st.lists(HOSTILE, min_size=1, max_size=12),
    label=st.sampled_from([0.0, 1.0, -1.0]),
    weight=st.floats(),
    size=st.sampled_from([0.0, 1.0, 1e150, 1e308]),
)
@example(row=[1.0] * 12, label=0.0, weight=1.0, size=1e150)
def test_a_record_moves_each_sum_of_a_named_column_by_at_most_its_bound(
    loss, row, label, weight, size
):
    with np.errstate(all="ignore"):
        found, _ = named_sums(np.array([row]), [label], loss, size, np.array([weight]))
    bounds = loss.residual_bound, 1.0, loss.residual_bound**2
    for total, bound, unit in zip(found.tolist(), bounds, UNITS, strict=True):
        assert abs(total) <= Fraction(bound * unit)


def test_a_triangle_is_as_long_as_its_matrix():
    triangle = np.random.default_rng(0).normal(size=triangle_size(5))
    matrix = symmetric(triangle, 5)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.linalg.norm(matrix) == pytest.approx(np.linalg.norm(triangle))
    assert matrix[0, 0] == triangle[0]
    assert matrix[0, 1] == pytest.approx(triangle[1] / np.sqrt(2.0))
