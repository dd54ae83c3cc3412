"""Frank-Wolfe on numbers: the same bits from both algorithms, and drift within its tolerance."""

import numpy as np
import pytest

from dplasso.frank_wolfe.solve import solve
from dplasso.frank_wolfe.transcript import weights
from dplasso.losses.squared import Squared
from dplasso.privacy.exponential_mechanism import SelectionRule
from dplasso.privacy.randomness import random_stream
from dplasso.selection.registry import make_selector
from frank_wolfe.cases import (
    LAYOUTS,
    WAYS,
    argmax,
    build,
    dense_rows,
    forced,
    last,
    random_transcript,
    taking,
    watch,
)
from neighbours import moved_by, pairs


def regression(seed, n_steps=40, *, bound=0.25, offset=0.1, n_rows=60, radius=2.0):
    X = dense_rows(n_rows, 12, seed)
    targets = np.random.default_rng(seed).uniform(-1.0, 1.0, n_rows)
    problem = build(X, np.zeros(n_rows), n_steps, radius=radius, residual_bound=1.0)
    # The unit of alpha rests on the loss's bound.
    return problem._replace(labels=targets, loss=Squared(bound, offset), unit=problem.unit / bound)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("way", WAYS)
def test_algorithm_2_is_algorithm_1_to_the_bit(layout, way):
    problem = regression(0)
    other = LAYOUTS[layout](problem)
    rule = SelectionRule("none", np.inf, 0.0)

    def best(design):
        return make_selector("argmax", design.n_coordinates, rule)

    chosen = solve(problem, best(problem.design), random_stream(0), solver="standard").transcript()
    with taking(way):
        again = solve(other, best(other.design), random_stream(0), drift_tol=0.0)
    assert again.transcript() == chosen
    assert len(np.unique(chosen.vertex)) > 3


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_neighbours_differ_by_at_most_the_sensitivity(relation):
    """After any released steps, in integers, whatever the record and its target."""
    bound, farthest = 0.25, 0.0
    for pair in pairs(relation):
        alphas = []
        for X, y in zip(pair.rows, pair.labels, strict=True):
            clipped = np.clip(X, -1.0, 1.0).astype(np.float32)
            problem = build(clipped, np.zeros(len(y)), 6, radius=2.0)
            problem = problem._replace(
                labels=2.0 * y - 1.0, loss=Squared(bound), unit=problem.unit / bound
            )
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
    problem = build(X, np.zeros(200), 400, radius=0.9, intercept=False)
    loss = Squared(2.0)
    problem = problem._replace(
        labels=np.clip(X @ w + 0.01 * rng.normal(size=200), -1, 1), loss=loss, unit=problem.unit / 2
    )
    run = solve(problem, argmax(), random_stream(0), solver=solver, record_history=True)
    found = np.zeros(12)
    columns, values = weights(run.transcript(), 0.9)
    found[columns] = values
    np.testing.assert_allclose(found, w, atol=0.02)
    assert np.all(run.history.gap >= 0)
    assert run.history.gap[-1] < 1e-3
    mean = np.mean((X @ found - problem.labels) ** 2) / 2
    assert run.history.objective[-1] == pytest.approx(mean, abs=1e-4)
