"""Margins set right: found where the records say so, never longer than a residual, paid for."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.gradient_descent.calibration import Calibration, calibrate_margins
from dplasso.gradient_descent.gradient_rows import build_gradient_rows
from dplasso.gradient_descent.margins import LinearModel, Margins
from dplasso.losses.contract import residual_vector
from dplasso.losses.logistic import Logistic, ManyLogistic, sigma
from dplasso.losses.multinomial import Multinomial
from dplasso.losses.targets import targets_of
from dplasso.matrix.scaling import Scaling
from dplasso.runtime.threads import ONE_THREAD, thread_pool
from gradient_descent.cases import records, stream
from gradient_descent.reference import on_the_grid

UNIT = 2.0**33
C = 0.5


def calibrated(
    margins, labels, loss, *, mu=200.0, seed=0, threads=ONE_THREAD, intercept=True, centre=0.0
):
    return calibrate_margins(
        Margins(margins[:, np.newaxis], loss, targets_of(labels), threads),
        loss,
        stream(seed),
        n_records=len(labels),
        mu=mu,
        sensitivity=loss.residual_bound,
        fit_intercept=intercept,
        centre=centre,
    )


def labelled(slope, shift, *, n_rows=40_000, seed=1):
    """Return margins, and labels as likely as the stretched margins say (link of C = 1/2)."""
    rng = np.random.default_rng(seed)
    margins = rng.normal(0.0, 0.6, n_rows)
    p = np.array([sigma(m) for m in slope * margins + shift])
    p = np.where(p < 0.5, p / (0.5 + p), 1.0 - (1.0 - p) / (1.5 - p))
    return margins[:, np.newaxis], (rng.random(n_rows) < p).astype(np.float64)


def test_margins_of_a_rare_class_are_stretched_around_their_centre():
    """Far from 0, slope and constant would be hard to tell apart."""
    margins, labels = labelled(2.5, -3.0)
    found = calibrated(margins, labels, Logistic(C), centre=np.array([-3.0]))
    assert found.slope == pytest.approx(2.5, abs=0.3)
    assert found.shift[0] - 3.0 * found.slope == pytest.approx(-3.0, abs=0.2)
    around_zero = calibrated(margins - 3.0, labels, Logistic(C))
    assert abs(around_zero.slope - 2.5) > 2.0 * abs(found.slope - 2.5)
    # Without a constant to find, the centre stays where it is.
    fixed = calibrated(margins, labels, Logistic(C), centre=np.array([-3.0]), intercept=False)
    assert fixed.shift[0] - 3.0 * fixed.slope == pytest.approx(-3.0, rel=1e-12)


finite = st.floats(-1e9, 1e9)
# Margins of rows whose entries are near the ends of the range of doubles.
anything = st.floats()


def sums(loss, margins, labels, parameters, weights=None):
    """Return the exact sums in slope and constants, as Python's integers."""
    targets = targets_of(np.array(labels, dtype=np.float64), weights)
    parts = np.array(margins)[:, np.newaxis]
    found = Margins(parts, loss, targets, ONE_THREAD).sums(np.array(parameters), UNIT)
    return found.tolist()


@given(anything, st.integers(0, 1), finite, finite, anything)
def test_a_record_moves_the_sums_by_no_more_than_its_residual(margin, label, slope, shift, weight):
    totals = sums(Logistic(C), [[margin]], [label], [slope, shift], np.array([weight]))
    assert math.hypot(*totals) <= C * UNIT


@given(st.lists(anything, min_size=3, max_size=3), st.integers(0, 2), finite, finite, anything)
def test_so_does_one_of_several_classes(margins, label, slope, shift, weight):
    parameters = [slope, shift, 0.0, -shift]
    totals = sums(Multinomial(3, 0.7), [margins], [label], parameters, np.array([weight]))
    assert math.hypot(*totals) <= 0.7 * UNIT


@given(st.lists(anything, min_size=3, max_size=3), st.integers(0, 7), finite, finite, anything)
def test_so_does_one_of_many_labels_that_have_a_slope_each(margins, there, slope, shift, weight):
    labels, parameters = [there & 1, there >> 1 & 1, there >> 2], [slope, 1.0, shift, shift, 0.0, 2]
    totals = sums(ManyLogistic(3, 0.9), [margins], [labels], parameters, np.array([weight]))
    assert math.hypot(*totals) <= 0.9 * UNIT


def test_the_sums_of_many_labels_are_the_gradient_written_out():
    rng = np.random.default_rng(0)
    s, y, own = rng.normal(0.0, 3.0, (50, 2)), rng.integers(0, 2, (50, 2)), rng.random(50)
    for weights in (None, own):
        totals = sums(ManyLogistic(2, C * 2**0.5), s, y, [1.7, 0.3, -0.4, 0.2], weights)
        stretched = s * [1.7, 0.3] + 0.5 * np.array([-0.4, 0.2])
        q = np.clip(1.0 / (1.0 + np.exp(-stretched)) - y, -C, C) / np.hypot(s, 0.5)
        q = q if weights is None else q * weights[:, np.newaxis]
        expected = np.concatenate([(q * s).sum(axis=0), 0.5 * q.sum(axis=0)])
        assert np.array(totals) / UNIT == pytest.approx(expected, abs=1e-6)


def test_labels_are_stretched_each_by_its_own():
    (steep, often), (flat, rarely) = labelled(2.5, 0.7), labelled(0.6, -0.5, seed=2)
    margins, labels = np.hstack([steep, flat]), np.column_stack([often, rarely])
    found = calibrated(margins, labels, ManyLogistic(2, C * 2**0.5))
    assert found.slope == pytest.approx(2.5, abs=0.15)
    assert found.label_slopes == (1.0, pytest.approx(0.6 / 2.5, abs=0.06))
    assert found.shift == (pytest.approx(0.7, abs=0.1), pytest.approx(-0.5, abs=0.1))
    fixed = calibrated(margins, labels, ManyLogistic(2, C * 2**0.5), intercept=False)
    assert fixed.shift == (0.0, 0.0)


def test_the_sums_are_the_gradient_written_out():
    rng = np.random.default_rng(0)
    s, y, own = rng.normal(0.0, 3.0, (50, 1)), rng.integers(0, 2, 50), rng.random(50)
    for weights in (None, own):
        totals = np.array(sums(Logistic(C), s, y, [1.7, -0.4], weights))
        own_margins = on_the_grid(s[:, 0], 6)
        margins = 1.7 * own_margins - 0.5 * 0.4
        q = np.clip(1.0 / (1.0 + np.exp(-margins)) - y, -C, C) / np.hypot(own_margins, 0.5)
        q = q if weights is None else q * weights
        assert totals / UNIT == pytest.approx([np.sum(q * own_margins), np.sum(q * 0.5)], abs=1e-7)

    s, y = rng.normal(0.0, 3.0, (50, 3)), rng.integers(0, 3, 50)
    parameters, loss, residuals = np.array([0.6, 0.2, -1.0, 0.5]), Multinomial(3, 0.7), []
    for i in range(50):
        one = np.empty(3)
        residual_vector(loss, 0.6 * s[i] + 0.5 * parameters[1:], float(y[i]), one)
        residuals.append(one / np.sqrt((s[i] ** 2).sum() + 0.25))
    residuals = np.array(residuals)
    for weights, pulls in ((None, residuals), (own, own[:, np.newaxis] * residuals)):
        totals = np.array(sums(loss, s, y, parameters, weights))
        assert totals[0] / UNIT == pytest.approx(np.sum(pulls * s), abs=1e-7)
        assert totals[1:] / UNIT == pytest.approx(0.5 * pulls.sum(axis=0), abs=1e-7)


@pytest.mark.parametrize(("slope", "shift"), [(2.5, 0.7), (1.0, 0.0), (0.6, -0.5)])
def test_without_much_noise_it_finds_what_the_labels_follow(slope, shift):
    """40,000 records: standard errors of about .03 and .02."""
    margins, labels = labelled(slope, shift)
    found = calibrated(margins, labels, Logistic(C))
    assert found.slope == pytest.approx(slope, abs=0.15)
    assert found.shift[0] == pytest.approx(shift, abs=0.1)
    assert calibrated(margins, labels, Logistic(C), intercept=False).shift == (0.0,)


def test_an_offset_of_the_loss_is_not_added_twice():
    """The margins hold it already, and the loss that goes with them has none."""
    X, y = records()
    given_ = ONE_THREAD, np.arange(12)
    scaling = Scaling(np.zeros(0, dtype=np.int64), 0.1, None)
    model = LinearModel(np.ones((12, 1)), np.zeros(1), scaling)
    plain, moved = (
        build_gradient_rows(X, loss, targets_of(y), *given_).margins(model)
        for loss in (Logistic(C), Logistic(C, 0.4))
    )
    np.testing.assert_array_equal(moved.parts, plain.parts + 0.4)
    assert moved.loss == plain.loss == Logistic(C)


def test_under_noise_alone_margins_mostly_stay_as_they_were():
    """Of 60 fits of 50 records. Noise alone goes beyond one or two half errors in .62 or .36."""
    margins, labels = labelled(1.0, 0.0, n_rows=50)
    found = [calibrated(margins, labels, Logistic(C), mu=1e-3, seed=seed) for seed in range(60)]
    assert all(0.2 <= one.slope <= 6.0 for one in found)
    assert sum(one == Calibration(1.0, (0.0,)) for one in found) >= 3


def test_the_bits_do_not_depend_on_threads_and_do_on_the_stream():
    margins, labels = labelled(2.0, 0.3, n_rows=999)
    first = calibrated(margins, labels, Logistic(C), mu=0.1)
    with thread_pool(3) as threads:
        assert calibrated(margins, labels, Logistic(C), mu=0.1, threads=threads) == first
    assert calibrated(margins, labels, Logistic(C), mu=0.1, seed=1) != first
