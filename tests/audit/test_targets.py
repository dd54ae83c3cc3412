"""Black-box audits of every estimator: claims stand; what spends far too much is refuted."""

import math
from dataclasses import replace

import numpy as np
import pytest

from audit.mutants import Steps
from dplasso import DPLasso, DPLassoClassifier, DPLinearRegression, DPLogisticRegression
from dplasso.audit import Claim, Target, audit_canary, audit_weights, weights_target
from dplasso.gradient_descent import schedule
from dplasso.privacy.mechanisms.staged import StagedSteps

# Chance that a claim which holds is called violated.
ALARM = 1e-6
CLAIM = Claim(1.0, 1e-6, "add-remove", 3, 1.0, 1.0, 1e-6)
COMMON = {"epsilon": 1.0, "delta": 1e-6, "n_iter": 3, "fit_intercept": False}
# With the fits that show what is missing.
GRADIENT = {
    "binary": (DPLogisticRegression(classes=(0, 1), **COMMON), 1000),
    "multinomial": (DPLogisticRegression(classes=(0, 1, 2), **COMMON), 400),
    "huber": (DPLinearRegression(target_bounds=(0.0, 1.0), **COMMON), 400),
}


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
    assert not audit_canary(weight_target(estimator), runs, ALARM)[0].violated


@pytest.mark.parametrize("name", GRADIENT)
def test_a_fraction_of_the_noise_is_refuted(name, monkeypatch):
    """So few fits cannot see half of it missing at this confidence; exact tests do that."""
    honest = schedule.schedule_for

    def weak(*arguments, **options):
        made = honest(*arguments, **options)
        return replace(made, noise_scale=made.noise_scale / 20)

    monkeypatch.setattr("dplasso.gradient_descent.run.schedule_for", weak)
    estimator, runs = GRADIENT[name]
    finding, _ = audit_canary(weight_target(estimator), runs, ALARM)
    assert finding.violated
    assert 1.0 < finding.audited < math.inf


@pytest.mark.parametrize("epsilon", [1.0, 40.0])
def test_the_claim_of_huber_vertices_stands_and_a_multiple_of_it_is_refuted(epsilon):
    options = COMMON | {"epsilon": epsilon}
    estimator = DPLasso(l1_radius=2.0, target_bounds=(0.0, 1.0), **options)
    target = Target(CLAIM, lambda data: estimator.fit(data.X, data.y).transcript_)
    assert audit_canary(target, 400, ALARM)[0].violated == (epsilon > 1.0)


@pytest.mark.parametrize("part", ["", "count_mu", "rho_left"])
def test_a_lasso_that_chooses_its_settings(monkeypatch, part):
    """Its claim stands, and a part that spends far too much is refuted.

    So few fits see only gross errors; the exact tests of the shares see the others.
    """
    claim, fit = weights_target(
        epsilon=1.0, delta=1e-6, neighbors="add-remove", n_iter=1, method="lasso"
    )
    if part == "count_mu":
        # The counts are released as they are: an attacker reads them, not the weight.
        estimator = DPLassoClassifier(n_iter=1, fit_intercept=False, classes=(0, 1))

        def fit(data):
            counts = estimator.fit(data.X, data.y).model_.release.counts
            return np.full(data.X.shape[1], counts.sum())

    if part:
        honest, times = getattr(StagedSteps, part).fget, {"count_mu": 400, "rho_left": 10_000}
        monkeypatch.setattr(StagedSteps, part, property(lambda self: times[part] * honest(self)))
    assert audit_weights(claim, fit, 250, ALARM).report.violated == bool(part)
