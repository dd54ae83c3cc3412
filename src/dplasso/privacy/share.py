"""The one conversion by which a float becomes part of an integer statistic (docs/architecture.md).

Statistics are exact int64 sums of records' shares, and noise is made for a bound on a share. The
bound has to hold whatever the floats were that a share was computed from: margins that overflow, a
NaN out of ``0 * inf``, residuals of rows that nobody expected. So the bound is enforced here, where
the number becomes an integer, and nowhere else does one become an integer.
"""

import numpy as np
from numpy.typing import NDArray

from dplasso.matrix.compressed import clip, clip_all
from dplasso.runtime.compilation import kernel


@kernel
def share(value, limit):
    """Return a record's share as an integer within [-limit, limit].

    `value`: in fixed-point units, rounded towards zero: no share grows. NaN gives 0.
    `limit`: the bound that the statistic's sensitivity is computed from, in the same units.
    """
    return np.int64(clip(value, limit))


def shares(values: NDArray[np.float64], limit: float) -> NDArray[np.int64]:
    """Return the shares of many records, an array of any shape, as `share` does one by one."""
    integers: NDArray[np.int64] = clip_all(values, limit).astype(np.int64)
    return integers
