"""Algorithm 1 against textbook Frank-Wolfe, and Algorithm 2 against Algorithm 1."""

import numpy as np
import pytest
from evidence.solving import solve
from evidence.twins.generate import make_synthetic
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from dplasso.frank_wolfe.drift import PLAIN_TOLERANCE
from dplasso.frank_wolfe.standard import mean_loss
from dplasso.frank_wolfe.transcript import Transcript, weights
from dplasso.privacy.randomness import random_stream
from frank_wolfe.cases import argmax, build, dense_rows, small_problem, some_labels
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


RADIUS, N_STEPS = 20.0, 300
# The gap of the last step alone is a lottery: it is averaged over some of the last steps.
MARKS = range(200, N_STEPS + 1, 10)


def twin(name, scale):
    made = make_synthetic(name, scale=scale, seed=0)
    return made.X, (made.y > 0).astype(np.float64)


def dense():
    return dense_rows(400, 30, 0, density=0.3), some_labels(400, 0)


GENERATED = {
    "dense": dense,
    "rcv1": lambda: twin("rcv1", 0.05),
    "news20": lambda: twin("news20", 0.02),
    "url": lambda: twin("url", 0.0005),
    "kdda": lambda: twin("kdda", 0.0002),
}


@pytest.fixture(params=["adult", *GENERATED])
def data(request, adult):
    return adult if request.param == "adult" else GENERATED[request.param]()


def mean_gap(X, y, transcript):
    """Return the loss at the end and the mean gap at `MARKS`, both from scratch in doubles."""
    gaps = []
    for mark in MARKS:
        w = np.zeros(X.shape[1])
        taken = Transcript(transcript.vertex[:mark], transcript.sign[:mark])
        coordinates, values = weights(taken, RADIUS)
        w[coordinates] = values
        margin = X @ w
        alpha = X.T @ (expit(margin) - y) / len(y)
        gaps.append(alpha @ w + RADIUS * np.abs(alpha).max())
    return np.mean(np.logaddexp(0.0, margin) - y * margin), np.mean(gaps)


def test_the_default_is_algorithm_1_and_the_stale_version_is_not(data):
    X, y = data
    X = np.clip(X, -1, 1) if isinstance(X, np.ndarray) else X
    problem = build(X, y, N_STEPS, radius=RADIUS, intercept=False)
    exact = solve(problem, argmax(), random_stream(0), solver="standard").transcript()
    loss, gap = mean_gap(X, y, exact)

    small = solve(problem, argmax(), random_stream(0), drift_tol=1e-7).transcript()
    assert mean_gap(X, y, small)[0] == pytest.approx(loss, rel=1e-6)

    default = solve(problem, argmax(), random_stream(0), drift_tol=PLAIN_TOLERANCE).transcript()
    np.testing.assert_array_equal(default.vertex[:50], exact.vertex[:50])
    np.testing.assert_array_equal(default.sign[:50], exact.sign[:50])
    assert mean_gap(X, y, default)[1] == pytest.approx(gap, rel=0.1)

    stale = solve(problem, argmax(), random_stream(0), drift_tol=None).transcript()
    assert not np.array_equal(stale.vertex, exact.vertex)
