"""Weights of records: what each counts, in parts of a public bound."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.errors import DataError
from dplasso.privacy.cautions import FOR_THE_CURATOR, warn_once


def checked_weights(
    sample_weight: ArrayLike, n_rows: int, bound: float | None
) -> NDArray[np.float64]:
    """Divide weights by the bound, and clip them to 1, which a warning tells the curator.

    `bound`: public; None in a fit without privacy, where the largest weight is the scale.

    Raises DataError if there is not one finite weight of at least 0 for each row, or none above 0.
    """
    try:
        weights: NDArray[Any] = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError("`sample_weight` must hold finite numbers only") from None
    if weights.shape != (n_rows,):
        raise DataError(
            f"`sample_weight` has the shape {weights.shape}; one weight for each of {n_rows:,} "
            "rows is needed"
        )
    if not np.isfinite(weights).all() or (weights < 0.0).any():
        raise DataError(
            "`sample_weight` holds NaN, infinity or a negative number; weights must be finite and "
            "at least 0"
        )
    if not weights.any():
        raise DataError(
            "`sample_weight` is zero for every row; at least one weight must be positive"
        )
    largest = float(weights.max()) if bound is None else bound
    if (weights > largest).any():
        warn_once(
            f"sample_weight holds weights above weight_bound={largest:g}, which were clipped to "
            "it: no row of a private fit counts for more than one record. Pass a larger "
            f"weight_bound that is public, or smaller weights. {FOR_THE_CURATOR}",
            UserWarning,
            stacklevel=6,
        )
    parts: NDArray[np.float64] = np.minimum(weights, largest) / largest
    return parts
