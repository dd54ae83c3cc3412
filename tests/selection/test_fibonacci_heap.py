import numpy as np
from evidence.reference.draws import change, draw, fill
from evidence.reference.gradients import SHARE
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.privacy.randomness import random_stream
from dplasso.selection.contract import POPS
from dplasso.selection.fibonacci_heap import heap_state, pop, raise_key
from selection.invariants import check


def heap_of(alpha):
    heap = heap_state(alpha.size)
    fill(heap, alpha)
    return heap


class TestHeap:
    @given(st.lists(st.integers(-20, 20), min_size=1, max_size=60))
    @settings(deadline=None, max_examples=100)
    def test_pops_in_order(self, values):
        alpha = np.array(values, dtype=np.int64)
        heap = heap_of(alpha)
        popped = [pop(heap) for _ in values]
        assert popped == sorted(range(alpha.size), key=lambda k: (-abs(values[k]), k))
        assert heap.first[0] == -1

    @given(
        st.lists(st.integers(0, 20), min_size=2, max_size=60),
        st.lists(st.tuples(st.integers(0, 59), st.integers(0, 30)), max_size=60),
    )
    @settings(deadline=None, max_examples=100)
    def test_pops_and_raises_in_any_order(self, values, steps):
        heap = heap_of(np.array(values, dtype=np.int64))
        inside = dict(enumerate(values))
        for k, value in steps:
            if k in inside and value > inside[k]:
                raise_key(heap, k, value)
                inside[k] = value
            elif len(inside) > 1:
                node = pop(heap)
                assert node == max(inside, key=lambda j: (inside[j], -j))
                del inside[node]
            assert heap.first[0] == max(inside, key=lambda j: (inside[j], -j))

    def test_cascading_cuts_keep_degrees_logarithmic(self):
        rng = np.random.default_rng(0)
        alpha = rng.integers(0, 10**6, 5000)
        heap = heap_of(alpha)
        draw(heap, alpha, random_stream(0), 1)
        highest = 0
        for _ in range(3000):
            k = rng.integers(0, 5000, 3)
            change(heap, alpha, k, alpha[k] + rng.integers(0, 10**6, 3))
            draw(heap, alpha, random_stream(0), 1)
            highest = max(highest, int(heap.degree.max()))
        check(heap, alpha)
        # Fibonacci: a degree d needs at least 1.618^d nodes.
        assert highest <= np.log(5000) / np.log((1 + 5**0.5) / 2)


def test_ties_cost_one_pop():
    alpha = np.full(1000, -SHARE)
    heap = heap_of(alpha)
    vertex, sign = draw(heap, alpha, random_stream(0), 5)
    assert vertex.tolist() == [0] * 5
    assert sign.tolist() == [1] * 5
    assert heap.counters[POPS] == 5


def test_only_stale_bounds_cost_pops():
    alpha = np.arange(1000, dtype=np.int64)
    heap = heap_of(alpha)
    change(heap, alpha, np.arange(990, 1000), np.zeros(10, dtype=np.int64))
    draw(heap, alpha, random_stream(0), 1)
    assert heap.counters[POPS] == 11
    draw(heap, alpha, random_stream(0), 1)
    assert heap.counters[POPS] == 12
