"""The suite of audits, and what it audits."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dplasso import DPLassoClassifier
from dplasso.audit import AuditSettings, Report, audit_weights, estimator_target, weights_target
from dplasso.gradient_descent import schedule
from dplasso.phases import descend
from dplasso.privacy.budget import Budget
from dplasso.privacy.exponential_mechanism import paper_mechanism
from small_fits import short_runs


def test_what_claims_nothing_or_was_not_audited_has_no_report():
    with pytest.raises(ValueError, match="claims nothing"):
        estimator_target(AuditSettings(epsilon=math.inf))
    with pytest.raises(ValueError, match="no audit"):
        Report(estimator_target(AuditSettings()).claim, ())


def test_the_papers_claim_is_its_authors():
    target = estimator_target(AuditSettings(mechanism="paper", epsilon=0.1, n_iter=1000))
    assert target.claim.eps0 == pytest.approx(0.000301, rel=2e-3)


def test_the_papers_step_takes_the_printed_scales():
    paper = paper_mechanism(0.1, 1e-6, 4000, 50.0, 15935, 1.0)
    root = math.sqrt(8 * 4000 * math.log(1e6))
    assert paper.exponent == pytest.approx(15935 * 0.1 / (2 * 50 * root))
    assert paper.laplace == pytest.approx(50 * root / (15935 * 0.1))
    rule = paper.in_units(2.0**32)
    assert (rule.mechanism, rule.laplace) == ("paper", paper.laplace * 2.0**32)


# Chance that a claim which holds is called violated.
ALARM = 1e-6


@pytest.fixture(autouse=True)
def short():
    with short_runs():
        yield


def test_a_fraction_of_the_noise_is_refuted(monkeypatch):
    """So few fits cannot see half of it missing at this confidence; exact tests do that.

    That the claim stands with all of it is what the command says of the same audit.
    """
    honest = schedule.schedule_for

    def weak(*arguments, **options):
        made = honest(*arguments, **options)
        return replace(made, noise_scale=made.noise_scale / 20)

    monkeypatch.setattr(descend, "schedule_for", weak)
    target = weights_target(epsilon=1.0, delta=1e-6, neighbors="add-remove")
    (finding,) = audit_weights(target, 300, ALARM).findings
    assert finding.violated
    assert 1.0 < finding.audited < math.inf


@pytest.mark.parametrize("part", ["", "counts", "gradients"])
def test_a_lasso_that_chooses_its_settings(monkeypatch, part):
    """Its claim stands, and a part that spends far too much is refuted.

    So few fits see only gross errors; the exact tests of the shares see the others.
    """
    target = weights_target(epsilon=1.0, delta=1e-6, neighbors="add-remove", method="lasso")
    if part == "counts":
        # The counts are released as they are: an attacker reads them, not the weight.
        estimator = DPLassoClassifier(fit_intercept=False, classes=(0, 1))

        def fit(data):
            return np.full(data.X.shape[1], estimator.fit(data.X, data.y).n_records_)

    if part:
        honest, times = Budget.mu_of, {"counts": 400.0, "gradients": 100.0}[part]
        monkeypatch.setattr(Budget, "mu_of", lambda self, share: times * honest(self, share))
    # Of gross errors 130 fits are enough: an event comes always on one side, never on the other.
    runs = 130 if part else 200
    assert audit_weights(target, runs, ALARM).violated == bool(part)
