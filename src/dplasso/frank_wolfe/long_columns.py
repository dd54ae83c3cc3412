"""Columns whose gradients can leave the lowest level of a selection structure.

A record adds at most ``2^b`` units to a column gradient, so the gradient of a column of n entries
stays within ``n 2^b``. If that is inside the lowest level, the structure needs the gradient only
when the column is about to be drawn. It is then computed from the column's few entries. In text,
nearly all columns and half of all entries are of this kind. Results do not depend on the choice.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import Units, sums_of_columns
from dplasso.frank_wolfe.gradient import contributions
from dplasso.matrix.compressed import Compressed, Make, clip_all
from dplasso.matrix.orientations import Design, column_span, refuse_damage
from dplasso.matrix.unit_rows import take_columns
from dplasso.runtime.threads import Threads

# Short columns are left out only if they hold at least this part of all entries.
_WORTH = 0.1


class LongColumns(NamedTuple):
    """The long columns of a design, their numbers, and which of all D columns they are."""

    columns: Compressed
    numbers: NDArray[np.int64]
    is_long: NDArray[np.bool_]

    def gradients(
        self, units: Units, residuals: NDArray[np.float64], threads: Threads
    ) -> NDArray[np.int64]:
        """Return their gradients, output after output, for residuals of shape (K, N)."""
        gradients = np.empty((len(residuals), self.numbers.size), dtype=np.int64)
        for residual, alpha in zip(residuals, gradients, strict=True):
            sums_of_columns(self.columns, units, residual, threads, alpha)
        return gradients.ravel()

    def coordinates(self, n_outputs: int) -> NDArray[np.int64]:
        """Return their coordinates in all outputs, in the order of `gradients`."""
        starts = np.arange(n_outputs)[:, np.newaxis] * self.is_long.size
        return (starts + self.numbers).ravel()


def long_columns(
    design: Design, fewest: int, threads: Threads, make: Make = np.empty
) -> LongColumns | None:
    """Copy the columns of at least `fewest` entries; return None if few entries would be left out.

    Copied columns lie together: columns far apart are read three times as slowly.
    """
    lengths = np.diff(design.columns.indptr)
    numbers = np.flatnonzero(lengths >= fewest)
    if lengths[numbers].sum() > (1.0 - _WORTH) * lengths.sum():
        return None
    # Row numbers of two bytes are read faster.
    kind = np.uint16 if design.n_rows <= 2**16 else design.columns.indices.dtype
    chosen = take_columns(design.columns, numbers, kind, threads, make)
    is_long = np.zeros(design.n_columns, dtype=np.bool_)
    is_long[numbers] = True
    return LongColumns(chosen, numbers, is_long)


def gradient_of(
    design: Design, j: int, units: Units, residuals: NDArray[np.float64], output: int
) -> int:
    """Return the gradient of one column, for residuals of shape (N, K)."""
    (indices, values, constant), begin, end = column_span(design, j)
    rows, (bound, unit, limit) = indices[begin:end], units
    # The store may have changed on the disk since it was checked.
    if rows.size and not 0 <= rows.min() <= rows.max() < len(residuals):
        refuse_damage()
    entries = (
        clip_all(values[begin:end], bound) if values.size else min(max(constant, -bound), bound)
    )
    gradient: int = contributions(residuals[rows, output] * unit, entries, limit).sum().item()
    return gradient
