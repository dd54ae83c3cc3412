"""Numbers in bins on several resolutions at once.

A linear model on coarse and fine bins of one number behaves like a smoother whose roughness follows
the budget: coarse bins are learnt first, fine ones correct them as far as the noise allows. How
many levels enter a fit follows from public facts and the noisy count (`dplasso.phases.count`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dplasso.encoding.contract import Coded, CodedOf, Codes, OfOneColumn, Slot, TableColumns

_MOST_BINS = 1 << 12
_SPACINGS = ("equal", "signed-log")
# Of a signed logarithm, numbers below this part of the range are nearly linear.
_LINEAR_PART = 1e-5


@dataclass(frozen=True)
class Levels(OfOneColumn, Coded):
    """Bins of a number on several resolutions at once: one column for each bin of each level.

    `column`: column of numbers, or of words that are numbers.
    `low`, `high`: the range, public; a number beyond it belongs to the bin at its end.
    `levels`: bins of each level, ascending; each a multiple of the one before.
    `spacing`: "equal" steps, or "signed-log": steps that grow with the number's size, in both
    directions from 0.
    `missing`: what a missing value becomes.

    A cross takes the bins of the coarsest level.
    """

    low: float
    high: float
    levels: tuple[int, ...] = (4, 16, 64)
    spacing: str = "equal"
    missing: str = "column"

    def __post_init__(self) -> None:
        about = f"the levels of column {self.column!r}"
        ends = self.low, self.high
        numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
        if not numbers or not np.isfinite(ends).all() or not self.low < self.high:
            raise ValueError(f"{about} go from a low to a larger high, both finite numbers")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        given = self.levels if isinstance(self.levels, tuple | list) else ()
        object.__setattr__(self, "levels", tuple(given))
        whole = all(type(bins) is int and 2 <= bins <= _MOST_BINS for bins in self.levels)
        if not whole or not self.levels or any(b <= a or b % a for a, b in pairwise(self.levels)):
            raise ValueError(
                f"{about} are numbers of bins from 2 to {_MOST_BINS:,}, each a multiple of the one "
                "before, as [4, 16, 64]"
            )
        if self.spacing not in _SPACINGS:
            raise ValueError(f"the spacing of {about} must be one of {', '.join(_SPACINGS)}")
        self._check_words("missing")

    def edges(self, level: int) -> NDArray[np.float64]:
        """Return the edges of one level, from `low` to `high`; all are edges of finer levels."""
        finest, ends = self.levels[-1], (self.low, self.high)
        if self.spacing == "equal":
            found = np.linspace(self.low, self.high, finest + 1)
        else:
            unit = _LINEAR_PART * max(abs(self.low), abs(self.high))
            low, high = (math.copysign(math.log1p(abs(end) / unit), end) for end in ends)
            steps = np.linspace(low, high, finest + 1)
            found = np.sign(steps) * np.expm1(np.abs(steps)) * unit
        return found[:: finest // level]

    @property
    def starts(self) -> list[int]:
        """The first column of each level, and the one after the last."""
        return [0, *np.cumsum(self.levels).tolist()]

    @property
    def codes(self) -> int:
        return self.levels[0] + self.own_missing

    @property
    def one_hot(self) -> bool:
        return len(self.levels) == 1

    def width(self, coded: CodedOf) -> int:
        return self.starts[-1] + self.own_missing

    def names(self, coded: CodedOf, columns: Codes) -> list[str]:
        shown = [name for level in self.levels for name in self._names(level)]
        return [[*shown, f"{self.column} (missing)"][column] for column in columns.tolist()]

    def code_names(self, codes: Codes, column: str) -> list[str]:
        shown = [*self._names(self.levels[0]), f"{self.column} (missing)"]
        return [shown[code] for code in codes.tolist()]

    def _names(self, level: int) -> list[str]:
        inner = [f"{edge:g}" for edge in self.edges(level)[1:-1]]
        between = [f"{a}<={self.column}<{b}" for a, b in pairwise(inner)]
        return [f"{self.column}<{inner[0]}", *between, f"{self.column}>={inner[-1]}"]

    def slots(self, coded: CodedOf) -> list[tuple[int, int, float]]:
        pairs = zip(self.starts, self.levels, strict=False)
        return [(start, start + level, 1.0) for start, level in pairs]

    def described(self) -> str:
        steps = "" if self.spacing == "equal" else " in steps that grow"
        return f"{', '.join(map(str, self.levels))} bins from {self.low:g} to {self.high:g}{steps}"

    def _finest(self, table: TableColumns) -> Codes:
        """Return each record's bin of the finest level, -1 for a missing value."""
        numbers = table.numbers(self.column, self.missing)
        inner = self.edges(self.levels[-1])[1:-1]
        found = np.searchsorted(inner, numbers, side="right").astype(np.int64)
        found[np.isnan(numbers)] = -1
        return found

    def codes_of(self, table: TableColumns, column: str) -> Codes:
        finest = self._finest(table)
        coarse = finest // (self.levels[-1] // self.levels[0])
        found: Codes = np.where(finest < 0, self.missing_code, coarse)
        return found

    def entries(self, coded: CodedOf, table: TableColumns, offset: int) -> Iterator[Slot]:
        finest = self._finest(table)
        for level, start in zip(self.levels, self.starts, strict=False):
            codes = np.where(finest < 0, -1, finest // (self.levels[-1] // level))
            yield Slot.of(codes, offset + start)
        if self.own_missing:
            yield Slot(np.where(finest < 0, offset + self.starts[-1], -1))
