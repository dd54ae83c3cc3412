"""Margins set right: found where the records say so, never longer than a residual, paid for."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.gradient_descent import calibration as module
from dplasso.gradient_descent.calibration import calibrate_margins
from dplasso.gradient_descent.release import UNCHANGED
from dplasso.gradient_descent.slopes import Margins, slope_gradient, slope_gradient_vectors
from dplasso.losses.logistic import Logistic, sigma
from dplasso.losses.multinomial import Multinomial, multinomial_residuals
from dplasso.runtime.threads import ONE_THREAD, thread_pool
from gradient_descent.cases import stream

UNIT = 2.0**33
C = 0.5


def calibrated(margins, labels, loss, *, mu=200.0, seed=0, threads=ONE_THREAD, intercept=True):
    return calibrate_margins(
        Margins(margins, loss, labels, threads),
        loss,
        stream(seed),
        n_records=labels.size,
        mu=mu,
        sensitivity=loss.residual_bound,
        fit_intercept=intercept,
    )


def labelled(slope, shift, *, n_rows=40_000, seed=1):
    """Return margins, and labels as likely as the stretched margins say (link of C = 1/2)."""
    rng = np.random.default_rng(seed)
    margins = rng.normal(0.0, 0.6, n_rows)
    p = np.array([sigma(m) for m in slope * margins + shift])
    p = np.where(p < 0.5, p / (0.5 + p), 1.0 - (1.0 - p) / (1.5 - p))
    return margins[:, np.newaxis], (rng.random(n_rows) < p).astype(np.int8)


finite = st.floats(-1e9, 1e9)
# Margins of rows whose entries are near the ends of the range of doubles.
anything = st.floats()


@given(anything, st.integers(0, 1), finite, finite, st.floats(-3, 3))
def test_a_record_moves_the_sums_by_no_more_than_its_residual(margin, label, slope, shift, offset):
    totals = np.zeros(2, dtype=np.int64)
    parameters = np.array([slope, shift])
    loss = Logistic(C, offset)
    rows = np.array([[margin]])
    slope_gradient(loss, np.array([label]), rows, parameters, offset, UNIT, C * UNIT, 0, 1, totals)
    assert math.hypot(*totals.tolist()) <= C * UNIT


@given(st.lists(anything, min_size=3, max_size=3), st.integers(0, 2), finite, finite)
def test_so_does_one_of_several_classes(margins, label, slope, shift):
    totals = np.zeros(4, dtype=np.int64)
    parameters = np.array([slope, shift, 0.0, -shift])
    loss = Multinomial(3, 0.7)
    rows = np.array([margins])
    slope_gradient_vectors(
        loss, np.array([label]), rows, parameters, 0.0, UNIT, 0.7 * UNIT, 0, 1, totals
    )
    assert math.hypot(*totals.tolist()) <= 0.7 * UNIT


def test_the_sums_are_the_gradient_written_out():
    rng = np.random.default_rng(0)
    s, y = rng.normal(0.0, 3.0, (50, 1)), rng.integers(0, 2, 50)
    totals = np.zeros(2, dtype=np.int64)
    slope_gradient(
        Logistic(C, 0.3), y, s, np.array([1.7, -0.4]), 0.3, UNIT, C * UNIT, 0, 50, totals
    )
    margins = 1.7 * s[:, 0] - 0.5 * 0.4
    q = np.clip(1.0 / (1.0 + np.exp(-margins)) - y, -C, C) / np.sqrt(s[:, 0] ** 2 + 0.25)
    assert totals / UNIT == pytest.approx([np.sum(q * s[:, 0]), np.sum(q * 0.5)], abs=1e-7)

    s, y = rng.normal(0.0, 3.0, (50, 3)), rng.integers(0, 3, 50)
    totals, parameters = np.zeros(4, dtype=np.int64), np.array([0.6, 0.2, -1.0, 0.5])
    loss, residuals = Multinomial(3, 0.7), np.empty((50, 3))
    slope_gradient_vectors(loss, y, s, parameters, 0.0, UNIT, 0.7 * UNIT, 0, 50, totals)
    for i in range(50):
        multinomial_residuals(loss, 0.6 * s[i] + 0.5 * parameters[1:], y[i], residuals[i])
    residuals /= np.sqrt((s**2).sum(axis=1) + 0.25)[:, np.newaxis]
    assert totals[0] / UNIT == pytest.approx(np.sum(residuals * s), abs=1e-7)
    assert totals[1:] / UNIT == pytest.approx(0.5 * residuals.sum(axis=0), abs=1e-7)


@pytest.mark.parametrize(("slope", "shift"), [(2.5, 0.7), (1.0, 0.0), (0.6, -0.5)])
def test_without_much_noise_it_finds_what_the_labels_follow(slope, shift):
    """40,000 records: standard errors of about .03 and .02."""
    margins, labels = labelled(slope, shift)
    found = calibrated(margins, labels, Logistic(C))
    assert found.slope == pytest.approx(slope, abs=0.15)
    assert found.shift[0] == pytest.approx(shift, abs=0.1)
    assert calibrated(margins, labels, Logistic(C), intercept=False).shift == (0.0,)


def test_an_offset_of_the_loss_is_not_added_twice():
    margins, labels = labelled(2.0, 0.3)
    plain, offset = (calibrated(margins, labels, Logistic(C, given)) for given in (0.0, 0.4))
    assert offset.slope == pytest.approx(plain.slope, abs=1e-6)
    assert offset.shift == pytest.approx(plain.shift, abs=1e-6)


def test_under_noise_alone_margins_mostly_stay_as_they_were():
    """Of 60 fits of 50 records. Noise alone goes beyond one or two half errors in .62 or .36."""
    margins, labels = labelled(1.0, 0.0, n_rows=50)
    found = [calibrated(margins, labels, Logistic(C), mu=1e-3, seed=seed) for seed in range(60)]
    assert all(0.2 <= one.slope <= 6.0 for one in found)
    assert sum(one == UNCHANGED for one in found) >= 3


def test_the_bits_do_not_depend_on_threads_and_do_on_the_stream():
    margins, labels = labelled(2.0, 0.3, n_rows=999)
    first = calibrated(margins, labels, Logistic(C), mu=0.1)
    with thread_pool(3) as threads:
        assert calibrated(margins, labels, Logistic(C), mu=0.1, threads=threads) == first
    assert calibrated(margins, labels, Logistic(C), mu=0.1, seed=1) != first


def test_neighbours_differ_only_in_the_sums_that_noise_is_added_to(monkeypatch):
    """With the noise made the same, a record moves every sum by its residual at most."""
    margins, labels = labelled(2.0, 0.3, n_rows=30)
    seen = []

    def told(sums, _sensitivity, _noise):
        seen.append(sums.copy())
        return np.full_like(sums, 1 << 30)

    monkeypatch.setattr(module, "release", told)
    calibrated(margins, labels, Logistic(C), mu=1.0)
    whole, seen = seen, []
    calibrate_margins(
        Margins(margins[1:], Logistic(C), labels[1:], ONE_THREAD),
        Logistic(C),
        stream(),
        n_records=labels.size,
        mu=1.0,
        sensitivity=C,
        fit_intercept=True,
    )
    for one, other in zip(whole, seen, strict=True):
        assert 0 < np.linalg.norm(one - other) <= C * 2.0**33
