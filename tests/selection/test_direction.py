"""What all structures share, private or not: direction, and updates in batches."""

import numpy as np
import pytest
from evidence.reference.draws import change, draw, fill
from evidence.reference.gradients import SHARE
from numba import njit

from dplasso.privacy.randomness import random_stream
from dplasso.selection.argmax import ArgmaxState
from dplasso.selection.big_little import big_little_state
from dplasso.selection.bucket import bucket_state
from dplasso.selection.contract import granularity, update_many
from dplasso.selection.counters import new_counters
from dplasso.selection.fibonacci_heap import heap_state
from dplasso.selection.noisy_max import GumbelState, LaplaceState

# At a thousand nats a share the steepest vertex wins.
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


@njit
def change_together(selector, alpha, coordinates, values):
    """Set gradients, each coordinate once, and tell the structure of all together."""
    report_shift = granularity(selector)
    changed, before = np.empty_like(coordinates), np.empty_like(values)
    count = 0
    for i in range(coordinates.size):
        k = coordinates[i]
        old = alpha[k]
        alpha[k] = values[i]
        if (old ^ values[i]) >> report_shift:
            changed[count], before[count] = k, old
            count += 1
    update_many(selector, alpha, changed, before, count)


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


@pytest.mark.parametrize("name", STRUCTURES)
def test_changes_told_together_leave_the_same_structure(name):
    rng = np.random.default_rng(0)
    start = rng.integers(-5 * SHARE, 5 * SHARE, 50)
    one, other = STRUCTURES[name](50), STRUCTURES[name](50)
    alphas = start.copy(), start.copy()
    fill(one, alphas[0])
    fill(other, alphas[1])
    for _ in range(50):
        coordinates = rng.permutation(50)[:10]
        values = alphas[0][coordinates] + rng.integers(-SHARE, SHARE, 10)
        change(one, alphas[0], coordinates, values)
        change_together(other, alphas[1], coordinates, values)
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
