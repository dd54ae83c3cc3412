"""The one-run audit: a single fit with many canaries, each in or out by a fair coin.

The coins are independent, so a claim about each record bounds how many of them can be guessed right
together (Steinke, Nasr and Jagielski 2023, arXiv 2305.08846). It is cheap, and weak for a sound
mechanism, where many canaries share one budget.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from dplasso.audit.claims import (
    Claim,
    Data,
    Finding,
    Target,
    bound_in_words,
    finding,
    largest_refuted,
    make_data,
)
from dplasso.frank_wolfe.transcript import Transcript

# The share of canaries that are guessed, half of them "in": those with the clearest scores.
GUESSED = 0.8


def many_canaries(claim: Claim, bits: NDArray[np.bool_]) -> Data:
    """Return one data set with a canary per bit: who is in, or under replace-one the label."""
    entries, labels = claim.feature_bound * np.eye(bits.size), bits.astype(int)
    if claim.neighbors == "add-remove":
        entries, labels = entries[bits], labels[bits]
    company = np.zeros((2, bits.size))
    return make_data(np.vstack([entries, company]), np.append(labels, [0, 1]))


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


def canary_scores(release: Transcript, canaries: int) -> NDArray[np.float64]:
    """Return for every canary its feature's weight up to a factor: high if it seems to be in."""
    vertex, sign = np.asarray(release.vertex), np.asarray(release.sign, dtype=np.float64)
    steps = np.arange(2, vertex.size + 2)
    inside = vertex < canaries
    scores = np.zeros(canaries)
    np.add.at(scores, vertex[inside], (sign * steps)[inside])
    return scores


def guess(
    scores: NDArray[np.float64], guesses: int, coins: np.random.Generator
) -> NDArray[np.int64]:
    """Return +1 ("in") for the highest scores, -1 for the lowest, else 0; `coins` break ties."""
    order = np.lexsort((coins.random(scores.size), scores))
    guessed = np.zeros(scores.size, dtype=np.int64)
    half = guesses // 2
    guessed[order[:half]] = -1
    guessed[order[scores.size - half :]] = 1
    return guessed


def audit_one_run(
    target: Target, canaries: int, false_alarm: float, *, coins: np.random.Generator | None = None
) -> Finding:
    """Bound a fit's epsilon from below by one release; `coins` decide which canaries are in."""
    claim = target.claim
    coins = np.random.default_rng() if coins is None else coins
    bits = coins.random(canaries) < 0.5
    release = target.fit(many_canaries(claim, bits))
    # The number of guesses is fixed before the release is seen, as the theorem asks.
    guesses = 2 * int(GUESSED * canaries / 2)
    guessed = guess(canary_scores(release, canaries), guesses, coins)
    correct = int(((guessed > 0) & bits).sum() + ((guessed < 0) & ~bits).sum())
    audited = one_run_epsilon(canaries, guesses, correct, claim.delta, false_alarm)
    chance = one_run_p_value(canaries, guesses, correct, claim.epsilon, claim.delta)
    return finding(
        claim,
        "one run, many canaries",
        "fit",
        audited,
        false_alarm=false_alarm,
        violated=chance < false_alarm,
        detail=(
            f"of {canaries:,} canaries in one fit, {correct:,} of {guesses:,} guesses were right: "
            f"{bound_in_words('epsilon', audited, claim.epsilon)}"
        ),
        figures={
            "canaries": canaries,
            "guesses": guesses,
            "correct": correct,
            "n_iter": claim.n_iter,
            "p_value": chance,
        },
    )
