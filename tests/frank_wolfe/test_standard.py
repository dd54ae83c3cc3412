"""Algorithm 1 against textbook Frank-Wolfe in floating point."""

import numpy as np
import pytest
from evidence.solving import solve
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.frank_wolfe.standard import mean_loss
from dplasso.privacy.randomness import random_stream
from frank_wolfe.cases import argmax, build, small_problem
from frank_wolfe.reference import frank_wolfe


def design(X, problem):
    clipped = np.clip(X.astype(float), -problem.design.bound, problem.design.bound)
    if not problem.design.intercept:
        return clipped
    return np.column_stack([clipped, np.full(len(X), problem.design.bound)])


def textbook(X, labels, problem, taken=None):
    pairs = taken and list(zip(taken.vertex.tolist(), taken.sign.tolist(), strict=True))
    options = {"transcript": pairs, "residual_bound": problem.loss.residual_bound}
    return frank_wolfe(design(X, problem), labels, problem.radius, problem.n_steps, **options)


def taken_of(problem, **options):
    return solve(problem, argmax(), random_stream(0), solver="standard", **options)


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.3, 1.0, 1.7]),
    st.booleans(),
    st.sampled_from([1.0, 0.5, 0.8]),
)
def test_objective_and_gap_match_the_textbook(seed, bound, intercept, residual_bound):
    public = {"bound": bound, "intercept": intercept, "residual_bound": residual_bound}
    X, labels, problem = small_problem(seed, n_steps=30, **public)
    run = taken_of(problem, record_history=True)
    true = textbook(X, labels, problem, run.transcript())
    np.testing.assert_allclose(run.history.objective, true["objective"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.history.gap, true["gap"], rtol=0, atol=1e-8)
    np.testing.assert_allclose(np.abs(true["gradient"]), true["steepest"], atol=1e-9)
    assert (np.sign(true["gradient"]) * true["sign"] <= 0).all()


@pytest.mark.parametrize("residual_bound", [1.0, 0.7])
def test_it_takes_the_textbook_s_own_steps(residual_bound):
    for seed in range(10):
        X, labels, problem = small_problem(seed, n_steps=30, residual_bound=residual_bound)
        taken = taken_of(problem).transcript()
        free = textbook(X, labels, problem)
        np.testing.assert_array_equal(taken.vertex, free["vertex"])
        np.testing.assert_array_equal(taken.sign, free["sign"])


def test_the_loss_does_not_overflow():
    X = np.ones((2, 1), dtype=np.float32)
    problem = build(X, [0, 1], 1, radius=1e6, intercept=False)
    margin = np.full(2, np.int64(problem.margin_unit))
    # Margins 1e6 after 0 steps: the losses are 1e6 and 0.
    assert mean_loss(problem, margin, 0) == pytest.approx(5e5)
    assert mean_loss(problem, -margin, 0) == pytest.approx(5e5)
    assert mean_loss(problem, 0 * margin, 0) == pytest.approx(np.log(2.0))
