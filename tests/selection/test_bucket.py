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
from evidence.reference.gradients import EXPONENT, HARD, LIMIT, SHARE, random_gradients
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
    move,
    update_bucket,
    upper_edge,
)
from dplasso.selection.counters import MOVES, TRIES
from selection.distance import implied_by_bucket, total_variation
from selection.invariants import BrokenInvariantError, check
from selection.reference import level_of as slow_level_of
from selection.sequences import histories

WIDTHS = [(0, PRIVATE_BITS), (38, PRIVATE_BITS), (62, PRIVATE_BITS), (ARGMAX_SHIFT, ARGMAX_BITS)]
# As many levels as fit the linear part: beyond it, draws go by race.
IN_REACH = [
    case
    for case, (alpha, exponent) in HARD.items()
    if exponent < np.log(2.0) and np.abs(alpha).max() * exponent < 2**12
]


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

    @pytest.mark.parametrize("exponent", [0.0, -1.0, np.nan])
    def test_refuses_a_senseless_exponent(self, exponent):
        with pytest.raises(ValueError, match="exponent must be positive"):
            bucket_state(10, exponent, True)


class TestExactness:
    """The chances that the stored integers and doubles imply, in exact arithmetic."""

    @pytest.mark.parametrize("signed", [True, False])
    @pytest.mark.parametrize("case", IN_REACH)
    def test_hard_gradients(self, case, signed):
        alpha, exponent = HARD[case]
        selector = bucket_state(alpha.size, exponent, signed)
        chances = implied_by_bucket(selector, alpha)
        distance, worst_ratio = total_variation(chances, alpha, exponent, signed=signed)
        assert distance < 2.0**-45
        assert worst_ratio > 1 - 2.0**-40

    @pytest.mark.parametrize("nats", [0.01, 3.0, 100.0])
    def test_a_thousand_columns(self, nats):
        alpha = random_gradients(1000, 1, nats=nats)
        selector = bucket_state(1000, EXPONENT, True)
        distance, worst_ratio = total_variation(implied_by_bucket(selector, alpha), alpha, EXPONENT)
        assert distance < 2.0**-45
        assert worst_ratio > 1 - 2.0**-40

    def test_a_cut_off_tail_would_be_seen(self):
        alpha = HARD["gap 40 of 50"][0]
        selector = bucket_state(50, EXPONENT, True)
        chances = implied_by_bucket(selector, alpha)
        cut = [c if c > max(chances) / 2**56 else 0 * c for c in chances]
        assert total_variation(cut, alpha, EXPONENT)[1] == 0.0


class TestUpdates:
    @pytest.mark.parametrize("exponent", [EXPONENT, 1e-3, np.inf])
    @given(data=st.data())
    @settings(deadline=None, max_examples=80)
    def test_any_sequence_leaves_it_consistent(self, exponent, data):
        shift = bucket_state(1, exponent, True).shift
        start, changes = data.draw(histories(shift))
        alpha = np.array(start, dtype=np.int64)
        selector = bucket_state(alpha.size, exponent, True)
        fill(selector, alpha)
        check(selector, alpha)
        for k, value in changes:
            change(selector, alpha, np.array([k]), np.array([value]))
            check(selector, alpha)
            draw(selector, alpha, random_stream(0), 1)
            check(selector, alpha)

    def test_staying_in_a_level_moves_nothing(self):
        alpha = random_gradients(50, 2)
        selector = bucket_state(50, EXPONENT, True)
        fill(selector, alpha)
        before = selector.order.copy()
        width = 2**selector.shift
        change(selector, alpha, np.arange(50), alpha // width * width + width // 2)
        assert selector.counters[MOVES] == 0
        np.testing.assert_array_equal(selector.order, before)

    def test_rebuild_forgets(self):
        alpha = random_gradients(50, 3)
        selector = bucket_state(50, EXPONENT, True)
        for seed in (4, 5):
            alpha = random_gradients(50, seed, nats=30.0)
            fill(selector, alpha)
            check(selector, alpha)


@pytest.mark.parametrize("nats", [0.0, 0.01, 1.0, 10.0, 1000.0])
def test_tries_are_few(nats):
    alpha = random_gradients(10_000, 6, nats=nats)
    selector = bucket_state(10_000, EXPONENT, True)
    fill(selector, alpha)
    draw(selector, alpha, random_stream(7), 2000)
    assert selector.counters[TRIES] < 2.2 * 2000


@pytest.mark.parametrize("case", HARD)
def test_weights_of_the_paper(case):
    alpha, exponent = HARD[case]
    selector = bucket_state(alpha.size, exponent, False)
    fill(selector, alpha)
    draws = draw(selector, alpha, random_stream(8), 20_000)
    expected = vertex_probabilities(alpha, exponent, signed=False)
    assert p_value(count_vertices(alpha.size, *draws), expected) > ALARM


# Broken updates: (selector, alpha, k, old, new) -> None.


def missing_move(selector, alpha, k, old, new):
    pass


def one_level_short(selector, alpha, k, old, new):
    source = level_of(fold(old), selector.shift, selector.bits)
    target = level_of(fold(new), selector.shift, selector.bits)
    target -= target > source
    move(selector.order, selector.position, selector.start, k, source, target)


def signed_level(selector, alpha, k, old, new):
    update_bucket(selector, alpha, k, max(old, 0), max(new, 0))


def forgotten_top(selector, alpha, k, old, new):
    top = selector.top[0]
    update_bucket(selector, alpha, k, old, new)
    selector.top[0] = top


def forgotten_position(selector, alpha, k, old, new):
    place = selector.position[k]
    update_bucket(selector, alpha, k, old, new)
    other = selector.order[place]
    if other != k:
        selector.position[other] = selector.position[k]


MUTANTS = [missing_move, one_level_short, signed_level, forgotten_top, forgotten_position]


def apply(broken, selector, alpha, n_updates, after_each=lambda *_: None):
    rng = np.random.default_rng(9)
    for _ in range(n_updates):
        k = rng.integers(alpha.size)
        old, alpha[k] = alpha[k], alpha[k] + rng.integers(-400, 400) * SHARE
        broken(selector, alpha, int(k), int(old), int(alpha[k]))
        after_each(selector, alpha)


class TestMutants:
    @pytest.mark.parametrize("broken", MUTANTS)
    def test_is_caught_by_the_invariants(self, broken):
        alpha = np.zeros(12, dtype=np.int64)
        selector = bucket_state(12, EXPONENT, True)
        fill(selector, alpha)
        with pytest.raises(BrokenInvariantError):
            apply(broken, selector, alpha, 20, after_each=check)

    @pytest.mark.parametrize("broken", [missing_move, signed_level])
    def test_is_caught_by_the_draws(self, broken):
        alpha = np.zeros(12, dtype=np.int64)
        selector = bucket_state(12, EXPONENT, True)
        fill(selector, alpha)
        apply(broken, selector, alpha, 30)
        draws = draw(selector, alpha, random_stream(10), 50_000)
        expected = vertex_probabilities(alpha, EXPONENT)
        assert p_value(count_vertices(12, *draws), expected) < ALARM

    def test_the_right_update_passes_both(self):
        alpha = np.zeros(12, dtype=np.int64)
        selector = bucket_state(12, EXPONENT, True)
        fill(selector, alpha)
        apply(update_bucket, selector, alpha, 30)
        check(selector, alpha)
        draws = draw(selector, alpha, random_stream(10), 50_000)
        expected = vertex_probabilities(alpha, EXPONENT)
        assert p_value(count_vertices(12, *draws), expected) > ALARM
