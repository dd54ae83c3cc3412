import math
from io import BytesIO

import numpy as np
import pytest
from evidence.audit.picture import audit_picture
from matplotlib.image import imread

from audit.mutants import settings
from dplasso.audit import Plan, Report, builder, claim_of, run_audits
from dplasso.audit.claims import allowed_power
from dplasso.privacy.budget import Budget, Draws, build_budget

SMALL = Plan(runs=400, false_alarm=1e-4)


@pytest.fixture(scope="module")
def outcomes():
    """Both mechanisms through all audits, at a false-alarm rate of 1e-4 each."""
    sound = run_audits(builder(settings()), SMALL)
    broken = run_audits(builder(settings(mechanism="paper", epsilon=0.1)), SMALL)
    return sound, broken


def test_the_default_is_not_refuted(outcomes):
    report = outcomes[0].report
    assert report.verdict == "consistent"
    assert not report.violated
    assert len(report.findings) == 3
    assert report.audited_epsilon < 1
    assert "never prove one" in report.text()


def test_an_attack_that_finds_nothing_says_so(outcomes):
    sound, broken = (outcome.report for outcome in outcomes)
    quiet = [f for f in sound.findings if f.about == "fit" and f.audited == 0]
    assert quiet
    for finding in quiet:
        assert finding.detail.endswith("the attack found nothing against the claimed epsilon of 1")
    text = Report(sound.claim, tuple(quiet)).text()
    assert "the attacks on whole fits found nothing" in text
    assert "audited epsilon 0" not in text
    assert not any("found nothing" in f.detail for f in broken.findings if f.violated)


def test_the_true_sign_is_refuted(outcomes):
    report = outcomes[1].report
    assert report.verdict == "violation"
    assert report.audited_epsilon > 2.5
    assert report.text().startswith("VIOLATION")
    sampled = {f.name: f.audited for f in report.findings if f.about == "fit"}
    assert sampled["canary: whole fits"] > 2.5
    assert [f.name for f in report.findings if not f.violated] == ["repeated releases"]


def test_the_false_alarm_rate_is_shared_out(outcomes):
    for outcome in outcomes:
        assert len(outcome.report.findings) == 3
        assert all(0 < f.false_alarm <= 1e-4 / 3 for f in outcome.report.findings)
        assert outcome.report.false_alarm <= 1e-4


def test_the_picture(outcomes):
    for outcome in outcomes:
        image = imread(BytesIO(audit_picture(outcome.roc, outcome.attack)), format="png")
        assert image.shape[0] > 600
        assert image.shape[1] > 1000
        assert image[..., :3].std() > 0.05


def test_the_curve_is_the_claim():
    """At its corner both inequalities of the definition hold with equality."""
    epsilon, delta = 1.0, 0.05
    corner = (1 - delta) / (1 + math.exp(epsilon))
    power = allowed_power(np.array([0.0, corner, 1.0]), epsilon, delta)
    assert power[0] == pytest.approx(delta)
    assert power[1] == pytest.approx(math.exp(epsilon) * corner + delta)
    assert power[1] == pytest.approx(1 - corner)
    assert power[2] == 1


@pytest.mark.parametrize(
    "changes",
    [{"runs": 10}, {"false_alarm": 0.0}],
    ids=str,
)
def test_plans_out_of_range_are_refused(changes):
    with pytest.raises(ValueError, match=r"must be"):
        Plan(**changes)


def test_what_claims_nothing_or_was_not_audited_has_no_report():
    with pytest.raises(ValueError, match="claims nothing"):
        claim_of(build_budget(Draws(vertices=5), epsilon=math.inf, delta=1e-6, n_iter=5))
    with pytest.raises(ValueError, match="no audit"):
        Report(claim_of(build_budget(Draws(vertices=5), epsilon=1.0, delta=1e-6, n_iter=5)), ())


def test_the_papers_claim_is_its_authors():
    budget = Budget(epsilon=0.1, delta=1e-6, n_iter=1000, leak="the true sign")
    assert claim_of(budget).eps0 == pytest.approx(0.000301, rel=2e-3)
