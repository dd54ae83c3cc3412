"""The transcript and the weights that follow from it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dplasso.frank_wolfe.transcript import Transcript, integer_weights
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


@pytest.mark.parametrize("shapes", [((3,), (2,)), ((2, 2), (2, 2)), ((), ())])
def test_lengths_must_agree(shapes):
    vertex, sign = shapes
    with pytest.raises(ValueError, match="as many signs as vertices"):
        Transcript(np.zeros(vertex, dtype=np.int64), np.zeros(sign, dtype=np.int8))


@given(random_transcripts, late_starts)
def test_integer_weights_match_their_twin(taken, late_start):
    coordinates, totals = integer_weights(taken, late_start)
    expected = weights_of(taken.vertex, taken.sign, 6)
    for j, sign in zip(taken.vertex.tolist(), taken.sign.tolist(), strict=True):
        expected[j] += sign * late_start
    assert coordinates.tolist() == [k for k in range(6) if expected[k]]
    assert totals.tolist() == [total for total in expected if total]
