"""Weights of records: in proportion, never beyond a whole record, and counted as what they are."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.losses.logistic import Logistic
from dplasso.losses.loss import gradient, tangent_offset
from dplasso.losses.multinomial import ClippedMultinomial
from dplasso.losses.squared import Squared
from dplasso.losses.targets import (
    PART_BITS,
    count_classes,
    sum_squares,
    targets_of,
    weight_of,
    weighted_margins_within,
    weighted_tangent_offset,
)

LOSSES = (Logistic(0.5, 0.3, 0.2, 1.0), Logistic(1.0), Squared(0.25, -0.1))
weights = st.floats(0.0, 1.0)
margins = st.floats(-40.0, 40.0)
hostile = st.floats(allow_nan=True, allow_infinity=True)


@given(hostile)
def test_no_number_counts_for_more_than_a_record(number):
    found = weight_of(np.array([0.5, number]), 1)
    assert found == (min(max(number, 0.0), 1.0) if number == number else 0.0)
    assert weight_of(np.zeros(0), 1) == 1.0


@pytest.mark.parametrize("loss", LOSSES)
@given(
    weight=weights,
    margin=margins,
    offset=st.sampled_from([0.0, -3.0, 0.7, 2.0**20]),
    tolerance=st.floats(1e-5, 0.4),
)
def test_inside_the_interval_the_weighted_residual_is_near(loss, weight, margin, offset, tolerance):
    q = weight * gradient(loss, margin, 1.0)
    lowest, highest = weighted_margins_within(loss, q, 1.0, weight, offset, tolerance)
    # So far out that no number of their type lies between them.
    ends = map(float, (lowest, highest)) if lowest <= highest else ()
    for end in ends:
        near = min(max(end + offset, -1e6), 1e6)
        assert abs(weight * gradient(loss, near, 1.0) - q) <= tolerance * (1 + 1e-9) + 1e-12
    if weight > 1e-3:
        expected = weight * tangent_offset(loss, q / weight, 1.0)
        expected += q * offset
        assert weighted_tangent_offset(loss, q, 1.0, weight, offset) == pytest.approx(expected)


def test_without_a_weight_nothing_moves():
    for loss in LOSSES:
        assert weighted_tangent_offset(loss, 0.0, 1.0, 0.0, 2.0) == 0.0
        assert weighted_margins_within(loss, 0.0, 1.0, 0.0, 2.0, 0.1) == (-math.inf, math.inf)
        lowest, highest = weighted_margins_within(loss, 0.0, 1.0, 0.0, 2.0, 0.0)
        assert lowest > highest


@pytest.mark.parametrize("own", [None, np.array([0.0, 1.0, 1.0])])
def test_a_record_that_is_left_out_has_no_weight_and_is_not_counted(own):
    found = targets_of(np.array([0.5, 1.0]), own, np.array([True, False, True]))
    assert found.labels.tolist() == [0.5, 0.0, 1.0]
    assert found.weights.tolist() == [1.0 if own is None else 0.0, 0.0, 1.0]
    assert found.n_records == 2
    everyone = targets_of(np.zeros(3))
    assert (everyone.weights.size, everyone.n_records) == (0, 3)


@pytest.mark.parametrize(
    ("loss", "labels", "expected"),
    [
        (Logistic(), [0, 1, 1], [[1, 2], [0.5, 0.75]]),
        (Squared(), [-1, 0.5, 1], [[1.25, 1.75], [0.5625, 0.6875]]),
        (ClippedMultinomial(0.8, np.zeros(3)), [0, 2, 2], [[1, 0, 2], [0.5, 0, 0.75]]),
        (ClippedMultinomial(0.5, np.zeros(3)), [1, 0, 2], [[1, 1, 1], [0.25, 0.5, 0.5]]),
    ],
)
def test_records_count_for_their_classes_in_parts(loss, labels, expected):
    for own, counts in zip((None, np.array([0.5, 0.25, 0.5])), expected, strict=True):
        found = count_classes(loss, targets_of(np.array(labels, dtype=float), own))
        assert [count / 2**PART_BITS for count in found] == counts


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=4))
def test_a_record_of_weight_1_counts_as_one_without_a_weight(labels):
    """Rows of a store are left out by weights, rows in memory are not there: the counts agree."""
    targets = np.array(labels)
    counts = count_classes(Squared(), targets_of(targets))
    assert count_classes(Squared(), targets_of(targets, np.ones(targets.size))) == counts
    within = np.arange(targets.size + 1) < targets.size
    assert count_classes(Squared(), targets_of(targets, None, within)) == counts


@given(st.lists(hostile, min_size=2, max_size=2), st.floats(-1.0, 1.0))
def test_one_record_moves_the_counts_by_no_more_than_one(numbers, label):
    for loss, target in ((Squared(), label), (Logistic(), float(label > 0))):
        one, other = (
            count_classes(loss, targets_of(np.array([target, target]), np.array([1.0, number])))
            for number in (numbers[0], 0.0)
        )
        moved = np.array(one, dtype=float) - np.array(other, dtype=float)
        assert np.linalg.norm(moved) <= 2.0**PART_BITS


@given(hostile, st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))
def test_one_record_moves_the_sum_of_squares_by_half_a_unit_and_another_label_by_one(
    weight, label, other
):
    unit = 2.0**33

    def added(target):
        return sum_squares(unit, targets_of(np.array([target]), np.array([weight])))

    assert max(abs(added(label)), 0.5 * abs(added(label) - added(other))) <= 0.5 * unit
