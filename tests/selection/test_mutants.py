"""Broken updates, each caught by the invariants, and where a draw can show it by the draws."""

import numpy as np
import pytest
from evidence.reference.draws import (
    ALARM,
    count_vertices,
    draw,
    fill,
    p_value,
    vertex_probabilities,
)
from evidence.reference.gradients import EXPONENT, SHARE

from dplasso.privacy.randomness import random_stream
from dplasso.selection.big_little import weight_in_ticks
from dplasso.selection.bucket import fold, level_of, move
from dplasso.selection.contract import update_many
from dplasso.selection.fibonacci_heap import insert, pop
from selection.invariants import BrokenInvariantError, check
from selection.reference import first_largest
from selection.structures import STRUCTURES

# Each takes (selector, alpha, k, old, new) after alpha has changed.


def right(selector, alpha, k, old, new):
    update_many(selector, alpha, np.array([k]), np.array([old]), 1)


def missing(selector, alpha, k, old, new):
    pass


def one_level_short(selector, alpha, k, old, new):
    source, target = (level_of(fold(a), selector.shift, selector.bits) for a in (old, new))
    target -= target > source
    move(selector.order, selector.position, selector.start, k, source, target)


def signed_level(selector, alpha, k, old, new):
    right(selector, np.maximum(alpha, 0), k, max(old, 0), max(new, 0))


def forgotten_top(selector, alpha, k, old, new):
    top = selector.top[0]
    right(selector, alpha, k, old, new)
    selector.top[0] = top


def forgotten_position(selector, alpha, k, old, new):
    place = selector.position[k]
    right(selector, alpha, k, old, new)
    other = selector.order[place]
    if other != k:
        selector.position[other] = selector.position[k]


def recounted(selector, k, group, new, most=2**63 - 1):
    reference = selector.reference[group]
    ticks = min(int(weight_in_ticks(selector, abs(new), reference)) + 1, most)
    selector.total[group] += ticks - selector.ticks[k]
    selector.ticks[k] = ticks


def group_by_remainder(selector, alpha, k, old, new):
    """The listing's `mod` for the group of an item."""
    recounted(selector, k, k % selector.size, new)


def stale_sum(selector, alpha, k, old, new):
    total = selector.total.copy()
    recounted(selector, k, k // selector.size, new)
    selector.total[:] = total


def no_rebase(selector, alpha, k, old, new):
    """Ticks clipped to the range instead of a new reference."""
    recounted(selector, k, k // selector.size, new, selector.most)


def drifting_sum(selector, alpha, k, old, new):
    """A sum in log scale, added to and subtracted from for ever."""
    group = k // selector.size
    before, log_total = float(selector.ticks[k]), np.log(float(selector.total[group]))
    recounted(selector, k, group, new)
    change = np.exp(np.log(float(selector.ticks[k])) - log_total) - before / np.exp(log_total)
    selector.total[group] = round(np.exp(log_total + np.log1p(change)))


def key_raised_in_place(heap, alpha, k, old, new):
    heap.key[k] = max(heap.key[k], abs(new))


def lowered_key(heap, alpha, k, old, new):
    """Takes over a smaller key without restoring the order below."""
    right(heap, alpha, k, old, new)
    heap.key[k] = abs(new)


def lost_after_pop(heap, alpha, k, old, new):
    right(heap, alpha, k, old, new)
    pop(heap)


def inserted_twice(heap, alpha, k, old, new):
    right(heap, alpha, k, old, new)
    insert(heap, k)


# structure: {broken update: (change in shares, at most; whether the draws show it)}
MUTANTS = {
    "bucket": {
        missing: (400, True),
        one_level_short: (400, False),
        signed_level: (400, True),
        forgotten_top: (400, False),
        forgotten_position: (400, False),
    },
    "big-little": {
        missing: (200, True),
        group_by_remainder: (200, True),
        stale_sum: (200, True),
        no_rebase: (500, True),
        drifting_sum: (50, False),
    },
    "heap": {
        missing: (400, True),
        key_raised_in_place: (400, True),
        lowered_key: (400, False),
        lost_after_pop: (400, False),
        inserted_twice: (400, False),
    },
}
ALL = [(name, broken, *how) for name, some in MUTANTS.items() for broken, how in some.items()]


def updated(name, broken, n_updates, spread, after_each=lambda *_: None):
    """Return a structure of 16 columns and its gradients, after updates of a share or more."""
    rng = np.random.default_rng(9)
    alpha = rng.integers(-spread, spread, 16) * SHARE
    selector = STRUCTURES[name](16, EXPONENT)
    fill(selector, alpha)
    draw(selector, alpha, random_stream(0), 1)
    for _ in range(n_updates):
        k = rng.integers(16)
        old, alpha[k] = alpha[k], alpha[k] + rng.integers(-spread, spread) * SHARE
        broken(selector, alpha, int(k), int(old), int(alpha[k]))
        after_each(selector, alpha)
    return selector, alpha


def draws_show_it(name, broken, spread):
    if name == "heap":
        wrong = []

        def compare(heap, alpha):
            vertex, _ = draw(heap, alpha, random_stream(0), 1)
            wrong.append(vertex[0] != first_largest(alpha))

        updated(name, broken, 200, spread, compare)
        return any(wrong)
    selector, alpha = updated(name, broken, 30, spread)
    if name == "big-little":
        selector.total[:] = np.maximum(selector.total, broken is not right)
    counts = count_vertices(16, *draw(selector, alpha, random_stream(10), 50_000))
    return p_value(counts, vertex_probabilities(alpha, EXPONENT)) < ALARM


@pytest.mark.parametrize(("name", "broken", "spread", "shown"), ALL)
def test_a_broken_update_is_caught(name, broken, spread, shown):
    with pytest.raises(BrokenInvariantError):
        updated(name, broken, 50, spread, check)
    if shown:
        assert draws_show_it(name, broken, spread)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_right_update_passes_both(name):
    updated(name, right, 50, 500, check)
    assert not draws_show_it(name, right, 500)
