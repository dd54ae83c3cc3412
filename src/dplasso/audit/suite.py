"""Audits of the estimators: which are run on what, and how they share the false-alarm rate.

The one-run audit needs a single fit with many canaries, each in or out by a fair coin (Steinke,
Nasr and Jagielski 2023, arXiv 2305.08846).
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.audit.black_box import (
    CANARY,
    Roc,
    audit_canary,
    audit_canary_step,
    audit_repeats,
    compare,
)
from dplasso.audit.claims import (
    Claim,
    Data,
    Finding,
    Release,
    Report,
    Target,
    bound_in_words,
    canary_pair,
    claim_of,
    finding,
    many_canaries,
    one_run_epsilon,
    one_run_p_value,
)
from dplasso.errors import ParameterError, PrivacyLeakWarning
from dplasso.estimators.classifiers import DPLassoClassifier, DPLogisticRegression
from dplasso.estimators.fitting import method_of
from dplasso.estimators.frank_wolfe_classifier import DPFrankWolfeClassifier

METHODS = ("canary", "one-run")

# The share of canaries that are guessed, half of them "in": those with the clearest scores.
GUESSED = 0.8
# Steps per canary of the one-run audit: nearly all of their features are drawn at least once.
STEPS_PER_CANARY = 4
# Fits of two steps are cheap, and only those with one history count: this many times the runs.
STEP_RUNS = 2
# Fits whose releases are compared with each other (400 show any 8-bit seed), and their steps.
FEWEST_REPEATS, MOST_REPEATS, REPEAT_STEPS = 400, 2000, 12
FEWEST_RUNS, FEWEST_CANARIES = 100, 10
# Sampling audits run by each method; the false-alarm rate is divided by their number.
_SAMPLING = {"canary": 3, "one-run": 1}

Progress = Callable[[str, int, int], None]


# `build(n_iter)` makes a target of so many steps; the total claim stays what it is.
Builder = Callable[[int], Target]
FitWeights = Callable[[Data], Any]


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


@dataclass(frozen=True)
class AuditSettings:
    """Parameters of the audited `DPFrankWolfeClassifier`, by the same names.

    Without an intercept and with a public number of records a fit counts nothing, so the audit is
    of the draws.
    """

    mechanism: str = "exponential"
    epsilon: float = 1.0
    delta: float = 1e-6
    n_iter: int = 10
    neighbors: str = "add-remove"
    feature_bound: float = 1.0
    l1_radius: float = 50.0
    selector: str = "bucket"
    solver: str = "sparse"
    drift_tol: float | str | None = "auto"
    fit_intercept: bool = False
    n_records: int = 1000


@dataclass(frozen=True)
class Plan:
    """The extent of the audits; `false_alarm` is their probability, together, of a false one."""

    methods: tuple[str, ...] = METHODS
    n_iter: int = 10
    runs: int = 4_000
    canaries: int = 1000
    false_alarm: float = 5e-4

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.methods) - set(METHODS)):
            raise ParameterError(
                f"`method` must be one of {', '.join(METHODS)}, got {unknown[0]!r}"
            )
        if self.runs < FEWEST_RUNS:
            raise ParameterError(f"`runs` must be at least {FEWEST_RUNS}, got {self.runs}")
        if self.canaries < FEWEST_CANARIES:
            raise ParameterError(
                f"`canaries` must be at least {FEWEST_CANARIES}, got {self.canaries}"
            )
        if not 0 < self.false_alarm < 1:
            raise ParameterError(f"`false_alarm` must be in (0, 1), got {self.false_alarm!r}")


@dataclass(frozen=True)
class Outcome:
    """The results of a plan: the report, and the canary audit of whole fits if it was made."""

    report: Report
    roc: Roc | None
    attack: Finding | None


def estimator_of(settings: AuditSettings) -> DPFrankWolfeClassifier:
    """Return the estimator that is audited."""
    return DPFrankWolfeClassifier(classes=(0, 1), **asdict(settings))


def estimator_target(settings: AuditSettings) -> Target:
    """Return a target of the estimator: a user's whole fit."""
    estimator = estimator_of(settings)

    def fit(data: Data) -> Any:
        with warnings.catch_warnings():
            # Whoever audits the paper's mechanism needs no warning.
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            return estimator.fit(data.X, data.y).transcript_

    # The number of rows plays no part in the claim.
    return Target(claim_of(method_of(estimator).cost(), settings.feature_bound), fit)


def builder(settings: AuditSettings) -> Builder:
    """Return what makes the targets of `run_audits`, which choose `n_iter`."""
    return lambda n_iter: estimator_target(replace(settings, n_iter=n_iter))


def run_audits(build: Builder, plan: Plan, progress: Progress | None = None) -> Outcome:
    """Run all audits of a plan; `progress` takes the audit, fits done, and fits in all."""
    false_alarm = plan.false_alarm / sum(_SAMPLING[method] for method in plan.methods)
    findings: list[Finding] = []
    roc = attack = one_run = None
    if "one-run" in plan.methods:
        # Made before any audit: its many steps ask the most of delta.
        one_run = build(STEPS_PER_CANARY * plan.canaries)
    if "canary" in plan.methods:
        attack, roc = audit_canary(
            build(plan.n_iter),
            plan.runs,
            false_alarm,
            progress=_named(progress, "canary: whole fits"),
        )
        findings += [attack, *_other_canaries(build, plan, false_alarm, progress)]
    if one_run is not None:
        findings.append(audit_one_run(one_run, plan.canaries, false_alarm))
    return Outcome(Report(build(plan.n_iter).claim, tuple(findings)), roc, attack)


def _other_canaries(
    build: Builder, plan: Plan, false_alarm: float, progress: Progress | None
) -> Sequence[Finding]:
    """Attack a single step, and the randomness."""
    name = "canary: one step"
    step = audit_canary_step(build(2), STEP_RUNS * plan.runs, false_alarm, _named(progress, name))
    fits = min(MOST_REPEATS, max(FEWEST_REPEATS, plan.runs))
    name = "repeated releases"
    repeats = audit_repeats(build(REPEAT_STEPS), fits, false_alarm, _named(progress, name))
    return step, repeats


def _named(progress: Progress | None, name: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(name, done, total)


# Fits that release noisy gradients: the noise is continuous, so the attack is on a weight.


def weights_target(
    *, epsilon: float, delta: float, neighbors: str, method: str = "logistic"
) -> tuple[Claim, FitWeights]:
    """Return the claim of an estimator ("lasso": one that refits), and its weights by fit(data)."""
    kind = DPLogisticRegression if method == "logistic" else DPLassoClassifier
    # As by default, private counts included; but the constant entry would hide the canary.
    options: dict[str, Any] = {"fit_intercept": False, "classes": (0, 1)}
    estimator = kind(epsilon, delta, neighbors=neighbors, **options)

    def fit(data: Data) -> Any:
        coefficients = estimator.fit(data.X, data.y).coef_
        # With few columns, a LASSO has dense weights.
        return getattr(coefficients, "toarray", lambda: coefficients)()[0]

    return claim_of(method_of(estimator).cost()), fit


def audit_weights(
    claim: Claim,
    fit: FitWeights,
    runs: int,
    false_alarm: float,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Bound epsilon from below by the weight of a canary's own column; at least 8 runs."""
    weights = np.empty((2, runs))
    for place, data in enumerate(canary_pair(claim)):
        for run in range(runs):
            weights[place, run] = fit(data)[CANARY]
            if progress is not None:
                progress(place * runs + run + 1, 2 * runs)
    name = "canary: noisy gradients"
    attack, roc = compare(
        claim, [(weights[0], weights[1])], ("weight",), false_alarm, (runs, runs // 2), name
    )
    return Outcome(Report(claim, (attack,)), roc, attack)
