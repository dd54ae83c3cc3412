"""Hypothesis strategies: gradients, and changes of them, that go where structures break."""

from evidence.reference.gradients import LIMIT, SHARE
from hypothesis import strategies as st


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
