"""The public fixed-point scales: exact where it matters, never too large for 64 bits."""

from hypothesis import example, given
from hypothesis import strategies as st

from dplasso.frank_wolfe.problem import CONTRIBUTION_BITS, gradient_unit, margin_unit
from dplasso.frank_wolfe.round_part import RoundSteps
from dplasso.losses.logistic import Logistic
from dplasso.matrix.orientations import MAX_ROWS
from dplasso.privacy.parameters import LARGEST_N_ITER

bounds = st.floats(1e-100, 1e100)


@given(bounds, st.floats(0.5, 1.0))
def test_one_record_moves_a_gradient_by_at_most_two_to_the_32(bound, residual_bound):
    # |q| <= residual_bound and |x| <= bound; the kernel multiplies in this order.
    unit = gradient_unit(bound, residual_bound)
    assert round(residual_bound * unit * bound) == 2**CONTRIBUTION_BITS


def test_the_sum_of_all_contributions_fits_64_bits():
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
