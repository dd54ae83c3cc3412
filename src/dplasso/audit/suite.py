"""Audits of the estimators: which are run on what, and how they share the false-alarm rate."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from dplasso.audit.black_box import (
    CANARY,
    audit_canary,
    audit_canary_step,
    audit_repeats,
    compare,
    released,
)
from dplasso.audit.claims import Data, Report, Target, canary_pair, claim_of
from dplasso.errors import ParameterError, PrivacyLeakWarning
from dplasso.estimators.classifiers import DPLassoClassifier, DPLogisticRegression
from dplasso.estimators.fitting import method_of
from dplasso.estimators.frank_wolfe_classifier import DPFrankWolfeClassifier

# Fits of two steps are cheap, and only those with one history count: this many times the runs.
STEP_RUNS = 2
# Fits whose releases are compared with each other (400 show any 8-bit seed), and their steps.
FEWEST_REPEATS, MOST_REPEATS, REPEAT_STEPS = 400, 2000, 12
FEWEST_RUNS = 100
# The false-alarm rate is divided by the number of audits.
_AUDITS = 3

Progress = Callable[[str, int, int], None]


# `build(n_iter)` makes a target of so many steps; the total claim stays what it is.
Builder = Callable[[int], Target]


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

    n_iter: int = 10
    runs: int = 4_000
    false_alarm: float = 5e-4

    def __post_init__(self) -> None:
        if self.runs < FEWEST_RUNS:
            raise ParameterError(f"`runs` must be at least {FEWEST_RUNS}, got {self.runs}")
        if not 0 < self.false_alarm < 1:
            raise ParameterError(f"`false_alarm` must be in (0, 1), got {self.false_alarm!r}")


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


def run_audits(build: Builder, plan: Plan, progress: Progress | None = None) -> Report:
    """Run all audits of a plan; `progress` takes the audit, fits done, and fits in all."""

    def named(name: str) -> Callable[[int, int], None] | None:
        return None if progress is None else partial(progress, name)

    false_alarm, whole = plan.false_alarm / _AUDITS, build(plan.n_iter)
    attack = audit_canary(whole, plan.runs, false_alarm, progress=named("canary: whole fits"))
    runs = STEP_RUNS * plan.runs
    step = audit_canary_step(build(2), runs, false_alarm, named("canary: one step"))
    fits = min(MOST_REPEATS, max(FEWEST_REPEATS, plan.runs))
    repeats = audit_repeats(build(REPEAT_STEPS), fits, false_alarm, named("repeated releases"))
    return Report(whole.claim, (attack, step, repeats))


# Fits that release noisy gradients: the noise is continuous, so the attack is on a weight.


def weights_target(
    *, epsilon: float, delta: float, neighbors: str, method: str = "logistic"
) -> Target:
    """Return a target whose fits release weights, of "logistic" or of a "lasso" that refits."""
    kind = DPLogisticRegression if method == "logistic" else DPLassoClassifier
    # As by default, private counts included; but the constant entry would hide the canary.
    options: dict[str, Any] = {"fit_intercept": False, "classes": (0, 1)}
    estimator = kind(epsilon, delta, neighbors=neighbors, **options)

    def fit(data: Data) -> Any:
        coefficients = estimator.fit(data.X, data.y).coef_
        # With few columns, a LASSO has dense weights.
        return getattr(coefficients, "toarray", lambda: coefficients)()[0]

    return Target(claim_of(method_of(estimator).cost()), fit)


def audit_weights(
    target: Target,
    runs: int,
    false_alarm: float,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Bound epsilon from below by the weight of a canary's own column; at least 8 runs."""
    claim = target.claim
    every: Iterable[Any] = released(target.fit, canary_pair(claim), runs, progress)
    weights = [fitted[CANARY] for fitted in every]
    pairs = [(np.array(weights[:runs]), np.array(weights[runs:]))]
    name = "canary: noisy gradients"
    attack = compare(claim, pairs, ("weight",), false_alarm, (runs, runs // 2), name)
    return Report(claim, (attack,))
