"""Counts, vertices and gradients from one budget: nothing is spent twice, and all of it is."""

import math
from fractions import Fraction

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dplasso.losses.multinomial import norm_bound
from dplasso.privacy.gaussian import gaussian_epsilon
from dplasso.privacy.mechanisms import build_mechanism, build_staged
from dplasso.privacy.mechanisms.gaussian import COUNT_SHARE, RATIO_RHO


def build(**changes):
    asked = {"epsilon": 1.0, "delta": 1e-6, "n_vertices": 200, "n_gradients": 100}
    return build_staged(**(asked | changes))


def rho_of_parts(mechanism, n_vertices, share):
    """Add up what the parts release, each by its own formula."""
    counts = mechanism.count_mu**2 / 2 if mechanism.counted else 0.0
    vertices = mechanism.vertices(n_vertices, 1 - share)
    gradients = mechanism.gradients(share).mu ** 2 / 2 if share else 0.0
    return counts + n_vertices * vertices.eps0_accounted**2 / 8 + gradients


# A smaller example than one that fails would take minutes to find, and tell no more.
@settings(deadline=None, max_examples=30, phases=[Phase.generate])
@given(
    epsilon=st.floats(0.05, 20.0),
    delta=st.sampled_from([1e-5, 1e-8]),
    n_vertices=st.integers(1, 200),
    share=st.floats(0.0, 0.9),
    counted=st.booleans(),
)
def test_the_parts_add_up_to_the_whole(epsilon, delta, n_vertices, share, counted):
    mechanism = build(epsilon=epsilon, delta=delta, counted=counted)
    spent = rho_of_parts(mechanism, n_vertices, share)
    whole = mechanism.rho - RATIO_RHO * mechanism.ratio_error
    assert spent <= whole * (1 + 1e-12)
    assert spent >= 0.999 * whole
    assert 0.99 * epsilon < mechanism.epsilon_spent <= epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_whole_is_no_more_than_asked_by_an_independent_formula(epsilon):
    """rho-zCDP is (rho + 2 sqrt(rho log(1/delta)), delta)-private, and Gaussian noise is rho-zCDP.

    The first is looser than the accountant's conversion, the second cannot be beaten by any.
    """
    mechanism = build(epsilon=epsilon)
    delta = mechanism.delta - mechanism.sampling_delta
    loosest = mechanism.rho + 2 * math.sqrt(mechanism.rho * -math.log(delta))
    assert epsilon <= loosest < 1.35 * epsilon
    assert gaussian_epsilon(math.sqrt(2 * mechanism.rho), delta) < mechanism.epsilon_spent


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.parametrize("rows", [1, 3])
def test_every_part_has_the_sensitivity_of_the_neighbours(neighbors, rows):
    factor = rows * (2 if neighbors == "replace-one" else 1)
    mechanism = build(
        neighbors=neighbors, rows_per_person=rows, feature_bound=1.5, residual_bound=0.75
    )
    assert mechanism.sensitivity == pytest.approx(factor * 1.5 * 0.75)
    vertices = mechanism.vertices(7, 0.5)
    assert vertices.sensitivity == mechanism.sensitivity
    assert vertices.exponent_scale == pytest.approx(vertices.eps0 / (2 * mechanism.sensitivity))
    assert mechanism.gradients(0.5).sensitivity == pytest.approx(factor * 0.75)
    # One record is in one class; replaced, it may leave one and enter the other.
    counts = rows * (math.sqrt(2) if neighbors == "replace-one" else 1)
    assert mechanism.count_sensitivity == pytest.approx(counts)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_classes_change_the_gradients_sensitivity_alone(neighbors):
    """A vertex is a coordinate of one margin, and each record is in one class."""
    factor = 2 if neighbors == "replace-one" else 1
    one = build(neighbors=neighbors)
    many = build(neighbors=neighbors, n_outputs=10, norm_bound=norm_bound(10, 0.5))
    assert many.sensitivity == one.sensitivity
    assert many.vertices(7, 0.5).exponent_scale == pytest.approx(
        one.vertices(7, 0.5).exponent_scale
    )
    assert many.count_sensitivity == one.count_sensitivity
    assert many.gradients(0.5).sensitivity == pytest.approx(factor * math.sqrt(1 - 1 / 10))
    # More noise is drawn, and its rounding paid for.
    assert many.ratio_error == pytest.approx(10 * one.ratio_error, rel=1e-3)


def test_the_gradients_of_all_columns_are_paid_for():
    """Where no column is drawn, the refit has them all."""
    assert build(n_vertices=0, n_columns=200).ratio_error == pytest.approx(build().ratio_error)


def test_the_gradients_that_keep_columns_are_paid_for():
    """Beside those on the columns that are kept: as many variates, as much inexactness."""
    kept = {"n_screening": 16, "n_features": 10**6, "most_kept": 1000, "n_columns": 1000}
    both, after = build(**kept), build(n_columns=1000)
    before = build(n_gradients=16, n_columns=10**6)
    parts = after.ratio_error + before.ratio_error
    assert both.ratio_error == pytest.approx(parts, rel=1e-3)
    assert both.n_iter == 316
    assert both.gradients(1.0).n_iter == 116


def test_counts_have_their_share_and_are_left_out_where_they_are_public():
    counted, public = build(), build(counted=False)
    assert counted.count_mu**2 / 2 == pytest.approx(COUNT_SHARE * counted.rho, rel=1e-9)
    assert counted.rho_left == pytest.approx((1 - COUNT_SHARE) * public.rho_left, rel=1e-9)


def test_several_rows_of_one_person():
    mechanism = build()
    found = [mechanism.epsilon_of_rows(rows) for rows in (1, 2, 5, 10)]
    assert found[0] == pytest.approx(mechanism.epsilon_spent)
    # zCDP grows with the square, and epsilon at least in proportion.
    assert all(epsilon > rows for rows, epsilon in zip((2, 5, 10), found[1:], strict=True))
    assert found[3] < 10**2 * mechanism.rho + 2 * math.sqrt(10**2 * mechanism.rho * 14)
    # With a budget as large as this the rounding of draws could no longer be paid for.
    assert math.isinf(build(epsilon=20.0).epsilon_of_rows(10))


def test_no_privacy_needs_no_noise():
    mechanism = build(epsilon=math.inf)
    assert mechanism.name == "none"
    assert mechanism.vertices(5, 0.7).name == "none"
    assert math.isinf(mechanism.gradients(0.3).mu)


def test_a_delta_too_small_for_the_draws_is_refused():
    with pytest.raises(ValueError, match="too small to cover the rounding"):
        build(delta=1e-12)


class TestPlainSum:
    """Few steps cost no more than the sum of their eps0."""

    @pytest.mark.parametrize(("n_iter", "plain"), [(1, True), (5, True), (6, False), (50, False)])
    def test_the_better_bound_is_used(self, n_iter, plain):
        asked = {"epsilon": 1.0, "delta": 1e-6, "n_iter": n_iter}
        mechanism, former = build_mechanism(**asked), build_mechanism(**asked, plain_sum=False)
        assert mechanism.eps0 >= former.eps0
        assert (mechanism.eps0 > former.eps0) == plain
        assert mechanism.epsilon_spent <= 1.0
        if plain:
            assert n_iter * Fraction(mechanism.eps0_accounted) <= Fraction(mechanism.epsilon_spent)
            assert mechanism.eps0 == pytest.approx(1.0 / n_iter, rel=1e-5)
