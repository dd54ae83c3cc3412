"""Draws of signed vertices: scales, sensitivity by brute force, and what inexact draws cost."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.privacy.budget import Draws, build_budget
from dplasso.privacy.exponential_mechanism import (
    EXPONENT_SLACK,
    SelectionRule,
    paper_mechanism,
    vertex_mechanism,
)

BOUND = 2.0
UNIT = 2**32 / BOUND
# Record gradients and entries at and inside their bounds: each pair is one contribution.
RECORDS = [
    tuple(round(q * x * UNIT) for x in entries)
    for q in (-1.0, -0.3, 0.5, 1.0)
    for entries in itertools.product((-BOUND, 0.0, 0.75, BOUND), repeat=2)
]


def moved(neighbors):
    """Return the declared sensitivity."""
    known = {"epsilon": 1.0, "delta": 1e-6, "n_iter": 1, "neighbors": neighbors}
    return build_budget(Draws(vertices=1), **known).moved(BOUND)


def add_remove_pairs():
    """Yield gradients of every data set of up to two records and of it with one record more."""
    for size in (0, 1):
        for records in itertools.combinations_with_replacement(RECORDS, size):
            base = np.sum([(0, 0), *records], axis=0)
            for extra in RECORDS:
                yield base, base + np.array(extra)


def replace_one_pairs():
    """Yield gradients of every data set of one and of two records and of it with one replaced."""
    for kept in [(0, 0), *RECORDS[::5]]:
        for old, new in itertools.product(RECORDS, repeat=2):
            yield np.array(kept) + np.array(old), np.array(kept) + np.array(new)


def log_probabilities(alpha, scale):
    """Normalise the mechanism over (-e_1, -e_2, ..., +e_1, +e_2, ...) in logarithms."""
    exponent = scale / UNIT * np.concatenate([alpha, -alpha]).astype(float)
    top = exponent.max()
    return exponent - top - math.log(np.exp(exponent - top).sum())


@pytest.mark.parametrize("eps0", [0.01, 1.0])
@pytest.mark.parametrize(
    ("neighbors", "pairs"), [("add-remove", add_remove_pairs), ("replace-one", replace_one_pairs)]
)
def test_neighbors_stay_within_the_declared_bounds(neighbors, pairs, eps0):
    sensitivity = moved(neighbors)
    scale = vertex_mechanism(eps0, sensitivity).exponent
    farthest = ratio = spread = 0.0
    for alpha, neighbor in pairs():
        farthest = max(farthest, int(np.abs(alpha - neighbor).max()) / UNIT)
        change = log_probabilities(alpha, scale) - log_probabilities(neighbor, scale)
        ratio, spread = max(ratio, float(np.abs(change).max())), max(spread, float(np.ptp(change)))
    # Bounds that are also reached: a constant off by a factor of two, either way, fails.
    assert farthest == sensitivity
    assert ratio <= spread
    assert eps0 * (1 - 1e-5) < spread <= eps0


def test_the_slack_covers_the_rounding_of_the_exponent():
    """The largest problem, 2^31 records, all pulling one way: float against exact integers."""
    eps0 = 0.45
    scale = vertex_mechanism(eps0, 1.0).in_units(2.0**32).exponent
    assert scale == eps0 * (1.0 - EXPONENT_SLACK) / 2.0 / 2.0**32
    rng = np.random.default_rng(5)
    largest = 2**31 * 2**32
    for alpha in [largest - 1, *rng.integers(largest // 2, largest, 200)]:
        computed = Fraction(scale * float(alpha))
        error = abs(computed - Fraction(scale) * int(alpha))
        # Two outcomes, two data sets: four such errors make up a range of log-ratios.
        assert 4 * error <= EXPONENT_SLACK * eps0


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@settings(deadline=None, max_examples=200)
@given(
    eps0=st.floats(0.01, 5.0),
    error=st.floats(1e-6, 0.05),
    seed=st.integers(0, 2**32 - 1),
    asked=st.floats(0.0, 1.0),
)
def test_inexact_draws_cost_no_more_delta_than_is_set_aside(eps0, error, seed, asked):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(6))
    p = q * np.exp(rng.uniform(-eps0 / 2, eps0 / 2, 6))
    p /= p.sum()

    def corrupted(exact):
        """Move mass `error` at most from some outcomes to one other."""
        lost = np.minimum(exact, rng.dirichlet(np.ones(6)) * error)
        wrong = exact - lost
        wrong[rng.integers(6)] += lost.sum()
        return wrong

    epsilon = asked * eps0
    least = min(1.0, error * (1 + math.exp(eps0)))
    # The ideal pair, less its common lost part, is bounded range: see the module's notes.
    real_p, real_q = corrupted(p), corrupted(q)
    kept = np.minimum(1.0, np.minimum(real_p / p, real_q / q))
    assert 1 - (kept * p).sum() <= least + 1e-12
    assert 1 - (kept * q).sum() <= least + 1e-12
    assert hockey_stick(real_p, real_q, eps0) <= least + 1e-12
    assert hockey_stick(real_p, real_q, epsilon) <= hockey_stick(p, q, epsilon) + least + 1e-12


def test_the_rule_is_the_scale_in_fixed_point():
    unit, private = 2.0**32, vertex_mechanism(0.1, 1.5)
    assert private.in_units(unit) == SelectionRule(
        "exponential", private.exponent / unit, sensitivity=1.5 * unit
    )
    assert private.in_units(unit, 7.0).spread == 7.0
    exact = vertex_mechanism(math.inf, 1.5)
    assert exact.in_units(unit) == SelectionRule("none", math.inf, sensitivity=1.5 * unit)


def test_the_papers_step_takes_the_printed_scales():
    paper = paper_mechanism(0.1, 1e-6, 4000, 50.0, 15935, 1.0)
    root = math.sqrt(8 * 4000 * math.log(1e6))
    assert paper.exponent == pytest.approx(15935 * 0.1 / (2 * 50 * root))
    assert paper.laplace == pytest.approx(50 * root / (15935 * 0.1))
    rule = paper.in_units(2.0**32)
    assert (rule.mechanism, rule.laplace) == ("paper", paper.laplace * 2.0**32)
