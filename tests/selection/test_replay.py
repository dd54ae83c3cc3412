import numpy as np
from evidence.reference.draws import change, draw, fill

from dplasso.privacy.randomness import random_stream
from dplasso.selection.replay import replay_state


def test_replays_the_transcript_whatever_the_gradients():
    vertex = np.array([3, 0, 3, 2], dtype=np.int64)
    sign = np.array([1, -1, -1, 1], dtype=np.int8)
    selector = replay_state(vertex, sign)
    alpha = np.array([9, 0, 0, 0], dtype=np.int64)
    fill(selector, alpha)
    first = draw(selector, alpha, random_stream(0), 2)
    change(selector, alpha, np.array([1]), np.array([100]))
    rest = draw(selector, alpha, random_stream(0), 2)
    np.testing.assert_array_equal(np.concatenate([first[0], rest[0]]), vertex)
    np.testing.assert_array_equal(np.concatenate([first[1], rest[1]]), sign)
    assert selector.position[0] == 4
