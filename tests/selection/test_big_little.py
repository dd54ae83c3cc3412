import numpy as np
import pytest
from evidence.reference.draws import (
    ALARM,
    change,
    count_vertices,
    draw,
    fill,
    p_value,
    vertex_probabilities,
)
from evidence.reference.gradients import EXPONENT, HARD, SHARE, random_gradients
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.privacy.randomness import random_stream, random_word
from dplasso.selection.big_little import (
    beyond,
    big_little_state,
    high_and_low,
    update_big_little,
    walk,
    weight_in_ticks,
)
from dplasso.selection.counters import VARIATES
from selection.distance import implied_by_big_little, total_variation
from selection.invariants import BrokenInvariantError, check
from selection.reference import jump_walk
from selection.sequences import histories

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
        words = []
        for _ in range(10):
            draw_words(again, words)
        chosen = walk(selector, np.array(ticks, dtype=np.int64), 0, len(ticks), stream)
        assert chosen == jump_walk(ticks, words)

    @pytest.mark.parametrize("ticks", [[1], [1, 1], [5, 1, 1, 3], [2**40, 1, 2**40], [1] * 30])
    def test_follows_the_ticks(self, ticks):
        selector = big_little_state(4, EXPONENT, True)
        array = np.array([7, *ticks, 7], dtype=np.int64)
        stream = random_stream(1)
        counts = np.zeros(len(ticks), dtype=np.int64)
        for _ in range(20_000):
            counts[walk(selector, array, 1, 1 + len(ticks), stream) - 1] += 1
        assert p_value(counts, np.array(ticks) / sum(ticks)) > ALARM


def draw_words(stream, words):
    words.extend(int(random_word(stream)) for _ in range(8))


class TestExactness:
    """The chances that the stored integers and doubles imply, in exact arithmetic."""

    @pytest.mark.parametrize("signed", [True, False])
    @pytest.mark.parametrize("case", HARD)
    def test_hard_gradients(self, case, signed):
        alpha, exponent = HARD[case]
        selector = big_little_state(alpha.size, exponent, signed)
        chances = implied_by_big_little(selector, alpha)
        distance, worst_ratio = total_variation(chances, alpha, exponent, signed=signed)
        assert distance < 2.0**-45
        assert worst_ratio > 1 - 2.0**-40

    @pytest.mark.parametrize("nats", [0.01, 3.0, 100.0])
    def test_a_thousand_columns(self, nats):
        alpha = random_gradients(1000, 1, nats=nats)
        selector = big_little_state(1000, EXPONENT, True)
        distance, worst_ratio = total_variation(
            implied_by_big_little(selector, alpha), alpha, EXPONENT
        )
        assert distance < 2.0**-45
        assert worst_ratio > 1 - 2.0**-40


class TestUpdates:
    @pytest.mark.parametrize("exponent", [EXPONENT, 1e-17, 1e-3])
    @given(data=st.data())
    @settings(deadline=None, max_examples=80)
    def test_any_sequence_leaves_it_consistent(self, exponent, data):
        start, changes = data.draw(histories(38))
        alpha = np.array(start, dtype=np.int64)
        selector = big_little_state(alpha.size, exponent, True)
        fill(selector, alpha)
        check(selector, alpha)
        for step, (k, value) in enumerate(changes):
            change(selector, alpha, np.array([k]), np.array([value]))
            check(selector, alpha)
            if step % 3 == 0:
                draw(selector, alpha, random_stream(0), 1)
                assert selector.stale[0] == 0
                check(selector, alpha)

    def test_sums_do_not_drift_in_a_million_updates(self):
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

    @pytest.mark.parametrize("exponent", [0.0, -1.0, np.nan, np.inf])
    def test_refuses_a_senseless_exponent(self, exponent):
        with pytest.raises(ValueError, match="exponent must be finite and positive"):
            big_little_state(10, exponent, True)


@pytest.mark.parametrize("n_columns", [100, 10_000, 1_000_000])
def test_variates_grow_like_the_logarithm(n_columns):
    alpha = random_gradients(n_columns, 5, nats=1.0)
    selector = big_little_state(n_columns, EXPONENT, True)
    fill(selector, alpha)
    draw(selector, alpha, random_stream(6), 300)
    # Two acceptances, a sign, and about ln(groups) + ln(members) jumps.
    assert 3 < selector.counters[VARIATES] / 300 < 5 + 1.2 * np.log(n_columns)


@pytest.mark.parametrize("case", HARD)
def test_weights_of_the_paper(case):
    alpha, exponent = HARD[case]
    selector = big_little_state(alpha.size, exponent, False)
    fill(selector, alpha)
    draws = draw(selector, alpha, random_stream(8), 20_000)
    expected = vertex_probabilities(alpha, exponent, signed=False)
    assert p_value(count_vertices(alpha.size, *draws), expected) > ALARM


# Broken updates: (selector, alpha, k, old, new) -> None.


def ticks_at(selector, k, group, value):
    return int(weight_in_ticks(selector, abs(value), selector.reference[group])) + 1


def missing_update(selector, alpha, k, old, new):
    pass


def group_by_remainder(selector, alpha, k, old, new):
    """The listing's `mod` for the group of an item."""
    group = k % selector.size
    ticks = ticks_at(selector, k, group, new)
    selector.total[group] += ticks - selector.ticks[k]
    selector.ticks[k] = ticks


def stale_sum(selector, alpha, k, old, new):
    selector.ticks[k] = ticks_at(selector, k, k // selector.size, new)


def no_rebase(selector, alpha, k, old, new):
    """Ticks clipped to the range instead of a new reference."""
    group = k // selector.size
    ticks = min(ticks_at(selector, k, group, new), selector.most)
    selector.total[group] += ticks - selector.ticks[k]
    selector.ticks[k] = ticks


def drifting_sum(selector, alpha, k, old, new):
    """A sum in log scale, added to and subtracted from for ever."""
    group = k // selector.size
    before, after = float(selector.ticks[k]), float(ticks_at(selector, k, group, new))
    log_total = np.log(float(selector.total[group]))
    log_total += np.log1p(np.exp(np.log(after) - log_total) - np.exp(np.log(before) - log_total))
    selector.total[group] = round(np.exp(log_total))
    selector.ticks[k] = round(after)


MUTANTS = [missing_update, group_by_remainder, stale_sum, no_rebase, drifting_sum]


def apply(broken, selector, alpha, n_updates, spread):
    rng = np.random.default_rng(9)
    for _ in range(n_updates):
        k = rng.integers(alpha.size)
        old, alpha[k] = alpha[k], alpha[k] + rng.integers(-spread, spread) * SHARE
        broken(selector, alpha, int(k), int(old), int(alpha[k]))


class TestMutants:
    @pytest.mark.parametrize("broken", MUTANTS)
    def test_is_caught_by_the_invariants(self, broken):
        alpha = np.zeros(16, dtype=np.int64)
        selector = big_little_state(16, EXPONENT, True)
        fill(selector, alpha)
        apply(broken, selector, alpha, 50, 500 if broken is no_rebase else 50)
        with pytest.raises(BrokenInvariantError):
            check(selector, alpha)

    @pytest.mark.parametrize("broken", [missing_update, group_by_remainder, stale_sum, no_rebase])
    def test_is_caught_by_the_draws(self, broken):
        alpha = np.zeros(16, dtype=np.int64)
        selector = big_little_state(16, EXPONENT, True)
        fill(selector, alpha)
        apply(broken, selector, alpha, 30, 500 if broken is no_rebase else 200)
        selector.total[:] = np.maximum(selector.total, 1)
        draws = draw(selector, alpha, random_stream(10), 50_000)
        expected = vertex_probabilities(alpha, EXPONENT)
        assert p_value(count_vertices(16, *draws), expected) < ALARM

    def test_the_right_update_passes_both(self):
        alpha = np.zeros(16, dtype=np.int64)
        selector = big_little_state(16, EXPONENT, True)
        fill(selector, alpha)
        apply(update_big_little, selector, alpha, 50, 500)
        check(selector, alpha)
        draws = draw(selector, alpha, random_stream(10), 50_000)
        expected = vertex_probabilities(alpha, EXPONENT)
        assert p_value(count_vertices(16, *draws), expected) > ALARM
