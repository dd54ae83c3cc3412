"""Black-box audits of every estimator: claims stand; what spends far too much is refuted."""

import math
from dataclasses import replace

import numpy as np
import pytest

from audit.mutants import Steps
from dplasso import DPLassoClassifier, DPLinearRegression, DPLogisticRegression
from dplasso.audit import Claim, Target, audit_canary, audit_weights, weights_target
from dplasso.gradient_descent import schedule
from dplasso.phases import descend
from dplasso.phases.releases import Counted
from dplasso.privacy.budget import Budget
from recorded_fits import short_runs

# Chance that a claim which holds is called violated.
ALARM = 1e-6
CLAIM = Claim(1.0, 1e-6, "add-remove", 3, 1.0, 1.0)
COMMON = {"epsilon": 1.0, "delta": 1e-6, "fit_intercept": False}
# With the fits that show what is missing.
GRADIENT = {
    "binary": (DPLogisticRegression(classes=(0, 1), **COMMON), 300),
    "multinomial": (DPLogisticRegression(classes=(0, 1, 2), **COMMON), 300),
    "huber": (DPLinearRegression(target_bounds=(0.0, 1.0), **COMMON), 300),
}


@pytest.fixture(autouse=True)
def short():
    with short_runs():
        yield


def weight_target(estimator):
    """Audit a fit without signal but the canary's, which owns a column, by its weight.

    The release is that weight in thousandths of its standard error.
    """

    def fit(data):
        fitted = estimator.fit(data.X, data.y)
        # The most that the canary moves any output.
        weight = fitted.coef_[-1 if fitted.coef_.shape[0] == 1 else 1, 0]
        z = weight / fitted.coef_standard_error_[0]
        return Steps(np.zeros(1, dtype=int), np.array([round(1000 * z)]))

    return Target(CLAIM, fit)


@pytest.mark.parametrize("name", GRADIENT)
def test_the_claim_of_noisy_gradients_stands(name):
    estimator, runs = GRADIENT[name]
    assert not audit_canary(weight_target(estimator), runs, ALARM).violated


@pytest.mark.parametrize("name", GRADIENT)
def test_a_fraction_of_the_noise_is_refuted(name, monkeypatch):
    """So few fits cannot see half of it missing at this confidence; exact tests do that."""
    honest = schedule.schedule_for

    def weak(*arguments, **options):
        made = honest(*arguments, **options)
        return replace(made, noise_scale=made.noise_scale / 20)

    monkeypatch.setattr(descend, "schedule_for", weak)
    estimator, runs = GRADIENT[name]
    finding = audit_canary(weight_target(estimator), runs, ALARM)
    assert finding.violated
    assert 1.0 < finding.audited < math.inf


@pytest.mark.parametrize("part", ["", "counts", "gradients"])
def test_a_lasso_that_chooses_its_settings(monkeypatch, part):
    """Its claim stands, and a part that spends far too much is refuted.

    So few fits see only gross errors; the exact tests of the shares see the others.
    """
    claim, fit = weights_target(epsilon=1.0, delta=1e-6, neighbors="add-remove", method="lasso")
    if part == "counts":
        # The counts are released as they are: an attacker reads them, not the weight.
        estimator = DPLassoClassifier(fit_intercept=False, classes=(0, 1))

        def fit(data):
            counts = estimator.fit(data.X, data.y).model_.released.last(Counted).counts
            return np.full(data.X.shape[1], counts.sum())

    if part:
        honest, times = Budget.mu_of, {"counts": 400.0, "gradients": 100.0}[part]
        monkeypatch.setattr(Budget, "mu_of", lambda self, share: times * honest(self, share))
    assert audit_weights(claim, fit, 200, ALARM).violated == bool(part)
