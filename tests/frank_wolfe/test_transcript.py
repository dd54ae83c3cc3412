"""The transcript and the weights that follow from it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dplasso.frank_wolfe.transcript import Transcript, integer_weights, weight_scale, weights
from frank_wolfe.reference import weights_of


def transcript(*pairs):
    vertex, sign = zip(*pairs, strict=True)
    return Transcript(np.array(vertex, dtype=np.int64), np.array(sign, dtype=np.int8))


random_transcripts = st.integers(1, 60).flatmap(
    lambda n: st.builds(
        Transcript,
        arrays(np.int64, n, elements=st.integers(0, 5)),
        arrays(np.int8, n, elements=st.sampled_from([-1, 1])),
    )
)


late_starts = st.sampled_from([0, 1, 12, 10**6])


def test_equality_looks_at_every_vertex_and_sign():
    one = transcript((3, 1), (0, -1))
    assert one == transcript((3, 1), (0, -1))
    assert one != transcript((3, 1), (0, 1))
    assert one != transcript((2, 1), (0, -1))
    assert one != transcript((3, 1))
    assert one != "transcript"
    assert len(one) == 2


def test_a_transcript_cannot_be_hashed():
    with pytest.raises(TypeError, match="unhashable"):
        hash(transcript((0, 1)))


@pytest.mark.parametrize("shapes", [((3,), (2,)), ((2, 2), (2, 2)), ((), ())])
def test_lengths_must_agree(shapes):
    vertex, sign = shapes
    with pytest.raises(ValueError, match="as many signs as vertices"):
        Transcript(np.zeros(vertex, dtype=np.int64), np.zeros(sign, dtype=np.int8))


def test_weight_scale_is_the_product_of_the_shrinkages():
    product = 1.0
    assert weight_scale(0) == 1.0
    for step in range(1, 200):
        product *= 1.0 - 2.0 / (step + 2.0)
        assert weight_scale(step) == pytest.approx(product, rel=1e-13)


@given(random_transcripts, late_starts)
def test_integer_weights_match_their_twin(taken, late_start):
    coordinates, totals = integer_weights(taken, late_start)
    expected = weights_of(taken.vertex, taken.sign, 6)
    for j, sign in zip(taken.vertex.tolist(), taken.sign.tolist(), strict=True):
        expected[j] += sign * late_start
    assert coordinates.tolist() == [k for k in range(6) if expected[k]]
    assert totals.tolist() == [total for total in expected if total]


@given(random_transcripts, st.floats(0.01, 1e4), late_starts)
def test_weights_match_the_recursion(taken, radius, late_start):
    w = np.zeros(6)
    for step, (j, s) in enumerate(zip(taken.vertex, taken.sign, strict=True), start=1):
        eta = 2.0 / (step + late_start + 2.0)
        w *= 1.0 - eta
        w[j] += eta * s * radius
    coordinates, values = weights(taken, radius, late_start)
    found = np.zeros(6)
    found[coordinates] = values
    np.testing.assert_allclose(found, w, atol=1e-12 * radius)
    assert np.abs(values).sum() < radius


def test_cancelled_weights_are_not_kept():
    # Steps 1 to 3 add 2, 3 and 4 to K; then 2 + 3 - 5 = 0 for coordinate 7.
    coordinates, _ = integer_weights(transcript((7, 1), (7, 1), (2, 1), (7, -1)))
    assert coordinates.tolist() == [2]
