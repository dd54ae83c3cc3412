import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from evidence.audit.exact import epsilon_at_delta, hockey_stick
from evidence.audit.one_run import one_run_epsilon, one_run_p_value
from scipy.special import expit
from scipy.stats import binomtest, nchypergeom_fisher

from audit.mutants import Steps
from dplasso.audit import Claim, Target, audit_canary, audit_canary_step, audit_repeats, canary_pair

RATES = [(1.0, 0.0), (0.9, 0.2), (0.6, 0.5), (0.5, 0.5), (0.0, 0.0), (0.97, 0.9)]
each_rates = pytest.mark.parametrize("rates", RATES, ids=str)


def of_rates(rates, delta=0.0):
    """Return a target whose one step is +e_0 on both neighbours as often as this, or -e_0."""
    claim, rng = Claim(1.0, delta, "add-remove", 1, 1.0, 1.0), np.random.default_rng(0)
    present = canary_pair(claim)[0].X.shape[0]

    def fit(data):
        rate = rates[0] if data.X.shape[0] == present else rates[1]
        return Steps(np.zeros(1, int), np.array([1 if rng.random() < rate else -1]))

    return Target(claim, fit)


@cache
def interval(hits, trials, side, alpha):
    return binomtest(hits, trials, alternative=side).proportion_ci(1.0 - alpha, "exact")


def odds_p_value(hits, trials, log_ratio):
    """Return Fisher's p-value of a log odds ratio of at most this."""
    law = nchypergeom_fisher(sum(trials), trials[0], sum(hits), math.exp(log_ratio))
    return law.sf(hits[0] - 1)


@each_rates
@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_an_event_bounds_epsilon_by_exact_intervals_of_its_rates(rates, delta, alpha):
    """By scipy's, each at half of alpha."""
    found = audit_canary(of_rates(rates, delta), 60, alpha)
    hits, trials = found.figures["hits"], found.figures["trials"]
    above = interval(hits[0], trials[0], "greater", alpha / 2.0).low - delta
    unlikely = interval(hits[1], trials[1], "less", alpha / 2.0).high
    expected = math.log(above / unlikely) if above > unlikely else 0.0
    assert found.audited == pytest.approx(expected, rel=1e-9)
    assert found.violated == (expected > 1.0)
    assert found.false_alarm == alpha


@each_rates
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_a_step_is_bounded_by_the_largest_odds_ratio_that_fisher_refutes(rates, alpha):
    found = audit_canary_step(of_rates(rates), 60, alpha)
    known = found.figures["hits"], found.figures["trials"]
    assert found.audited == 0.0 or odds_p_value(*known, found.audited - 1e-4) < alpha
    assert odds_p_value(*known, found.audited + 1e-4) >= alpha


def test_repeats_are_as_rare_as_birthdays():
    target = of_rates((0.5, 0.5))
    # Of 64 columns.
    exact = 1 - math.prod(1 - k / 64 for k in range(10))
    bound = audit_repeats(target, 10, 1.0).figures["p_value_of_one_repeat"]
    assert exact <= bound <= 1.5 * exact
    assert audit_repeats(target, 1, 0.0).figures["p_value_of_one_repeat"] == 0
    with pytest.raises(ValueError, match="1 steps are too few to tell 400 releases apart"):
        audit_repeats(target, 400, 0.9)


class TestHockeyStick:
    def test_randomised_response(self):
        epsilon = 1.3
        log_p = -np.log1p(np.exp([-epsilon, epsilon]))
        log_q = log_p[::-1]
        assert epsilon_at_delta(log_p, log_q, 0.0) == pytest.approx(epsilon, abs=1e-8)
        delta = hockey_stick(log_p, log_q, 0.5)
        assert delta == pytest.approx(expit(epsilon) - math.exp(0.5) * expit(-epsilon))
        assert epsilon_at_delta(log_p, log_q, delta) == pytest.approx(0.5, abs=1e-8)

    def test_impossible_outcomes(self):
        with np.errstate(divide="ignore"):
            log_p, log_q = np.log([0.9, 0.1, 0.0]), np.log([1.0, 0.0, 0.0])
        assert hockey_stick(log_p, log_q, 50.0) == pytest.approx(0.1)
        assert epsilon_at_delta(log_p, log_q, 0.09) == math.inf
        assert epsilon_at_delta(log_p, log_q, 0.11) == 0
        assert epsilon_at_delta(log_q, log_p, 0.09) == math.inf
        assert epsilon_at_delta(log_p, log_p, 0.0) == 0


def tail(v, r, right):
    """Return P(Binomial(r, right) >= v) as a fraction."""
    return sum(
        (math.comb(r, k) * right**k * (1 - right) ** (r - k) for k in range(max(v, 0), r + 1)),
        Fraction(0),
    )


class TestOneRun:
    @pytest.mark.parametrize(("m", "r"), [(1, 1), (12, 12), (20, 9)])
    @pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
    def test_it_is_the_theorem_written_out(self, m, r, delta):
        for v in range(r + 1):
            # At epsilon log(3) a guess is right with probability 3/4.
            right = tail(v, r, Fraction(3, 4))
            spread = [(tail(v - i, r, Fraction(3, 4)) - right) / i for i in range(1, m + 1)]
            expected = min(1, right + 2 * m * Fraction(delta) * max(spread))
            found = one_run_p_value(m, r, v, math.log(3), delta)
            assert found == pytest.approx(float(expected), rel=1e-9)

    def test_the_bound_inverts_the_p_value(self):
        epsilon = one_run_epsilon(1000, 800, 700, 1e-6, 1e-4)
        assert 1.3 < epsilon < math.log(7)
        assert one_run_p_value(1000, 800, 700, epsilon, 1e-6) < 1e-4
        assert one_run_p_value(1000, 800, 700, epsilon + 1e-6, 1e-6) >= 1e-4
        assert one_run_epsilon(1000, 800, 410, 1e-6, 1e-4) == 0
