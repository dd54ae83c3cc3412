"""What every loss promises, and the logistic ones beyond that; a new loss is one more case here."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numba import njit

from dplasso.losses import loss as generic
from dplasso.losses.logistic import Logistic, ManyLogistic
from dplasso.losses.loss import (
    gradient,
    margins_within,
    residual_vector,
    second_derivative,
    tangent_offset,
    value,
    without_offset,
)
from dplasso.losses.multinomial import ClippedMultinomial, Multinomial
from dplasso.losses.squared import Squared
from dplasso.runtime.compilation import implementation

bounds = st.sampled_from([0.5, 1.0]) | st.floats(0.5, 1.0)
parts = st.floats(0.01, 1.0)
binary, interval = st.sampled_from([0.0, 1.0]), st.floats(-1.0, 1.0)
# Of one margin: losses, their targets, and how close a tangent comes (next to a residual of 0 or 1
# the logarithms have lost their digits, and the classes' weights multiply that).
LOSSES = {
    "logistic": (bounds.map(Logistic), binary, 5e-14),
    "logistic, weights and offset": (
        st.builds(Logistic, bounds, st.floats(-5.0, 5.0), parts, parts),
        binary,
        2e-5,
    ),
    "squared": (st.builds(Squared, st.floats(0.01, 2.0), st.floats(-1.0, 1.0)), interval, 1e-9),
}
# Of K margins: losses, and the norm that is bounded.
VECTOR_LOSSES = {
    "multinomial": (Multinomial, np.linalg.norm),
    "clipped multinomial": (
        lambda k, bound, weights=(): ClippedMultinomial(bound, np.zeros(k), np.array(weights)),
        lambda residuals: np.abs(residuals).max(),
    ),
}
anything = st.floats(allow_nan=True, allow_infinity=True)
margins = st.floats(-40.0, 40.0)
vectors = st.lists(st.floats(-30.0, 30.0), min_size=3, max_size=8)
one_margin = pytest.mark.parametrize(("losses", "targets", "near"), LOSSES.values(), ids=LOSSES)
several_margins = pytest.mark.parametrize(
    ("make", "norm"), VECTOR_LOSSES.values(), ids=VECTOR_LOSSES
)


def residuals(loss, margins, target):
    found = np.full(len(margins), np.nan)
    known = np.array(target, dtype=np.float64) if np.ndim(target) else float(target)
    residual_vector(loss, np.array(margins, dtype=np.float64), known, found)
    return found


@one_margin
class TestOneMargin:
    @given(data=st.data(), margin=anything)
    def test_no_margin_pulls_with_more_than_the_bound(self, losses, targets, near, data, margin):
        loss, target = data.draw(losses), data.draw(targets)
        found = gradient(loss, margin, target)
        assert abs(found) <= loss.residual_bound
        if math.isnan(margin):
            assert found == 0.0
        assert without_offset(loss) == loss._replace(offset=0.0)

    @given(data=st.data(), margin=anything)
    def test_the_second_derivative_is_the_slope_of_the_residual(
        self, losses, targets, near, data, margin
    ):
        loss, target, h = data.draw(losses), data.draw(targets), 2.0**-12
        found = second_derivative(loss, margin, target)
        assert 0.0 <= found <= loss.curvature
        if math.isfinite(margin) and abs(margin) < 1e3:
            low, middle, high = (gradient(loss, margin + s, target) for s in (-h, 0.0, h))
            # But where residuals begin to be clipped.
            if abs(high - 2.0 * middle + low) < 1e-7:
                assert found == pytest.approx((high - low) / (2 * h), abs=1e-3)

    @given(data=st.data(), margin=margins)
    def test_the_gradient_is_the_slope_of_the_value(self, losses, targets, near, data, margin):
        loss, target, h = data.draw(losses), data.draw(targets), 1e-5
        ends = [value(loss, margin + side, target) for side in (h, -h)]
        slope = (ends[0] - ends[1]) / (2 * h)
        assert gradient(loss, margin, target) == pytest.approx(slope, abs=loss.curvature * h + 2e-9)

    @given(data=st.data(), margin=margins)
    def test_a_tangent_meets_margin_zero_at_its_offset(self, losses, targets, near, data, margin):
        loss, target = data.draw(losses), data.draw(targets)
        q = gradient(loss, margin, target)
        expected = value(loss, margin, target) - q * margin
        assert tangent_offset(loss, q, target) == pytest.approx(expected, rel=1e-9, abs=near)

    @given(data=st.data(), margin=margins, tolerance=st.floats(1e-19, 0.6))
    def test_inside_the_residual_is_within_the_tolerance(
        self, losses, targets, near, data, margin, tolerance
    ):
        loss, target = data.draw(losses), data.draw(targets)
        q = gradient(loss, margin, target)
        lowest, highest = margins_within(loss, q, target, tolerance)
        assert (lowest, highest) == (np.float32(lowest), np.float32(highest))
        assume(lowest <= highest)
        # Rounded inwards: at the very ends, and at infinity where they are infinite.
        for end in (float(lowest), float(highest)):
            assert abs(gradient(loss, end, target) - q) <= tolerance * (1 + 1e-9) + 1e-12

    @given(data=st.data(), margin=margins, tolerance=st.floats(1e-4, 0.6))
    def test_it_is_hardly_narrower_than_it_may_be(
        self, losses, targets, near, data, margin, tolerance
    ):
        loss, target = data.draw(losses), data.draw(targets)
        q = gradient(loss, margin, target)
        for end, side in zip(margins_within(loss, q, target, tolerance), (-1, 1), strict=True):
            beyond = float(end) + side * 1e-5 * (1 + abs(float(end)))
            # Where the residual may be anything beyond, there is no end.
            if math.isinf(end):
                assert end == side * math.inf
            else:
                moved = abs(gradient(loss, beyond, target) - q)
                assert moved >= tolerance * (1 - 1e-6) - 1e-12 or tolerance < 1e-5

    @given(data=st.data(), margin=margins)
    def test_nothing_is_inside_without_tolerance(self, losses, targets, near, data, margin):
        loss, target = data.draw(losses), data.draw(targets)
        found = margins_within(loss, gradient(loss, margin, target), target, 0.0)
        assert found == (math.inf, -math.inf)

    @given(data=st.data(), margin=st.floats(-9.0, 9.0))
    def test_the_link_is_where_the_pulls_balance(self, losses, targets, near, data, margin):
        loss = data.draw(losses)
        said = loss.link(np.array([margin]))[0]
        if np.ndim(said):
            # A class that counts less is as if it were rarer.
            loss = loss._replace(negative_weight=1.0, positive_weight=1.0)
            pulls = [gradient(loss, margin, float(k)) for k in (0, 1)]
            assert said.sum() == pytest.approx(1.0, abs=1e-15)
            assert said @ pulls == pytest.approx(0.0, abs=1e-12)
        elif abs(said) < 1.0:
            assert gradient(loss, margin, said) == pytest.approx(0.0, abs=1e-12)

    @given(data=st.data(), p=st.floats(0.02, 0.98), count=st.integers(100, 10**6))
    def test_margins_start_where_the_pulls_balance(self, losses, targets, near, data, p, count):
        loss = without_offset(data.draw(losses))
        start = loss.starting_offset(count * np.array([1.0 - p, p]), 0.0)
        assert math.isfinite(loss.starting_offset(np.array([1.0, 1e9]), 0.0))
        at_start, low = loss._replace(offset=start), 0.0
        if isinstance(loss, Squared):
            # The mean, where the pulls balance while no residual is clipped.
            at_start, low = at_start._replace(residual_bound=2.0), -1.0
        down, up = (1.0 - p) * gradient(at_start, 0.0, low), p * gradient(at_start, 0.0, 1.0)
        # Of unequal weights, not beyond one in a hundred.
        assume(abs(start) < 3.8)
        assert down + up == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("loss", [Logistic(0.5), Squared()])
def test_a_balance_that_may_be_noise_moves_nothing(loss):
    assert loss.starting_offset(np.array([1000.0, 1050.0]), 20.0) == 0.0
    less, more = (loss.starting_offset(np.array([1e3, 1.1e3]), noise) for noise in (20.0, 0.0))
    assert 0.0 < less < more


@one_margin
@given(st.data(), anything)
def test_another_label_moves_a_residual_no_further_than_stated(losses, targets, near, data, margin):
    loss = data.draw(losses)
    one, other = (gradient(loss, margin, data.draw(targets)) for _ in range(2))
    assert abs(one - other) <= loss.label_distance


@several_margins
class TestSeveralMargins:
    @given(
        given_=st.lists(margins | anything, min_size=3, max_size=6),
        weights=st.lists(parts, min_size=6, max_size=6) | st.just([]),
        bound=bounds,
    )
    def test_another_label_moves_them_no_further_than_stated(
        self, make, norm, given_, weights, bound
    ):
        loss = make(len(given_), bound, np.array(weights[: len(given_)]))
        found = [residuals(loss, given_, k) for k in range(len(given_))]
        # A loss that bounds each entry is taken for one that bounds their length.
        longest = max(bound, np.sqrt(2.0) * bound * (norm is not np.linalg.norm))
        stated = Multinomial(len(given_), longest).label_distance
        for other in found[1:]:
            assert np.linalg.norm(found[0] - other) <= stated * (1 + 2.0**-40)

    def test_another_label_moves_them_as_far_as_stated(self, make, norm):
        one, other = (residuals(make(4, 0.9), np.zeros(4), k) for k in (0, 1))
        assert np.linalg.norm(one - other) == pytest.approx(Multinomial(4, 0.9).label_distance)

    @given(given_=st.lists(anything, min_size=2, max_size=8), bound=bounds, target=st.integers(0))
    def test_no_margins_pull_with_more_than_the_bound(self, make, norm, given_, bound, target):
        found = residuals(make(len(given_), bound), given_, target % len(given_))
        # The slack of unit rows is 2^-30.
        assert norm(found) <= bound * (1 + 2.0**-40)

    @pytest.mark.parametrize("margins", [[0, math.nan, 1], [math.inf, 0, 0], [math.inf] * 3])
    def test_margins_that_are_no_numbers_pull_with_nothing(self, make, norm, margins):
        assert not residuals(make(3, 1.0), margins, 1).any()

    @given(margins=vectors, target=st.integers(0, 2))
    def test_unbounded_they_are_those_of_the_softmax(self, make, norm, margins, target):
        p = np.exp(margins - np.max(margins))
        expected = p / p.sum() - np.eye(len(margins))[target]
        found = residuals(make(len(margins), 1.5), margins, target)
        np.testing.assert_allclose(found, expected, atol=1e-14)

    @given(margins=vectors, bound=bounds)
    def test_the_link_is_where_the_pulls_balance(self, make, norm, margins, bound):
        """So predicted probabilities are what the margins stand for, clipped residuals or not."""
        loss = make(len(margins), bound)
        probabilities = loss.link(np.array([margins]))[0]
        assert probabilities.sum() == pytest.approx(1.0)
        pulls = np.array([residuals(loss, margins, k) for k in range(len(margins))])
        np.testing.assert_allclose(probabilities @ pulls, 0.0, atol=1e-12)

    @given(margin=st.floats(-30, 30), bound=bounds)
    def test_two_classes_are_the_binary_loss(self, make, norm, margin, bound):
        loss = make(2, bound * norm(np.array([-1.0, 1.0])))
        q = gradient(Logistic(bound), margin, 1.0)
        np.testing.assert_allclose(residuals(loss, [0.0, margin], 1), [-q, q], atol=1e-14)
        expected = Logistic(bound).link(np.array([margin]))
        np.testing.assert_allclose(loss.link(np.array([[0.0, margin]])), expected, atol=1e-12)

    def test_a_weight_is_what_a_record_of_a_class_counts(self, make, norm):
        given_, weights = [0.3, -1.0, 2.0], np.array([1.0, 0.5, 0.25])
        for k, weight in enumerate(weights):
            plain, found = (residuals(make(3, 0.5, *w), given_, k) for w in ((), (weights,)))
            np.testing.assert_allclose(found, weight * plain)


class TestClippedMultinomial:
    @given(vectors, bounds, st.integers(0, 2))
    def test_an_offset_is_added(self, margins, bound, target):
        loss = ClippedMultinomial(bound, np.array(margins))
        found = residuals(loss, np.zeros(len(margins)), target)
        np.testing.assert_array_equal(found, residuals(without_offset(loss), margins, target))

    @given(st.lists(st.floats(0.02, 1.0), min_size=2, max_size=50), bounds)
    def test_margins_start_where_the_classes_are_likely(self, parts, bound):
        loss = ClippedMultinomial(bound, np.zeros(len(parts)))
        start = loss.starting_offset(1e6 * np.array(parts), 0.0)
        found = loss.link(start[np.newaxis])[0]
        np.testing.assert_allclose(found, np.array(parts) / sum(parts), atol=1e-6)
        even = loss.starting_offset(1e6 * np.array(parts), 1e7)
        np.testing.assert_allclose(even, even[0])


def test_at_zero_weights_the_multinomial_loss_loses_nothing():
    for k in (2, 3, 10, 100):
        bound = math.sqrt(1 - 1 / k)
        found = residuals(Multinomial(k, bound), np.zeros(k), k - 1)
        np.testing.assert_allclose(found, 1 / k - np.eye(k)[k - 1], atol=1e-15)
        shorter = residuals(Multinomial(k, 0.9 * bound), np.zeros(k), 0)
        assert np.linalg.norm(shorter) == pytest.approx(0.9 * bound)


@njit(cache=True)
def call_all(loss, margin, target, q, tolerance):
    """Return what each function gives, picked by the type of the loss."""
    return (
        gradient(loss, margin, target),
        value(loss, margin, target),
        margins_within(loss, q, target, tolerance),
        tangent_offset(loss, q, target),
    )


@pytest.mark.parametrize("loss", [Logistic(0.7, 0.3, 0.5), Squared(0.25, 0.1)])
def test_compiled_interpreted_and_called_from_python_are_one(loss):
    for margin in (-9.0, -0.4, 0.0, 0.3, 7.0):
        q = gradient(loss, margin, 1.0)
        arguments = {
            "gradient": (margin, 1.0),
            "value": (margin, 1.0),
            "margins_within": (q, 1.0, 0.03),
            "tangent_offset": (q, 1.0),
        }
        compiled = call_all(loss, margin, 1.0, q, 0.03)
        for (name, given_), found in zip(arguments.items(), compiled, strict=True):
            assert getattr(generic, name)(loss, *given_) == found
            # numpy and LLVM each have an exponential of their own.
            plain = implementation(name, loss).py_func(loss, *given_)
            np.testing.assert_allclose(plain, found, rtol=3e-7, atol=1e-14, err_msg=name)


@given(bounds, st.floats(-1e308, 1e308), binary)
def test_the_gradient_is_the_clipped_residual(bound, margin, target):
    found = gradient(Logistic(bound), margin, target)
    smaller = np.exp(-abs(margin)) / (1.0 + np.exp(-abs(margin)))
    # sigma(margin) - target, without cancellation.
    q = smaller if (margin < 0) == (target == 0) else 1.0 - smaller
    assert found == pytest.approx(np.clip(q if target == 0 else -q, -bound, bound), abs=1e-15)
    wrong = math.inf if target == 0 else -math.inf
    assert abs(gradient(Logistic(bound), wrong, target)) == bound
    # Zero weights lose nothing to the smallest bound.
    assert gradient(Logistic(0.5), 0.0, target) == 0.5 - target


@given(LOSSES["logistic, weights and offset"][0], margins, binary)
def test_offset_and_weights_move_the_margin_and_scale_the_rest(loss, margin, target):
    plain, moved = Logistic(loss.residual_bound), margin + loss.offset
    weight = loss.positive_weight if target else loss.negative_weight
    assert gradient(loss, margin, target) == gradient(plain, moved, target) * weight
    expected = weight * value(plain, moved, target)
    assert value(loss, margin, target) == pytest.approx(expected, rel=1e-12)


@given(bounds, binary)
def test_the_value_does_not_overflow(bound, target):
    right = -1e100 if target == 0 else 1e100
    assert value(Logistic(bound), right, target) == 0.0
    assert value(Logistic(bound), -right, target) == pytest.approx(bound * 1e100)
    assert value(Logistic(bound), 0.0, target) == pytest.approx(math.log(2))


# What unit rows leave for rounding.
SLACK = 1.0 + 2.0**-40


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
