"""Black-box audits: fit many times on two neighbours, and tell the releases apart.

The neighbours differ in a canary that owns a feature. One part of the runs builds scores, a second
chooses one event, and the rest tests only that event, so the confidence needs no correction for the
search (Ding et al. 2018, Tramer et al. 2022).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from dplasso.audit.claims import (
    Claim,
    Data,
    Finding,
    Fit,
    Target,
    bound_in_words,
    canary_pair,
    epsilon_lower_bound,
    finding,
    make_data,
    range_lower_bound,
)

Progress = Callable[[int, int], None]

# At most this many events per score are compared before one is chosen.
_THRESHOLDS = 200
# Used for the choice where no event shows anything at the confidence asked for.
_LENIENT = 0.2
# The column in which the canary's contribution shows.
CANARY = 0
# Columns of the blank data on which releases are compared with each other: with T steps there are
# at least this many to the power T equally likely releases.
_BLANK_COLUMNS = 64
_SCORES = ("weight", "came with +", "came with -", "likelihood", "seen")


@dataclass(frozen=True)
class Runs:
    """Releases of many fits on one data set: coordinates and signs, of shape (runs, T)."""

    vertex: NDArray[np.int64]
    sign: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.vertex.shape[0])

    def part(self, first: int, last: int) -> "Runs":
        """Return runs `first` to `last` (exclusive)."""
        return Runs(self.vertex[first:last], self.sign[first:last])

    def at_canary(self) -> NDArray[np.int64]:
        """Return each step as its sign at the canary's column, or 0 for another column."""
        return np.asarray(np.where(self.vertex == CANARY, self.sign, 0))

    def codes(self) -> NDArray[np.int64]:
        """Return each vertex as one number: twice the coordinate, plus one for a positive sign."""
        return np.asarray(2 * self.vertex + (self.sign > 0))

    def names(self) -> list[bytes]:
        """Return each release as bytes, equal where the releases are."""
        whole = np.ascontiguousarray(np.stack([self.vertex, self.sign], axis=2))
        return [row.tobytes() for row in whole]


def released(
    fit: Callable[[Data], Any], data: Sequence[Data], runs: int, progress: Progress | None = None
) -> Iterator[Any]:
    """Yield what many fits release, on one data set after another."""
    for place, own in enumerate(data):
        for run in range(runs):
            yield fit(own)
            if progress is not None:
                progress(place * runs + run + 1, len(data) * runs)


def collect(fit: Fit, data: Sequence[Data], runs: int, progress: Progress | None) -> list[Runs]:
    """Return the vertices of many fits on each of some data sets."""
    steps = [[each.vertex, each.sign] for each in released(fit, data, runs, progress)]
    whole = np.array(steps, dtype=np.int64).reshape(len(data), runs, 2, -1)
    return [Runs(own[:, 0], own[:, 1]) for own in whole]


def build_scores(one: Runs, other: Runs) -> list[Callable[[Runs], NDArray[Any]]]:
    """Learn scores that are high on the first data set's releases, in the order of `_SCORES`."""
    weight = np.arange(2, one.vertex.shape[1] + 2, dtype=np.float64)
    codes = one.codes(), other.codes()
    values = 1 + max(int(part.max()) for part in codes)
    counts = [
        np.array([(part == value).sum(axis=0) for value in range(values + 1)]) for part in codes
    ]
    # The last row stands for vertices that were never seen, and carries no evidence.
    table = np.log(counts[0] + 0.5) - np.log(counts[1] + 0.5)
    seen = set(one.names()), set(other.names())

    def likelihood(runs: Runs) -> NDArray[Any]:
        ratios = np.take_along_axis(table, np.minimum(runs.codes(), values), axis=0)
        return np.asarray(ratios.sum(axis=1))

    def familiar(runs: Runs) -> NDArray[Any]:
        names = runs.names()
        return np.array([(name in seen[0]) - float(name in seen[1]) for name in names])

    return [
        lambda runs: runs.at_canary() @ weight,
        lambda runs: runs.at_canary().max(axis=1, initial=0),
        lambda runs: runs.at_canary().min(axis=1, initial=0),
        likelihood,
        familiar,
    ]


def _best_threshold(
    high: NDArray[np.float64], low: NDArray[np.float64], delta: float, alpha: float
) -> tuple[float, float, float]:
    """Return the best bound at `alpha` of an event "at least tau", one to break ties, and tau."""
    values = np.unique(np.concatenate([high, low]))
    if values.size > _THRESHOLDS:
        values = np.unique(np.quantile(values, np.linspace(0, 1, _THRESHOLDS)))
    hits = [part.size - np.searchsorted(np.sort(part), values) for part in (high, low)]
    bound = np.maximum(0.0, _log_rates(hits, (high.size, low.size), delta, alpha))
    lenient = _log_rates(hits, (high.size, low.size), delta, _LENIENT)
    best = np.lexsort((lenient, bound))[-1]
    return float(bound[best]), float(lenient[best]), float(values[best])


def _log_rates(
    hits: list[NDArray[np.int64]], trials: tuple[int, int], delta: float, alpha: float
) -> NDArray[np.float64]:
    """Return ``log((likely - delta) / unlikely)`` at the ends of the intervals, for many events."""
    likely = np.where(hits[0] > 0, beta.ppf(alpha / 2, hits[0], trials[0] - hits[0] + 1), 0.0)
    misses = trials[1] - hits[1]
    unlikely = 1.0 - np.where(misses > 0, beta.ppf(alpha / 2, misses, hits[1] + 1), 0.0)
    return np.asarray(np.log(np.maximum(likely - delta, 1e-300)) - np.log(unlikely))


def audit_canary(
    target: Target,
    runs: int,
    false_alarm: float,
    *,
    name: str = "canary: whole fits",
    progress: Progress | None = None,
) -> Finding:
    """Bound a fit's epsilon from below by a canary, in at least 8 runs on each neighbour."""
    one, other = collect(target.fit, canary_pair(target.claim), runs, progress)
    quarter, half = runs // 4, runs // 2
    scores = build_scores(one.part(0, quarter), other.part(0, quarter))
    scored = [
        (score(one.part(quarter, runs)), score(other.part(quarter, runs))) for score in scores
    ]
    return compare(target.claim, scored, _SCORES, false_alarm, (runs, half - quarter), name)


def compare(
    claim: Claim,
    scored: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    names: Sequence[str],
    false_alarm: float,
    runs: tuple[int, int],
    name: str,
) -> Finding:
    """Choose one event by the first runs, and test that one by the others.

    `runs`: fits on each data set in all, and how many of the scored ones choose.
    """
    n_runs, n_choice = runs
    # Each score both ways round: first its values where the event is thought to be likely.
    turned = []
    for label, pair in zip(names, scored, strict=True):
        one, other = (np.asarray(part, dtype=np.float64) for part in pair)
        turned += [(label, -other, -one), (label, one, other)]
    events = [
        (_best_threshold(high[:n_choice], low[:n_choice], claim.delta, false_alarm), place)
        for place, (_, high, low) in enumerate(turned)
    ]
    (*_, threshold), place = max(events)
    label, high, low = turned[place]
    high, low = high[n_choice:], low[n_choice:]
    hits = int((high >= threshold).sum()), int((low >= threshold).sum())
    trials = high.size, low.size
    audited = epsilon_lower_bound(hits, trials, claim.delta, false_alarm)
    return finding(
        claim,
        name,
        "fit",
        audited,
        false_alarm=false_alarm,
        violated=audited > claim.epsilon,
        detail=(
            f"an event came {hits[0]:,} times in {trials[0]:,} fits on one data set and "
            f"{hits[1]:,} times in {trials[1]:,} on its neighbour: "
            f"{bound_in_words('epsilon', audited, claim.epsilon)}"
        ),
        figures={
            "runs": 2 * n_runs,
            "n_iter": claim.n_iter,
            "score": label,
            "hits": list(hits),
            "trials": list(trials),
        },
    )


def audit_canary_step(
    target: Target, runs: int, false_alarm: float, progress: Progress | None = None
) -> Finding:
    """Bound eps0 from below by the last of two steps, given what the first released.

    Unlike audits of whole fits, this one notices a factor of 2 in the sensitivity.
    """
    claim = target.claim
    one, other = collect(target.fit, canary_pair(claim), runs, progress)
    half = runs // 2
    best = (-1.0, -1, 1)
    # What the first step may have released; -1 asks about the first step itself.
    histories = sorted({-1, *one.codes()[:half, 0].tolist()}) if claim.n_iter > 1 else [-1]
    for first in histories:
        for sign in (-1, 1):
            hits, trials = _last_step(one.part(0, half), other.part(0, half), first, sign)
            best = max(best, (range_lower_bound(hits, trials, false_alarm), first, sign))
    _, first, sign = best
    hits, trials = _last_step(one.part(half, runs), other.part(half, runs), first, sign)
    audited = range_lower_bound(hits, trials, false_alarm)
    history = "at the first step"
    if first >= 0:
        history = f"after the vertex {'+' if first % 2 else '-'}e_{first // 2}"
    return finding(
        claim,
        "canary: one step",
        "step",
        audited,
        false_alarm=false_alarm,
        # No feasible number of runs could show a draw's inexactness, 2^-42 in all.
        violated=audited > claim.eps0 + 1e-9,
        detail=(
            f"{history}, of the steps along e_0 those with sign {sign:+d} were {hits[0]:,} of "
            f"{trials[0]:,} on "
            f"one data set and {hits[1]:,} of {trials[1]:,} on its neighbour: "
            f"{bound_in_words('eps0', audited, claim.eps0)}"
        ),
        figures={"runs": 2 * runs, "hits": list(hits), "trials": list(trials)},
    )


def audit_repeats(
    target: Target, runs: int, false_alarm: float, progress: Progress | None = None
) -> Finding:
    """Look for repeated releases: noise that is reused, or drawn from too small a seed.

    On empty records every gradient is 0, so the steps of a sound mechanism are uniform and
    independent, and two releases are the same with probability at most 64^-T.
    """
    steps = target.claim.n_iter
    pairs = runs * (runs - 1) / 2
    chance = min(1.0, pairs * float(_BLANK_COLUMNS) ** -steps)
    if chance > false_alarm:
        raise ValueError(f"{steps} steps are too few to tell {runs} releases apart; take more.")
    blank = make_data(np.zeros((2, _BLANK_COLUMNS)), np.array([0, 1]))
    (releases,) = collect(target.fit, [blank], runs, progress)
    distinct = len(set(releases.names()))
    return finding(
        target.claim,
        "repeated releases",
        "randomness",
        math.nan,
        false_alarm=chance,
        violated=distinct < runs,
        detail=(
            f"{runs:,} fits on empty records gave {distinct:,} different releases; independent "
            f"ones would repeat with probability below {chance:.1g}"
        ),
        figures={"runs": runs, "distinct": distinct, "p_value_of_one_repeat": chance},
    )


def _last_step(
    one: Runs, other: Runs, first: int, sign: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Count the signs of steps along the canary's column, given the first vertex (-1: at it)."""
    counts = []
    for runs in (one, other):
        step = 0 if first < 0 else 1
        kept = np.full(len(runs), True) if first < 0 else runs.codes()[:, 0] == first
        signs = runs.at_canary()[kept, step]
        counts.append((int((signs == sign).sum()), int((signs != 0).sum())))
    (hits, trials), (other_hits, other_trials) = counts
    return (hits, other_hits), (trials, other_trials)
