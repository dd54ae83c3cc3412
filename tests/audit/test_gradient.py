"""A black-box audit of DPLogisticRegression: its claim stands; too little noise is found out."""

import math
from dataclasses import dataclass, replace

import numpy as np

from dplasso import DPLogisticRegression
from dplasso.audit import Claim, Target, audit_canary
from dplasso.gradient_descent import schedule

# Chance that a claim which holds is called violated.
ALARM = 1e-6
RUNS = 1000


@dataclass(frozen=True)
class CanaryWeight:
    """The weight of the canary's column, in thousandths of its standard error."""

    vertex: np.ndarray
    sign: np.ndarray


def target():
    """Audit a fit without signal but the canary's, which owns a column."""
    estimator = DPLogisticRegression(
        epsilon=1.0, delta=1e-6, n_iter=3, classes=(0, 1), fit_intercept=False
    )

    def fit(data):
        fitted = estimator.fit(data.X, data.y)
        z = fitted.coef_[0, 0] / fitted.coef_standard_error_
        return CanaryWeight(np.zeros(1, dtype=int), np.array([round(1000 * z)]))

    return Target(Claim(1.0, 1e-6, "add-remove", 3, 1.0, 1.0, 1e-6), fit)


def test_the_claim_stands():
    finding, _ = audit_canary(target(), RUNS, ALARM)
    assert not finding.violated


def test_a_fraction_of_the_noise_is_refuted(monkeypatch):
    """So few fits cannot see half of it missing at this confidence; exact tests do that."""
    honest = schedule.schedule_for

    def weak(*arguments, **options):
        made = honest(*arguments, **options)
        return replace(made, noise_scale=made.noise_scale / 20)

    monkeypatch.setattr("dplasso.gradient_descent.run.schedule_for", weak)
    finding, _ = audit_canary(target(), RUNS, ALARM)
    assert finding.violated
    assert finding.audited > 1.0
    assert math.isfinite(finding.audited)
