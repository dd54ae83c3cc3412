"""What a search costs, against dp-accounting and the exact law; what its tries are drawn from."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from dplasso import DPLogisticRegression
from dplasso.fit.records import local_records
from dplasso.privacy.accounting import epsilon_of, gaussian_epsilon
from dplasso.privacy.randomness import next_words, random_stream, random_word, word_buffers
from dplasso.tuning.candidates import cost_of_try, draw_held_out
from dplasso.tuning.search_cost import draw_tries, epsilon_of_search, search_cost, tries_of

MEANS = (3.0, 10.0)


def generating(tries, s):
    """Return E[s^K] and its derivative."""
    g = tries.gamma
    rest = 1.0 - (1.0 - g) * s
    return np.log(rest) / math.log(g), (g - 1.0) / rest / math.log(g)


def best_of(tries, shift):
    """Return the density of the best of K scores N(shift, 1) on a grid, and its step."""
    x = np.linspace(-12.0, 16.0, 40_001)
    _, slope = generating(tries, stats.norm.cdf(x, shift))
    return slope * stats.norm.pdf(x, shift), x[1] - x[0]


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("rho", [0.005, 0.08])
def test_the_exact_search_of_gaussian_scores_is_within_it(mean, rho):
    """One try releases a Gaussian score of the given zCDP: then the best of K is known exactly."""
    tries = tries_of(mean)
    (p, step), (q, _) = best_of(tries, math.sqrt(2.0 * rho)), best_of(tries, 0.0)
    delta = 1e-4
    epsilon = epsilon_of_search(rho, tries, delta)
    for one, other in ((p, q), (q, p)):
        true = float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum() * step)
        assert true <= delta
    # The test can fail: the cost of one try alone would be too small a claim.
    single = gaussian_epsilon(math.sqrt(2.0 * rho), delta)
    assert float(np.maximum(p - math.exp(single) * q, 0.0).sum() * step) > delta


@pytest.mark.parametrize("mean", MEANS)
def test_a_ledger_is_charged_a_zcdp_that_holds(mean):
    tries = tries_of(mean)
    cost = search_cost(1.0, 1e-6, tries)
    (p, step), (q, _) = best_of(tries, math.sqrt(2.0 * cost.try_rho)), best_of(tries, 0.0)
    for order in (1.05, 1.5, 2.0, 4.0, 10.0, 30.0):
        for one, other in ((p, q), (q, p)):
            kept = (one > 1e-280) & (other > 1e-280)
            ratio = np.log(one[kept]) * order + np.log(other[kept]) * (1.0 - order)
            exact = math.log(float(np.exp(ratio).sum() * step)) / (order - 1.0)
            assert exact <= cost.rho * order
    assert cost.rho > cost.try_rho > 0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_budget_is_met_from_the_private_side(epsilon):
    tries = tries_of(5.0)
    cost = search_cost(epsilon, 1e-6, tries, draw_variation=1e-12)
    assert 0.999 * epsilon < cost.epsilon_spent <= epsilon
    assert cost.sampling_delta >= 5e-12 * (1.0 + math.exp(epsilon))
    assert epsilon_of_search(cost.try_rho, tries, 1e-6 - cost.sampling_delta) <= epsilon


def test_what_a_try_is_left_matches_the_table_of_the_documentation():
    """Base epsilon of total 1: by field measurements .59 (10) and .51 (50)."""
    for mean, expected in ((3, 0.677), (10, 0.585), (50, 0.514)):
        cost = search_cost(1.0, 1e-6, tries_of(mean))
        assert epsilon_of(cost.try_rho, 1, 1e-6) == pytest.approx(expected, abs=0.002)


def test_what_a_try_costs_counts_the_draws_of_all_labels():
    estimator, wide = DPLogisticRegression(1.0, classes=[0, 1]), sp.random_array((9, 1000))
    labels = np.arange(18).reshape(9, 2) // 3 % 2
    one, two = (
        cost_of_try(estimator, local_records(estimator, wide, y, takes_matrix=True))
        for y in (labels[:, 0], labels)
    )
    assert one[1] < two[1] < 2.1 * one[1]


def test_draws_that_cannot_be_covered_are_refused():
    with pytest.raises(ValueError, match="too small to cover the rounding"):
        search_cost(1.0, 1e-9, tries_of(3), draw_variation=1e-9)


DRAWS = 20_000
# Chance that a right sampler fails a test here.
ALARM = 1e-6


def exact(tries):
    """Return the law by another library."""
    return stats.logser(1.0 - tries.gamma)


def fits(drawn, law):
    """Return whether the draws pass a test of goodness of fit; each class expects at least 10."""
    edges = [k for k in range(400) if DRAWS * law.pmf(k) >= 10]
    counts = [int((drawn == k).sum()) for k in edges]
    expected = [DRAWS * law.pmf(k) for k in edges]
    counts.append(DRAWS - sum(counts))
    expected.append(DRAWS - sum(expected))
    return stats.chisquare(counts, expected).pvalue > ALARM


@pytest.mark.parametrize("mean", [1.5, 3.0, 10.0])
def test_the_law_is_the_one_accounted(mean):
    tries = tries_of(mean)
    stream = random_stream(7)
    drawn = np.array([draw_tries(tries, stream) for _ in range(DRAWS)])
    assert fits(drawn, exact(tries))
    # A mean that is off by a quarter would be noticed.
    assert not fits(drawn, exact(tries_of(1.25 * mean)))


def test_the_mean_is_the_one_asked_for():
    for mean in (1.01, 3.0, 50.0, 1000.0):
        tries = tries_of(mean)
        assert tries.mean == mean
        assert exact(tries).mean() == pytest.approx(mean, rel=1e-6)


def test_the_part_of_a_person_is_one_word_of_a_stream_of_256_bits():
    """From the parts of some people, another generator might tell those of the others."""
    people = np.random.default_rng(0).permutation(np.repeat(np.arange(300), 2))
    words = next_words(word_buffers(random_stream(0), 1)[0], 300)
    alone, more = random_stream(0), random_stream(0)
    held = draw_held_out(people, 0.25, alone)
    assert held.tolist() == (words < np.uint64(2**62))[people].tolist()
    assert draw_held_out(np.append(people, 300), 0.25, more)[:-1].tolist() == held.tolist()
    assert random_word(alone) == random_word(more)
