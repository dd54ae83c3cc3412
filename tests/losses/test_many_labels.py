"""The loss of many labels: never beyond its bound together, and a link that balances each label."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.losses.contract import gradient, residual_vector
from dplasso.losses.logistic import Logistic, ManyLogistic

anything = st.floats(allow_nan=True, allow_infinity=True)
bounds = st.sampled_from([0.5, 1.0]) | st.floats(0.5, 1.0)
# What unit rows leave for rounding.
SLACK = 1.0 + 2.0**-40


def residuals(loss, margins, target):
    found = np.full(len(margins), np.nan)
    residual_vector(loss, np.array(margins), np.array(target, dtype=np.float64), found)
    return found


def loss_of(n_labels, each):
    return ManyLogistic(n_labels, each * math.sqrt(n_labels))


@given(st.lists(anything, min_size=2, max_size=40), bounds, st.data())
def test_no_record_pulls_with_more_than_the_bound(margins, each, data):
    # Targets beyond 0 and 1 do not occur, and would not matter.
    target = data.draw(st.lists(anything, min_size=len(margins), max_size=len(margins)))
    loss = loss_of(len(margins), each)
    found = residuals(loss, margins, target)
    largest = np.linalg.norm(found) / loss.residual_bound, np.abs(found).max() / each
    assert max(largest) <= SLACK


@pytest.mark.parametrize("n_labels", [2, 3, 100])
def test_the_bound_is_reached_and_no_larger_than_it_has_to_be(n_labels):
    found = residuals(loss_of(n_labels, 0.5), np.zeros(n_labels), np.ones(n_labels))
    assert np.linalg.norm(found) == pytest.approx(loss_of(n_labels, 0.5).residual_bound)
    # A margin that is not a number pulls with nothing.
    assert not residuals(loss_of(n_labels, 0.5), np.full(n_labels, np.nan), np.ones(n_labels)).any()


@given(st.lists(st.floats(-30.0, 30.0), min_size=2, max_size=8), bounds, st.data())
def test_each_label_has_the_residual_and_the_probability_of_its_own_loss(margins, each, data):
    size = len(margins)
    target = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=size, max_size=size))
    loss, one = loss_of(len(margins), each), Logistic(each)
    expected = [gradient(one, m, t) for m, t in zip(margins, target, strict=True)]
    np.testing.assert_allclose(residuals(loss, margins, target), expected, rtol=1e-12, atol=1e-15)
    link = loss.link(np.array([margins, margins]))
    assert link.shape == (2, len(margins))
    np.testing.assert_allclose(link[1], one.link(np.array(margins))[:, 1], rtol=1e-9)


@given(st.lists(st.floats(-9.0, 9.0), min_size=2, max_size=8), bounds)
def test_the_link_is_where_the_pulls_balance(margins, each):
    n_labels = len(margins)
    loss = loss_of(n_labels, each)
    (said,) = loss.link(np.array([margins]))
    absent, there = (residuals(loss, margins, np.full(n_labels, y)) for y in (0.0, 1.0))
    np.testing.assert_allclose((1.0 - said) * absent + said * there, 0.0, atol=1e-12)
