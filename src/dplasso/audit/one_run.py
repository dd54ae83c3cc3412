"""Auditing with one fit: many canaries at once, each in or out by a fair coin.

After Steinke, Nasr and Jagielski 2023 (arXiv 2305.08846). The coins are independent, so a claim
about each record bounds how many of them can be guessed right together; one release of a fit is
enough. It is weak for a sound mechanism, where many canaries share one budget, and cheap: the very
fit that is going to be released can be audited.
"""

import numpy as np
from numpy.typing import NDArray

from dplasso.audit.bounds import one_run_epsilon, one_run_p_value
from dplasso.audit.claims import (
    Finding,
    Release,
    Target,
    bound_in_words,
    finding,
    many_canaries,
)

# The share of canaries that are guessed, half of them "in": those with the clearest scores.
GUESSED = 0.8


def canary_scores(release: Release, canaries: int) -> NDArray[np.float64]:
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
