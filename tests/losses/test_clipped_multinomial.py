"""The multinomial loss whose every residual is bounded, against its definition."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax

from dplasso.losses.clipped_multinomial import (
    STEEPEST,
    ClippedMultinomial,
    balanced_margins,
    clipped_multinomial_probabilities,
)
from dplasso.losses.contract import residual_vector, value
from dplasso.losses.logistic import Logistic, class_probabilities
from dplasso.losses.multinomial import Multinomial

anything = st.floats(allow_nan=True, allow_infinity=True)
vectors = st.lists(st.floats(-30.0, 30.0), min_size=3, max_size=8)
bounds = st.sampled_from([0.5, 0.7, 1.0])


def residuals(margins, target, bound, offsets=None, weights=()):
    found = np.full(len(margins), np.nan)
    offsets = np.zeros(len(margins)) if offsets is None else np.array(offsets)
    loss = ClippedMultinomial(bound, offsets, np.array(weights, dtype=np.float64))
    residual_vector(loss, np.array(margins), target, found)
    return found


def loss_of(margins, target, bound):
    """The clipped logistic loss of a class's margin over all others."""
    others = np.delete(margins, target)
    return value(Logistic(bound), margins[target] - logsumexp(others), 1.0)


@given(st.lists(anything, min_size=2, max_size=8), bounds, st.integers(0, 7))
def test_no_margin_pulls_with_more_than_the_bound(margins, bound, target):
    found = residuals(margins, target % len(margins), bound)
    assert np.abs(found).max() <= bound


@given(st.lists(st.floats(-6.0, 6.0), min_size=3, max_size=8), bounds, st.integers(0, 2))
def test_residuals_are_the_gradient_of_a_loss(margins, bound, target):
    step, margins = 1e-5, np.array(margins)
    each = step * np.eye(margins.size)
    slopes = [
        (loss_of(margins + one, target, bound) - loss_of(margins - one, target, bound)) / 2 / step
        for one in each
    ]
    # The loss's slope jumps nowhere; its curvature does, where clipping begins.
    np.testing.assert_allclose(residuals(margins, target, bound), slopes, atol=2e-5)


@given(vectors, st.integers(0, 2))
def test_unclipped_they_are_those_of_the_softmax(margins, target):
    expected = softmax(margins) - np.eye(len(margins))[target]
    np.testing.assert_allclose(residuals(margins, target, 1.0), expected, atol=1e-14)
    np.testing.assert_array_equal(
        residuals(np.zeros(len(margins)), target, 0.5, margins), residuals(margins, target, 0.5)
    )


@given(vectors, vectors, bounds, st.integers(0, 2), st.floats(0.0, 1.0))
def test_no_residual_moves_faster_than_stated(margins, moves, bound, target, size):
    """What the calendar of stale rows rests on."""
    count = min(len(margins), len(moves))
    one = np.array(margins[:count])
    other = one + size * np.array(moves[:count])
    moved = np.abs(residuals(one, target, bound) - residuals(other, target, bound)).max()
    assert moved <= STEEPEST * np.abs(one - other).max() + 1e-12


def test_a_weight_is_what_a_record_counts():
    margins, weights = [0.3, -1.0, 2.0], [1.0, 0.5, 0.25]
    for k, weight in enumerate(weights):
        plain = residuals(margins, k, 0.5)
        np.testing.assert_allclose(residuals(margins, k, 0.5, weights=weights), weight * plain)
        found = np.empty(3)
        residual_vector(Multinomial(3, 0.8, np.array(weights)), np.array(margins), k, found)
        full = np.empty(3)
        residual_vector(Multinomial(3, 0.8), np.array(margins), k, full)
        np.testing.assert_allclose(found, weight * full)


def test_two_classes_pull_like_the_binary_loss():
    for margin in np.linspace(-5, 5, 21):
        found = residuals([0.0, margin], 1, 0.5)
        assert found[1] == pytest.approx(max(-0.5, 1 / (1 + math.exp(-margin)) - 1))
        assert found[0] == -found[1]


@pytest.mark.parametrize("margins", [[0.0, math.nan, 1.0], [math.inf, 0.0, 0.0], [math.inf] * 3])
def test_margins_that_are_no_numbers_pull_with_nothing(margins):
    assert not residuals(margins, 1, 1.0).any()


@given(vectors, bounds)
def test_the_link_is_where_the_pulls_of_the_classes_balance(margins, bound):
    probabilities = clipped_multinomial_probabilities(np.array([margins]), bound)[0]
    assert probabilities.sum() == pytest.approx(1.0)
    pulls = np.array([residuals(margins, k, bound) for k in range(len(margins))])
    np.testing.assert_allclose(probabilities @ pulls, 0.0, atol=1e-12)


@given(st.floats(-30, 30), st.floats(0.5, 1.0))
def test_of_two_classes_it_is_the_binary_link(margin, bound):
    found = clipped_multinomial_probabilities(np.array([[0.0, margin]]), bound)
    np.testing.assert_allclose(found, class_probabilities(np.array([margin]), bound), atol=1e-12)


@given(st.lists(st.floats(0.001, 1.0), min_size=2, max_size=50), bounds)
def test_margins_of_a_balance_stand_for_it(parts, bound):
    shares = np.array(parts) / sum(parts)
    margins = balanced_margins(shares, bound)
    found = clipped_multinomial_probabilities(margins[np.newaxis], bound)[0]
    np.testing.assert_allclose(found, shares, atol=1e-6)
