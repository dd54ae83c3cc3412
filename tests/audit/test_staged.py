"""A black-box audit of a LASSO that chooses its settings: counts, columns and refit together."""

import numpy as np
import pytest

from dplasso import DPLassoClassifier
from dplasso.audit.noisy_weights import audit_weights, weights_target
from dplasso.privacy.mechanisms.staged import StagedSteps

# Chance that a claim which holds is called violated.
ALARM = 1e-6
RUNS = 250


def target(epsilon=1.0):
    return weights_target(
        epsilon=epsilon, delta=1e-6, neighbors="add-remove", n_iter=1, method="lasso"
    )


def test_the_claim_stands():
    assert not audit_weights(*target(), RUNS, ALARM).report.violated


@pytest.mark.parametrize("part", ["count_mu", "rho_left"])
def test_a_part_that_spends_far_too_much_is_refuted(monkeypatch, part):
    """So few fits see only gross errors; the exact tests of the shares see the rest."""
    claim, fit = target()
    honest = getattr(StagedSteps, part).fget
    if part == "count_mu":
        # The counts are released as they are: an attacker reads them, not the weight.
        monkeypatch.setattr(StagedSteps, part, property(lambda self: 400 * honest(self)))
        estimator = DPLassoClassifier(n_iter=1, fit_intercept=False, classes=(0, 1))

        def fit(data):
            counts = estimator.fit(data.X, data.y).model_.release.counts
            return np.full(data.X.shape[1], counts.sum())

    else:
        monkeypatch.setattr(StagedSteps, part, property(lambda self: 10_000 * honest(self)))
    outcome = audit_weights(claim, fit, RUNS, ALARM)
    assert outcome.report.violated
