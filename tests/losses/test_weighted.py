"""Losses times a weight per record, against the loss of a record of weight 1."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.losses.contract import (
    gradient,
    margins_within,
    probability,
    residual_vector,
    tangent_offset,
    value,
)
from dplasso.losses.logistic import Logistic
from dplasso.losses.multinomial import Multinomial
from dplasso.losses.squared import Squared
from dplasso.losses.weighted import count_records, split_targets, weighted, weighted_targets
from losses.callers import call_all

LOSSES = {
    "logistic": (Logistic(0.5, 0.3, 0.2, 1.0), False),
    "plain": (Logistic(1.0), False),
    "squared": (Squared(0.25, -0.1), True),
}
weights = st.floats(0.0, 1.0)
margins = st.floats(-40.0, 40.0)


def carried(target, weight, regression):
    return float(weighted_targets(np.array([target]), np.array([weight]), regression=regression)[0])


@pytest.mark.parametrize(("loss", "regression"), LOSSES.values(), ids=LOSSES)
class TestOneMargin:
    @given(number=st.floats(-3.0, 2.0**40), margin=st.floats(allow_nan=True, allow_infinity=True))
    def test_no_number_pulls_with_more_than_the_bound(self, loss, regression, number, margin):
        made = weighted(loss, regression=regression)
        assert abs(gradient(made, margin, number)) <= made.residual_bound == loss.residual_bound

    @given(weight=weights, margin=margins, target=st.sampled_from([0.0, 1.0]))
    def test_everything_is_in_proportion(self, loss, regression, weight, margin, target):
        made, number = weighted(loss, regression=regression), carried(target, weight, regression)
        near = pytest.approx
        q = gradient(loss, margin, target)
        found = gradient(made, margin, number)
        # A weight shares a number with its target, of 2^26 steps at most.
        assert found == near(weight * q, rel=1e-12, abs=2.0**-26)
        assert value(made, margin, number) == near(weight * value(loss, margin, target), abs=1e-6)
        if weight > 1e-3:
            expected = weight * tangent_offset(loss, q, target)
            assert tangent_offset(made, found, number) == near(expected, abs=1e-4)
        assert probability(made, margin) == probability(loss, margin)

    @given(weight=weights, margin=margins, tolerance=st.floats(1e-5, 0.4))
    def test_inside_the_interval_the_residual_is_near(
        self, loss, regression, weight, margin, tolerance
    ):
        made, number = weighted(loss, regression=regression), carried(1.0, weight, regression)
        q = gradient(made, margin, number)
        for end in map(float, margins_within(made, q, number, tolerance)):
            near = min(max(end, -1e6), 1e6)
            assert abs(gradient(made, near, number) - q) <= tolerance * (1 + 1e-9) + 1e-12

    def test_without_a_weight_nothing_moves(self, loss, regression):
        made, number = weighted(loss, regression=regression), carried(1.0, 0.0, regression)
        assert gradient(made, 3.0, number) == tangent_offset(made, 0.0, number) == 0.0
        assert margins_within(made, 0.0, number, 0.1) == (-math.inf, math.inf)
        lowest, highest = margins_within(made, 0.0, number, 0.0)
        assert lowest > highest

    def test_compiled_code_picks_it_by_its_type(self, loss, regression):
        made, number = weighted(loss, regression=regression), carried(1.0, 0.5, regression)
        expected = (
            gradient(made, 0.3, number),
            margins_within(made, 0.01, number, 0.05),
            value(made, 0.3, number),
            tangent_offset(made, 0.01, number),
            probability(made, 0.3),
        )
        assert call_all(made, 0.3, number, 0.01, 0.05) == expected


def test_vectors_are_in_proportion():
    loss = Multinomial(4, 0.8)
    made, found, plain = weighted(loss, regression=False), np.empty(4), np.empty(4)
    margin = np.array([0.3, -2.0, 1.0, 0.0])
    for number, weight in ((2.25, 0.5), (2.5, 1.0), (2.0, 0.0), (2.9, 1.0)):
        residual_vector(made, margin, number, found)
        residual_vector(loss, margin, 2, plain)
        np.testing.assert_array_equal(found, weight * plain)
    assert (made.n_outputs, made.curvature) == (4, 0.5)


@given(st.floats(-1.0, 1.0), weights)
def test_numbers_hold_target_and_weight(target, weight):
    for regression, given_ in ((True, target), (False, 5.0)):
        made = weighted(Squared(), regression=regression)
        found = split_targets(made, np.array([carried(given_, weight, regression)]))
        assert [float(part[0]) for part in found] == pytest.approx([given_, weight], abs=2.0**-24)


@pytest.mark.parametrize("regression", [False, True])
def test_a_record_that_is_left_out_has_no_weight_and_is_not_counted(regression):
    made = weighted(Squared() if regression else Logistic(), regression=regression)
    given_ = {"regression": regression, "within": np.array([True, False, True])}
    for weights in (None, np.array([0.0, 1.0, 1.0])):
        numbers = weighted_targets(np.array([0.0, 1.0, 1.0]), weights, **given_)
        _, found = split_targets(made, numbers)
        assert found.tolist() == [1.0 if weights is None else 0.0, 0.0, 1.0]
        assert gradient(made, 3.0, float(numbers[1])) == 0.0
        assert count_records(made, numbers) == 2
    assert count_records(Logistic(), np.zeros(3, np.int8)) == 3
