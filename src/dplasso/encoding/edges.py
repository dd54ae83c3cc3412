"""Edges of bins by public rules."""

from collections.abc import Mapping
from typing import Any

import numpy as np

_MOST_BINS = 1 << 16


def equal_edges(low: float, high: float, bins: int) -> tuple[float, ...]:
    """Return the edges of `bins` bins of equal width from `low` to `high`, both public."""
    _check_range(low, high, bins)
    return tuple(np.linspace(low, high, bins + 1).tolist())


def log_edges(low: float, high: float, bins: int) -> tuple[float, ...]:
    """Return the edges of `bins` bins of equal ratio from `low` > 0 to `high`, both public."""
    _check_range(low, high, bins)
    if low <= 0:
        raise ValueError(f"logarithmic bins begin above 0, got {low}")
    return tuple(np.geomspace(low, high, bins + 1).tolist())


def checked_edges(column: str, given: Any) -> tuple[float, ...]:
    """Return edges from a list of them, or from the mapping that says how to make them."""
    if isinstance(given, Mapping):
        spacing = given.get("spacing", "equal")
        if set(given) - {"spacing"} != {"low", "high", "bins"} or spacing not in ("equal", "log"):
            raise ValueError(
                f"the edges of column {column!r} are a list, or low, high, bins and a spacing that "
                'is "equal" or "log"'
            )
        make = log_edges if spacing == "log" else equal_edges
        given = make(given["low"], given["high"], given["bins"])
    try:
        edges = tuple(float(edge) for edge in given)
    except (TypeError, ValueError):
        edges = ()
    if not edges or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        raise ValueError(
            f"the edges of column {column!r} must be finite, ascending numbers, at least one"
        )
    return edges


def _check_range(low: float, high: float, bins: int) -> None:
    finite = isinstance(low, int | float) and isinstance(high, int | float) and low < high
    if not finite or type(bins) is not int or not 1 <= bins <= _MOST_BINS:
        raise ValueError(
            f"1 to {_MOST_BINS:,} bins go from low to a larger high, got {bins!r} from {low!r} to "
            f"{high!r}"
        )
