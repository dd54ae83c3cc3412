import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from evidence.audit.exact import epsilon_at_delta, hockey_stick
from evidence.audit.one_run import one_run_epsilon, one_run_p_value
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom, fisher_exact

from dplasso.audit.claims import (
    binomial_lower,
    binomial_upper,
    epsilon_lower_bound,
    odds_p_value,
    range_lower_bound,
    repeat_probability,
)


@pytest.mark.parametrize("trials", [1, 7, 200])
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_clopper_pearson_inverts_the_binomial_tails(trials, alpha):
    for hits in {0, 1, trials // 2, trials}:
        lower, upper = binomial_lower(hits, trials, alpha), binomial_upper(hits, trials, alpha)
        assert 0 <= lower <= hits / trials <= upper <= 1
        if hits > 0:
            assert binom.sf(hits - 1, trials, lower) == pytest.approx(alpha, rel=1e-6)
        if hits < trials:
            assert binom.cdf(hits, trials, upper) == pytest.approx(alpha, rel=1e-6)


def chance_that(exceeds, rates, trials):
    """Return the exact probability of `exceeds(hits)` for two binomial counts."""
    grid = np.arange(trials + 1)
    chances = np.outer(*(binom.pmf(grid, trials, rate) for rate in rates))
    return sum(chances[a, b] for a, b in product(range(trials + 1), repeat=2) if exceeds((a, b)))


@pytest.mark.parametrize("epsilon", [0.2, 1.5])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_the_bound_on_epsilon_errs_as_seldom_as_it_says(epsilon, delta):
    """On an event that is exactly as likely as (epsilon, delta) allows."""
    unlikely, trials, alpha = 0.25, 25, 0.05
    likely = min(1.0, math.exp(epsilon) * unlikely + delta)
    true = math.log((likely - delta) / unlikely)

    def exceeds(hits):
        return epsilon_lower_bound(hits, (trials, trials), delta, alpha) > true

    assert chance_that(exceeds, (likely, unlikely), trials) <= alpha


@pytest.mark.parametrize(("log_odds", "shift"), [(0.0, 0.7), (-1.5, 0.1), (-1.0, 2.5)])
def test_the_bound_on_a_range_errs_as_seldom_as_it_says(log_odds, shift):
    trials, alpha = 12, 0.05

    def exceeds(hits):
        return range_lower_bound(hits, (trials, trials), alpha) > shift

    rates = expit(log_odds + shift), expit(log_odds)
    assert chance_that(exceeds, rates, trials) <= alpha


@given(st.integers(1, 30), st.integers(1, 30), st.data(), st.floats(0, 3, allow_nan=False))
def test_the_odds_test_is_fishers(n, m, data, log_ratio):
    a, b = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    # Written out: how many of all a + b hits fall to the first set.
    ways = {
        k: math.comb(n, k) * math.comb(m, a + b - k) * Fraction(math.exp(log_ratio)) ** k
        for k in range(max(0, a + b - m), min(n, a + b) + 1)
    }
    expected = float(sum(w for k, w in ways.items() if k >= a) / sum(ways.values()))
    assert odds_p_value((a, b), (n, m), log_ratio) == pytest.approx(expected, rel=1e-9)
    table = [[a, n - a], [b, m - b]]
    fisher = fisher_exact(table, alternative="greater").pvalue
    assert odds_p_value((a, b), (n, m), 0.0) == pytest.approx(fisher, rel=1e-9)


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
    right = Fraction(right)
    return sum(
        (math.comb(r, k) * right**k * (1 - right) ** (r - k) for k in range(max(v, 0), r + 1)),
        Fraction(0),
    )


class TestOneRun:
    RIGHT = Fraction(3, 4)
    EPSILON = math.log(3)

    @pytest.mark.parametrize(("m", "r"), [(1, 1), (12, 12), (20, 9)])
    @pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
    def test_it_is_the_theorem_written_out(self, m, r, delta):
        for v in range(r + 1):
            spread = [
                (tail(v - i, r, self.RIGHT) - tail(v, r, self.RIGHT)) / i for i in range(1, m + 1)
            ]
            expected = min(1, tail(v, r, self.RIGHT) + 2 * m * Fraction(delta) * max(spread))
            found = one_run_p_value(m, r, v, self.EPSILON, delta)
            assert found == pytest.approx(float(expected), rel=1e-9)

    @pytest.mark.parametrize("revealed", [1, 3, 10])
    @pytest.mark.parametrize("delta", [1e-3, 0.02])
    def test_it_holds_where_some_coins_are_shown_now_and_then(self, revealed, delta):
        """With probability m delta / k show k random coins: each coin is shown with delta."""
        m = 10
        chance = m * delta / revealed
        for v in range(m + 1):
            shown = binom.sf(v - revealed - 1, m - revealed, 0.75)
            truth = (1 - chance) * binom.sf(v - 1, m, 0.75) + chance * shown
            assert one_run_p_value(m, m, v, self.EPSILON, delta) >= truth * (1 - 1e-12)

    def test_the_bound_inverts_the_p_value(self):
        epsilon = one_run_epsilon(1000, 800, 700, 1e-6, 1e-4)
        assert 1.3 < epsilon < math.log(7)
        assert one_run_p_value(1000, 800, 700, epsilon, 1e-6) < 1e-4
        assert one_run_p_value(1000, 800, 700, epsilon + 1e-6, 1e-6) >= 1e-4
        assert one_run_epsilon(1000, 800, 410, 1e-6, 1e-4) == 0

    def test_impossible_counts_are_refused(self):
        for m, r, v in ((5, 6, 1), (5, 4, 5), (5, 4, -1)):
            with pytest.raises(ValueError, match="correct <= guesses <= canaries"):
                one_run_p_value(m, r, v, 1.0, 0.0)


def test_repeats_are_as_rare_as_birthdays():
    exact = 1 - math.prod(1 - k / 365 for k in range(10))
    bound = repeat_probability(10, math.log(365))
    assert exact <= bound <= 1.1 * exact
    assert repeat_probability(1, 0.0) == 0
    assert repeat_probability(400, math.log(365)) == 1
