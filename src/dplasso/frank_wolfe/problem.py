"""The training problem as arrays the kernels read."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.data.matrix import Compressed


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
