"""Fixed-point arithmetic against its slow twins."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.frank_wolfe.column_gradients import alpha_of
from dplasso.frank_wolfe.gradient import (
    contribution,
    contribution_change,
    margin_term,
    replace_contributions,
    share_units,
)
from dplasso.frank_wolfe.problem import gradient_unit
from dplasso.matrix.compressed import clip
from dplasso.runtime.threads import ONE_THREAD
from frank_wolfe.cases import build, dense_rows, some_labels
from frank_wolfe.reference import clipped, column_gradients

finite = st.floats(allow_nan=False, allow_infinity=False)
LIMIT = 2.0**32
bounds = st.floats(1e-100, 1e100)


@given(finite, bounds)
def test_clip_matches_its_twin(value, bound):
    assert clip(value, bound) == clipped(value, bound)


@pytest.mark.parametrize("value", [np.float32(3e38), np.float32(-3e38), np.float64(1.7e308)])
def test_clip_bounds_the_largest_numbers(value):
    assert clip(value, 0.25) == math.copysign(0.25, value)


@given(st.floats(-1, 1), st.floats(-1, 1), bounds, st.floats(0.5, 1.0))
def test_a_contribution_is_bounded_and_matches_its_twin(part, other_part, bound, residual_bound):
    value = clip(other_part * bound, bound)
    scaled = part * residual_bound * gradient_unit(bound, residual_bound)
    found = contribution(scaled, value, LIMIT)
    assert found == round(scaled * value)
    assert abs(found) <= 2**32


@given(st.floats(), st.floats(), st.floats())
def test_whatever_the_floats_a_contribution_stays_within_its_limit(old, new, value):
    assert abs(contribution(new, value, LIMIT)) <= LIMIT
    change = contribution(new, value, LIMIT) - contribution(old, value, LIMIT)
    assert contribution_change(old, new, value, LIMIT) == change


def test_contributions_round_half_to_even():
    assert [contribution(1.0, x, LIMIT) for x in (0.5, 1.5, 2.5, -0.5, -2.5)] == [0, 2, 2, 0, -2]
    assert margin_term(0.5, 3.0) == 2


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("report_shift", [0, 28, 32, 63])
def test_replacing_contributions_keeps_the_sum_and_reports_changes(
    constant, intercept, report_shift
):
    X = dense_rows(15, 40, seed=4)
    if constant:
        X = np.where(X != 0, np.float32(0.75), np.float32(0.0))
    problem = build(X, some_labels(15, 4), 1, intercept=intercept)
    assert (problem.design.rows.values.size == 0) == constant
    rng = np.random.default_rng(0)
    gradient = rng.uniform(-1, 1, 15)
    units = share_units(problem)
    alpha = alpha_of(problem.design, units, gradient, ONE_THREAD)
    # Room for fewer entries than the longest row has.
    amounts = np.zeros(7, dtype=np.int64)
    changed, before = np.zeros(5, dtype=np.int64), np.zeros(5, dtype=np.int64)
    reported = signs = 0
    for _ in range(200):
        i, new = rng.integers(15), rng.uniform(-1, 1)
        old = alpha.copy()
        row, was, now = np.array([i]), np.array([gradient[i]]), np.array([new])
        changed, before, count = replace_contributions(
            problem.design.rows,
            40,
            intercept,
            units,
            alpha,
            row,
            was,
            now,
            report_shift,
            amounts,
            (changed, before, 0),
        )
        gradient[i] = new
        crossed = np.flatnonzero((old >> report_shift) != (alpha >> report_shift))
        if report_shift == 63:
            # Nothing is to be reported, although some signs have changed.
            signs += crossed.size
            crossed = crossed[:0]
        assert changed[:count].tolist() == crossed.tolist()
        assert before[:count].tolist() == old[crossed].tolist()
        reported += count
    assert alpha.tolist() == column_gradients(X, gradient, 1.0, intercept=intercept)
    assert (reported > 0) == (report_shift < 63)
    assert (signs > 0) == (report_shift == 63)
