import math

import pytest

from audit.mutants import settings
from dplasso.audit import Plan, Report, builder, claim_of, run_audits
from dplasso.privacy.budget import Budget, Draws, build_budget

SMALL = Plan(runs=400, false_alarm=1e-4)


@pytest.fixture(scope="module")
def outcomes():
    """Both mechanisms through all audits, at a false-alarm rate of 1e-4 each."""
    sound = run_audits(builder(settings()), SMALL)
    broken = run_audits(builder(settings(mechanism="paper", epsilon=0.1)), SMALL)
    return sound, broken


def test_the_default_is_not_refuted(outcomes):
    report = outcomes[0]
    assert report.verdict == "consistent"
    assert not report.violated
    assert len(report.findings) == 3
    assert report.audited_epsilon < 1
    assert "never prove one" in report.text()


def test_an_attack_that_finds_nothing_says_so(outcomes):
    sound, broken = outcomes
    quiet = [f for f in sound.findings if f.about == "fit" and f.audited == 0]
    assert quiet
    for finding in quiet:
        assert finding.detail.endswith("the attack found nothing against the claimed epsilon of 1")
    text = Report(sound.claim, tuple(quiet)).text()
    assert "the attacks on whole fits found nothing" in text
    assert "audited epsilon 0" not in text
    assert not any("found nothing" in f.detail for f in broken.findings if f.violated)


def test_the_true_sign_is_refuted(outcomes):
    report = outcomes[1]
    assert report.verdict == "violation"
    assert report.audited_epsilon > 2.5
    assert report.text().startswith("VIOLATION")
    sampled = {f.name: f.audited for f in report.findings if f.about == "fit"}
    assert sampled["canary: whole fits"] > 2.5
    assert [f.name for f in report.findings if not f.violated] == ["repeated releases"]


def test_the_false_alarm_rate_is_shared_out(outcomes):
    for outcome in outcomes:
        assert len(outcome.findings) == 3
        assert all(0 < f.false_alarm <= 1e-4 / 3 for f in outcome.findings)
        assert outcome.false_alarm <= 1e-4


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
