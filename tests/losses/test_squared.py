"""Huber's loss against its definition."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.losses.contract import gradient, margins_within, probability, tangent_offset, value
from dplasso.losses.squared import Squared
from losses.callers import call_all

bounds = st.floats(0.01, 2.0)
targets = st.floats(-1.0, 1.0)
margins = st.floats(-40.0, 40.0)
offsets = st.floats(-1.0, 1.0)
tolerances = st.floats(1e-5, 0.6)
anything = st.floats(allow_nan=True, allow_infinity=True)


@given(bounds, anything, targets)
def test_no_margin_pulls_with_more_than_the_bound(bound, margin, target):
    assert abs(gradient(Squared(bound), margin, target)) <= bound


def test_a_margin_that_is_no_number_pulls_with_nothing():
    assert gradient(Squared(0.25), math.nan, 0.5) == 0.0


@given(bounds, margins, targets, offsets)
def test_the_gradient_is_the_slope_of_the_value(bound, margin, target, offset):
    loss, step = Squared(bound, offset), 1e-5
    slope = (value(loss, margin + step, target) - value(loss, margin - step, target)) / (2 * step)
    assert gradient(loss, margin, target) == pytest.approx(slope, abs=2e-5)
    distance = margin + offset - target
    expected = distance**2 / 2 if abs(distance) <= bound else bound * (abs(distance) - bound / 2)
    assert value(loss, margin, target) == pytest.approx(expected, abs=1e-12)


@given(bounds, margins, targets, offsets)
def test_the_tangent_offset_is_the_value_less_the_slope(bound, margin, target, offset):
    loss = Squared(bound, offset)
    q = gradient(loss, margin, target)
    expected = value(loss, margin, target) - q * margin
    assert tangent_offset(loss, q, target) == pytest.approx(expected, abs=1e-9)


@given(bounds, margins, targets, tolerances, offsets)
def test_inside_the_interval_the_residual_is_within_the_tolerance(b, margin, target, tol, offset):
    loss = Squared(b, offset)
    q = gradient(loss, margin, target)
    lowest, highest = margins_within(loss, q, target, tol)
    for end in (float(lowest), float(highest)):
        near = min(max(end, -1e6), 1e6)
        assert abs(gradient(loss, near, target) - q) <= tol * (1 + 1e-9) + 1e-12
    # It is not needlessly small: just beyond an end the tolerance is used up.
    if math.isfinite(highest) and highest > lowest:
        beyond = gradient(loss, float(highest) + 1e-5 * (1 + abs(margin)), target)
        assert abs(beyond - q) >= tol * (1 - 1e-6) - 1e-12 or abs(beyond) == b


def test_with_no_tolerance_nothing_is_inside():
    lowest, highest = margins_within(Squared(0.5), 0.1, 0.0, 0.0)
    assert lowest > highest


def test_a_prediction_stays_in_the_interval():
    found = [probability(Squared(0.25, 0.5), margin) for margin in (-9.0, -0.25, 0.0, 9.0)]
    assert found == [-1.0, 0.25, 0.5, 1.0]


def test_compiled_code_picks_it_by_its_type():
    loss = Squared(0.25, 0.1)
    found = call_all(loss, 0.3, -0.2, 0.1, 0.05)
    expected = (
        gradient(loss, 0.3, -0.2),
        margins_within(loss, 0.1, -0.2, 0.05),
        value(loss, 0.3, -0.2),
        tangent_offset(loss, 0.1, -0.2),
        probability(loss, 0.3),
    )
    assert found == expected
    assert np.isfinite(found[0])
