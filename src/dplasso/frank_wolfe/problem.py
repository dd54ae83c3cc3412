"""The training problem as arrays the kernels read."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.data.matrix import Compressed, compress
from dplasso.data.transpose import transpose


class Problem(NamedTuple):
    """Data and public parameters of one training run.

    Attributes
    ----------
    rows, columns : Compressed
        X by rows and by columns. Algorithm 1 reads only `rows`.
    labels : ndarray of int8, shape (N,)
        0 or 1.
    n_columns : int
        D.
    intercept : bool
        Coordinate D is a constant column of value `bound`.
    bound : float
        Entries are clipped to [-bound, bound].
    radius : float
        Radius of the L1 ball.
    unit : float
        Fixed-point units per unit of alpha, S = 2^32 / bound.
    margin_unit : float
        Fixed-point units of a margin per unit of x, 2^b / bound.
    n_steps : int
        T.
    """

    rows: Compressed
    columns: Compressed
    labels: NDArray[np.int8]
    n_columns: int
    intercept: bool
    bound: float
    radius: float
    unit: float
    margin_unit: float
    n_steps: int


# |q x S| <= 2^32 for every record; sums of fewer than 2^31 of them fit 64 bits.
SHARE_BITS = 32
MAX_ROWS = 2**31 - 1
# Margins carry this many bits behind |x| = bound, fewer (21 at T = 2 million) in long runs.
_MARGIN_BITS = 40


def gradient_unit(bound: float) -> float:
    """Return S = 2^32 / bound, the fixed-point units per unit of alpha."""
    return float(2.0**SHARE_BITS / bound)


def margin_unit(bound: float, n_steps: int) -> float:
    """Return the fixed-point units per unit of x in which margins are summed.

    Chosen from public numbers so that `n_steps` steps cannot overflow 62 bits.
    """
    total = n_steps * (n_steps + 3) // 2
    bits = min(_MARGIN_BITS, 62 - total.bit_length())
    return float(2.0**bits / bound)


def build_problem(
    X: Any,
    labels: NDArray[np.int8],
    *,
    bound: float,
    radius: float,
    n_steps: int,
    intercept: bool,
    by_columns: bool,
    n_threads: int,
) -> Problem:
    """Lay out a training run, copying of X only the orientation it lacks.

    Parameters
    ----------
    X : csr or csc matrix or array, or ndarray, shape (N, D)
        float32 or float64, finite. Never written to.
    labels : ndarray of int8, shape (N,)
        0 or 1.
    bound, radius, n_steps, intercept
        As in `Problem`.
    by_columns : bool
        Whether the solver reads X by columns too; without, `columns` stands for nothing.
    n_threads : int
        Threads for the transpose.

    Returns
    -------
    Problem

    Raises
    ------
    DataError
        See `dplasso.data.matrix.compress`.
    """
    matrix, given_by_rows = compress(X)
    rows = matrix if given_by_rows else transpose(matrix, X.shape[0], n_threads)
    columns = matrix
    if by_columns and given_by_rows:
        columns = transpose(matrix, X.shape[1], n_threads)
    return Problem(
        rows=rows,
        columns=columns,
        labels=labels,
        n_columns=X.shape[1],
        intercept=intercept,
        bound=bound,
        radius=radius,
        unit=gradient_unit(bound),
        margin_unit=margin_unit(bound, n_steps),
        n_steps=n_steps,
    )
