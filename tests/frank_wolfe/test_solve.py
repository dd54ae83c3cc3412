"""The driver: same bits however the work is divided, progress, interruption, the optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from evidence.solving import solve
from sklearn import __version__ as sklearn_version
from sklearn.linear_model import LogisticRegression

from dplasso.frank_wolfe.transcript import weights
from dplasso.privacy.randomness import random_stream
from dplasso.runtime import progress
from frank_wolfe.cases import argmax, build, small_problem


def run(problem, selector=None, seed=0, **options):
    return solve(problem, selector or argmax(), random_stream(seed), **options)


@pytest.mark.parametrize("solver", ["sparse", "standard"])
def test_chunks_do_not_change_the_run(solver, monkeypatch):
    _, _, problem = small_problem(0, n_steps=50)
    runs = []
    for seconds in (0.0, 1e9):
        monkeypatch.setattr(progress, "_CHUNK_SECONDS", seconds)
        calls = []
        options = {"solver": solver, "drift_tol": 0.01, "record_history": True}
        solution = run(problem, progress=lambda done, total, c=calls: c.append(done), **options)
        runs.append((solution, calls))
    (one, single), (other, doubled) = runs
    assert single == list(range(1, 51))
    assert doubled == [1, 3, 7, 15, 31, 50]
    assert one.transcript() == other.transcript()
    np.testing.assert_array_equal(one.state.alpha, other.state.alpha)
    np.testing.assert_array_equal(one.history.objective, other.history.objective)


def test_an_interruption_passes_through():
    _, _, problem = small_problem(0, n_steps=9)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(problem, progress=stop)


def test_no_entries_at_all():
    problem = build(sp.csr_array((4, 3), dtype=np.float32), [0, 1, 1, 1], 5)
    assert run(problem).transcript().vertex.tolist() == [3] * 5
    problem = build(sp.csr_array((4, 3), dtype=np.float32), [0, 1, 1, 1], 5, intercept=False)
    assert run(problem).transcript().vertex.tolist() == [0] * 5


class TestOptimum:
    """Frank-Wolfe without privacy, on real data."""

    def mean_loss(self, X, y, w):
        margins = X @ w
        return np.mean(np.logaddexp(0.0, margins) - y * margins)

    def solution(self, X, y, radius, n_steps, **options):
        problem = build(X, y, n_steps, radius=radius, intercept=False)
        found = run(problem, record_history=True, **options)
        w = np.zeros(X.shape[1])
        coordinates, values = weights(found.transcript(), radius)
        w[coordinates] = values
        return w, found.history

    def test_it_agrees_with_scikit_learn(self, adult):
        X, y = adult
        recent = tuple(map(int, sklearn_version.split(".")[:2])) >= (1, 8)
        l1 = {"l1_ratio": 1.0} if recent else {"penalty": "l1"}
        peer = LogisticRegression(
            C=0.02, solver="liblinear", fit_intercept=False, tol=1e-8, max_iter=2000, **l1
        )
        # liblinear takes 32-bit indices and doubles.
        peer.fit(X.astype(np.float64), y)
        theirs = peer.coef_.ravel()
        radius = np.abs(theirs).sum()
        assert radius > 1.0
        ours, _ = self.solution(X, y, radius, 2000, drift_tol=0.0)
        assert self.mean_loss(X, y, ours) == pytest.approx(self.mean_loss(X, y, theirs), rel=1e-3)
        # A loss that only the constrained optimum has: half the radius is far worse.
        half, _ = self.solution(X, y, 0.5 * radius, 500, drift_tol=0.0)
        assert self.mean_loss(X, y, half) > 1.02 * self.mean_loss(X, y, theirs)
