"""Weights of records: what each counts, in parts of a public bound."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.errors import DataError


def checked_weights(
    sample_weight: ArrayLike, n_rows: int, bound: float | None, *, private: bool
) -> NDArray[np.float64]:
    """Scale weights to [0, 1], those beyond the bound clipped to it.

    Without privacy and bound the largest weight is the scale.

    Raises DataError if there is not one finite weight of at least 0 for each row, or none above 0;
    ValueError if a private fit has no bound.
    """
    if bound is None and private:
        raise ValueError(
            "sample_weight needs weight_bound, a public bound on the weights: larger ones are "
            "clipped to it, and the noise covers it"
        )
    try:
        weights: NDArray[Any] = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("sample_weight holds something that is not a number") from None
    if weights.shape != (n_rows,):
        raise DataError(
            f"sample_weight has the shape {weights.shape}; one weight for each of {n_rows:,} rows "
            "is needed"
        )
    if not np.isfinite(weights).all() or (weights < 0.0).any():
        raise DataError(
            "sample_weight holds NaN, infinity or a negative number; weights must be finite and "
            "at least 0"
        )
    if not weights.any():
        raise DataError("sample_weight is zero for every row; at least one row must count")
    largest = float(weights.max()) if bound is None else bound
    parts: NDArray[np.float64] = np.minimum(weights, largest) / largest
    return parts
