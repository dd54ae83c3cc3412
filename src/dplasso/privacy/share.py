"""The one conversion by which a float becomes part of an integer statistic (docs/architecture.md).

Noise is made for a bound on a record's share. It has to hold whatever the float was: margins that
overflow, or a NaN out of ``0 * inf``. So the bound is enforced where the number becomes an integer,
and nowhere else does one become an integer.
"""

import numpy as np
from numpy.typing import NDArray

from dplasso.matrix.compressed import clip, clip_all
from dplasso.runtime.compilation import kernel


@kernel
def share(value, limit):
    """Return a record's share within [-limit, limit], rounded towards zero; NaN gives 0."""
    return np.int64(clip(value, limit))


def shares(values: NDArray[np.float64], limit: float) -> NDArray[np.int64]:
    """Return the shares of many records, an array of any shape, as `share` does one by one."""
    integers: NDArray[np.int64] = clip_all(values, limit).astype(np.int64)
    return integers
