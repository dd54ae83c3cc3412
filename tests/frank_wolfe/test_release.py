"""What a run releases: vertices within the columns, and the linear model that follows."""

import numpy as np
import pytest

from dplasso.frank_wolfe.release import VertexRelease
from dplasso.frank_wolfe.transcript import Transcript

STEPS, N_FEATURES = 6, 4


def release(vertex, sign=1, **changes):
    vertex = np.array(vertex, dtype=np.int64)
    transcript = Transcript(vertex, np.broadcast_to(np.int8(sign), vertex.shape))
    public = {"n_features": N_FEATURES, "l1_radius": 10.0, "feature_bound": 0.5}
    return VertexRelease(transcript, **(public | changes))


@pytest.mark.parametrize("late_start", [0, 5])
def test_the_coefficients_match_the_recursion(late_start):
    rng = np.random.default_rng(0)
    vertex, sign = rng.integers(0, N_FEATURES + 1, 30), rng.choice(np.array([-1, 1], np.int8), 30)
    taken = VertexRelease(Transcript(vertex, sign), N_FEATURES, 10.0, 0.5, late_start=late_start)
    w = np.zeros(N_FEATURES + 1)
    for step, (j, s) in enumerate(zip(vertex, sign, strict=True), start=1):
        eta = 2.0 / (step + late_start + 2.0)
        w *= 1.0 - eta
        w[j] += eta * s * 10.0
    coefficients, intercept = taken.coefficients()
    assert coefficients.shape == (1, N_FEATURES)
    np.testing.assert_allclose(coefficients.toarray()[0], w[:-1], atol=1e-12)
    np.testing.assert_allclose(intercept, [0.5 * w[-1]], atol=1e-12)


def test_the_intercept_is_a_column_only_where_there_is_one():
    assert len(release([N_FEATURES] * STEPS)) == STEPS
    with pytest.raises(ValueError, match="outside the 4 columns"):
        release([N_FEATURES] * STEPS, fit_intercept=False)


@pytest.mark.parametrize(
    ("vertex", "sign", "words"),
    [
        ([-1, 0], 1, "outside the 4 columns"),
        ([0, N_FEATURES + 1], 1, "outside the 4 columns"),
        ([0, 1], 0, "a sign is neither"),
        ([0, 1], -128, "a sign is neither"),
    ],
)
def test_vertices_that_cannot_be_are_refused(vertex, sign, words):
    with pytest.raises(ValueError, match=words):
        release(vertex, sign)


def test_runs_agree_as_far_as_both_have_come():
    whole = release([0, 1, 2, 3])
    assert whole.agrees_with(release([0, 1]))
    assert release([0, 1]).agrees_with(whole)
    assert release([]).agrees_with(whole)
    assert not whole.agrees_with(release([0, 2]))
    assert not whole.agrees_with(release([0, 1], -1))


def test_the_arrays_of_a_file():
    arrays = release([0, 1], -1).arrays()
    assert [(name, array.dtype.str) for name, array in arrays.items()] == [
        ("vertex", "<i8"),
        ("sign", "|i1"),
    ]
