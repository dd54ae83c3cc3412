"""Frank-Wolfe on numbers: what the mechanism sees of neighbours, and the LASSO it ends at."""

import numpy as np
import pytest

from dplasso.frank_wolfe.solve import solve
from dplasso.frank_wolfe.transcript import weights
from dplasso.losses.squared import Squared
from dplasso.privacy.randomness import random_stream
from frank_wolfe.cases import (
    argmax,
    build,
    dense_rows,
    forced,
    last,
    random_transcript,
    watch,
)
from neighbours import moved_by, pairs


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_neighbours_differ_by_at_most_the_sensitivity(relation):
    """After any released steps, in integers, whatever the record and its target."""
    bound, farthest = 0.25, 0.0
    for pair in pairs(relation):
        alphas = []
        for X, y in zip(pair.rows, pair.labels, strict=True):
            clipped = np.clip(X, -1.0, 1.0).astype(np.float32)
            problem = build(clipped, 2.0 * y - 1.0, 6, radius=2.0, loss=Squared(bound))
            drawn = random_transcript(problem, 7)
            alphas.append(last(watch(problem, forced(drawn), 0.0)).alpha)
        moved = np.abs(alphas[0] - alphas[1]).max() / problem.unit
        assert moved <= moved_by(bound, relation), pair.name
        farthest = max(farthest, moved)
    assert farthest > 0.99 * moved_by(bound, relation)


@pytest.mark.parametrize("solver", ["sparse", "standard"])
def test_without_privacy_it_finds_the_lasso(solver):
    rng = np.random.default_rng(8)
    X = dense_rows(200, 12, 8, density=0.8, spread=0.5).clip(-1, 1)
    w = np.zeros(12)
    w[[2, 7]] = 0.5, -0.4
    labels = np.clip(X @ w + 0.01 * rng.normal(size=200), -1, 1)
    problem = build(X, labels, 400, radius=0.9, intercept=False, loss=Squared(2.0))
    run = solve(problem, argmax(), random_stream(0), solver=solver, record_history=True)
    found = np.zeros(12)
    columns, values = weights(run.transcript(), 0.9)
    found[columns] = values
    np.testing.assert_allclose(found, w, atol=0.02)
    assert np.all(run.history.gap >= 0)
    assert run.history.gap[-1] < 1e-3
    mean = np.mean((X @ found - problem.labels) ** 2) / 2
    assert run.history.objective[-1] == pytest.approx(mean, abs=1e-4)
