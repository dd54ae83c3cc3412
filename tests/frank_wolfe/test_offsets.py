"""Margins that start elsewhere than at zero, each record's at its own place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.frank_wolfe.gradient import margin_scale
from dplasso.frank_wolfe.solve import FrankWolfe, solve
from dplasso.losses.contract import gradient
from dplasso.losses.logistic import Logistic
from dplasso.losses.multinomial import ClippedMultinomial
from dplasso.losses.squared import Squared
from dplasso.privacy.randomness import random_stream
from frank_wolfe.cases import argmax, build, dense_rows, forced, random_transcript, some_labels

ROWS, COLUMNS, STEPS = 15, 7, 12
LOSSES = {"logistic": Logistic(0.5, 0.3), "squared": Squared(0.5)}


def started(seed, loss, n_outputs=1):
    rng = np.random.default_rng([seed, 3])
    labels = some_labels(ROWS, seed)
    if n_outputs > 1:
        labels = rng.integers(0, n_outputs, ROWS).astype(np.float64)
    offsets = rng.choice([0.0, 0.4, -2.0, 30.0, -(2.0**20)], (ROWS, n_outputs))
    return build(dense_rows(ROWS, COLUMNS, seed), labels, STEPS, loss=loss, offsets=offsets)


@pytest.mark.parametrize("name", LOSSES)
@given(seed=st.integers(0, 10**6), tolerance=st.sampled_from([0.0, 1e-3, 0.1]))
@settings(max_examples=25)
def test_gradients_in_use_are_within_the_tolerance_of_the_true_ones(name, seed, tolerance):
    problem = started(seed, LOSSES[name])
    drawn = forced(random_transcript(problem, seed))
    run = FrankWolfe(problem, drawn, random_stream(0), drift_tol=tolerance)
    for step in range(1, STEPS + 1):
        run.advance(step, step)
        margins = run.state.margin * margin_scale(problem, step) + problem.offsets[:, 0]
        exact = [gradient(problem.loss, m, y) for m, y in zip(margins, problem.labels, strict=True)]
        assert np.abs(run.state.gradient - exact).max() <= tolerance + 1e-12


@pytest.mark.parametrize("loss", [*LOSSES.values(), ClippedMultinomial(0.5, np.zeros(3))])
def test_both_algorithms_have_the_same_column_gradients(loss):
    problem = started(4, loss, loss.n_outputs)
    taken = random_transcript(problem, 4)
    runs = [
        FrankWolfe(problem, forced(taken), random_stream(0), solver=solver)
        for solver in ("sparse", "standard")
    ]
    sparse, standard = runs
    before = sparse.state.alpha.copy()
    for step in range(1, STEPS + 1):
        standard.advance(step, step)
        # Those that the step draws by.
        assert np.array_equal(before, standard.state.alpha)
        sparse.advance(step, step)
        before = sparse.state.alpha.copy()


def test_the_objective_is_that_of_whole_margins():
    problem = started(5, Logistic(0.8))
    found = [
        solve(problem, argmax(), random_stream(0), solver=solver, record_history=True).history
        for solver in ("sparse", "standard")
    ]
    assert found[0].objective == pytest.approx(found[1].objective)
    assert found[0].gap == pytest.approx(found[1].gap)
