import numpy as np
import pytest
from evidence.reference.draws import change, draw, fill
from evidence.reference.gradients import EXPONENT, LIMIT, random_gradients
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.privacy.randomness import random_stream
from dplasso.selection.bucket import (
    ARGMAX_BITS,
    ARGMAX_SHIFT,
    PRIVATE_BITS,
    bucket_state,
    fold,
    level_of,
    upper_edge,
)
from dplasso.selection.contract import MOVES, TRIES
from selection.reference import level_of as slow_level_of

WIDTHS = [(0, PRIVATE_BITS), (38, PRIVATE_BITS), (62, PRIVATE_BITS), (ARGMAX_SHIFT, ARGMAX_BITS)]


class TestLevels:
    @pytest.mark.parametrize(("shift", "bits"), WIDTHS)
    @given(data=st.data())
    @settings(deadline=None, max_examples=200)
    def test_level_is_the_slow_one(self, shift, bits, data):
        exponent = data.draw(st.integers(0, 63))
        magnitude = min(LIMIT, max(0, 2**exponent + data.draw(st.integers(-3, 2**exponent))))
        level = level_of(magnitude, shift, bits)
        assert level == slow_level_of(magnitude, shift, bits)
        # The level holds this magnitude as it is, and one more with the sign turned.
        assert fold(magnitude) == magnitude
        assert fold(-magnitude - 1) == magnitude
        assert min(magnitude + 1, LIMIT) <= upper_edge(level, shift, bits)
        assert level == 0 or magnitude >= upper_edge(level - 1, shift, bits)

    @pytest.mark.parametrize(("shift", "bits"), WIDTHS)
    def test_the_limit_has_a_level(self, shift, bits):
        assert upper_edge(level_of(LIMIT, shift, bits), shift, bits) == LIMIT

    @pytest.mark.parametrize("exponent", [1e-30, 1e-15, EXPONENT, 1e-3, 0.5])
    def test_weights_inside_a_level_differ_by_less_than_two(self, exponent):
        state = bucket_state(10, exponent, True)
        assert exponent * 2.0**state.shift <= np.log(2.0)
        assert state.shift == 62 or exponent * 2.0 ** (state.shift + 1) > np.log(2.0)
        wide = bucket_state(10, exponent, True, spread=16.0)
        assert wide.shift == min(62, state.shift + 2)


def test_staying_in_a_level_moves_nothing():
    alpha = random_gradients(50, 2)
    selector = bucket_state(50, EXPONENT, True)
    fill(selector, alpha)
    before = selector.order.copy()
    width = 2**selector.shift
    change(selector, alpha, np.arange(50), alpha // width * width + width // 2)
    assert selector.counters[MOVES] == 0
    np.testing.assert_array_equal(selector.order, before)


@pytest.mark.parametrize("nats", [0.0, 0.01, 1.0, 10.0, 1000.0])
@pytest.mark.parametrize(("spread", "most"), [(2.0, 2.2), (16.0, 8.2)])
def test_tries_are_few(nats, spread, most):
    """Most where all weights are equal: a bound of the lowest level is half its spread above."""
    alpha = random_gradients(10_000, 6, nats=nats)
    selector = bucket_state(10_000, EXPONENT, True, spread=spread)
    fill(selector, alpha)
    draw(selector, alpha, random_stream(7), 2000)
    assert selector.counters[TRIES] < most * 2000
