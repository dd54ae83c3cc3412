"""Columns in units of their own, for random trials, and units and centres that noise may release.

So few records as those of a trial say nothing of their columns. What follows from a release may be
anything, and no record may count otherwise for it.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent import magnitudes

# Sizes of columns and parts of their bounds: of few kinds, so that columns are alike too.
_SIZES = (-31, -20, 0, 1, 3, 31, int(magnitudes.HIDDEN))
_BOUNDS = (0.0, 0.0, 4.0, 4.0**9, 4.0**-12, 4.0**16)
_PARTS = (0.0, 0.5, -0.9, 1e-3)


def units_of_columns(rng: np.random.Generator, n_columns: int) -> NDArray[np.float64]:
    """Draw what the entries of each column are multiplied by."""
    return np.asarray(10.0 ** rng.integers(-9, 13, n_columns))


def in_units(
    entries: tuple[NDArray[np.int64], NDArray[np.float64]], units: NDArray[np.float64], kind: Any
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return a row whose columns have units, as far as a type holds its numbers."""
    columns, values = entries
    largest = float(np.finfo(kind).max)
    with np.errstate(over="ignore"):
        scaled = np.clip(values * units[columns], -largest, largest)
    return columns, np.asarray(scaled, dtype=kind).astype(np.float64)


def drawn_releases(
    rng_of: Callable[[str], np.random.Generator],
) -> Callable[[], AbstractContextManager[Any]]:
    """Return what lets every fit release units and centres that are drawn by `rng_of`."""

    def drawn(name: str, values: Sequence[float], dtype: Any, counts: Any) -> NDArray[Any]:
        return rng_of(name).choice(values, len(counts)).astype(dtype)

    def centres_of(sums: Any, scales: Any, *_: Any) -> NDArray[np.float64]:
        parts = drawn("centres", _PARTS, np.float64, sums)
        return np.divide(parts, scales, out=np.zeros_like(parts), where=scales > 0.0)

    return partial(
        patch.multiple,
        magnitudes,
        share_of=lambda *_: 0.02,
        sizes_of=lambda clear: drawn("sizes", _SIZES, np.int8, clear),
        bounds_of=lambda clear, *_: drawn("bounds", _BOUNDS, np.float64, clear),
        centres_of=centres_of,
        squares_of=lambda clear, *_: drawn("squares", (1e-12, 1.0, 1e9), np.float64, clear),
    )
