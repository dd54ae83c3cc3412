"""What each structure does beyond the contract: its numbers, its work and the laws of its own."""

import numpy as np
import pytest
from evidence.reference.draws import ALARM, change, draw, fill, p_value
from evidence.reference.gradients import EXPONENT, LIMIT, random_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import laplace

from dplasso.privacy.randomness import random_stream, random_word
from dplasso.selection.big_little import beyond, big_little_state, walk
from dplasso.selection.bucket import (
    ARGMAX_BITS,
    ARGMAX_SHIFT,
    PRIVATE_BITS,
    bucket_state,
    fold,
    level_of,
    upper_edge,
)
from dplasso.selection.log_weights import draw_sign
from dplasso.selection.noisy_max import LaplaceState
from dplasso.selection.selector import MOVES, TRIES, VARIATES, new_counters
from selection.invariants import jump_walk
from selection.invariants import level_of as slow_level_of

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
    draw(selector, alpha, 7, 2000)
    assert selector.counters[TRIES] < most * 2000


WORDS = st.integers(0, 2**64 - 1)
# numba takes Python integers for int64, so words beyond it must come typed.
u64 = np.uint64


class TestWalk:
    def test_comparison_is_exact_at_the_boundary(self):
        """Of sums of every size, by words whose carry decides in one of six."""
        rng = np.random.default_rng(0)
        for bits in rng.integers(1, 62, 300).tolist():
            passed, further = rng.integers(1, 2**bits, 2, endpoint=True).tolist()
            boundary, next_word = passed + further, int(rng.integers(0, 2**64, dtype=u64))
            for step in (-1, 0, 1):
                word = min(2**64 - 1, max(0, (passed << 64) // boundary + step))
                expected = (word * 2**64 + next_word) * boundary < passed * 2**128
                assert beyond(u64(word), u64(next_word), passed, boundary) == expected

    @given(st.lists(st.integers(1, 2**40) | st.integers(1, 9), min_size=1, max_size=30), WORDS)
    @settings(deadline=None, max_examples=200)
    def test_agrees_with_unbounded_integers(self, ticks, seed):
        selector = big_little_state(4, EXPONENT, True)
        stream, again = random_stream(seed), random_stream(seed)
        words = [int(random_word(again)) for _ in range(80)]
        chosen = walk(selector, np.array(ticks, dtype=np.int64), 0, len(ticks), stream)
        assert chosen == jump_walk(ticks, words)


@pytest.mark.parametrize("n_columns", [100, 100_000])
def test_variates_grow_like_the_logarithm(n_columns):
    alpha = random_gradients(n_columns, 5, nats=1.0)
    selector = big_little_state(n_columns, EXPONENT, True)
    fill(selector, alpha)
    draw(selector, alpha, 6, 300)
    # Two acceptances, a sign, and about ln(groups) + ln(members) jumps.
    assert 3 < selector.counters[VARIATES] / 300 < 5 + 1.2 * np.log(n_columns)


SCALE = 3e9


def laplace_probabilities(alpha, scale):
    """P(|alpha_k + noise| is the largest), by integrating over the winner's value."""
    grid = np.linspace(0, np.abs(alpha).max() / scale + 40, 200_001)
    centre = np.abs(alpha[:, None]) / scale
    inside = laplace.cdf(grid - centre) - laplace.cdf(-grid - centre)
    density = laplace.pdf(grid - centre) + laplace.pdf(-grid - centre)
    return np.array(
        [
            np.trapezoid(density[k] * np.delete(inside, k, axis=0).prod(axis=0), grid)
            for k in range(alpha.size)
        ]
    )


def test_laplace_noise_then_the_true_sign():
    alpha = np.array([4, -5, 0, 2, -3], dtype=np.int64) * 10**9
    selector = LaplaceState(SCALE, new_counters())
    fill(selector, alpha)
    vertex, sign = draw(selector, alpha, 1, 50_000)
    expected = laplace_probabilities(alpha, SCALE)
    assert expected.sum() == pytest.approx(1, abs=1e-6)
    assert p_value(np.bincount(vertex, minlength=5), expected) > ALARM
    assert (sign == np.where(alpha[vertex] >= 0, -1, 1)).all()


def test_a_rare_sign_keeps_its_probability():
    # The opposite sign has probability exp(-40) = 2^-57.7: these words are below and above it.
    for word, sign in ((0, 1), (70, 1), (90, -1)):
        stream = random_stream(2)
        stream.words[0] = word
        stream.position[0] = 0
        assert draw_sign(stream, 1e-9, 20 * 10**9, True) == sign
