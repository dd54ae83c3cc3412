import numpy as np
import pytest
from evidence.reference.draws import change, draw, fill
from evidence.reference.gradients import EXPONENT, random_gradients
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.privacy.randomness import random_stream, random_word
from dplasso.selection.big_little import (
    beyond,
    big_little_state,
    high_and_low,
    walk,
    weight_in_ticks,
)
from dplasso.selection.contract import VARIATES
from selection.invariants import check
from selection.reference import jump_walk

WORDS = st.integers(0, 2**64 - 1)
# numba takes Python integers for int64, so words beyond it must come typed.
u64 = np.uint64


class TestWalk:
    @given(WORDS, WORDS)
    @settings(deadline=None, max_examples=200)
    def test_product_of_words(self, a, b):
        high, low = high_and_low(u64(a), u64(b))
        assert (int(high) << 64) + int(low) == a * b

    @given(WORDS, WORDS, st.integers(1, 2**62), st.integers(1, 2**62))
    @settings(deadline=None, max_examples=200)
    def test_comparison_is_exact(self, word, next_word, passed, boundary):
        expected = (word * 2**64 + next_word) * boundary < passed * 2**128
        assert beyond(u64(word), u64(next_word), passed, boundary) == expected

    @given(st.integers(1, 2**61), st.integers(1, 2**61), st.integers(-1, 1), WORDS)
    @settings(deadline=None, max_examples=200)
    def test_comparison_is_exact_at_the_boundary(self, passed, further, step, next_word):
        boundary = passed + further
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


def test_sums_do_not_drift_in_a_million_updates():
    alpha = random_gradients(400, 2)
    selector = big_little_state(400, EXPONENT, True)
    fill(selector, alpha)
    rng = np.random.default_rng(3)
    for _ in range(20):
        coordinates = rng.integers(0, 400, 50_000)
        values = random_gradients(50_000, rng.integers(2**31), nats=rng.choice([0.1, 3, 20]))
        change(selector, alpha, coordinates, values)
        draw(selector, alpha, random_stream(4), 1)
    check(selector, alpha)
    sums = np.add.reduceat(selector.ticks, np.arange(0, 400, selector.size))
    np.testing.assert_array_equal(selector.total, sums)
    groups = np.split(np.arange(400), np.arange(selector.size, 400, selector.size))
    for group, members in enumerate(groups):
        reference = selector.reference[group]
        weights = [weight_in_ticks(selector, abs(alpha[k]), reference) for k in members]
        assert selector.total[group] == pytest.approx(sum(weights), rel=1e-9)


@pytest.mark.parametrize("n_columns", [100, 10_000, 1_000_000])
def test_variates_grow_like_the_logarithm(n_columns):
    alpha = random_gradients(n_columns, 5, nats=1.0)
    selector = big_little_state(n_columns, EXPONENT, True)
    fill(selector, alpha)
    draw(selector, alpha, random_stream(6), 300)
    # Two acceptances, a sign, and about ln(groups) + ln(members) jumps.
    assert 3 < selector.counters[VARIATES] / 300 < 5 + 1.2 * np.log(n_columns)
