"""Margins of new rows, with entries clipped as they were in training."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.data.matrix import Compressed
from dplasso.frank_wolfe.gradient import clip


def margins(
    matrix: Compressed,
    by_rows: bool,
    n_rows: int,
    weights: NDArray[np.float64],
    bound: float,
    offset: float,
) -> NDArray[Any]:
    """Compute ``clip(X) w + offset``.

    Parameters
    ----------
    matrix : Compressed
        X by rows, or by columns.
    by_rows : bool
        Which of the two.
    n_rows : int
        N.
    weights : ndarray of float64, shape (D,)
        w.
    bound : float
        Entries are clipped to [-bound, bound].
    offset : float
        The intercept.

    Returns
    -------
    ndarray of float64, shape (N,)
        The margins.
    """
    result = np.full(n_rows, offset)
    (_by_rows if by_rows else _by_columns)(matrix, weights, bound, result)
    return result


@njit(cache=True, nogil=True)
def _by_rows(matrix, weights, bound, result):
    for i in range(result.size):
        total = result[i]
        for p in range(matrix.indptr[i], matrix.indptr[i + 1]):
            weight = weights[matrix.indices[p]]
            if weight != 0.0:
                value = matrix.values[p] if matrix.values.size else matrix.constant
                total += weight * clip(value, bound)
        result[i] = total


@njit(cache=True, nogil=True)
def _by_columns(matrix, weights, bound, result):
    for k in range(weights.size):
        if weights[k] != 0.0:
            for p in range(matrix.indptr[k], matrix.indptr[k + 1]):
                value = matrix.values[p] if matrix.values.size else matrix.constant
                result[matrix.indices[p]] += weights[k] * clip(value, bound)
