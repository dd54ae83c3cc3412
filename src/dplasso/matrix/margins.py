"""Entries clipped, as they were in training, for the margins of rows."""

import numpy as np

from dplasso.matrix.compressed import Compressed


def clipped(matrix: Compressed, bound: float) -> Compressed:
    """Return a copy of a matrix with its entries clipped to [-bound, bound]."""
    return matrix._replace(
        values=np.clip(matrix.values, -bound, bound),
        constant=float(np.clip(matrix.constant, -bound, bound)),
    )
