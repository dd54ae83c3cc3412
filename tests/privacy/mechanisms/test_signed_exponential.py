"""The private step: scales, the pairing with its accountant, and sensitivity by brute force."""

import inspect
import itertools
import math
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.privacy.accounting import epsilon_of, epsilon_spent
from dplasso.privacy.mechanisms import (
    EXPONENT_SLACK,
    SAMPLING_ERROR,
    Mechanism,
    SelectionRule,
    build_mechanism,
    sensitivity,
)
from dplasso.privacy.mechanisms.signed_exponential import SignedExponential


def build(**changes) -> Mechanism:
    settings_ = {"epsilon": 1.0, "delta": 1e-6, "n_iter": 1000} | changes
    return build_mechanism(**settings_)


# --- Sensitivity and bounded range, exhaustively on small integer problems ---------------------

BOUND = 2.0
UNIT = 2**32 / BOUND
# Record gradients and entries at and inside their bounds: each pair is one contribution.
RECORDS = [
    tuple(round(q * x * UNIT) for x in entries)
    for q in (-1.0, -0.3, 0.5, 1.0)
    for entries in itertools.product((-BOUND, 0.0, 0.75, BOUND), repeat=2)
]


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


def worst(pairs, scale):
    """Return the largest change of a coordinate, log-ratio and range of log-ratios over pairs."""
    moved = ratio = spread = 0.0
    for alpha, neighbor in pairs:
        moved = max(moved, int(np.abs(alpha - neighbor).max()) / UNIT)
        change = log_probabilities(alpha, scale) - log_probabilities(neighbor, scale)
        ratio = max(ratio, float(np.abs(change).max()))
        spread = max(spread, float(np.ptp(change)))
    return moved, ratio, spread


@pytest.mark.parametrize("eps0_target", [0.01, 1.0])
@pytest.mark.parametrize(
    ("neighbors", "pairs"), [("add-remove", add_remove_pairs), ("replace-one", replace_one_pairs)]
)
def test_neighbors_stay_within_the_declared_bounds(neighbors, pairs, eps0_target):
    scale = eps0_target / (2 * sensitivity(BOUND, neighbors))
    moved, ratio, spread = worst(pairs(), scale)
    # Bounds that are also reached: a constant off by a factor of two, either way, fails.
    assert moved == sensitivity(BOUND, neighbors)
    assert ratio <= spread
    assert spread == pytest.approx(eps0_target, rel=1e-9)
    assert spread <= eps0_target * (1 + 1e-9)


# --- The scale ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [0.1, 1.0, 7.5])
def test_scale_spends_exactly_eps0(bound):
    add, replace = (build(feature_bound=bound, neighbors=n) for n in ("add-remove", "replace-one"))
    assert add.eps0 == pytest.approx(2 * bound * add.exponent_scale, rel=1e-15)
    assert replace.eps0 == pytest.approx(4 * bound * replace.exponent_scale, rel=1e-15)
    assert replace.eps0 == add.eps0
    assert replace.exponent_scale == add.exponent_scale / 2
    assert (add.sensitivity, replace.sensitivity) == (bound, 2 * bound)
    clipped = build(feature_bound=bound, residual_bound=0.5)
    assert (clipped.eps0, clipped.sensitivity) == (add.eps0, bound / 2)
    assert clipped.exponent_scale == 2 * add.exponent_scale


def test_the_number_of_records_enters_no_private_scale():
    assert "n_samples" not in inspect.signature(sensitivity).parameters
    assert not {"n_samples", "n_rows"} & {field.name for field in fields(SignedExponential)}
    few, many = build(n_samples=10, l1_radius=1.0), build(n_samples=10**9, l1_radius=500.0)
    assert few == many == build()


@settings(deadline=None, max_examples=15)
@given(
    epsilon=st.floats(0.01, 50.0),
    delta=st.sampled_from([1e-4, 1e-6, 1e-8]),
    n_iter=st.integers(10, 5000),
)
def test_spends_what_was_asked_and_no_more(epsilon, delta, n_iter):
    mechanism = build(epsilon=epsilon, delta=delta, n_iter=n_iter, plain_sum=False)
    assert 0.99 * epsilon < mechanism.epsilon_spent <= epsilon
    rest = delta - mechanism.sampling_delta
    assert mechanism.sampling_delta >= n_iter * SAMPLING_ERROR * (1 + math.exp(mechanism.eps0))
    # The accountant is asked about the step with the slack that rounding may use up.
    slack = mechanism.eps0 / (1 - EXPONENT_SLACK)
    again = epsilon_spent(slack, n_iter, rest)
    assert mechanism.epsilon_spent == pytest.approx(again, rel=1e-9)
    assert epsilon_spent(mechanism.eps0, n_iter, rest) < epsilon


def test_the_slack_covers_the_rounding_of_the_exponent():
    """The largest problem, 2^31 records, all pulling one way: float against exact integers."""
    mechanism = build(n_iter=10)
    scale = mechanism.exponent_scale / 2**32
    rng = np.random.default_rng(5)
    largest = 2**31 * 2**32
    for alpha in [largest - 1, *rng.integers(largest // 2, largest, 200)]:
        computed = Fraction(scale * float(alpha))
        error = abs(computed - Fraction(scale) * int(alpha))
        # Two outcomes, two data sets: four such errors make up a range of log-ratios.
        assert 4 * error <= EXPONENT_SLACK * mechanism.eps0


# --- The inexactness of draws ------------------------------------------------------------------


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


def test_a_delta_that_cannot_cover_the_draws_is_refused():
    with pytest.raises(ValueError, match=r"^delta must be above 4\.79e-10 for n_iter=1000"):
        build(delta=4e-10)
    assert build(delta=4.9e-10).epsilon_spent > 0.99


def test_very_few_steps_at_a_huge_epsilon_spend_less_than_asked():
    mechanism = build(epsilon=1000.0, n_iter=1)
    assert 10 < mechanism.eps0 < 30
    assert mechanism.epsilon_spent < 1000
    spent_on_draws = SAMPLING_ERROR * (1 + math.exp(mechanism.eps0))
    assert spent_on_draws <= mechanism.sampling_delta <= 0.95e-6


# --- Pairing -----------------------------------------------------------------------------------


def test_only_the_exponential_mechanism_has_this_accountant():
    paper = build(mechanism="paper", l1_radius=50.0, n_samples=100)
    with pytest.raises(ValueError, match="exponential mechanism only"):
        paper.event()
    with pytest.raises(ValueError, match="no privacy to account for"):
        build(epsilon=math.inf).event()
    for mechanism in (paper, build(epsilon=math.inf)):
        assert mechanism.rho == math.inf
        assert mechanism.eps0_accounted is None


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_its_event_is_what_it_spends(neighbors, epsilon):
    mechanism = build(epsilon=epsilon, neighbors=neighbors)
    event = mechanism.event()
    assert event.count == 1000
    assert event.event.rho * 1000 == pytest.approx(mechanism.rho, rel=1e-12)
    assert mechanism.rho >= 1000 * mechanism.eps0**2 / 8
    spent = epsilon_of(event, mechanism.delta - mechanism.sampling_delta)
    assert mechanism.epsilon_spent == pytest.approx(spent, rel=1e-12)


def test_the_rule_is_the_scale_in_fixed_point():
    unit = 2.0**32
    private, paper = build(), build(mechanism="paper", l1_radius=50.0, n_samples=100)
    assert private.rule(unit) == SelectionRule("exponential", private.exponent_scale / unit, 0.0)
    assert paper.rule(unit) == SelectionRule(
        "paper", paper.exponent_scale / unit, paper.laplace_scale * unit
    )
    assert build(epsilon=math.inf).rule(unit) == SelectionRule("none", math.inf, 0.0)


def test_paper_takes_the_printed_scales_and_promises_nothing():
    paper = build(mechanism="paper", epsilon=0.1, n_iter=4000, l1_radius=50.0, n_samples=15935)
    root = math.sqrt(8 * 4000 * math.log(1e6))
    assert paper.name == "paper"
    assert paper.exponent_scale == pytest.approx(15935 * 0.1 / (2 * 50 * root))
    assert paper.laplace_scale == pytest.approx(50 * root / (15935 * 0.1))
    assert paper.epsilon_spent == paper.eps0 == math.inf
    for missing in ({"n_samples": 5}, {"l1_radius": 5.0}, {"n_samples": 5, "l1_radius": 0.0}):
        with pytest.raises(ValueError, match=r"needs l1_radius and n_samples|^l1_radius must"):
            build(mechanism="paper", **missing)


@pytest.mark.parametrize("name", ["exponential", "paper"])
def test_infinite_epsilon_is_no_mechanism(name):
    none = build(epsilon=math.inf, mechanism=name)
    assert none.name == "none"
    assert none.rule(1.0).exponent == math.inf
    assert (none.rule(1.0).laplace, none.sampling_delta) == (0.0, 0.0)
    assert math.isinf(none.epsilon_spent)


WRONG_VALUES = {
    "epsilon": [0, math.nan],
    "delta": [0.0, 1.0, math.nan],
    "n_iter": [0, 2**31],
    "neighbors": ["zero-out"],
    "feature_bound": [0.0, -1.0, math.inf, math.nan, 1e-200],
    "mechanism": ["laplace"],
}
WRONG_TYPES = {
    "epsilon": ["big", None, True],
    "delta": ["small", None],
    "n_iter": [1.5, True],
    "neighbors": [1],
    "feature_bound": ["1"],
    "mechanism": [None],
}


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize(("error", "table"), [(ValueError, WRONG_VALUES), (TypeError, WRONG_TYPES)])
def test_bad_parameters_are_named(error, table, epsilon):
    for name, values in table.items():
        for value in values:
            with pytest.raises(error, match=rf"^{name} must .*\.$"):
                build(**({"epsilon": epsilon} | {name: value}))
