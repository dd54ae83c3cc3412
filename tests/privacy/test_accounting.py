"""The price of steps and of Gaussian noise: against closed forms, always on the private side."""

import math

import numpy as np
import pytest
from dp_accounting import ComposedDpEvent, SelfComposedDpEvent, ZCDpEvent
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dplasso.privacy.accounting import (
    bracket,
    calibrate_eps0,
    calibrate_mu,
    calibrate_rho,
    epsilon_of,
    epsilon_spent,
    gaussian_delta,
    gaussian_epsilon,
    rho_of_bounded_range,
)
from privacy.reference import epsilon_of_event, exact_delta

EPSILONS = st.floats(-4, 3).map(lambda exponent: 10.0**exponent)
DELTAS = st.floats(-15, math.log10(0.5)).map(lambda exponent: min(10.0**exponent, 0.5))
STEPS = st.floats(0, math.log10(2e6)).map(lambda exponent: round(10.0**exponent))


def closed_form(eps0, n_iter, delta):
    """Minimise the conversion of arXiv 2004.00010 over Renyi orders, finely, without a library."""
    excess = np.logspace(-2, 9, 1_000_001)
    order = 1.0 + excess
    rho = n_iter * eps0**2 / 8
    bound = rho * order + np.log(excess / order) - (math.log(delta) + np.log(order)) / excess
    return max(0.0, float(bound.min()))


@pytest.mark.parametrize(
    ("eps0", "n_iter", "delta"),
    [
        (0.013959, 1000, 1e-6),
        (0.0016, 1000, 1e-6),
        (0.09, 1000, 1e-6),
        (0.3, 1, 1e-6),
        (2.0, 50, 1e-9),
        (1e-4, 400_000, 1e-5),
        (0.05, 2_000_000, 1e-15),
    ],
)
def test_epsilon_is_the_closed_form(eps0, n_iter, delta):
    reported, exact = epsilon_spent(eps0, n_iter, delta), closed_form(eps0, n_iter, delta)
    # Fewer orders can only cost more, and 128 of them to a factor of 10 cost next to nothing.
    assert exact * (1 - 1e-9) <= reported <= exact * (1 + 1e-4)


def test_a_tenth_of_the_orders_finds_what_all_find():
    """To the last bit: where epsilon is 0 and where it is huge, too."""
    rng = np.random.default_rng(0)
    rhos, least = 10.0 ** rng.uniform(-13.0, 5.0, 100), np.repeat([-30.0, -300.0], [80, 20])
    pairs = [*zip(rhos.tolist(), (10.0 ** rng.uniform(least, -0.1)).tolist(), strict=True)]
    pairs += [(0.0, 1e-6), (1e-300, 1e-6), (1e300, 0.5), (math.inf, 1e-6), (1.0, 0.0)]
    for place, (rho, delta) in enumerate(pairs):
        step = (rho / 300, 300) if place % 2 else (rho, 1)
        event = SelfComposedDpEvent(ZCDpEvent(rho=step[0]), step[1])
        with np.errstate(over="ignore"):
            assert epsilon_of(*step, delta) == epsilon_of_event(event, delta)


@settings(deadline=None, max_examples=12)
@given(epsilon=EPSILONS, delta=DELTAS, n_iter=STEPS)
@example(epsilon=1e-4, delta=1e-15, n_iter=1)
@example(epsilon=1e-4, delta=0.5, n_iter=2_000_000)
@example(epsilon=1e3, delta=1e-15, n_iter=2_000_000)
@example(epsilon=1e3, delta=0.5, n_iter=1)
def test_calibration_lands_on_the_private_side_within_one_percent(epsilon, delta, n_iter):
    eps0 = calibrate_eps0(epsilon, delta, n_iter)
    assert 0.99 * epsilon < epsilon_spent(eps0, n_iter, delta) <= epsilon
    # A step larger by 1 % must already break the promise by the best of a million orders.
    assert closed_form(1.01 * eps0, n_iter, delta) > epsilon


@pytest.mark.parametrize("n_iter", [1, 50])
def test_composed_steps_cost_what_listed_steps_cost(n_iter):
    listed = ComposedDpEvent([ZCDpEvent(rho=rho_of_bounded_range(0.2))] * n_iter)
    reported = epsilon_spent(0.2, n_iter, 1e-6)
    assert reported == pytest.approx(epsilon_of_event(listed, 1e-6), rel=1e-12)


def test_a_step_is_one_eighth_of_its_square_zcdp():
    assert rho_of_bounded_range(2.0) == 0.5


# To the last bit: what was released under these numbers is reported and replayed by them.
@pytest.mark.parametrize(
    ("epsilon", "delta", "n_iter", "eps0"),
    [
        (0.1, 1e-06, 1000, "0x1.a41d42e88aa9cp-10"),
        (1.0, 1e-06, 4000, "0x1.c9648040b4842p-8"),
        (8.0, 1e-09, 400000, "0x1.f5cb35df0566ap-9"),
        (0.0001, 1e-15, 7, "0x1.8b2be7c7d101ep-17"),
        (1000.0, 0.5, 2, "0x1.edfd4dd395ac2p+5"),
    ],
)
def test_released_numbers_do_not_change(epsilon, delta, n_iter, eps0):
    assert calibrate_eps0(epsilon, delta, n_iter) == float.fromhex(eps0)


@settings(deadline=None, max_examples=5)
@given(epsilon=EPSILONS, delta=DELTAS)
def test_a_rho_is_calibrated_to_the_private_side(epsilon, delta):
    rho = calibrate_rho(epsilon, delta)
    assert epsilon_of(rho, 1, delta) <= epsilon < epsilon_of(rho * (1 + 1e-9), 1, delta)


@pytest.mark.parametrize("start", [0.0, 1e-12, 0.3, 1e6])
def test_a_bisection_ends_at_one_place_from_anywhere(start):
    last, first = bracket(lambda x: x <= 0.7, start)
    assert last <= 0.7 < first <= last * (1 + 1e-11)


def test_what_cannot_be_calibrated_is_refused():
    for holds, words in ((False, "small enough"), (True, "too large")):
        with pytest.raises(ValueError, match=words):
            bracket(lambda _, holds=holds: holds, 1.0)


@settings(deadline=None, max_examples=15)
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


@settings(deadline=None, max_examples=15)
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
