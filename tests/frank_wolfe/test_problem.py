"""The public fixed-point scales: exact where it matters, never too large for 64 bits."""

from hypothesis import example, given
from hypothesis import strategies as st

from dplasso.frank_wolfe.problem import MAX_ROWS, SHARE_BITS, gradient_unit, margin_unit
from dplasso.privacy.parameters import LARGEST_N_ITER

bounds = st.floats(1e-100, 1e100)


@given(bounds)
def test_one_record_moves_a_gradient_by_at_most_two_to_the_32(bound):
    # |q| <= 1 and |x| <= bound; the kernel multiplies in this order.
    assert round(1.0 * gradient_unit(bound) * bound) == 2**SHARE_BITS


def test_the_sum_of_all_shares_fits_64_bits():
    assert MAX_ROWS * 2**SHARE_BITS < 2**63


@given(st.integers(1, LARGEST_N_ITER), bounds)
@example(1, 1.0)
@example(LARGEST_N_ITER, 1.0)
@example(LARGEST_N_ITER, 0.1)
def test_no_margin_overflows(n_steps, bound):
    largest_weights = sum_of_steps(n_steps)
    largest_term = round(bound * margin_unit(bound, n_steps))
    assert largest_term >= 1
    assert largest_weights * largest_term < 2**63


def sum_of_steps(n_steps):
    """Return sum over t = 1..T of (t + 1), the largest L1 norm of the integer weights."""
    return n_steps * (n_steps + 1) // 2 + n_steps


def test_margins_keep_their_precision():
    assert margin_unit(1.0, 1000) == 2.0**40
    assert margin_unit(4.0, 1000) == 2.0**38
    assert margin_unit(1.0, 2_000_000) == 2.0**21
