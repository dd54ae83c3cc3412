"""Numbers in bins at several resolutions at once.

A linear model on coarse and fine bins behaves like a smoother: the fit learns the coarse bins
first, and the fine bins correct them as far as the noise allows.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.encoding.contract import (
    Coded,
    CodedOf,
    Codes,
    OfOneColumn,
    TableColumns,
    indicators,
    interval_names,
)

_MOST_BINS = 1 << 12
_SPACINGS = ("equal", "signed-log")
# The signed logarithm is nearly linear for numbers below this fraction of the range.
_LINEAR_PART = 1e-5


@dataclass(frozen=True)
class Levels(OfOneColumn, Coded):
    """Bins of a number at several resolutions: one feature for each bin of each level.

    `column`: column of numbers, or of text that holds numbers.
    `low`, `high`: the public range; the first and last bins include all numbers beyond it.
    `levels`: number of bins of each level, ascending; each a multiple of the previous one.
    `spacing`: "equal", or "signed-log" for bins that widen with the distance from 0.
    `missing`: how to encode a missing value.
    `linear`: add one feature that rises in equal steps from -1 to 1 over the finest bins.

    A cross uses the bins of the coarsest level.
    """

    low: float
    high: float
    levels: tuple[int, ...] = (4, 16, 64)
    spacing: str = "equal"
    missing: str = "column"
    linear: bool = False

    def __post_init__(self) -> None:
        about = f"the levels of column {self.column!r}"
        ends = self.low, self.high
        numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
        if not numbers or not np.isfinite(ends).all() or not self.low < self.high:
            raise ValueError(f"{about} need finite numbers low and high, with low below high")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        levels = self.levels if isinstance(self.levels, tuple | list) else ()
        object.__setattr__(self, "levels", tuple(levels))
        whole = all(type(bins) is int and 2 <= bins <= _MOST_BINS for bins in self.levels)
        if not whole or not self.levels or any(b <= a or b % a for a, b in pairwise(self.levels)):
            raise ValueError(
                f"{about} must be numbers of bins from 2 to {_MOST_BINS:,}, each a multiple of the "
                "previous one, such as [4, 16, 64]"
            )
        if self.spacing not in _SPACINGS:
            raise ValueError(f"the spacing of {about} must be one of {', '.join(_SPACINGS)}")
        if not isinstance(self.linear, bool):
            raise ValueError(f"linear of {about} must be true or false")
        self._check_words("missing")

    @property
    def scores(self) -> NDArray[np.float64]:
        """The linear feature in each of the finest bins."""
        return (2.0 * np.arange(self.levels[-1]) + 1.0) / self.levels[-1] - 1.0

    def edges(self, level: int) -> NDArray[np.float64]:
        """Return the edges of one level, from `low` to `high`; finer levels share them."""
        finest, ends = self.levels[-1], (self.low, self.high)
        if self.spacing == "equal":
            edges = np.linspace(self.low, self.high, finest + 1)
        else:
            unit = _LINEAR_PART * max(abs(self.low), abs(self.high))
            low, high = (math.copysign(math.log1p(abs(end) / unit), end) for end in ends)
            steps = np.linspace(low, high, finest + 1)
            edges = np.sign(steps) * np.expm1(np.abs(steps)) * unit
        return edges[:: finest // level]

    @property
    def starts(self) -> list[int]:
        """The first feature of each level, and the end of the last level."""
        return [0, *np.cumsum(self.levels).tolist()]

    @property
    def codes(self) -> int:
        return self.levels[0] + self.own_missing

    @property
    def one_hot(self) -> bool:
        return len(self.levels) == 1 and not self.linear

    def width(self, coded: CodedOf) -> int:
        return self.starts[-1] + self.linear + self.own_missing

    def names(self, coded: CodedOf, columns: Codes) -> list[str]:
        shown = [name for level in self.levels for name in self._names(level)]
        shown += [self.column] * self.linear
        return [[*shown, f"{self.column} (missing)"][column] for column in columns.tolist()]

    def values_of(self, column: str) -> list[str]:
        return self._names(self.levels[0])

    def _names(self, level: int) -> list[str]:
        return interval_names(self.column, self.edges(level)[1:-1])

    def slots(self, coded: CodedOf) -> list[tuple[int, int, float]]:
        pairs = zip(self.starts, self.levels, strict=False)
        levels = [(start, start + level, 1.0) for start, level in pairs]
        end = self.starts[-1]
        # A third is the mean square of the scores; numbers near the ends are longer.
        return [*levels, (end, end + 1, 0.5)] if self.linear else levels

    def _finest(self, table: TableColumns) -> Codes:
        """Return each record's bin at the finest level, -1 for a missing value."""
        numbers = table.numbers(self.column, self.missing)
        inner = self.edges(self.levels[-1])[1:-1]
        bins = np.searchsorted(inner, numbers, side="right").astype(np.int64)
        bins[np.isnan(numbers)] = -1
        return bins

    def codes_of(self, table: TableColumns, column: str) -> Codes:
        finest = self._finest(table)
        coarse = finest // (self.levels[-1] // self.levels[0])
        codes: Codes = np.where(finest < 0, self.missing_code, coarse)
        return codes

    def entries(self, coded: CodedOf, table: TableColumns) -> Iterator[csr_array]:
        finest = self._finest(table)
        for level in self.levels:
            # The floor of -1 divided is -1.
            yield indicators(finest // (self.levels[-1] // level), level)
        if self.linear:
            scores = np.where(finest < 0, 0.0, self.scores[finest]).astype(np.float32)
            yield csr_array(scores[:, np.newaxis])
        if self.own_missing:
            yield indicators(np.where(finest < 0, 0, -1), 1)
