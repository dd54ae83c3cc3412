"""Draws of signed vertices: their scales, and the slack that rounding has."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dplasso.privacy.exponential_mechanism import (
    EXPONENT_SLACK,
    SelectionRule,
    paper_mechanism,
    vertex_mechanism,
)


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
