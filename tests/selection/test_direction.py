"""At a large exponent the steepest vertex wins: every structure, both signs."""

import numpy as np
import pytest

from dplasso.privacy.randomness import random_stream
from dplasso.selection.argmax import ArgmaxState
from dplasso.selection.big_little import big_little_state
from dplasso.selection.bucket import bucket_state
from dplasso.selection.counters import new_counters
from dplasso.selection.fibonacci_heap import heap_state
from dplasso.selection.noisy_max import GumbelState, LaplaceState
from selection.cases import SHARE
from selection.drivers import draw, fill

# A thousand nats a share.
STEEP = 1000.0 / SHARE
STRUCTURES = {
    "argmax": lambda n: ArgmaxState(new_counters()),
    "heap": heap_state,
    "bucket, no privacy": lambda n: bucket_state(n, np.inf, True),
    "noisy-max": lambda n: GumbelState(STEEP, new_counters()),
    "noisy-max, paper": lambda n: LaplaceState(1 / STEEP, new_counters()),
    "bucket": lambda n: bucket_state(n, STEEP, True),
    "bucket, paper": lambda n: bucket_state(n, STEEP, False),
    "big-little": lambda n: big_little_state(n, STEEP, True),
    "big-little, paper": lambda n: big_little_state(n, STEEP, False),
}


@pytest.mark.parametrize("gradient", [-4, 4])
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_steepest_descent_wins(name, gradient):
    alpha = np.array([1, -2, 3, 0, -1, 2, -3, 1, 0, 2], dtype=np.int64) * SHARE
    alpha[7] = gradient * SHARE
    selector = STRUCTURES[name](alpha.size)
    fill(selector, alpha)
    vertex, sign = draw(selector, alpha, random_stream(1), 50)
    assert vertex.tolist() == [7] * 50
    assert sign.tolist() == [-np.sign(gradient)] * 50
