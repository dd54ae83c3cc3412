"""The parts of a schema: public rules that encode table columns as features.

Each part encodes one or more columns of a table as a block of features. It declares how to encode
missing, unknown and out-of-range values, so no record decides which features exist.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from dplasso.data.labels import TRUTH
from dplasso.data.table_batches import alike
from dplasso.encoding.contract import (
    Coded,
    CodedOf,
    Codes,
    OfOneColumn,
    Part,
    TableColumns,
    indicators,
    interval_names,
    number_in,
)
from dplasso.encoding.hashed import check_hash_bits, hash_codes
from dplasso.errors import DataError

_MOST_COLUMNS = 2**40
# Columns that make pairs. A column with more codes than the second number is hashed to 2^bits in
# pairs, so that noise does not hide them.
_MOST_PAIRED, _MOST_CODES, _HASH_BITS = 32, 64, 4

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NAMED = {"month": _MONTHS, "weekday": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")}
_TAKEN = ("year", "month", "weekday")
_TRIED_DATE = datetime(2001, 2, 13, 4, 5, 6)


@dataclass(frozen=True)
class Categories(OfOneColumn, Coded):
    """One feature for each declared category.

    `column`: column of the table: words, numbers or bools.
    `categories`: all strings, all numbers or all bools, in the order of their features.
    `unknown`, `missing`: how to encode a value that is not in the list, or missing: "column" for a
    feature of its own, "ignore" for no entry, or "error".
    """

    categories: tuple[Any, ...]
    unknown: str = "column"
    missing: str = "column"

    def __post_init__(self) -> None:
        values: Any = self.categories
        about = f"the categories of column {self.column!r}"
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise ValueError(f"{about} must be a list of at least one value")
        kinds = {type(category) for category in values}
        if not (kinds <= {int, float} or len(kinds) == 1) or not kinds <= {str, bool, int, float}:
            raise ValueError(f"{about} must be all strings, all numbers or all bools")
        if kinds <= {int, float} and not np.isfinite([float(number) for number in values]).all():
            raise ValueError(f"{about} must be finite numbers")
        if kinds == {str}:
            values = [category.strip() for category in values]
        object.__setattr__(self, "categories", tuple(values))
        if len(set(values)) != len(values):
            raise ValueError(f"{about} must be different values")
        if "" in values:
            raise ValueError(f"{about} must not hold an empty string, which is a missing value")
        self._check_words("unknown", "missing")

    @property
    def codes(self) -> int:
        return len(self.categories) + (self.unknown == "column") + self.own_missing

    def values_of(self, column: str) -> list[str]:
        shown = [
            f"{column}={alike(category) if isinstance(category, bool) else category}"
            for category in self.categories
        ]
        return shown + [f"{column} (unknown)"] * (self.unknown == "column")

    def codes_of(self, table: TableColumns, column: str) -> Codes:
        words, codes = table.words(column, self.missing, self.categories)
        key = _COMPARED_AS[type(self.categories[0])]
        if sorted(map(alike, self.categories)) == sorted(TRUTH):
            # A text file has words where a data frame has bools.
            key = alike
        places = {key(category): place for place, category in enumerate(self.categories)}
        unknown = len(places) if self.unknown == "column" else -1
        word_codes = np.array([places.get(key(word), unknown) for word in words], np.int64)
        if self.unknown == "error":
            strange = (codes >= 0) & (word_codes[codes] < 0) if word_codes.size else codes >= 0
            if strange.any():
                place = table.where(column, int(np.argmax(strange)))
                raise DataError(f"{place}: the value is not one of the declared categories")
        return self._looked_up(word_codes, codes)


@dataclass(frozen=True)
class Bins(OfOneColumn, Coded):
    """One feature for each bin of a number; the outer bins are open-ended.

    `column`: column of numbers, or of text that holds numbers.
    `edges`: ascending and public. A bin includes its lower edge.
    `missing`: how to encode a missing value.
    """

    edges: tuple[float, ...]
    missing: str = "column"

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", _checked_edges(self.column, self.edges))
        self._check_words("missing")

    @property
    def codes(self) -> int:
        return len(self.edges) + 1 + self.own_missing

    def values_of(self, column: str) -> list[str]:
        return interval_names(column, self.edges)

    def codes_of(self, table: TableColumns, column: str) -> Codes:
        numbers = table.numbers(column, self.missing)
        codes = np.searchsorted(self.edges, numbers, side="right").astype(np.int64)
        codes[np.isnan(numbers)] = self.missing_code
        return codes


@dataclass(frozen=True)
class Number(OfOneColumn, Part):
    """One numeric feature: ``clip((x - center) / bound, -1, 1)``.

    `column`: column of numbers, or of text that holds numbers.
    `bound`: public; numbers further than this from `center` are clipped.
    `center`: public; a number equal to it has no entry.
    `missing`: how to encode a missing value.
    """

    bound: float
    center: float = 0.0
    missing: str = "column"

    def __post_init__(self) -> None:
        for name in ("bound", "center"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"{name} of column {self.column!r} must be a number")
            object.__setattr__(self, name, float(value))
        if not (math.isfinite(self.center) and 0 < self.bound < math.inf):
            raise ValueError(f"the bound of column {self.column!r} must be finite and above 0")
        self._check_words("missing")

    def width(self, coded: CodedOf) -> int:
        return 1 + self.own_missing

    def names(self, coded: CodedOf, columns: Codes) -> list[str]:
        return [self.column + " (missing)" * column for column in columns.tolist()]

    def entries(self, coded: CodedOf, table: TableColumns) -> Iterator[csr_array]:
        numbers = table.numbers(self.column, self.missing)
        missing = np.isnan(numbers)
        with np.errstate(over="ignore"):
            scaled = np.clip((numbers - self.center) / self.bound, -1, 1)
        values = scaled.astype(np.float32)
        yield csr_array(np.where(missing, 0, values)[:, np.newaxis])
        if self.own_missing:
            yield indicators(np.where(missing, 0, -1), 1)


@dataclass(frozen=True)
class Cross(Part):
    """One feature for each combination of the codes of two or three table columns.

    `columns`: two or three columns, each encoded by exactly one coded part (`Categories`, `Bins`,
    `Levels`, `Date` or `Hashed`).
    `bits`: hash the combinations to ``2**bits`` features; None for one feature each.
    """

    columns: tuple[str, ...]
    bits: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if not 2 <= len(self.columns) <= 3 or len(set(self.columns)) != len(self.columns):
            raise ValueError(f"columns of a cross must be two or three, got {list(self.columns)!r}")
        if self.bits is not None:
            check_hash_bits(self.bits)

    def width(self, coded: CodedOf) -> int:
        codes = math.prod(coded(column).codes for column in self.columns)
        if codes > (_MOST_COLUMNS if self.bits is None else 2**62):
            cure = "set bits to hash them" if self.bits is None else "cross fewer or coarser parts"
            raise ValueError(
                f"the cross of {', '.join(self.columns)} has {codes:,} combinations; {cure}"
            )
        return codes if self.bits is None else 1 << self.bits

    def names(self, coded: CodedOf, columns: Codes) -> list[str]:
        if self.bits is not None:
            return [f"{'*'.join(self.columns)}[{column}]" for column in columns.tolist()]
        crossed = []
        for taken in reversed(self.columns):
            part = coded(taken)
            columns, codes = np.divmod(columns, part.codes)
            crossed.append(part.code_names(codes, taken))
        return [" & ".join(names) for names in zip(*reversed(crossed), strict=True)]

    def entries(self, coded: CodedOf, table: TableColumns) -> Iterator[csr_array]:
        combined, none = np.zeros(1, np.int64), np.zeros(1, np.bool_)
        for column in self.columns:
            part = coded(column)
            codes = table.codes(part, column)
            none = none | (codes < 0)
            combined = combined * part.codes + codes
        if self.bits is not None:
            combined = hash_codes(combined, self.bits)
        yield indicators(np.where(none, -1, combined), self.width(coded))


@dataclass(frozen=True)
class Pairs(Part):
    """One feature for each combination of the codes of two columns, for every pair of columns.

    `columns`: columns that exactly one coded part encodes; all of those if empty.
    """

    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        count = len(set(self.columns))
        if count != len(self.columns) or count == 1 or count > _MOST_PAIRED:
            raise ValueError(f"columns of pairs must be 2 to {_MOST_PAIRED} different ones")

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

    def entries(self, coded: CodedOf, table: TableColumns) -> Iterator[csr_array]:
        codes = [_coarse(coded(column), table, column) for column in self.columns]
        pairs = zip(self.blocks(coded), combinations(codes, 2), strict=True)
        for (_, n_left, n_right), (left, right) in pairs:
            none = (left < 0) | (right < 0)
            yield indicators(np.where(none, -1, left * n_right + right), n_left * n_right)


def _coarse(part: Coded, table: TableColumns, column: str) -> Codes:
    """Return each record's code in a pair, -1 for none."""
    codes = table.codes(part, column)
    if part.codes <= _MOST_CODES:
        return codes
    return np.where(codes < 0, -1, hash_codes(np.maximum(codes, 0), _HASH_BITS))


def _name(part: Coded, column: str, code: int) -> str:
    if part.codes > _MOST_CODES:
        return f"{column}[{code + 1} of {1 << _HASH_BITS}]"
    return part.code_names(np.array([code]), column)[0]


# The conversion before a declared category is compared with a value, by type of the categories.
_COMPARED_AS: dict[type, Callable[[Any], Any]] = {
    bool: alike, int: number_in, float: number_in, str: str
}  # fmt: skip


def _checked_edges(column: str, spec: Any) -> tuple[float, ...]:
    try:
        edges = tuple(float(edge) for edge in spec)
    except (TypeError, ValueError):
        edges = ()
    if not edges or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        raise ValueError(
            f"the edges of column {column!r} must be finite, ascending numbers, at least one"
        )
    return edges


@dataclass(frozen=True)
class Date(OfOneColumn, Coded):
    """One feature for each month or weekday, or for each public bin of years.

    `column`: column of dates or times, or of text that holds dates.
    `take`: "year", "month" or "weekday".
    `edges`: public edges of the bins of years, as in `Bins`.
    `format`: how to parse text, in the codes of `datetime.strptime`.
    `missing`: how to encode a missing date.
    """

    take: str
    edges: tuple[float, ...] = ()
    format: str = "%Y-%m-%d"
    missing: str = "column"

    def __post_init__(self) -> None:
        about = f"the date in column {self.column!r}"
        if self.take not in _TAKEN:
            raise ValueError(f"take of {about} must be one of {', '.join(_TAKEN)}: {self.take!r}")
        edges = () if self._names else _checked_edges(f"{self.take}({self.column})", self.edges)
        object.__setattr__(self, "edges", edges)
        try:
            read = datetime.strptime(_TRIED_DATE.strftime(self.format), self.format)
        except (TypeError, ValueError):
            read = None
        if read is None or read.date() != _TRIED_DATE.date():
            raise ValueError(f"{about}: format must contain year, month and day, such as %Y-%m-%d")
        self._check_words("missing")

    @property
    def _names(self) -> tuple[str, ...]:
        return _NAMED.get(self.take, ())

    @property
    def codes(self) -> int:
        return (len(self._names) or len(self.edges) + 1) + self.own_missing

    def code_names(self, codes: Codes, column: str) -> list[str]:
        return super().code_names(codes, f"{self.take}({column})")

    def values_of(self, column: str) -> list[str]:
        named = [f"{column}={name}" for name in self._names]
        return named or interval_names(column, self.edges)

    def codes_of(self, table: TableColumns, column: str) -> Codes:
        days: Any = table.dates(column, self.format, self.missing)
        missing = np.isnat(days)
        counted = np.where(missing, np.datetime64(0, "D"), days)
        if self.take == "year":
            numbers = counted.astype("M8[Y]").astype(np.int64) + 1970
        elif self.take == "month":
            numbers = counted.astype("M8[M]").astype(np.int64) % 12
        else:
            # The first day of 1970 was a Thursday.
            numbers = (counted.astype(np.int64) + 3) % 7
        if not self._names:
            numbers = np.searchsorted(self.edges, numbers, side="right")
        codes: Codes = np.where(missing, self.missing_code, numbers).astype(np.int64)
        return codes
