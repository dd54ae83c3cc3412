"""The schedule is a function of what is public or released, and so is the standard error."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chi2

from dplasso.gradient_descent.schedule import (
    FEWEST_STEPS,
    KAPPA,
    MOST_STEPS,
    Schedule,
    further,
    plan_stages,
    schedule_for,
    steps_that_pay,
)

ALARM = 1e-6


def simulated(schedule, n, seed=0):
    """Release averages of n coordinates without any signal."""
    rng = np.random.default_rng(seed)
    weights, velocity, averaged = np.zeros(n), np.zeros(n), np.zeros(n)
    for step in range(1, schedule.n_steps + 1):
        noise = rng.normal(0, schedule.noise_scales[step - 1], n)
        velocity = schedule.momentum * velocity + noise
        weights = weights - schedule.step_size * velocity
        if step >= schedule.first_averaged:
            averaged += weights
    return averaged / (schedule.n_steps - schedule.first_averaged + 1)


@pytest.mark.parametrize(
    "schedule",
    [
        schedule_for(1e4, 0.24, 0.5),
        schedule_for(1e4, 3.0, 2.0, n_steps=70),
        schedule_for(1e9, 0.24, 0.5, n_steps=40),
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


EIGENVALUES = (1.0, 100.0, 3e3, 3e4, 1e5, 1e6, 1e12)


@pytest.mark.parametrize("n_steps", [None, 1, 7, 300])
@pytest.mark.parametrize("mu", [1e-9, 0.3, 2.0])
@pytest.mark.parametrize("curvature", [0.25, 1.0])
def test_noise_moves_the_margin_of_a_unit_row_by_kappa(n_steps, mu, curvature):
    """Or less, where steps of that length would not be stable with any momentum allowed."""
    for eigenvalue in EIGENVALUES:
        for kappa in (0.1 * KAPPA, KAPPA):
            made = schedule_for(eigenvalue, mu, 0.5, n_steps, kappa, curvature)
            most = 1.0 - 1.0 / max(1.0, 0.15 * made.n_steps) + 1e-12
            assert 0.0 <= made.momentum <= most
            # 90 % of the step at which descent with momentum stays stable.
            longest = 1.8 * (1 + made.momentum) / (curvature * eigenvalue)
            assert made.step_size <= longest * (1 + 1e-12)
            if made.momentum < most - 1e-9:
                # Parts of the budget are powers of two, so not quite the best ones.
                assert kappa * (1 - 1e-9) <= made.standard_error < 1.02 * kappa
            else:
                assert made.standard_error < 1.02 * kappa
            if made.momentum:
                # No more of it than stable steps need.
                assert made.step_size >= 0.97 * longest


def test_it_takes_as_many_gradients_as_momentum_needs_and_no_more():
    for mu in (0.05, 0.2, 2.0):
        made = [schedule_for(eigenvalue, mu, 0.5) for eigenvalue in EIGENVALUES]
        counts = [one.n_steps for one in made]
        assert all(one <= other for one, other in pairwise(counts))
        assert (counts[0], counts[-1]) == (FEWEST_STEPS, MOST_STEPS) == (50, 400)
        for one, eigenvalue in zip(made, EIGENVALUES, strict=True):
            remembered = 1.0 / (1.0 - one.momentum)
            if one.n_steps < MOST_STEPS:
                # The velocity remembers a seventh of the run: as far back as costs nothing.
                assert remembered <= 0.15 * one.n_steps * (1 + 1e-9)
                assert one.standard_error == pytest.approx(KAPPA, rel=0.02)
            # Of a large budget more are taken: what is not learnt weighs more than noise then.
            if FEWEST_STEPS < one.n_steps < MOST_STEPS and mu < 0.25:
                fewer = schedule_for(eigenvalue, mu, 0.5, math.floor(0.9 * one.n_steps))
                assert fewer.standard_error < 0.97 * KAPPA
    assert len({schedule_for(10.0**k, 0.3, 0.5).n_steps for k in range(3, 7)}) > 2


def test_the_steps_of_a_run_cost_mu_together():
    for n_steps, eigenvalue in ((1, 1e4), (7, 1e4), (300, 1e4), (None, 1e4), (None, 1e7)):
        made = schedule_for(eigenvalue, 0.7, 3.0, n_steps)
        assert np.sum((3.0 / made.noise_scales) ** 2) == pytest.approx(0.7**2, rel=1e-12)
        # The rounding of the noise is charged for by this.
        assert made.noise_scales.max() <= 8.0 * made.noise_scales.min()


def test_a_gradient_costs_what_it_is_worth():
    """The noise of the weights is, but for the rounding, the least that steps so far can have."""
    for made in (schedule_for(1e5, 0.24, 0.5), Schedule(60, 0.01, 0.9, 46, 2.0, 0.5)):
        # How far a gradient moves the average in the end.
        moves = np.zeros(made.n_steps)
        for step in range(made.n_steps):
            velocity = weight = 0.0
            for later in range(step, made.n_steps):
                velocity = made.momentum * velocity + (later == step)
                weight += made.step_size * velocity
                moves[step] += weight * (later + 1 >= made.first_averaged)
        moves /= made.n_steps - made.first_averaged + 1
        mu = math.sqrt(made.n_steps) * made.sensitivity / made.noise_scale
        least = moves.sum() * made.sensitivity / mu
        error = math.sqrt(np.sum((moves * made.noise_scales) ** 2))
        assert error == pytest.approx(made.standard_error, rel=1e-9)
        assert least < error < 1.02 * least


def test_however_noisy_the_bound_is_it_counts_as_one_row_s_at_least():
    assert schedule_for(-5.0, 1e9, 0.5, 1) == schedule_for(1.0, 1e9, 0.5, 1)


def test_runs_go_further_where_the_records_tell_much_of_each_column():
    assert further(100.0, 100) == further(0.0, 100) == 1.0
    assert further(169.0, 100) == pytest.approx(1.3)
    assert further(1e9, 100) == 1.4
    # Most of very many columns hardly ever occur.
    assert further(3000.0 * 1.69, 3000) == further(3000.0 * 1.69, 30_000) == pytest.approx(1.3)
    assert further(8000.0 * 1.69, 80_000) == pytest.approx(1.3)
    dense, (*cuts, selects, last) = plan_stages(None, 500), plan_stages(5, 500)
    assert [one.grows for one in dense] == [True]
    assert selects.grows
    assert last.grows
    assert not any(one.grows for one in cuts)


def test_tables_and_short_lists_select_column_by_column():
    assert [one.most for one in plan_stages(20, 300)] == [20, 0]
    assert [one.most for one in plan_stages(10, 1000)] == [0, 0, 10, 0]
    assert [one.most for one in plan_stages(11, 1000)] == [0, 0, 0, 0]


def test_without_privacy_there_is_no_noise():
    made = schedule_for(1e3, math.inf, 1.0)
    assert made.noise_scale == made.standard_error == made.noise_scales.max() == 0.0
    assert (made.n_steps, made.momentum) == (MOST_STEPS, pytest.approx(59.0 / 60.0))
    assert made.step_size == pytest.approx(1.8 * (119.0 / 60.0) / 250.0)


@pytest.mark.parametrize(("n_steps", "averaged"), [(1, 1), (2, 1), (3, 1), (4, 1), (300, 75)])
def test_the_last_quarter_is_averaged(n_steps, averaged):
    schedule = schedule_for(1e4, 1.0, 0.5, n_steps)
    assert schedule.n_steps - schedule.first_averaged + 1 == averaged


def test_a_larger_budget_takes_more_gradients_of_the_same_path():
    counts = [steps_that_pay(2_000.0, FEWEST_STEPS, MOST_STEPS, mu) for mu in (0.1, 0.26, 0.6, 5.0)]
    assert counts[0] == counts[1] < counts[2] < counts[3] < MOST_STEPS


@pytest.mark.parametrize("max_weights", [None, 1, 10, 99, 100, 5000])
@pytest.mark.parametrize("n_features", [1, 100, 100_000])
def test_stages_divide_the_budget_and_the_columns(max_weights, n_features):
    stages = plan_stages(max_weights, n_features)
    assert sum(stage.share for stage in stages) == pytest.approx(1.0, rel=1e-12)
    sizes = [stage.n_columns for stage in stages]
    assert sizes[0] == n_features
    assert all(fewer < more for more, fewer in pairwise(sizes))
    assert len(stages) == 1 or sizes[-1] == max_weights
    assert len(stages) > 1 or max_weights is None or max_weights >= n_features
