"""Exact audits: what they say of the implementation, and of broken ones."""

import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from evidence.audit.exact import all_transcripts, audit_exact, neighbourhoods
from evidence.audit.solver import solver_target
from scipy.sparse import csr_array
from scipy.special import expit, logsumexp
from scipy.stats import chisquare

from audit import mutants
from dplasso.audit import AuditSettings


def audits(target):
    return [one for around in neighbourhoods(target.claim) for one in audit_exact(target, around)]


def refuted(findings, about):
    return [f for f in findings if f.violated and f.about == about]


@pytest.mark.parametrize(
    ("selector", "neighbors", "epsilon"),
    [
        ("bucket", "add-remove", 0.3),
        ("big-little", "add-remove", 8.0),
        ("noisy-max", "replace-one", 8.0),
    ],
)
def test_the_claim_stands_and_is_reached(selector, neighbors, epsilon):
    """No false alarm, and no room: a step that cost 1 % more would be refuted."""
    target = solver_target(
        AuditSettings(n_iter=2, epsilon=epsilon, neighbors=neighbors, selector=selector)
    )
    findings = audits(target)
    assert not any(finding.violated for finding in findings)
    steps = [f.audited for f in findings if f.about == "step"]
    assert max(steps) > 0.999 * target.claim.eps0
    assert all(f.audited > 0 for f in findings)


def written_out(data, steps, radius, exponent):
    """Return the log-probabilities of all transcripts, by the formulas, in floating point."""
    X, y = data.X.toarray(), data.y
    vertices = [(j, s) for s in (-1, 1) for j in range(X.shape[1])]
    logs = []
    for path in product(vertices, repeat=steps):
        weights, total = np.zeros(X.shape[1]), 0.0
        for t, (j, s) in enumerate(path, start=1):
            alpha = X.T @ np.clip(expit(X @ weights) - y, -0.5, 0.5)
            scores = exponent * np.concatenate([alpha, -alpha])
            total += (scores - logsumexp(scores))[vertices.index((j, s))]
            weights = weights * (1 - 2 / (t + 2))
            weights[j] += 2 / (t + 2) * s * radius
        logs.append(total)
    return np.array(logs)


def test_the_enumeration_is_the_algorithm_written_out():
    chosen = AuditSettings(n_iter=3, l1_radius=4.0, epsilon=8.0, drift_tol=0.0)
    target = solver_target(chosen)
    rows = csr_array([[1.0, 0.0], [0.5, -1.0], [0.0, 1.0]])
    data = SimpleNamespace(X=rows, y=np.array([1, 0, 0]))
    found = all_transcripts(target.step, data, 3)
    assert np.exp(found.paths).sum() == pytest.approx(1.0, abs=1e-12)
    # A record moves a gradient by 1/2 at most.
    exponent = target.claim.eps0 / (2 * 0.5)
    np.testing.assert_allclose(found.paths, written_out(data, 3, 4.0, exponent), atol=1e-7)
    # The tree: a history's steps sum to one, too.
    np.testing.assert_allclose(np.exp(found.steps).sum(axis=1), 1.0, atol=1e-12)


def test_fits_are_drawn_from_what_is_enumerated():
    """False alarms: 1e-6, were the seed drawn afresh."""
    target = solver_target(AuditSettings(n_iter=3, epsilon=20.0), new_stream=mutants.seeded())
    data = SimpleNamespace(X=csr_array([[1.0], [1.0], [0.0]]), y=np.array([1, 0, 0]))
    expected = np.exp(all_transcripts(target.step, data, 3).paths)
    counts = np.zeros(expected.size)
    runs = 4000
    for _ in range(runs):
        release = target.fit(data)
        counts[int("".join("01"[int(s > 0)] for s in release.sign), 2)] += 1
    assert chisquare(counts, runs * expected).pvalue > 1e-6
    # Power: the same counts refute the distribution of a mechanism half as steep.
    other = solver_target(AuditSettings(n_iter=3, epsilon=10.0))
    wrong = np.exp(all_transcripts(other.step, data, 3).paths)
    assert chisquare(counts, runs * wrong).pvalue < 1e-6


class TestMutants:
    @pytest.mark.parametrize(
        ("mutant", "n_iter", "least", "most", "fit_epsilon"),
        [
            # Over three steps even the whole fit's epsilon is exceeded.
            (mutants.factor_two_dropped, 3, 1.998, 2.002, 1.0),
            (mutants.scaled_by_records, 3, 1.0, math.inf, 2.0),
            (mutants.replacement_as_addition, 2, 1.0, math.inf, 0.0),
            (mutants.composition_forgotten, 3, 1.0, math.inf, 0.0),
            # Its log-ratios stay below eps0 in magnitude but not within eps0 of each other.
            (mutants.laplace_as_exponential, 2, 1.03, math.inf, 0.0),
        ],
        ids=["factor two", "records", "replacement", "composition", "laplace"],
    )
    def test_wrong_accounting_is_caught(self, mutant, n_iter, least, most, fit_epsilon):
        findings = audits(mutant(AuditSettings(n_iter=n_iter)))
        steps = refuted(findings, "step")
        assert len(steps) == 3
        assert least < max(f.audited / f.claimed for f in steps) < most
        if fit_epsilon:
            assert max(f.audited for f in refuted(findings, "fit")) > fit_epsilon

    def test_the_true_sign_is_caught(self):
        findings = audits(mutants.true_sign(AuditSettings(n_iter=2, epsilon=0.1)))
        assert all(f.violated for f in findings if "strong" not in f.name)
        assert max(f.audited for f in refuted(findings, "fit")) == math.inf
