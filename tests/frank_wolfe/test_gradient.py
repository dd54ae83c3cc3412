"""Fixed-point arithmetic and transcripts against slow twins; scales that never overflow."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dplasso.frank_wolfe.column_gradients import alpha_of
from dplasso.frank_wolfe.gradient import (
    contribution,
    contribution_change,
    margin_term,
    replace_contributions,
    share_units,
)
from dplasso.frank_wolfe.problem import CONTRIBUTION_BITS, gradient_unit, margin_unit
from dplasso.frank_wolfe.round_part import RoundSteps
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.losses.logistic import Logistic
from dplasso.matrix.orientations import MAX_ROWS
from dplasso.privacy.parameters import LARGEST_N_ITER
from dplasso.runtime.threads import ONE_THREAD
from frank_wolfe.cases import build, dense_rows, some_labels
from frank_wolfe.reference import column_gradients

LIMIT = 2.0**32
bounds = st.floats(1e-100, 1e100)


@given(st.floats(), st.floats(), st.floats())
def test_whatever_the_floats_a_contribution_stays_within_its_limit(old, new, value):
    assert abs(contribution(new, value, LIMIT)) <= LIMIT
    change = contribution(new, value, LIMIT) - contribution(old, value, LIMIT)
    assert contribution_change(old, new, value, LIMIT) == change


def test_contributions_round_half_to_even():
    assert [contribution(1.0, x, LIMIT) for x in (0.5, 1.5, 2.5, -0.5, -2.5)] == [0, 2, 2, 0, -2]
    assert margin_term(0.5, 3.0) == 2


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("report_shift", [0, 28, 63])
def test_replacing_contributions_keeps_the_sum_and_reports_changes(constant, report_shift):
    X = dense_rows(15, 40, seed=4)
    if constant:
        X = np.where(X != 0, 0.75, 0.0)
    problem = build(X, some_labels(15, 4), 1)
    assert (problem.design.rows.values.size == 0) == constant
    rng = np.random.default_rng(0)
    gradient = rng.uniform(-1, 1, 15)
    units = share_units(problem)
    alpha = alpha_of(problem.design, units, gradient, ONE_THREAD)
    # Room for fewer entries than the longest row has.
    amounts = np.zeros(7, dtype=np.int64)
    changed, before = np.zeros(5, dtype=np.int64), np.zeros(5, dtype=np.int64)
    for _ in range(200):
        i, new = rng.integers(15), rng.uniform(-1, 1)
        old = alpha.copy()
        given = problem.design.rows, 40, True, units, alpha
        row = np.array([i]), np.array([gradient[i]]), np.array([new])
        reported_by = report_shift, amounts, (changed, before, 0)
        changed, before, count = replace_contributions(*given, *row, *reported_by)
        gradient[i] = new
        crossed = np.flatnonzero((old >> report_shift) != (alpha >> report_shift))
        # At 63 nothing is to be reported, although some signs change.
        crossed = crossed[: crossed.size * (report_shift < 63)]
        assert changed[:count].tolist() == crossed.tolist()
        assert before[:count].tolist() == old[crossed].tolist()
    assert alpha.tolist() == column_gradients(X, gradient, 1.0, intercept=True)


@given(bounds, st.floats(0.5, 1.0))
def test_one_record_moves_a_gradient_by_at_most_two_to_the_32(bound, residual_bound):
    # |q| <= residual_bound and |x| <= bound; the kernel multiplies in this order.
    unit = gradient_unit(bound, residual_bound)
    assert round(residual_bound * unit * bound) == 2**CONTRIBUTION_BITS
    assert MAX_ROWS * 2**CONTRIBUTION_BITS < 2**63


@given(st.integers(1, LARGEST_N_ITER), bounds)
@example(1, 1.0)
@example(LARGEST_N_ITER, 1.0)
@example(LARGEST_N_ITER, 0.1)
def test_no_margin_overflows(n_steps, bound):
    # The largest L1 norm of the integer weights is the sum of 2 to T + 1.
    largest_weights = n_steps * (n_steps + 3) // 2
    largest_term = round(bound * margin_unit(bound, n_steps))
    assert largest_term >= 1
    assert largest_weights * largest_term < 2**63
    # In a run in rounds every vertex weighs one.
    rounds = RoundSteps(Logistic(), bound, 3, n_steps, 0.1, CONTRIBUTION_BITS)
    assert n_steps * round(bound * rounds.margin_unit) < 2**63


def test_margins_keep_their_precision():
    assert margin_unit(1.0, 1000) == 2.0**40
    assert margin_unit(4.0, 1000) == 2.0**38
    assert margin_unit(1.0, 2_000_000) == 2.0**21


def test_a_transcript_is_its_vertices_and_signs():
    vertex, sign = np.array([3, 0]), np.array([1, -1], dtype=np.int8)
    one = Transcript(vertex, sign)
    assert one == Transcript(vertex.copy(), sign.copy())
    assert one not in (
        Transcript(vertex, -sign),
        Transcript(vertex + 1, sign),
        Transcript(vertex[:1], sign[:1]),
        "one",
    )
    with pytest.raises(ValueError, match="as many signs as vertices"):
        Transcript(vertex, sign[:1])
