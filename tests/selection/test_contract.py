"""Every private structure draws from the exponential mechanism over the signed vertices."""

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
from evidence.reference.gradients import EXPONENT, HARD, LIMIT, PRIVATE, SHARE, random_gradients

from dplasso.privacy.randomness import random_stream
from dplasso.selection.argmax import descent_sign
from dplasso.selection.contract import granularity, rebuild, select, update, update_many
from selection.invariants import check


def number_of_draws(name, n_columns):
    """Enough to see a factor of 2 in the exponent; the O(D) reference costs 2 D noises a draw."""
    return min(50_000, 5_000_000 // n_columns) if name == "noisy-max" else 50_000


@pytest.mark.parametrize("name", PRIVATE)
class TestEveryPrivateSelector:
    @pytest.mark.parametrize("n_updates", [0, 1, 1000])
    @pytest.mark.parametrize("n_columns", [1, 2, 3, 17, 64, 1000])
    def test_draws_follow_the_closed_form(self, name, n_columns, n_updates):
        alpha = random_gradients(n_columns, seed=n_columns)
        selector = PRIVATE[name](n_columns, EXPONENT)
        fill(selector, alpha)
        # Half the updates are a share or so, as in training; half go anywhere.
        rng = np.random.default_rng(n_updates)
        coordinates = rng.integers(0, n_columns, n_updates)
        values = random_gradients(n_updates, seed=n_updates + 1)
        near = rng.random(n_updates) < 0.5
        values[near] = alpha[coordinates[near]] + rng.integers(-SHARE, SHARE, near.sum())
        change(selector, alpha, coordinates, values)
        check(selector, alpha)
        expected = vertex_probabilities(alpha, EXPONENT)
        draws = draw(selector, alpha, random_stream(1), number_of_draws(name, n_columns))
        assert p_value(count_vertices(n_columns, *draws), expected) > ALARM

    @pytest.mark.parametrize("case", HARD)
    def test_hard_gradients(self, name, case):
        alpha, exponent = HARD[case]
        alpha = alpha.copy()
        selector = PRIVATE[name](alpha.size, exponent)
        fill(selector, alpha)
        check(selector, alpha)
        expected = vertex_probabilities(alpha, exponent)
        draws = draw(selector, alpha, random_stream(2), 20_000)
        assert p_value(count_vertices(alpha.size, *draws), expected) > ALARM

    @pytest.mark.parametrize("case", HARD)
    def test_hard_gradients_reached_by_updates(self, name, case):
        target, exponent = HARD[case]
        selector = PRIVATE[name](target.size, exponent)
        rng = np.random.default_rng(0)
        alpha = rng.integers(-LIMIT, LIMIT, target.size)
        fill(selector, alpha)
        order = rng.permutation(target.size)
        change(selector, alpha, order, -target[order])
        draw(selector, alpha, random_stream(3), 1)
        change(selector, alpha, order, target[order])
        check(selector, alpha)
        expected = vertex_probabilities(alpha, exponent)
        draws = draw(selector, alpha, random_stream(4), 20_000)
        assert p_value(count_vertices(target.size, *draws), expected) > ALARM

    def test_the_true_sign_is_caught(self, name):
        alpha = random_gradients(17, seed=5)
        selector = PRIVATE[name](17, EXPONENT)
        fill(selector, alpha)
        vertex, _ = draw(selector, alpha, random_stream(5), 20_000)
        true_sign = np.where(alpha[vertex] >= 0, -1, 1)
        expected = vertex_probabilities(alpha, EXPONENT)
        assert p_value(count_vertices(17, vertex, true_sign), expected) < ALARM

    @pytest.mark.parametrize("factor", [0.5, 2.0])
    def test_a_wrong_scale_is_caught(self, name, factor):
        alpha = random_gradients(17, seed=6)
        selector = PRIVATE[name](17, factor * EXPONENT)
        fill(selector, alpha)
        draws = draw(selector, alpha, random_stream(6), 20_000)
        expected = vertex_probabilities(alpha, EXPONENT)
        assert p_value(count_vertices(17, *draws), expected) < ALARM

    def test_a_missing_candidate_is_caught(self, name):
        alpha = random_gradients(17, seed=7, nats=0.1)
        selector = PRIVATE[name](16, EXPONENT)
        fill(selector, alpha[:16])
        draws = draw(selector, alpha[:16], random_stream(7), 20_000)
        expected = vertex_probabilities(alpha, EXPONENT)
        assert p_value(count_vertices(17, *draws), expected) < ALARM

    def test_gradients_are_not_written_to(self, name):
        alpha = random_gradients(17, seed=8)
        before = alpha.copy()
        selector = PRIVATE[name](17, EXPONENT)
        fill(selector, alpha)
        draw(selector, alpha, random_stream(8), 10)
        np.testing.assert_array_equal(alpha, before)

    def test_a_seed_repeats_the_draws(self, name):
        alpha = random_gradients(17, seed=9)
        runs = []
        for _ in range(2):
            selector = PRIVATE[name](17, EXPONENT)
            fill(selector, alpha)
            runs.append(draw(selector, alpha, random_stream(9), 100))
        np.testing.assert_array_equal(runs[0], runs[1])


def test_a_right_sample_raises_no_alarm():
    alpha = random_gradients(17, seed=10)
    expected = vertex_probabilities(alpha, EXPONENT)
    rng = np.random.default_rng(0)
    values = [p_value(rng.multinomial(20_000, expected.ravel()), expected) for _ in range(200)]
    # Uniform p-values (doubled for two tests): 200 of them leave a third below 1/3, or fewer.
    assert min(values) > 1e-4
    assert np.mean(np.array(values) < 1 / 3) < 0.45


def test_draws_where_nothing_may_fall_are_caught():
    assert p_value(np.array([100, 1]), np.array([1.0, 0.0])) < ALARM


def test_a_class_that_was_not_registered_is_named():
    duties = ((select, 3), (update, 5), (update_many, 5), (rebuild, 2), (granularity, 1))
    for function, n_arguments in duties:
        with pytest.raises(TypeError, match=f"no kernel '{function.__name__}' .* for NoneType"):
            function(*[None] * n_arguments)


def test_the_true_sign_at_zero_is_fixed():
    assert [descent_sign(a) for a in (-5, 0, 5)] == [1, -1, -1]
