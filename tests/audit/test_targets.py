"""A black-box audit of several classes and of numbers: claims stand; too little noise is found."""

import math
from dataclasses import replace

import numpy as np
import pytest

from audit.test_gradient import ALARM, CanaryWeight
from dplasso import DPLasso, DPLinearRegression, DPLogisticRegression
from dplasso.audit import Claim, Target, audit_canary
from dplasso.gradient_descent import schedule

RUNS = 400
COMMON = {"epsilon": 1.0, "delta": 1e-6, "fit_intercept": False}
GRADIENT = {
    "multinomial": DPLogisticRegression(n_iter=3, classes=(0, 1, 2), **COMMON),
    "huber": DPLinearRegression(n_iter=3, target_bounds=(0.0, 1.0), **COMMON),
}


def weight_target(estimator):
    """Audit a fit without signal but the canary's, which owns a column."""

    def fit(data):
        fitted = estimator.fit(data.X, data.y)
        # The most that the canary moves any output.
        z = fitted.coef_[-1 if fitted.coef_.shape[0] == 1 else 1, 0] / fitted.coef_standard_error_
        return CanaryWeight(np.zeros(1, dtype=int), np.array([round(1000 * z)]))

    return Target(Claim(1.0, 1e-6, "add-remove", 3, 1.0, 1.0, 1e-6), fit)


@pytest.mark.parametrize("name", GRADIENT)
def test_the_claim_of_noisy_gradients_stands(name):
    finding, _ = audit_canary(weight_target(GRADIENT[name]), RUNS, ALARM)
    assert not finding.violated


@pytest.mark.parametrize("name", GRADIENT)
def test_a_fraction_of_the_noise_is_refuted(name, monkeypatch):
    honest = schedule.schedule_for

    def weak(*arguments, **options):
        made = honest(*arguments, **options)
        return replace(made, noise_scale=made.noise_scale / 20)

    monkeypatch.setattr("dplasso.gradient_descent.run.schedule_for", weak)
    finding, _ = audit_canary(weight_target(GRADIENT[name]), RUNS, ALARM)
    assert finding.violated
    assert math.isfinite(finding.audited)


def lasso_target(epsilon):
    estimator = DPLasso(
        epsilon, n_iter=3, l1_radius=2.0, target_bounds=(0.0, 1.0), fit_intercept=False
    )
    return Target(
        Claim(1.0, 1e-6, "add-remove", 3, 1.0, 1.0, 1e-6),
        lambda data: estimator.fit(data.X, data.y).transcript_,
    )


def test_the_claim_of_huber_vertices_stands():
    finding, _ = audit_canary(lasso_target(1.0), RUNS, ALARM)
    assert not finding.violated


def test_a_multiple_of_the_budget_is_refuted():
    finding, _ = audit_canary(lasso_target(40.0), RUNS, ALARM)
    assert finding.violated
