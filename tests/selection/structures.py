"""The structures under test by name, and gradients that go where structures break."""

import numpy as np
from evidence.reference.gradients import LIMIT, PRIVATE, SHARE
from hypothesis import strategies as st

from dplasso.selection.big_little import big_little_state
from dplasso.selection.bucket import bucket_state
from dplasso.selection.contract import new_counters
from dplasso.selection.fibonacci_heap import heap_state
from dplasso.selection.noisy_max import ArgmaxState, LaplaceState

# Weights of the magnitude alone, then the true sign.
PAPER = {
    "bucket, paper": lambda n, exponent: bucket_state(n, exponent, False),
    "big-little, paper": lambda n, exponent: big_little_state(n, exponent, False),
}
EXACT = {
    "argmax": lambda n, exponent: ArgmaxState(new_counters()),
    "heap": lambda n, exponent: heap_state(n),
    "bucket, no privacy": lambda n, exponent: bucket_state(n, np.inf, True),
}
LAPLACE = {"noisy-max, paper": lambda n, exponent: LaplaceState(1 / exponent, new_counters())}
WEIGHTED = PRIVATE | PAPER
STRUCTURES = WEIGHTED | EXACT | LAPLACE
# At a thousand nats a share the steepest vertex wins.
STEEP = 1000.0 / SHARE


def magnitudes(shift):
    """Near zero, near the edges of levels 2^shift wide, near the limit, anywhere."""
    edges = st.builds(
        lambda level, offset: min(LIMIT, max(0, level * 2**shift + offset)),
        st.integers(0, 2**14),
        st.integers(-2, 2),
    )
    near_limit = st.integers(LIMIT - 3, LIMIT)
    return st.one_of(st.integers(0, 3), st.integers(0, 4 * SHARE), edges, near_limit) | st.integers(
        0, LIMIT
    )


def gradients(shift):
    return st.builds(lambda m, s: s * m, magnitudes(shift), st.sampled_from([-1, 1]))


def histories(shift, most_columns=12):
    """(gradients at the start, changes [(coordinate, new gradient), ...])."""

    def changes(start):
        column = st.integers(0, len(start) - 1)
        change = st.tuples(column, gradients(shift))
        return st.tuples(st.just(start), st.lists(change, max_size=25))

    return (
        st.integers(1, most_columns)
        .flatmap(lambda n: st.lists(gradients(shift), min_size=n, max_size=n))
        .flatmap(changes)
    )
