"""All pairs of columns at their coarsest level; the fit chooses which of them enter."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dplasso.encoding.contract import Coded, CodedOf, Codes, Part, Slot, TableColumns
from dplasso.encoding.hashed import hash_codes

_MOST_COLUMNS = 32
# A column with more codes than the first number is hashed to 2^bits, so that noise does not hide
# its pairs.
_MOST_CODES, _HASH_BITS = 64, 4


@dataclass(frozen=True)
class Pairs(Part):
    """One feature for each combination of the codes of two columns, for every pair of columns.

    `columns`: columns that exactly one coded part encodes; all of those if empty.
    """

    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        count = len(set(self.columns))
        if count != len(self.columns) or count == 1 or count > _MOST_COLUMNS:
            raise ValueError(f"columns of pairs must be 2 to {_MOST_COLUMNS} different ones")

    def among(self, parts: Sequence[Part]) -> "Pairs":
        """Return the pairs of their own columns, or else of all that one coded part encodes."""
        if self.columns:
            return self
        coded = [column for part in parts if isinstance(part, Coded) for column in part.columns]
        columns = [column for column in coded if coded.count(column) == 1]
        if len(columns) < 2:
            raise ValueError("pairs need two columns that one part with categories or bins encodes")
        return replace(self, columns=tuple(columns))

    def blocks(self, coded: CodedOf) -> list[tuple[int, int, int]]:
        """Return the first feature of each pair, and the numbers of codes of its columns."""
        codes = [coded(column).codes for column in self.columns]
        sizes = [size if size <= _MOST_CODES else 1 << _HASH_BITS for size in codes]
        blocks, first = [], 0
        for left, right in combinations(sizes, 2):
            blocks.append((first, left, right))
            first += left * right
        return blocks

    def places(self, coded: CodedOf, features: Codes) -> list[int]:
        """Return the pair of each feature, in the order of `blocks`."""
        firsts = [first for first, _, _ in self.blocks(coded)]
        places: list[int] = (np.searchsorted(firsts, features, "right") - 1).tolist()
        return places

    def columns_of(self, coded: CodedOf, feature: int) -> tuple[str, ...]:
        (place,) = self.places(coded, np.array([feature]))
        return list(combinations(self.columns, 2))[place]

    def width(self, coded: CodedOf) -> int:
        first, left, right = self.blocks(coded)[-1]
        return first + left * right

    def slots(self, coded: CodedOf) -> list[tuple[int, int, float]]:
        return [(first, first + left * right, 1.0) for first, left, right in self.blocks(coded)]

    def names(self, coded: CodedOf, columns: Codes) -> list[str]:
        blocks, pairs = self.blocks(coded), list(combinations(self.columns, 2))
        names = []
        for place, column in zip(self.places(coded, columns), columns.tolist(), strict=True):
            first, _, size = blocks[place]
            codes = divmod(column - first, size)
            shown = zip(pairs[place], codes, strict=True)
            names.append(" & ".join(_name(coded(taken), taken, code) for taken, code in shown))
        return names

    def entries(self, coded: CodedOf, table: TableColumns, offset: int) -> Iterator[Slot]:
        codes = [_coarse(coded(column), table, column) for column in self.columns]
        pairs = zip(self.blocks(coded), combinations(codes, 2), strict=True)
        for (first, _, size), (left, right) in pairs:
            none = (left < 0) | (right < 0)
            yield Slot.of(np.where(none, -1, left * size + right), offset + first)


def _coarse(part: Coded, table: TableColumns, column: str) -> NDArray[np.int64]:
    """Return each record's code in a pair, -1 for none."""
    codes = table.codes(part, column)
    if part.codes <= _MOST_CODES:
        return codes
    return np.where(codes < 0, -1, hash_codes(np.maximum(codes, 0), _HASH_BITS))


def _name(part: Coded, column: str, code: int) -> str:
    if part.codes > _MOST_CODES:
        return f"{column}[{code + 1} of {1 << _HASH_BITS}]"
    return part.code_names(np.array([code]), column)[0]
