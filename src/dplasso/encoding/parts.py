"""The parts of a schema: what a record's columns become, each kind by public rules.

Each part takes one or more columns of a table and makes a block of columns. What is missing,
unknown or out of range has a place of its own, so no record decides which columns there are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.encoding.hashing import check_hash_bits, hash_names

_MOST_BINS = 1 << 16
_MISSING = ("column", "ignore", "error")


@dataclass(frozen=True)
class Categories:
    """One column for each declared category.

    `column`: column of the table: words, numbers or bools.
    `categories`: all strings, all numbers or all bools, in the order in which they become columns.
    `unknown`, `missing`: what a value outside the list, and a missing one, becomes: a column of
    its own, no entry, or an error for the curator.
    """

    column: str
    categories: tuple[Any, ...]
    unknown: str = "column"
    missing: str = "column"

    def __post_init__(self) -> None:
        given: Any = self.categories
        about = f"the categories of column {self.column!r}"
        if isinstance(given, str) or not isinstance(given, Sequence) or not given:
            raise ValueError(f"{about} must be a list of at least one")
        object.__setattr__(self, "categories", tuple(given))
        kinds = {type(category) for category in given}
        if not (kinds <= {int, float} or len(kinds) == 1) or not kinds <= {str, bool, int, float}:
            raise ValueError(f"{about} must be all strings, all numbers or all bools")
        if kinds <= {int, float} and not np.isfinite([float(number) for number in given]).all():
            raise ValueError(f"{about} must be finite numbers")
        if len(set(given)) != len(given):
            raise ValueError(f"{about} repeat one")
        if "" in given:
            raise ValueError(f"{about} hold an empty string, which is a missing value")
        _check_word("unknown", self.unknown)
        _check_word("missing", self.missing)

    @property
    def codes(self) -> int:
        """Number of values that one record can have."""
        return len(self.categories) + (self.unknown == "column") + (self.missing == "column")

    width = codes

    def name(self, code: int) -> str:
        """Return the name of a column of this block."""
        if code < len(self.categories):
            return f"{self.column}={_shown(self.categories[code])}"
        unknown = self.unknown == "column" and code == len(self.categories)
        return f"{self.column} ({'unknown' if unknown else 'missing'})"


@dataclass(frozen=True)
class Bins:
    """One column for each bin of a number: below the first edge, between two, from the last on.

    `column`: column of numbers, or of words that are numbers.
    `edges`: ascending and public (`equal_edges`, `log_edges`). A number that is an edge belongs to
    the bin above it.
    `cumulative`: one column ``x >= edge`` for each edge instead, of which a record has all that
    hold.
    `missing`: as in `Categories`.
    """

    column: str
    edges: tuple[float, ...]
    cumulative: bool = False
    missing: str = "column"

    def __post_init__(self) -> None:
        given = self.edges
        if isinstance(given, Mapping):
            given = _edges_from(self.column, given)
        try:
            edges = tuple(float(edge) for edge in given)
        except (TypeError, ValueError):
            edges = ()
        if not edges or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
            raise ValueError(
                f"the edges of column {self.column!r} must be finite, ascending numbers, "
                "at least one"
            )
        object.__setattr__(self, "edges", edges)
        _check_bool("cumulative", self.cumulative)
        _check_word("missing", self.missing)

    @property
    def codes(self) -> int:
        """Number of values that one record can have."""
        return len(self.edges) + 1 + (self.missing == "column")

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.codes - self.cumulative

    def name(self, column: int) -> str:
        """Return the name of a column of this block."""
        return self.code_name(column + self.cumulative, self.cumulative)

    def code_name(self, code: int, cumulative: bool = False) -> str:
        """Return the name of a bin."""
        last = len(self.edges)
        if code > last:
            return f"{self.column} (missing)"
        if code == 0:
            return f"{self.column}<{self.edges[0]:g}"
        lower = f"{self.edges[code - 1]:g}"
        if cumulative or code == last:
            return f"{self.column}>={lower}"
        return f"{lower}<={self.column}<{self.edges[code]:g}"


@dataclass(frozen=True)
class Number:
    """One column with a number: ``clip((x - center) / bound, -1, 1)``.

    `column`: column of numbers, or of words that are numbers.
    `bound`: public; what lies further from `center` is clipped to it.
    `center`: public; a number equal to it has no entry.
    `missing`: as in `Categories`.
    """

    column: str
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
        _check_word("missing", self.missing)

    @property
    def width(self) -> int:
        """Number of columns."""
        return 1 + (self.missing == "column")

    def name(self, column: int) -> str:
        """Return the name of a column of this block."""
        return f"{self.column} (missing)" if column else self.column


@dataclass(frozen=True)
class Hashed:
    """Categories hashed to ``2**bits`` columns that the table's `columns` share.

    `columns`: columns of the table; ``column=value`` is hashed.
    `bits`: 1 to 30. Two values that fall into one column are one.
    `missing`: as in `Categories`; each of the table's columns has its own.
    `words`: public values, by which columns are named: nothing else.
    """

    columns: tuple[str, ...]
    bits: int = 16
    missing: str = "column"
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_hash_bits(self.bits)
        columns: Any = self.columns
        given = (columns,) if isinstance(columns, str) else tuple(columns)
        object.__setattr__(self, "columns", given)
        if not given or len(set(given)) != len(given) or not all(isinstance(c, str) for c in given):
            raise ValueError("name at least one column to hash, each once")
        object.__setattr__(self, "words", _checked_words(self.words))
        _check_word("missing", self.missing)

    @property
    def codes(self) -> int:
        """Number of values that one record can have in one of the table's columns."""
        return (1 << self.bits) + (self.missing == "column")

    @property
    def width(self) -> int:
        """Number of columns."""
        return (1 << self.bits) + len(self.columns) * (self.missing == "column")

    def name(self, column: int) -> str:
        """Return the name of a column of this block."""
        if column >= 1 << self.bits:
            return f"{self.columns[column - (1 << self.bits)]} (missing)"
        return f"{','.join(self.columns)}[{column}]"

    def word_names(self) -> dict[int, str]:
        """Return the names of the columns that the public words are hashed to."""
        named = [f"{name}={word}" for name in self.columns for word in self.words]
        return _by_column(named, hash_names(named, self.bits))


@dataclass(frozen=True)
class Text:
    """Runs of words hashed to ``2**bits`` columns, as scikit-learn's `HashingVectorizer` does.

    `column`: column of texts.
    `bits`: 1 to 30.
    `ngrams`: shortest and longest run of words that is a feature.
    `binary`: 1 for a run that occurs; otherwise how often it does.
    `lowercase`: whether capitals are lowered first.
    `missing`: as in `Categories`. An empty text counts as missing, but is no error.
    `words`: public runs of words, by which columns are named: nothing else.
    """

    column: str
    bits: int = 18
    ngrams: tuple[int, int] = (1, 1)
    binary: bool = True
    lowercase: bool = True
    missing: str = "column"
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_hash_bits(self.bits)
        try:
            shortest, longest = (int(length) for length in self.ngrams)
        except (TypeError, ValueError):
            raise ValueError(f"ngrams must be two whole numbers, got {self.ngrams!r}") from None
        if not 1 <= shortest <= longest:
            raise ValueError(f"n-grams must go from 1 or more upwards, got {shortest} to {longest}")
        object.__setattr__(self, "ngrams", (shortest, longest))
        object.__setattr__(self, "words", _checked_words(self.words))
        _check_bool("binary", self.binary)
        _check_bool("lowercase", self.lowercase)
        _check_word("missing", self.missing)

    @property
    def width(self) -> int:
        """Number of columns."""
        return (1 << self.bits) + (self.missing == "column")

    def name(self, column: int) -> str:
        """Return the name of a column of this block."""
        if column == 1 << self.bits:
            return f"{self.column} (missing)"
        return f"{self.column}[{column}]"

    def word_names(self) -> dict[int, str]:
        """Return the names of the columns that the public words are hashed to."""
        named = [f"{self.column}:{word}" for word in self.words]
        return _by_column(named, hash_names(self.words, self.bits))


@dataclass(frozen=True)
class Cross:
    """One column for each combination of what two or three columns of the table are encoded to.

    `columns`: two or three columns of the table, each of which one `Categories`, `Bins` or
    `Hashed` takes.
    `bits`: hash the combinations to ``2**bits`` columns; None gives each its own.
    """

    columns: tuple[str, ...]
    bits: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if not 2 <= len(self.columns) <= 3 or len(set(self.columns)) != len(self.columns):
            raise ValueError(f"a cross takes two or three columns, got {list(self.columns)!r}")
        if self.bits is not None:
            check_hash_bits(self.bits)


Part = Categories | Bins | Number | Hashed | Text | Cross
Coded = Categories | Bins | Hashed


def columns_of(part: Part) -> tuple[str, ...]:
    """Return the columns of the table that a part takes."""
    return (part.column,) if hasattr(part, "column") else part.columns


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


def _check_range(low: float, high: float, bins: int) -> None:
    finite = isinstance(low, int | float) and isinstance(high, int | float) and low < high
    if not finite or type(bins) is not int or not 1 <= bins <= _MOST_BINS:
        raise ValueError(
            f"1 to {_MOST_BINS:,} bins go from low to a larger high, got {bins!r} from {low!r} to "
            f"{high!r}"
        )


def _edges_from(column: str, given: Mapping[str, Any]) -> tuple[float, ...]:
    spacing = given.get("spacing", "equal")
    if set(given) - {"spacing"} != {"low", "high", "bins"} or spacing not in ("equal", "log"):
        raise ValueError(
            f"the edges of column {column!r} are a list, or low, high, bins and a spacing that is "
            '"equal" or "log"'
        )
    make = log_edges if spacing == "log" else equal_edges
    return make(given["low"], given["high"], given["bins"])


def _shown(category: Any) -> str:
    return str(category).lower() if isinstance(category, bool) else str(category)


def _checked_words(given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(word, str) for word in given):
        raise ValueError("words must be a list of strings")
    return tuple(given)


def _by_column(named: list[str], hashed: NDArray[Any]) -> dict[int, str]:
    found: dict[int, str] = {}
    for name, column in zip(named, hashed.tolist(), strict=True):
        found[column] = f"{found[column]} | {name}" if column in found else name
    return found


def _check_word(name: str, value: Any) -> None:
    if value not in _MISSING:
        raise ValueError(f"{name} must be one of {', '.join(_MISSING)}, got {value!r}")


def _check_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {value!r}")
