"""The price of inexact draws, from the structure that draws to the statement that is released.

draw's distance (computed) <= SAMPLING_ERROR -> T (1 + exp(eps0)) of it set aside from delta -> the
accountant gets what is left -> the statement and the model file say so.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from dplasso import load
from dplasso.phases import select
from dplasso.privacy.accounting import epsilon_spent
from dplasso.privacy.exponential_mechanism import (
    EXPONENT_SLACK,
    SAMPLING_ERROR,
    vertex_mechanism,
)
from dplasso.selection.registry import make_selector
from neighbours import BOUND, common_records, moved_by
from replay import inputs
from selection.invariants import IMPLIED, implied, total_variation

N_STEPS = 12


each_cost = pytest.mark.parametrize("epsilon", [0.1, 1.0, 50.0])
each_relation = pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])


@pytest.mark.parametrize("selector", IMPLIED)
@each_cost
@each_relation
def test_what_is_drawn_is_what_is_paid_for(
    private_model, selector, neighbors, epsilon, monkeypatch, tmp_path
):
    rules = []

    def keep(name, n_coordinates, rule):
        rules.append((name, n_coordinates, rule))
        return make_selector(name, n_coordinates, rule)

    monkeypatch.setattr(select, "make_selector", keep)
    settings = {"selector": selector, "neighbors": neighbors, "epsilon": epsilon}
    model = private_model(**settings).fit(*common_records())
    statement, eps0 = model.privacy_, model.privacy_.number("eps0")

    # The structure's exponent, in fixed-point units, is the statement's eps0 less the slack.
    (rule,) = rules
    unit = 2.0**32 / (BOUND / 2.0)
    per_unit = rule[2].exponent * unit
    spent = 2 * per_unit * moved_by(BOUND / 2.0, neighbors)
    assert spent == pytest.approx(eps0 * (1 - EXPONENT_SLACK), rel=1e-12)

    # What it draws, at every step of this fit, is as near as SAMPLING_ERROR says.
    states = inputs(private_model(**settings), common_records(), model.transcript_)
    distances = []
    for alpha, _ in states[:N_STEPS]:
        structure = make_selector(*rule)
        chances = implied(structure, alpha)
        distances.append(total_variation(chances, alpha, rule[2].exponent)[0])
    assert 0 < max(distances) < SAMPLING_ERROR / 4

    # Lost outcomes may be exp(eps0) times likelier next door: that, T times, is set aside.
    lost = sum(distances) * (1 + math.exp(eps0))
    assert lost < statement.sampling_delta / 4
    least = N_STEPS * SAMPLING_ERROR * (1 + math.exp(eps0))
    assert least <= statement.sampling_delta <= least * (1 + 1e-5)

    # The accountant is given the rest of delta; where the plain sum of the steps is smaller, that
    # is what is spent.
    composed = epsilon_spent(eps0, N_STEPS, statement.delta - statement.sampling_delta)
    spent = min(composed, N_STEPS * eps0)
    assert spent == pytest.approx(statement.epsilon, rel=1e-12)
    assert statement.epsilon <= epsilon
    assert composed > epsilon_spent(eps0, N_STEPS, statement.delta)

    # And all of it is in the file.
    model.save(tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").privacy_ == statement
    assert statement.sampling_delta > 0


def test_the_slack_covers_the_rounding_of_the_exponent():
    """The largest problem, 2^31 records, all pulling one way: float against exact integers."""
    eps0 = 0.45
    rule = vertex_mechanism(eps0, 1.0).in_units(2.0**32, 7.0)
    scale = rule.exponent
    assert (rule.sensitivity, rule.spread) == (2.0**32, 7.0)
    assert scale == eps0 * (1.0 - EXPONENT_SLACK) / 2.0 / 2.0**32
    rng = np.random.default_rng(5)
    largest = 2**31 * 2**32
    for alpha in [largest - 1, *rng.integers(largest // 2, largest, 200)]:
        computed = Fraction(scale * float(alpha))
        error = abs(computed - Fraction(scale) * int(alpha))
        # Two outcomes, two data sets: four such errors make up a range of log-ratios.
        assert 4 * error <= EXPONENT_SLACK * eps0
