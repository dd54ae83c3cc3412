import numpy as np
import pytest
from evidence.reference.draws import change, draw, fill
from evidence.reference.gradients import SHARE
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.privacy.randomness import random_stream
from dplasso.selection.counters import POPS
from dplasso.selection.fibonacci_heap import (
    heap_state,
    insert,
    pop,
    raise_key,
    select_heap,
    update_heap,
)
from selection.invariants import BrokenInvariantError, check
from selection.reference import first_largest
from selection.sequences import histories


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


class TestSelection:
    @given(data=st.data())
    @settings(deadline=None, max_examples=100)
    def test_any_sequence_leaves_it_consistent(self, data):
        start, changes = data.draw(histories(34, most_columns=30))
        alpha = np.array(start, dtype=np.int64)
        heap = heap_of(alpha)
        check(heap, alpha)
        for step, (k, value) in enumerate(changes):
            change(heap, alpha, np.array([k]), np.array([value]))
            check(heap, alpha)
            if step % 2 == 0:
                vertex, _ = draw(heap, alpha, random_stream(0), 1)
                assert vertex[0] == first_largest(alpha)
                check(heap, alpha)

    def test_ties_cost_one_pop(self):
        alpha = np.full(1000, -SHARE)
        heap = heap_of(alpha)
        vertex, sign = draw(heap, alpha, random_stream(0), 5)
        assert vertex.tolist() == [0] * 5
        assert sign.tolist() == [1] * 5
        assert heap.counters[POPS] == 5

    def test_only_stale_bounds_cost_pops(self):
        alpha = np.arange(1000, dtype=np.int64)
        heap = heap_of(alpha)
        change(heap, alpha, np.arange(990, 1000), np.zeros(10, dtype=np.int64))
        draw(heap, alpha, random_stream(0), 1)
        assert heap.counters[POPS] == 11
        draw(heap, alpha, random_stream(0), 1)
        assert heap.counters[POPS] == 12


def right_update(heap, alpha, k, new):
    update_heap(heap, alpha, k, 0, new)


# Broken variants: each takes (heap, alpha, k, new) after alpha has changed.


def stale_lower_bound(heap, alpha, k, new):
    pass


def key_raised_in_place(heap, alpha, k, new):
    heap.key[k] = max(heap.key[k], abs(new))


def lowered_key(heap, alpha, k, new):
    """Takes over a smaller key without restoring the order below."""
    update_heap(heap, alpha, k, 0, new)
    heap.key[k] = abs(new)


def lost_after_pop(heap, alpha, k, new):
    update_heap(heap, alpha, k, 0, new)
    pop(heap)


def inserted_twice(heap, alpha, k, new):
    update_heap(heap, alpha, k, 0, new)
    insert(heap, k)


MUTANTS = [stale_lower_bound, key_raised_in_place, lowered_key, lost_after_pop, inserted_twice]


def apply(broken, heap, alpha, n_updates, after_each):
    rng = np.random.default_rng(1)
    for _ in range(n_updates):
        k = int(rng.integers(alpha.size))
        alpha[k] = rng.integers(-(10**6), 10**6)
        broken(heap, alpha, k, int(alpha[k]))
        after_each(heap, alpha)


def select_and_compare(heap, alpha):
    vertex, _ = select_heap(heap, alpha, random_stream(0))
    if vertex != first_largest(alpha):
        raise BrokenInvariantError("not the argmax")


class TestMutants:
    @pytest.mark.parametrize("broken", MUTANTS)
    def test_is_caught_by_the_invariants(self, broken):
        alpha = np.random.default_rng(2).integers(-(10**6), 10**6, 40)
        heap = heap_of(alpha)
        select_and_compare(heap, alpha)
        check(heap, alpha)
        with pytest.raises(BrokenInvariantError):
            apply(broken, heap, alpha, 50, check)

    @pytest.mark.parametrize("broken", [stale_lower_bound, key_raised_in_place])
    def test_is_caught_by_the_selection(self, broken):
        alpha = np.random.default_rng(2).integers(-(10**6), 10**6, 40)
        heap = heap_of(alpha)
        with pytest.raises(BrokenInvariantError):
            apply(broken, heap, alpha, 200, select_and_compare)

    def test_the_right_update_passes_both(self):
        alpha = np.random.default_rng(2).integers(-(10**6), 10**6, 40)
        heap = heap_of(alpha)
        for after_each in (check, select_and_compare):
            apply(right_update, heap, alpha, 200, after_each)
