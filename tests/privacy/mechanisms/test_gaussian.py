"""Gaussian noise is priced by the exact curve, and nothing is left unpaid."""

import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dplasso.privacy.gaussian_noise import LARGEST_SCALE, TAIL
from dplasso.privacy.mechanisms.gaussian import LARGEST_EPSILON, build_gaussian
from privacy.reference import exact_delta


def build(**options):
    return build_gaussian(
        **({"epsilon": 1.0, "delta": 1e-6, "n_iter": 300, "n_coordinates": 1000} | options)
    )


def test_the_figures_of_the_design():
    # 7 % less noise than by zCDP.
    assert build().mu == pytest.approx(0.2367, abs=1e-4)


@given(
    st.floats(1e-9, 1e6),
    st.floats(1e-15, 0.999999),
    st.integers(1, 10**6),
    st.integers(1, 10**9),
)
@example(1e-9, 0.999999, 1, 1)
@example(60.0, 0.999999, 1, 1)
@example(1e6, 1e-6, 10**5, 10**6)
def test_never_more_is_spent_than_asked(epsilon, delta, n_iter, n_coordinates):
    try:
        mechanism = build(epsilon=epsilon, delta=delta, n_iter=n_iter, n_coordinates=n_coordinates)
    except ValueError as error:
        assert "too small to cover the rounding" in str(error)  # noqa: PT017
        return
    spent = mechanism.epsilon_spent
    assert 0 < spent <= min(epsilon, LARGEST_EPSILON)
    assert exact_delta(mechanism.mu, spent - mechanism.ratio_error) <= delta * (1 + 1e-12)
    assert mechanism.sampling_delta < delta / 2
    # No standard deviation in units is smaller than what the rounding was charged for: a unit is
    # 2^-32 of the sensitivity's own unit, or so coarse that the noise spans half the largest scale.
    least = min(2.0**32 / mechanism.mu, LARGEST_SCALE / 2)
    # One more draw than coordinates times steps, at least: the counts.
    draws = n_iter * n_coordinates + 1
    charged = 2 * draws * TAIL**2 / (24 * least**2)
    assert mechanism.ratio_error >= charged * (1 - 1e-9)
    tail = draws * 2 * math.erfc(TAIL / math.sqrt(2)) * (1 + math.exp(spent))
    assert mechanism.sampling_delta >= tail * (1 - 1e-12)


def test_where_rounding_would_cost_too_much_the_fit_is_refused():
    with pytest.raises(ValueError, match=r"too small to cover the rounding of 3\.28e\+05"):
        build(delta=1e-53)
    with pytest.raises(ValueError, match="too small to cover the rounding"):
        build(epsilon=60.0, delta=1e-30, n_coordinates=10**9)


@pytest.mark.parametrize(
    ("neighbors", "rows", "bound", "moved", "count"),
    [
        ("add-remove", 1, 0.5, 0.5, 1),
        ("replace-one", 1, 0.5, 1.0, 0),
        ("add-remove", 7, 1.0, 7.0, 7),
        # A person of one row is replaced by one of seven.
        ("replace-one", 7, 0.5, 7.0, 6),
    ],
)
def test_what_can_move_between_neighbours(neighbors, rows, bound, moved, count):
    mechanism = build(neighbors=neighbors, rows_per_person=rows, residual_bound=bound)
    assert mechanism.sensitivity == moved
    assert mechanism.count_sensitivity == count
    by_class = build(neighbors=neighbors, rows_per_person=rows, by_class=True)
    # All rows of a person may be in another class.
    both = rows if neighbors == "add-remove" else math.sqrt(2.0) * rows
    assert by_class.count_sensitivity == pytest.approx(both)
    # The budget is the same; the noise grows with the sensitivity.
    assert mechanism.mu == build().mu


def test_zcdp_covers_the_curve_and_the_rounding():
    """Of order a, mu-GDP has a mu^2 / 2, and rounding moves each density by half of its error."""
    for epsilon in (0.01, 1.0, 60.0):
        mechanism = build(epsilon=epsilon, n_iter=10**4, n_coordinates=10**7)
        assert mechanism.ratio_error > 0
        for order in (1.011, 1.1, 2.0, 50.0, 1e6):
            moved = (2 * order - 1) / (order - 1) * mechanism.ratio_error / 2
            assert order * mechanism.mu**2 / 2 + moved <= order * mechanism.rho


def test_without_privacy():
    mechanism = build(epsilon=math.inf)
    assert mechanism.name == "none"
    assert mechanism.mu == mechanism.epsilon_spent == mechanism.rho == math.inf
    assert mechanism.sampling_delta == mechanism.ratio_error == 0
    assert replace(mechanism, mu=1.0).name == "gaussian"
