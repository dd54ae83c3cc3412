"""The statistics of auditing: from counts to a lower bound on epsilon."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp
from scipy.stats import beta, binom

# Bisection for epsilon stops at this width; the end on the safe (smaller) side is reported.
_WIDTH = 1e-9
LARGEST_EPSILON = 700.0


def binomial_lower(hits: int, trials: int, alpha: float) -> float:
    """Return the one-sided Clopper-Pearson lower bound of a probability; 0 without hits."""
    if hits == 0:
        return 0.0
    return float(beta.ppf(alpha, hits, trials - hits + 1))


def binomial_upper(hits: int, trials: int, alpha: float) -> float:
    """Return the one-sided Clopper-Pearson upper bound of a probability; 1 without misses."""
    return 1.0 - binomial_lower(trials - hits, trials, alpha)


def epsilon_of_rates(likely: float, unlikely: float, delta: float) -> float:
    """Return the smallest epsilon that allows an event these two rates, at least 0."""
    above = likely - delta
    if above <= unlikely:
        return 0.0
    return math.inf if unlikely == 0 else math.log(above / unlikely)


def epsilon_lower_bound(
    hits: tuple[int, int], trials: tuple[int, int], delta: float, alpha: float
) -> float:
    """Return a lower bound on epsilon by how often one event came on two neighbouring data sets.

    The data set on which the event is the likelier stands first. The event was chosen without
    looking at these trials; half of `alpha`, the chance of too high a bound, goes to either rate.
    """
    likely = binomial_lower(hits[0], trials[0], alpha / 2)
    unlikely = binomial_upper(hits[1], trials[1], alpha / 2)
    return epsilon_of_rates(likely, unlikely, delta)


def odds_p_value(hits: tuple[int, int], trials: tuple[int, int], log_ratio: float) -> float:
    """Test that the log of an event's odds ratio is at most `log_ratio`; Fisher's p-value.

    Given the number of hits in all, how many of them fall to the first set, where the event is
    thought likelier, follows the noncentral hypergeometric distribution.
    """
    total = sum(hits)
    first = np.arange(max(0, total - trials[1]), min(trials[0], total) + 1)
    logs = _log_choose(trials[0], first) + _log_choose(trials[1], total - first)
    logs = logs + log_ratio * first
    tail = logsumexp(logs[first >= hits[0]]) - logsumexp(logs)
    return float(min(1.0, np.exp(tail)))


def _log_choose(n: int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def range_lower_bound(hits: tuple[int, int], trials: tuple[int, int], alpha: float) -> float:
    """Return a lower bound on a step's bounded-range parameter.

    If all log-ratios of two distributions lie within eps0 of each other, so do those of an event
    and of its complement: the event's log-odds differ by at most eps0. The bound, the largest
    difference that `odds_p_value` refutes, exceeds the truth with probability `alpha`.
    """
    return largest_refuted(lambda log_ratio: odds_p_value(hits, trials, log_ratio) < alpha)


def one_run_p_value(
    canaries: int, guesses: int, correct: int, epsilon: float, delta: float
) -> float:
    """Bound the probability of guessing so many canaries right, if the claim were true.

    Each of m canaries is in or out by a fair coin; from one release an attacker guesses a fixed
    number r of the coins. With ``W ~ Binomial(r, e^epsilon / (1 + e^epsilon))``, an
    (epsilon, delta)-DP release lets v (`correct`) or more be right with probability at most

        P(W >= v) + 2 m delta max_{1 <= i <= v} P(v - i <= W < v) / i

    (Steinke, Nasr and Jagielski 2023, arXiv 2305.08846, theorem 5.2).
    """
    if not 0 <= correct <= guesses <= canaries:
        raise ValueError(
            "needs 0 <= correct <= guesses <= canaries, got "
            f"{correct}, {guesses} and {canaries} in that order"
        )
    right = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(binom.sf(correct - 1, guesses, right))
    if delta == 0 or correct == 0:
        return min(1.0, tail)
    spread = np.arange(1, correct + 1)
    below = np.cumsum(binom.pmf(correct - spread, guesses, right))
    return min(1.0, tail + 2.0 * canaries * delta * float((below / spread).max()))


def one_run_epsilon(canaries: int, guesses: int, correct: int, delta: float, alpha: float) -> float:
    """Return the largest epsilon that so many right guesses refute at `alpha`, or 0."""
    return largest_refuted(
        lambda epsilon: one_run_p_value(canaries, guesses, correct, epsilon, delta) < alpha
    )


def largest_refuted(refuted: Callable[[float], bool]) -> float:
    """Return the end of the refuted values, which start at 0, from below; 0 if there are none."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high) and high < LARGEST_EPSILON:
        low, high = high, 2.0 * high
    while high - low > _WIDTH:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def repeat_probability(draws: int, outcomes_log: float) -> float:
    """Return a bound on the probability that two of several independent releases are the same.

    That is ``min(1, draws (draws - 1) / 2 exp(-outcomes_log))``; `outcomes_log` is minus the
    logarithm of the likeliest release's probability.
    """
    if draws < 2:
        return 0.0
    return math.exp(min(0.0, math.log(draws * (draws - 1) / 2) - outcomes_log))


def allowed_power(rate: NDArray[np.float64], epsilon: float, delta: float) -> NDArray[np.float64]:
    """Return the largest true positive rate that (epsilon, delta)-privacy allows.

    ``min(1, e^epsilon rate + delta, 1 - e^-epsilon (1 - delta - rate))`` for a false positive rate
    (Kairouz, Oh and Viswanath 2015).
    """
    with np.errstate(over="ignore"):
        steep = np.exp(epsilon) * rate + delta
    flat = 1.0 - np.exp(-epsilon) * (1.0 - delta - rate)
    return np.asarray(np.minimum(1.0, np.minimum(steep, flat)))
