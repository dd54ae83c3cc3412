"""The cost of a fit, before there is data."""

import inspect
import math

import pytest

from dplasso.privacy.cost import privacy_cost
from dplasso.privacy.mechanisms import build_mechanism
from dplasso.privacy.statement import make_statement


def test_needs_no_data():
    assert list(inspect.signature(privacy_cost).parameters) == [
        "epsilon",
        "delta",
        "n_iter",
        "neighbors",
        "feature_bound",
        "method",
        "residual_bound",
        "rows_per_person",
    ]


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_is_what_a_fit_states(neighbors):
    mechanism = build_mechanism(
        epsilon=2.0, delta=1e-7, n_iter=300, neighbors=neighbors, feature_bound=3.0
    )
    stated = make_statement(mechanism, seeded=False, classes_declared=True)
    assert privacy_cost(2.0, 1e-7, 300, neighbors, 3.0) == stated
    assert stated.is_private


def test_defaults():
    assert privacy_cost(1.0, 1e-6, 100) == privacy_cost(1.0, 1e-6, 100, "add-remove", 1.0)


def test_a_longer_run_leaves_less_for_each_step():
    short, long = privacy_cost(1.0, 1e-6, 100), privacy_cost(1.0, 1e-6, 10_000)
    assert short.eps0 == pytest.approx(10 * long.eps0, rel=1e-3)


def test_no_privacy_costs_nothing_and_says_so():
    cost = privacy_cost(math.inf, 1e-6, 100)
    assert not cost.is_private
    assert "epsilon is infinite" in cost.text()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0.0, 1e-6, 100), "epsilon"),
        ((1.0, 2.0, 100), "delta"),
        ((1.0, 1e-6, 0), "n_iter"),
        ((1.0, 1e-6, 100, "nobody"), "neighbors"),
        ((1.0, 1e-6, 100, "add-remove", -1.0), "feature_bound"),
    ],
)
def test_bad_parameters_are_named(arguments, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        privacy_cost(*arguments)
