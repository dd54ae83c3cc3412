"""The exact Gaussian curve: against 60 digits, always on the private side, and never far off."""

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dplasso.privacy.accounting import calibrate_mu, gaussian_delta, gaussian_epsilon
from privacy.reference import exact_delta

EPSILONS = st.floats(-4, 3).map(lambda exponent: 10.0**exponent)
DELTAS = st.floats(-15, math.log10(0.5)).map(lambda exponent: min(10.0**exponent, 0.5))


@settings(deadline=None, max_examples=60)
@given(
    mu=st.floats(-5, 2).map(lambda exponent: 10.0**exponent),
    ratio=st.floats(-1, 10),
)
@example(mu=100.0, ratio=-1.0)
@example(mu=1e-5, ratio=8.0)
def test_delta_is_the_formula_rounded_up(mu, ratio):
    # epsilon such that mu/2 - epsilon/mu, which decides about delta's size, is about -ratio.
    epsilon = max(0.0, mu * (mu / 2 + ratio))
    exact, found = exact_delta(mu, epsilon), gaussian_delta(mu, epsilon)
    assert exact <= found
    # Of two terms that nearly cancel for a small mu, each keeps 13 digits.
    assert found <= exact * (1 + 1e-11 / min(1.0, mu)) or found == 1.0


@settings(deadline=None, max_examples=30)
@given(epsilon=EPSILONS, delta=DELTAS)
@example(epsilon=1e-4, delta=1e-15)
@example(epsilon=1e3, delta=0.5)
def test_calibration_is_the_largest_on_the_private_side(epsilon, delta):
    mu = calibrate_mu(epsilon, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert exact_delta(mu * (1 + 1e-6), epsilon) > delta
    back = gaussian_epsilon(mu, delta)
    assert exact_delta(mu, back) <= delta
    assert back == pytest.approx(epsilon, rel=1e-6)
    if back > 1e-6:
        assert exact_delta(mu, back * (1 - 1e-6)) > delta


def test_a_figure_known_from_elsewhere():
    """The analytic Gaussian mechanism (arXiv 1805.06530) at epsilon 1, delta 1e-5."""
    assert 1 / calibrate_mu(1.0, 1e-5) == pytest.approx(3.730632, rel=1e-6)


def test_extremes_are_numbers_on_the_private_side():
    assert gaussian_delta(1e200, 1.0) == 1.0
    assert gaussian_delta(1e-310, 1.0) == 1e-300
    assert gaussian_delta(1e-200, 0.0) >= 3.9e-201
    assert gaussian_delta(1.0, 1e300) == 1e-300
    assert gaussian_epsilon(0.01, 0.1) == 0.0
    assert exact_delta(calibrate_mu(1e-4, 1e-300), 1e-4) <= 1e-300
    assert exact_delta(calibrate_mu(50.0, 0.999), 50.0) <= 0.999
    for function in (calibrate_mu, gaussian_epsilon):
        with pytest.raises(ValueError, match=r"^delta must be at least 1e-300"):
            function(1.0, 1e-305)
