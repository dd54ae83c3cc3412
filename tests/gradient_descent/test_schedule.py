"""The schedule is public, and so is the standard error that follows from it."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from dplasso.gradient_descent.schedule import KAPPA, STEPS, Schedule, schedule_for

ALARM = 1e-6


def simulated(schedule, n, seed=0):
    """Release averages of n coordinates without any signal."""
    rng = np.random.default_rng(seed)
    weights, velocity, averaged = np.zeros(n), np.zeros(n), np.zeros(n)
    for step in range(1, schedule.n_steps + 1):
        velocity = schedule.momentum * velocity + rng.normal(0, schedule.noise_scale, n)
        weights = weights - schedule.step_size * velocity
        if step >= schedule.first_averaged:
            averaged += weights
    return averaged / (schedule.n_steps - schedule.first_averaged + 1)


@pytest.mark.parametrize(
    "schedule",
    [
        schedule_for(1e4, 0.24, 0.5),
        schedule_for(1e4, 3.0, 2.0, n_steps=7, momentum=0.5),
        schedule_for(1e9, 0.24, 0.5, n_steps=40, momentum=0.0),
        schedule_for(10, 1.0, 0.5, n_steps=1),
        Schedule(30, 0.01, 0.95, 30, 2.0, 0.5),
        Schedule(30, 0.01, 0.95, 1, 2.0, 0.5),
    ],
)
def test_the_standard_error_is_that_of_noise_alone(schedule):
    n = 40_000
    squares = (simulated(schedule, n) ** 2).sum() / schedule.standard_error**2
    low, high = chi2.ppf([ALARM / 2, 1 - ALARM / 2], n)
    assert low < squares < high
    # An error of 5 % in the closed form would show.
    assert not low < squares * 1.05**2 < high
    assert not low < squares / 1.05**2 < high


def test_training_stops_when_noise_has_moved_a_margin_by_kappa():
    schedule = schedule_for(100, 0.3, 0.5)
    assert schedule.n_steps == STEPS
    assert schedule.noise_scale == pytest.approx(0.5 * math.sqrt(STEPS) / 0.3)
    moved = schedule.noise_scale * math.sqrt(STEPS) * schedule.step_size / (1 - schedule.momentum)
    assert moved == pytest.approx(KAPPA)


def test_the_steps_of_a_run_cost_mu_together():
    for n_steps in (1, 7, 300):
        schedule = schedule_for(1e4, 0.7, 3.0, n_steps)
        assert n_steps * (3.0 / schedule.noise_scale) ** 2 == pytest.approx(0.7**2, rel=1e-12)


def test_many_records_only_shorten_the_steps():
    few, many = schedule_for(1e3, 1.0, 0.5), schedule_for(1e12, 1.0, 0.5)
    assert many.step_size == 8e-12 < few.step_size
    assert many.noise_scale == few.noise_scale
    assert schedule_for(-5.0, 1e9, 0.5).step_size == 8.0


def test_without_privacy_there_is_no_noise():
    schedule = schedule_for(1e3, math.inf, 1.0)
    assert schedule.noise_scale == schedule.standard_error == 0.0
    assert schedule.step_size == 8e-3


@pytest.mark.parametrize(("n_steps", "averaged"), [(1, 1), (2, 1), (3, 1), (4, 1), (300, 75)])
def test_the_last_quarter_is_averaged(n_steps, averaged):
    schedule = schedule_for(1e4, 1.0, 0.5, n_steps)
    assert schedule.n_steps - schedule.first_averaged + 1 == averaged
