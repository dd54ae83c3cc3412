"""The check of compressed rows against what it means."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from dplasso.matrix.check import check_rows

ROWS = st.lists(st.lists(st.integers(-2, 12), max_size=4), max_size=6)


def first(rows):
    return next((i for i, wrong in enumerate(rows) if wrong), -1)


@given(ROWS, st.integers(1, 12))
@example([[1, 1], [0, 99], [2, 1]], 12)
def test_the_first_row_that_does_not_fit_is_found(rows, n_columns):
    indptr = np.cumsum([0] + [len(row) for row in rows])
    indices = np.array([j for row in rows for j in row], np.int32)
    outside, unordered, largest = check_rows(indptr, indices, n_columns)
    assert outside == first(not all(0 <= j < n_columns for j in row) for row in rows)
    if outside < 0:
        assert unordered == first(row != sorted(set(row)) for row in rows)
        assert largest == max((j for row in rows for j in row), default=-1)


def test_pointers_that_do_not_fit_are_a_row_outside():
    indices = np.zeros(3, np.int32)
    for pointers, row in (([0, 4], 0), ([0, 2, 1, 3], 1), ([-1, 3], 0), ([0, 1, 9], 1)):
        assert check_rows(np.array(pointers), indices, 5)[0] == row
