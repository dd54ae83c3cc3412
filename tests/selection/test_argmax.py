import numpy as np
import pytest
from evidence.reference.draws import change, draw, fill
from evidence.reference.gradients import HARD, LIMIT

from dplasso.privacy.randomness import random_stream
from dplasso.selection.argmax import ArgmaxState
from dplasso.selection.bucket import bucket_state
from dplasso.selection.counters import new_counters
from dplasso.selection.fibonacci_heap import heap_state
from selection.reference import first_largest

EXACT = {
    "argmax": lambda n_columns: ArgmaxState(new_counters()),
    "heap": heap_state,
    "bucket": lambda n_columns: bucket_state(n_columns, np.inf, True),
}


def assert_steepest(selector, alpha):
    vertex, sign = draw(selector, alpha, random_stream(0), 2)
    best = first_largest(alpha)
    assert vertex.tolist() == [best, best]
    assert sign.tolist() == [-1 if alpha[best] >= 0 else 1] * 2


@pytest.mark.parametrize("name", EXACT)
class TestEveryArgmax:
    @pytest.mark.parametrize("case", HARD)
    def test_first_of_the_largest(self, name, case):
        alpha = HARD[case][0].copy()
        selector = EXACT[name](alpha.size)
        fill(selector, alpha)
        assert_steepest(selector, alpha)

    @pytest.mark.parametrize("n_columns", [1, 2, 3, 17, 1000])
    @pytest.mark.parametrize("spread", [2, 2**36, LIMIT])
    def test_after_every_few_updates(self, name, n_columns, spread):
        rng = np.random.default_rng(n_columns)
        alpha = rng.integers(-spread, spread, n_columns)
        selector = EXACT[name](n_columns)
        fill(selector, alpha)
        for _ in range(40):
            coordinates = rng.integers(0, n_columns, 5)
            change(selector, alpha, coordinates, rng.integers(-spread, spread, 5))
            # Shrink the best, so that stale bounds come to the top.
            best = np.array([first_largest(alpha)])
            change(selector, alpha, best, alpha[best] // 2)
            assert_steepest(selector, alpha)

    @pytest.mark.parametrize("edge", [2**34, 2**36, 5 * 2**40, 2**62])
    def test_ties_on_the_edge_of_a_level(self, name, edge):
        for values in ([-edge, edge], [edge, -edge], [0, edge, -edge, edge - 1, -edge]):
            alpha = np.array(values, dtype=np.int64)
            selector = EXACT[name](alpha.size)
            fill(selector, alpha)
            assert_steepest(selector, alpha)
