"""The multinomial loss with a residual vector bounded in L2, against its definition."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from dplasso.losses.contract import residual_vector
from dplasso.losses.logistic import class_probabilities
from dplasso.losses.multinomial import (
    Multinomial,
    multinomial_probabilities,
    residual_norm_at_zero,
)

anything = st.floats(allow_nan=True, allow_infinity=True)
vectors = st.lists(st.floats(-30.0, 30.0), min_size=3, max_size=8)


def residuals(margins, target, bound):
    found = np.full(len(margins), np.nan)
    given_margins = np.array(margins, dtype=np.float64)
    residual_vector(Multinomial(len(margins), bound), given_margins, target, found)
    return found


@given(st.lists(anything, min_size=2, max_size=8), st.floats(0.5, 1.5), st.integers(0, 7))
def test_no_margins_pull_with_more_than_the_bound(margins, bound, target):
    found = residuals(margins, target % len(margins), bound)
    # The slack of unit rows is 2^-30.
    assert np.linalg.norm(found) <= bound * (1 + 2.0**-40)


@given(vectors, st.integers(0, 2), st.floats(0.5, 1.5))
def test_residuals_are_those_of_the_softmax_shortened(margins, target, bound):
    expected = softmax(margins) - np.eye(len(margins))[target]
    expected *= min(1.0, bound / np.linalg.norm(expected))
    np.testing.assert_allclose(residuals(margins, target, bound), expected, atol=1e-14)


@pytest.mark.parametrize("k", [2, 3, 10, 100])
def test_at_zero_weights_nothing_is_lost(k):
    bound = residual_norm_at_zero(k)
    found = residuals(np.zeros(k), k - 1, bound)
    np.testing.assert_allclose(found, 1 / k - np.eye(k)[k - 1], atol=1e-15)
    assert np.linalg.norm(found) == pytest.approx(bound)
    assert np.linalg.norm(residuals(np.zeros(k), 0, 0.9 * bound)) == pytest.approx(0.9 * bound)


@pytest.mark.parametrize("margins", [[0.0, math.nan, 1.0], [math.inf, 0.0, 0.0], [math.inf] * 3])
def test_margins_that_are_no_numbers_pull_with_nothing(margins):
    assert not residuals(margins, 1, 1.0).any()


@given(vectors, st.floats(0.5, 1.5))
def test_the_link_is_where_the_pulls_of_the_classes_balance(margins, bound):
    """So predicted probabilities are what the margins stand for, clipped residuals or not."""
    probabilities = multinomial_probabilities(np.array([margins]), bound)[0]
    assert probabilities.sum() == pytest.approx(1.0)
    pulls = np.array([residuals(margins, k, bound) for k in range(len(margins))])
    np.testing.assert_allclose(probabilities @ pulls, 0.0, atol=1e-12)


@given(st.floats(-30, 30), st.floats(0.5, 1.0))
def test_of_two_classes_it_is_the_binary_link(margin, bound):
    found = multinomial_probabilities(np.array([[0.0, margin]]), bound * math.sqrt(2.0))
    np.testing.assert_allclose(found, class_probabilities(np.array([margin]), bound), atol=1e-12)


def test_without_a_bound_it_is_the_softmax():
    margins = np.random.default_rng(0).normal(size=(20, 5)) * 5
    found = multinomial_probabilities(margins, math.sqrt(2.0))
    np.testing.assert_allclose(found, softmax(margins, axis=1), atol=1e-15)
