"""Margins of new rows, with entries clipped as they were in training."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.matrix.compressed import Compressed, clip
from dplasso.matrix.design import refuse_damage


def clipped(matrix: Compressed, bound: float) -> Compressed:
    """Return a copy of a matrix with its entries clipped to [-bound, bound]."""
    return matrix._replace(
        values=np.clip(matrix.values, -bound, bound),
        constant=float(np.clip(matrix.constant, -bound, bound)),
    )


def margins(
    matrix: Compressed,
    by_rows: bool,
    n_rows: int,
    weights: NDArray[np.float64],
    bound: float,
    offset: float,
) -> NDArray[Any]:
    """Compute ``clip(X) w + offset``, shape (N,), with entries clipped to [-bound, bound]."""
    if not by_rows:
        numbers = np.flatnonzero(weights)
        return column_margins(matrix, numbers, n_rows, weights[numbers], bound, offset)
    result = np.full(n_rows, offset)
    _add_rows(matrix, weights, bound, result)
    return result


def column_margins(
    columns: Compressed,
    numbers: NDArray[np.integer],
    n_rows: int,
    weights: NDArray[np.float64],
    bound: float,
    offset: float,
) -> NDArray[np.float64]:
    """Compute what `margins` does by columns, reading none without a weight.

    `numbers`: columns with a weight, in the order in which a row's terms are added up in memory.

    Raises DataError if a row number lies outside the matrix: they are looked at here.
    """
    result = np.full(n_rows, offset)
    if not _add_columns(columns, numbers, weights, bound, result):
        refuse_damage()
    return result


@njit(cache=True, nogil=True)
def _add_columns(matrix, columns, weights, bound, result):
    """Add the terms of some columns; return whether all row numbers were inside the matrix."""
    for m in range(columns.size):
        for p in range(matrix.indptr[columns[m]], matrix.indptr[columns[m] + 1]):
            i = matrix.indices[p]
            if not 0 <= i < result.size:
                return False
            value = matrix.values[p] if matrix.values.size else matrix.constant
            result[i] += weights[m] * clip(value, bound)
    return True


@njit(cache=True, nogil=True)
def _add_rows(matrix, weights, bound, result):
    for i in range(result.size):
        total = result[i]
        for p in range(matrix.indptr[i], matrix.indptr[i + 1]):
            weight = weights[matrix.indices[p]]
            if weight != 0.0:
                value = matrix.values[p] if matrix.values.size else matrix.constant
                total += weight * clip(value, bound)
        result[i] = total
