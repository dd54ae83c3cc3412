"""The check of rows or columns in compressed form, wherever they come from."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def check_rows(indptr, indices, n_columns):
    """Look for rows that cannot be those of a matrix; the same for columns.

    Returns (outside, unordered, largest column): the first row whose pointers or columns lie
    outside the matrix, and the first, up to that one, whose columns do not ascend strictly; -1
    where there is none.
    """
    unordered, largest = -1, np.int64(-1)
    for i in range(indptr.size - 1):
        begin, end = indptr[i], indptr[i + 1]
        if begin > end or begin < 0 or end > indices.size:
            return i, unordered, largest
        before = np.int64(-1)
        for p in range(begin, end):
            k = np.int64(indices[p])
            if k < 0 or k >= n_columns:
                return i, unordered, largest
            if k <= before and unordered < 0:
                unordered = i
            before = k
            largest = max(largest, k)
    return -1, unordered, largest
