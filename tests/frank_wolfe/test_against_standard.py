"""Algorithm 2 against Algorithm 1 on real and generated data: choices, objective and true gap."""

import numpy as np
import pytest
from evidence.solving import solve
from evidence.twins.generate import make_synthetic
from scipy.special import expit

from dplasso.frank_wolfe.drift import PLAIN_TOLERANCE
from dplasso.frank_wolfe.transcript import Transcript, weights
from dplasso.privacy.randomness import random_stream
from frank_wolfe.cases import argmax, build, dense_rows, some_labels

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
