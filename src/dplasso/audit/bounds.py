"""The statistics of auditing: from counts or probabilities to a lower bound on epsilon."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp
from scipy.stats import beta, binom

# Bisection for epsilon stops at this width; the end on the safe (smaller) side is reported.
_WIDTH = 1e-9
_LARGEST_EPSILON = 700.0


def binomial_lower(hits: int, trials: int, alpha: float) -> float:
    """Return the one-sided Clopper-Pearson lower bound of a probability.

    `hits`, `trials`: how often the event came, out of how many independent trials.
    `alpha`: probability that the bound exceeds the truth, in (0, 1).

    Returns: 0 without hits or trials.
    """
    if hits == 0:
        return 0.0
    return float(beta.ppf(alpha, hits, trials - hits + 1))


def binomial_upper(hits: int, trials: int, alpha: float) -> float:
    """Return the one-sided Clopper-Pearson upper bound of a probability.

    `hits`, `trials`, `alpha`: as in `binomial_lower`.

    Returns: 1 without misses.
    """
    return 1.0 - binomial_lower(trials - hits, trials, alpha)


def epsilon_of_rates(likely: float, unlikely: float, delta: float) -> float:
    """Return the smallest epsilon that allows an event these two probabilities.

    `likely`, `unlikely`: the event's probability on the one and on the other data set.
    `delta`: delta of the claim.

    Returns: ``log((likely - delta) / unlikely)``, at least 0.
    """
    above = likely - delta
    if above <= unlikely:
        return 0.0
    return math.inf if unlikely == 0 else math.log(above / unlikely)


def epsilon_lower_bound(
    hits: tuple[int, int], trials: tuple[int, int], delta: float, alpha: float
) -> float:
    """Bound epsilon from below by how often one event came on two neighbouring data sets.

    `hits`, `trials`: first the data set on which the event is the likelier.
    `delta`: delta of the claim.
    `alpha`: probability that the bound exceeds the truth; half of it goes to either rate.

    Returns: valid for an event chosen without looking at these trials.
    """
    likely = binomial_lower(hits[0], trials[0], alpha / 2)
    unlikely = binomial_upper(hits[1], trials[1], alpha / 2)
    return epsilon_of_rates(likely, unlikely, delta)


def odds_p_value(hits: tuple[int, int], trials: tuple[int, int], log_ratio: float) -> float:
    """Test that an event's odds are not much larger in one set of trials than in another.

    `hits`, `trials`: how often the event came, out of how many; first where it is thought
    likelier.
    `log_ratio`: the largest log of the odds ratio that the hypothesis allows.

    Returns: Fisher's exact one-sided p-value: given the number of hits in all, how many of them
    fall to the first set follows the noncentral hypergeometric distribution.
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
    """Bound a step's bounded-range parameter from below.

    If all log-ratios of two distributions lie within eps0 of each other, so do those of an event
    and of its complement: the event's log-odds differ by at most eps0.

    `hits`, `trials`: as in `odds_p_value`.
    `alpha`: probability that the bound exceeds the truth.

    Returns: the largest difference of the log-odds that `odds_p_value` refutes, to within 1e-9; at
    least 0.
    """

    def refuted(log_ratio: float) -> bool:
        return odds_p_value(hits, trials, log_ratio) < alpha

    return _largest_refuted(refuted)


def hockey_stick(log_p: NDArray[np.float64], log_q: NDArray[np.float64], epsilon: float) -> float:
    """Return ``sum max(0, P - e^epsilon Q)``: the delta at which P and Q are `epsilon` apart.

    `log_p`, `log_q`: log-probabilities of the same outcomes; -inf where impossible.
    `epsilon`: at least 0.

    Returns: in [0, 1].
    """
    with np.errstate(over="ignore"):
        return float(np.maximum(0.0, np.exp(log_p) - np.exp(np.add(log_q, epsilon))).sum())


def epsilon_at_delta(log_p: NDArray[np.float64], log_q: NDArray[np.float64], delta: float) -> float:
    """Return the smallest epsilon for which two distributions are (epsilon, delta)-close.

    `log_p`, `log_q`: log-probabilities of the same outcomes; -inf where impossible. Either may be
    the first.
    `delta`: at least 0.

    Returns: from below, to within 1e-9; infinity where outcomes that are impossible on one side
    hold more than delta.
    """

    def exceeds(epsilon: float) -> bool:
        one, other = hockey_stick(log_p, log_q, epsilon), hockey_stick(log_q, log_p, epsilon)
        return max(one, other) > delta

    if not exceeds(0.0):
        return 0.0
    if exceeds(_LARGEST_EPSILON):
        return math.inf
    low, high = 0.0, 1.0
    while exceeds(high):
        low, high = high, 2.0 * high
    while high - low > _WIDTH:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return low


def one_run_p_value(
    canaries: int, guesses: int, correct: int, epsilon: float, delta: float
) -> float:
    """Bound the probability of guessing so many canaries right, if the claim were true.

    Each of m canaries is in or out by a fair coin; from one release an attacker guesses a fixed
    number r of the coins. With ``W ~ Binomial(r, e^epsilon / (1 + e^epsilon))``, an
    (epsilon, delta)-DP release lets v or more be right with probability at most

        P(W >= v) + 2 m delta max_{1 <= i <= v} P(v - i <= W < v) / i

    (Steinke, Nasr and Jagielski 2023, arXiv 2305.08846, theorem 5.2).

    `canaries`, `guesses`, `correct`: m, r and v.
    `epsilon`, `delta`: the claim.

    Returns: in [0, 1].

    Raises ValueError unless ``0 <= correct <= guesses <= canaries``.
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
    """Return the largest epsilon that so many right guesses refute.

    `canaries`, `guesses`, `correct`: as in `one_run_p_value`.
    `delta`: delta of the claim.
    `alpha`: probability that the bound exceeds the truth.

    Returns: from below, to within 1e-9; 0 where nothing is refuted.
    """

    def refuted(epsilon: float) -> bool:
        return one_run_p_value(canaries, guesses, correct, epsilon, delta) < alpha

    return _largest_refuted(refuted)


def _largest_refuted(refuted: Callable[[float], bool]) -> float:
    """Return the end of the refuted values, which start at 0, from below."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high) and high < _LARGEST_EPSILON:
        low, high = high, 2.0 * high
    while high - low > _WIDTH:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def repeat_probability(draws: int, outcomes_log: float) -> float:
    """Bound the probability that two of several equally distributed releases are the same.

    `draws`: number of independent releases.
    `outcomes_log`: minus the logarithm of the likeliest release's probability.

    Returns: ``min(1, draws (draws - 1) / 2 exp(-outcomes_log))``.
    """
    if draws < 2:
        return 0.0
    return math.exp(min(0.0, math.log(draws * (draws - 1) / 2) - outcomes_log))
