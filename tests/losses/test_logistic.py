"""The logistic loss with a bounded residual, against its definition."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.losses.contract import gradient, value
from dplasso.losses.logistic import Logistic, logit, round_up, sigma
from frank_wolfe.reference import residual

bounds = st.sampled_from([0.5, 1.0]) | st.floats(0.5, 1.0)
targets = st.sampled_from([0.0, 1.0])
margins = st.floats(-40.0, 40.0)


class TestSigma:
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


@given(bounds, st.floats(-1e308, 1e308), targets)
def test_the_gradient_is_the_clipped_residual(bound, margin, target):
    found = gradient(Logistic(bound), margin, target)
    assert found == pytest.approx(residual(margin, target, bound), abs=1e-15)
    wrong = math.inf if target == 0 else -math.inf
    assert abs(gradient(Logistic(bound), wrong, target)) == bound
    # Zero weights lose nothing to the smallest bound.
    assert gradient(Logistic(0.5), 0.0, target) == 0.5 - target


@given(
    st.builds(Logistic, bounds, st.floats(-5.0, 5.0), st.floats(0.01, 1.0), st.floats(0.01, 1.0)),
    margins,
    targets,
)
def test_offset_and_weights_move_the_margin_and_scale_the_rest(loss, margin, target):
    plain, moved = Logistic(loss.residual_bound), margin + loss.offset
    weight = loss.positive_weight if target else loss.negative_weight
    assert gradient(loss, margin, target) == gradient(plain, moved, target) * weight
    expected = weight * value(plain, moved, target)
    assert value(loss, margin, target) == pytest.approx(expected, rel=1e-12)


class TestValue:
    @given(bounds, targets)
    def test_it_does_not_overflow(self, bound, target):
        right = -1e100 if target == 0 else 1e100
        assert value(Logistic(bound), right, target) == 0.0
        assert value(Logistic(bound), -right, target) == pytest.approx(bound * 1e100)
        assert value(Logistic(bound), 0.0, target) == pytest.approx(math.log(2))
