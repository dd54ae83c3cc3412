"""The logistic loss with a bounded residual, against its definition."""

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from dplasso.losses import contract
from dplasso.losses.contract import (
    gradient,
    margins_within,
    probability,
    tangent_offset,
    value,
)
from dplasso.losses.logistic import (
    Logistic,
    class_probabilities,
    logistic_gradient,
    logistic_margins_within,
    logistic_probability,
    logistic_tangent_offset,
    logistic_value,
    logit,
    round_up,
    sigma,
)
from frank_wolfe.reference import residual
from losses.callers import call_all

# What rounding an end of an interval to float32 may cost, in sigma.
ROUNDING = 1e-6
bounds = st.one_of(st.sampled_from([0.5, 1.0]), st.floats(0.5, 1.0))
targets = st.sampled_from([0.0, 1.0])
anything = st.floats(allow_nan=True, allow_infinity=True)
margins = st.floats(-40.0, 40.0)
tolerances = st.one_of(st.floats(1e-5, 0.6), st.floats(1e-19, 1e-5))


class TestSigma:
    @given(st.floats(-800, 800))
    def test_it_is_the_logistic_function(self, margin):
        found = sigma(margin)
        assert found == pytest.approx(0.5 * (1.0 + math.tanh(0.5 * margin)), abs=1e-15)
        assert sigma(-margin) == pytest.approx(1.0 - found, abs=1e-15)

    def test_it_does_not_overflow(self):
        ends = (-math.inf, -1e308, -750.0, 0.0, 750.0, 1e308, math.inf)
        assert [sigma(margin) for margin in ends] == [0, 0, 0, 0.5, 1, 1, 1]

    @given(st.floats(-30, 30))
    def test_logit_inverts_it(self, margin):
        # The rounding of sigma near 1, multiplied by the slope of its inverse.
        rounding = 1e-14 + 4e-16 * math.exp(abs(margin))
        assert logit(sigma(margin)) == pytest.approx(margin, rel=1e-14, abs=rounding)

    @pytest.mark.parametrize(
        ("p", "margin"), [(0.0, -math.inf), (-0.1, -math.inf), (1.0, math.inf), (1.1, math.inf)]
    )
    def test_logit_is_infinite_at_the_ends(self, p, margin):
        assert logit(p) == margin

    @given(st.floats(-1e30, 1e30))
    def test_rounding_goes_up_by_little(self, margin):
        found = round_up(margin)
        assert found == np.float32(found)
        assert found >= margin
        assert found - margin <= 4e-7 * abs(margin) + 1e-29


class TestGradient:
    @given(bounds, anything, targets)
    @example(1.0, math.nan, 0.0)
    @example(0.5, math.nan, 1.0)
    @example(0.75, math.inf, 0.0)
    @example(0.75, -math.inf, 1.0)
    def test_no_margin_pulls_harder_than_the_bound(self, bound, margin, target):
        assert abs(gradient(Logistic(bound), margin, target)) <= bound

    @given(bounds, st.floats(-1e308, 1e308), targets)
    def test_it_is_the_clipped_residual(self, bound, margin, target):
        found = gradient(Logistic(bound), margin, target)
        assert found == pytest.approx(residual(margin, target, bound), abs=1e-15)

    @given(bounds, targets)
    def test_the_bound_is_reached(self, bound, target):
        wrong = math.inf if target == 0 else -math.inf
        assert abs(gradient(Logistic(bound), wrong, target)) == bound

    def test_what_is_no_number_pulls_with_nothing(self):
        assert gradient(Logistic(), math.nan, 1.0) == 0.0

    def test_zero_weights_lose_nothing_to_the_smallest_bound(self):
        for target in (0.0, 1.0):
            assert gradient(Logistic(0.5), 0.0, target) == 0.5 - target


OTHER_LOSSES = st.builds(
    Logistic, bounds, st.floats(-5.0, 5.0), st.floats(0.01, 1.0), st.floats(0.01, 1.0)
)


class TestOffsetAndWeights:
    """Both change a loss in a way that its definition with neither says."""

    @given(OTHER_LOSSES, anything, targets)
    def test_no_margin_pulls_harder_than_the_bound(self, loss, margin, target):
        assert abs(gradient(loss, margin, target)) <= loss.residual_bound

    @given(OTHER_LOSSES, margins, targets)
    def test_they_move_the_margin_and_scale_the_rest(self, loss, margin, target):
        plain, moved = Logistic(loss.residual_bound), margin + loss.offset
        weight = loss.positive_weight if target else loss.negative_weight
        q = gradient(loss, margin, target)
        assert q == gradient(plain, moved, target) * weight
        assert value(loss, margin, target) == pytest.approx(
            weight * value(plain, moved, target), rel=1e-12
        )
        tangent = value(loss, margin, target) - q * margin
        # Next to a residual of 0 or 1 the logarithms have lost their digits.
        assert tangent_offset(loss, q, target) == pytest.approx(
            tangent, abs=2e-5 + 1e-9 * abs(tangent)
        )
        assert probability(loss, margin) == probability(plain, moved)

    @given(OTHER_LOSSES, margins, targets, tolerances)
    def test_inside_the_residual_is_within_the_tolerance(self, loss, margin, target, tolerance):
        q = gradient(loss, margin, target)
        lowest, highest = (float(end) for end in margins_within(loss, q, target, tolerance))
        assume(lowest <= highest)
        for end in (lowest, highest):
            assert abs(gradient(loss, end, target) - q) <= tolerance + 1e-15


class TestMarginsWithin:
    @given(bounds, margins, targets, tolerances)
    @example(1.0, 40.0, 0.0, 1e-20)
    @example(0.5, 0.0, 0.0, 0.1)
    @example(0.5, 0.0, 1.0, 0.1)
    @example(0.75, 3.0, 0.0, 0.2)
    @example(0.75, -3.0, 1.0, 0.5)
    def test_inside_the_residual_is_within_the_tolerance(self, bound, margin, target, tolerance):
        loss = Logistic(bound)
        q = gradient(loss, margin, target)
        lowest, highest = margins_within(loss, q, target, tolerance)
        assert (lowest, highest) == (np.float32(lowest), np.float32(highest))
        assume(lowest <= highest)
        # Rounded inwards: at the very ends, and at infinity where they are infinite.
        for end in (float(lowest), float(highest)):
            assert abs(residual(end, target, bound) - q) <= tolerance + 1e-15

    @given(bounds, margins, targets, tolerances)
    @example(0.5, 0.0, 0.0, 0.1)
    @example(0.5, 0.0, 1.0, 0.1)
    def test_it_is_hardly_narrower_than_it_may_be(self, bound, margin, target, tolerance):
        loss = Logistic(bound)
        q = gradient(loss, margin, target)
        lowest, highest = (float(end) for end in margins_within(loss, q, target, tolerance))
        # Where the residual may be anything beyond, there is no end.
        if tolerance > 2 * ROUNDING:
            for end, to in ((lowest, -1), (highest, 1)):
                if math.isinf(end):
                    assert end == math.copysign(math.inf, to)
                else:
                    moved = abs(residual(end, target, bound) - q)
                    assert moved >= tolerance - ROUNDING

    @pytest.mark.parametrize("bound", [0.5, 0.6, 0.9, 1.0])
    @pytest.mark.parametrize("target", [0.0, 1.0])
    @pytest.mark.parametrize("tolerance", [1e-3, 0.03, 0.2, 0.7])
    def test_against_looking_at_every_margin(self, bound, target, tolerance):
        loss = Logistic(bound)
        grid = np.linspace(-20, 20, 4001)
        residuals = np.array([residual(margin, target, bound) for margin in grid])
        for margin in (-9.0, -2.0, -0.4, 0.0, 0.4, 2.0, 9.0):
            q = gradient(loss, margin, target)
            lowest, highest = margins_within(loss, q, target, tolerance)
            inside = (grid >= lowest) & (grid <= highest)
            off = np.abs(residuals - q)
            # Margins at which the drift is the tolerance to the last digits may be either.
            clear = np.abs(off - tolerance) > ROUNDING
            np.testing.assert_array_equal(inside[clear], (off <= tolerance)[clear])

    @given(bounds, margins, targets)
    def test_nothing_is_inside_without_tolerance(self, bound, margin, target):
        loss = Logistic(bound)
        lowest, highest = margins_within(loss, gradient(loss, margin, target), target, 0.0)
        assert (lowest, highest) == (math.inf, -math.inf)


class TestValue:
    @given(bounds, margins, targets)
    def test_its_slope_is_the_gradient(self, bound, margin, target):
        loss, h = Logistic(bound), 1e-5
        slope = (value(loss, margin + h, target) - value(loss, margin - h, target)) / (2 * h)
        # Its second derivative is at most 1/4; values of 40 have rounding errors of 7e-15.
        assert slope == pytest.approx(gradient(loss, margin, target), abs=0.25 * h + 2e-9)

    @given(bounds, margins, margins, targets, st.floats(0, 1))
    def test_it_is_convex(self, bound, one, other, target, part):
        loss = Logistic(bound)
        between = value(loss, part * one + (1 - part) * other, target)
        chord = part * value(loss, one, target) + (1 - part) * value(loss, other, target)
        assert between <= chord + 1e-13

    @given(margins, targets)
    def test_unbounded_it_is_the_logistic_loss(self, margin, target):
        expected = np.logaddexp(0.0, margin) - target * margin
        assert value(Logistic(), margin, target) == pytest.approx(expected, abs=1e-14)

    @given(bounds, targets)
    def test_it_does_not_overflow(self, bound, target):
        right = -1e100 if target == 0 else 1e100
        assert value(Logistic(bound), right, target) == 0.0
        assert value(Logistic(bound), -right, target) == pytest.approx(bound * 1e100)
        assert value(Logistic(bound), 0.0, target) == pytest.approx(math.log(2))

    @given(bounds, margins, targets)
    def test_a_tangent_meets_margin_zero_at_its_offset(self, bound, margin, target):
        loss = Logistic(bound)
        q = gradient(loss, margin, target)
        expected = value(loss, margin, target) - q * margin
        # Near the ends q is 1 minus its rounding, and that is multiplied by the margin.
        assert tangent_offset(loss, q, target) == pytest.approx(expected, abs=5e-14)

    @given(st.floats(0, 1))
    def test_the_offset_is_the_entropy(self, p):
        expected = 0.0
        if 0.0 < p < 1.0:
            expected = -p * math.log(p) - (1 - p) * math.log1p(-p)
        assert tangent_offset(Logistic(), p, 0.0) == pytest.approx(expected, abs=1e-15)


def minimiser(loss, p):
    """Return the margin of least mean loss where a part p of the targets is 1."""

    def mean(margin):
        return p * value(loss, margin, 1.0) + (1 - p) * value(loss, margin, 0.0)

    return minimize_scalar(mean, bounds=(-30, 30), method="bounded", options={"xatol": 1e-10}).x


class TestProbability:
    @pytest.mark.parametrize("bound", [0.5, 0.55, 0.7, 0.9, 1.0])
    @pytest.mark.parametrize("p", [0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98])
    def test_it_inverts_the_minimiser(self, bound, p):
        loss = Logistic(bound)
        assert probability(loss, minimiser(loss, p)) == pytest.approx(p, abs=1e-6)

    def test_without_the_inverse_link_it_would_not(self):
        # The plain sigmoid of the minimiser is not the mean target once the residual is clipped.
        assert abs(sigma(minimiser(Logistic(0.5), 0.9)) - 0.9) > 0.01

    @given(bounds, margins)
    def test_the_two_classes_mirror_each_other(self, bound, margin):
        loss = Logistic(bound)
        assert probability(loss, -margin) == pytest.approx(1 - probability(loss, margin), abs=1e-15)

    @given(bounds, st.lists(st.floats(-700, 700), min_size=1, max_size=5))
    def test_arrays_give_the_same(self, bound, several):
        found = class_probabilities(np.array(several), bound)
        assert found.shape == (len(several), 2)
        loss = Logistic(bound)
        for (negative, positive), margin in zip(found, several, strict=True):
            assert positive == pytest.approx(probability(loss, margin), rel=1e-14)
            assert negative == pytest.approx(probability(loss, -margin), rel=1e-14)
            assert negative + positive == pytest.approx(1.0, abs=1e-15)


# One call of each function of the contract, and of the kernel that stands behind it.
KERNELS = {
    "gradient": logistic_gradient,
    "margins_within": logistic_margins_within,
    "value": logistic_value,
    "tangent_offset": logistic_tangent_offset,
    "probability": logistic_probability,
}


class TestContract:
    @given(bounds, margins, targets, tolerances)
    def test_compiled_interpreted_and_called_from_python_are_one(
        self, bound, margin, target, tolerance
    ):
        loss = Logistic(bound)
        q = gradient(loss, margin, target)
        arguments = {
            "gradient": (margin, target),
            "margins_within": (q, target, tolerance),
            "value": (margin, target),
            "tangent_offset": (q, target),
            "probability": (margin,),
        }
        overloaded = call_all(loss, margin, target, q, tolerance)
        for (name, kernel), compiled in zip(KERNELS.items(), overloaded, strict=True):
            expected = kernel(loss, *arguments[name])
            np.testing.assert_array_equal(compiled, expected, name)
            np.testing.assert_array_equal(getattr(contract, name)(loss, *arguments[name]), expected)
            # numpy and LLVM each have an exponential of their own.
            plain = kernel.py_func(loss, *arguments[name])
            np.testing.assert_allclose(plain, expected, rtol=3e-7, atol=1e-14, err_msg=name)

    def test_a_class_without_kernels_is_named(self):
        with pytest.raises(TypeError, match="no kernel 'gradient' is registered for tuple"):
            gradient((1.0,), 0.0, 0.0)
