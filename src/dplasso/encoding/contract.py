"""The contract of a part of a schema, and the table columns that a part reads."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.data.blocks import INT32_MAX
from dplasso.data.labels import TRUTH, as_number
from dplasso.data.table_batches import alike, decimal_of_groups
from dplasso.errors import DataError

Where = Callable[[str, int | None], str]
"""Describes the place of a value for messages: its column, and its row counted from 0."""

_MISSING = ("column", "ignore", "error")
USUAL_MISSING = ("NA", "N/A", "#N/A", "NaN", "null", "?", "-", ".")
"""Words that stand for a missing value in most tables."""
# None of these words can be a number or a date.
_NEVER_VALUES = (*USUAL_MISSING, "None", "nil")
# Zeros at the end of a fraction, and what replaces them.
_ZEROS = r"(\.\d*[1-9])0+(\D|$)|\.0+(\D|$)", r"\1\2\3"
# From this limit on, a floating-point number represents several whole numbers.
_INEXACT = 2.0**53
# Types of values that Arrow converts alike, whichever of them a column holds.
_TOGETHER: tuple[set[type], ...] = (
    {int, float, np.int64, np.float64}, {str, np.str_}, {bool, np.bool_}
)  # fmt: skip
Codes = NDArray[np.int64]
CodedOf = Callable[[str], "Coded"]
"""Returns the part that encodes a column for a cross."""


def indicators(codes: NDArray[np.signedinteger[Any]], width: int) -> csr_array:
    """Return rows with a 1 in the column of each code, none for -1.

    `codes`, shape (N,) or (N, k): those of a row ascend.
    """
    kind = np.int32 if width <= INT32_MAX else np.int64
    codes = codes.reshape(len(codes), -1).astype(kind, copy=False)
    held = codes >= 0
    starts = np.zeros(len(codes) + 1, codes.dtype)
    np.cumsum(held.sum(axis=1), out=starts[1:])
    return csr_array((np.ones(starts[-1], np.float32), codes[held], starts), (len(codes), width))


class TableColumns:
    """The columns of a table, and words that stand for missing values."""

    def __init__(
        self, table: Mapping[str, Any], where: Where, missing: Collection[str] = ()
    ) -> None:
        self.table = table
        self.where = where
        self.missing = frozenset(map(alike, missing))
        self._codes: dict[tuple[Coded, str], NDArray[np.int64]] = {}

    def codes(self, part: "Coded", column: str) -> NDArray[np.int64]:
        """Return each record's code, -1 for none, computed once for each part and column."""
        if (part, column) not in self._codes:
            self._codes[part, column] = part.codes_of(self, column)
        return self._codes[part, column]

    def numbers(self, column: str, missing: str) -> NDArray[np.float64]:
        """Return a column as float64, NaN where it is missing."""
        import pyarrow as pa

        values, text = self._decoded(column)
        kind, types = values.type, pa.types
        if types.is_boolean(kind):
            values = values.cast(pa.uint8())
        elif types.is_temporal(kind) or not (
            text or types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind)
        ):
            place = self.where(column, None)
            raise DataError(f"{place}: the column must hold numbers, not {_shown(kind)}")
        elif types.is_decimal(kind):
            # Arrow's own conversion rounds by the number of digits of the column.
            values, text = values.cast(pa.string()), True
        try:
            cast = values.cast(pa.float64(), safe=text)
        except pa.ArrowInvalid:
            entries = values.to_pylist()
            numbers = [None if word is None else number_in(word) for word in entries]
            for row, (word, number) in enumerate(zip(entries, numbers, strict=True)):
                if word is not None and number is None:
                    place, mark = self.where(column, row), decimal_of_groups(str(word))
                    cure = '; if it stands for a missing value, list it under "missing"'
                    if mark is not None:
                        cure = f"; to read thousands separators, use --decimal {mark}"
                    raise DataError(f"{place}: the value is not a number{cure}") from None
            cast = pa.array(numbers, pa.float64())
        floats: NDArray[np.float64] = cast.to_numpy(zero_copy_only=False)
        # A typed column holds -9 where a text file has the word "-9", or "-9.0".
        absent = [number for word in self.missing if (number := number_in(word)) is not None]
        floats = np.where(np.isin(floats, absent), np.nan, floats)
        self._refuse_missing(column, np.isnan(floats), missing)
        return floats

    def dates(self, column: str, format: str, missing: str) -> NDArray[np.datetime64]:
        """Return a column as days, NaT where it is missing; `format` is used to parse text."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values, text = self._decoded(column)
        parsed = partial(pc.strptime, format=format, unit="s", error_is_null=True)
        if text:
            read = parsed(values)
            wrong = pc.and_(read.is_null(), values.is_valid()).to_numpy(zero_copy_only=False)
            if wrong.any():
                place = self.where(column, int(np.argmax(wrong)))
                raise DataError(f"{place}: the value is not a date in the format {format}")
            values = read
        elif not (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
            if values.null_count < len(values):
                place = self.where(column, None)
                raise DataError(f"{place}: the column must hold dates, not {_shown(values.type)}")
            values = pa.nulls(len(values), pa.date32())
        elif getattr(values.type, "tz", None):
            values = pc.local_timestamp(values)  # the day that the table shows
        days: NDArray[np.datetime64] = values.to_numpy(zero_copy_only=False).astype("M8[D]")
        absent = parsed(pa.array(list(self.missing), pa.string())).drop_null()
        is_absent = np.isin(days, absent.to_numpy().astype("M8[D]"))
        days = np.where(is_absent, np.datetime64("NaT"), days)
        self._refuse_missing(column, np.isnat(days), missing)
        return days

    def _decoded(self, column: str) -> tuple[Any, bool]:
        """Return a column and whether it is text; text is trimmed, empty text becomes null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = as_arrow(self.table[column], self.where(column, None))
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        text = _is_text(values.type)
        if text:
            values = pc.utf8_trim_whitespace(values)
            absent = ["", *self.missing, *map(alike, _NEVER_VALUES)]
            is_absent = pc.is_in(pc.utf8_lower(values), pa.array(absent, values.type))
            values = pc.if_else(is_absent, None, values)
        return values, text

    def texts(self, column: str, missing: str) -> tuple[list[str], NDArray[np.bool_]]:
        """Return the texts of a column, and which of them are missing or empty."""
        values = self.table[column]
        if not (isinstance(values, list) or _is_text(values.type)):
            # Python cannot hold each date, and its message would quote it.
            if values.null_count < len(values):
                place = self.where(column, None)
                raise DataError(f"{place}: the column must hold text, not {_shown(values.type)}")
            values = [None] * len(values)
        texts = values if isinstance(values, list) else values.to_pylist()
        absent = np.array([text is None for text in texts], np.bool_)
        self._refuse_missing(column, absent, missing)
        for row, text in enumerate(texts):
            if not isinstance(text, str | None):
                raise DataError(f"{self.where(column, row)}: the value is not text")
        return [text or "" for text in texts], np.array([not text for text in texts], np.bool_)

    def words(
        self, column: str, missing: str, declared: Collection[Any] = ()
    ) -> tuple[list[str], NDArray[np.int64]]:
        """Return the distinct values as words, and the index of each record's, -1 if missing.

        A word for missing values counts as a value if it is in `declared`.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        values = as_arrow(self.table[column], self.where(column, None))
        if pa.types.is_floating(values.type):
            values = pc.if_else(pc.is_nan(values), None, values)
        try:
            if not pa.types.is_dictionary(values.type):
                values = values.dictionary_encode()
            words = _written(values.dictionary).to_pylist()
        except pa.ArrowException:
            kind = values.type
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            raise DataError(
                f"{self.where(column, None)}: {_shown(kind)} cannot be categories; pass strings, "
                "numbers or bools"
            ) from None
        words = [word and word.strip() for word in words]
        indices = values.indices.cast(pa.int64()).fill_null(-1)
        codes = indices.to_numpy(zero_copy_only=False).copy()
        by_word = all(isinstance(word, str) for word in declared)
        if by_word and pa.types.is_floating(values.dictionary.type):
            floats = np.abs(values.dictionary.cast(pa.float64()).to_numpy(zero_copy_only=False))
            if ((floats >= _INEXACT) & (floats <= 2.0**64)).any():
                raise DataError(
                    f"{self.where(column, None)}: floats have lost digits of whole numbers from "
                    "2^53 on; pass texts, or whole numbers that may be missing (Int64)"
                )
        absent = self.missing - {alike(word) for word in declared}
        if empty := [k for k, word in enumerate(words) if not word or alike(word) in absent]:
            codes[np.isin(codes, empty)] = -1
            words = [word or "" for word in words]
        self._refuse_missing(column, codes < 0, missing)
        return words, codes

    def _refuse_missing(self, column: str, absent: NDArray[np.bool_], missing: str) -> None:
        if missing == "error" and absent.any():
            row = int(np.argmax(absent))
            raise DataError(f"{self.where(column, row)}: the value is missing")


def _is_text(kind: Any) -> bool:
    """Return whether a type is that of texts, perhaps in a dictionary."""
    own = kind.value_type if str(kind).startswith("dictionary") else kind
    return str(own) in ("string", "large_string", "string_view")


def _shown(kind: Any) -> str:
    """Describe the type of a column's values; a type of objects has their keys in its name."""
    import pyarrow as pa

    return "nested values" if pa.types.is_nested(kind) else f"{kind} values"


def as_arrow(values: Any, place: str) -> Any:
    """Return a column as a pyarrow array; lists and series are converted."""
    import pyarrow as pa

    from dplasso.data.arrow_tables import without_views

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return without_views(values)
    # A categorical column has its values once.
    dtype = getattr(values, "dtype", None)
    named = getattr(dtype, "categories", None)
    try:
        if named is not None:
            as_arrow(named, place)
        elif getattr(dtype, "kind", "O") == "O":
            values = _of_one_type(values)
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, UnicodeError):
        # Arrow's message quotes what it could not convert.
        raise DataError(
            f"{place}: the values are of different types or time zones, or no valid text"
        ) from None


def _of_one_type(values: Iterable[Any]) -> Iterable[Any]:
    """Return values that Arrow converts as if each were alone; `TypeError` if it would not.

    One record would decide for all: after a date, Arrow reads numbers as times.
    """
    kinds = set(map(type, values))
    if len(kinds) > 1:
        values = [None if _is_missing(value) else value for value in values]
        kinds = set(map(type, values)) - {type(None)}
    if len(kinds) > 1 and not any(kinds <= together for together in _TOGETHER):
        raise TypeError
    if any(hasattr(kind, "tzinfo") for kind in kinds):
        # All times would get the zone of the first.
        zones = {str(value.tzinfo) for value in values if value is not None}
        # Arrow leaves out the nanoseconds of objects.
        if len(zones) > 1 or any(getattr(value, "nanosecond", 0) for value in values):
            raise TypeError
    return values


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _written(values: Any) -> Any:
    """Return each value of an array as a word that does not depend on the other values.

    One missing value or fraction changes the type of a data frame's column, and with it the digits
    that Arrow writes.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if pa.types.is_decimal(kind):
        # Without exponents, which Arrow writes for small numbers.
        words = [None if number is None else f"{number:f}" for number in values.to_pylist()]
        values = pa.array(words, pa.string())
    elif pa.types.is_duration(kind):
        values = values.cast(pa.duration("ns"))
    elif pa.types.is_floating(kind):
        values = values.cast(pa.float64())
    words = values.cast(pa.string())
    if pa.types.is_floating(kind):
        whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less(pc.abs(values), _INEXACT))
        integers = pc.if_else(whole, values, 0.0).cast(pa.int64())
        return pc.if_else(whole, integers.cast(pa.string()), words)
    has_zeros = pa.types.is_decimal(kind) or pa.types.is_temporal(kind)
    return pc.replace_substring_regex(words, *_ZEROS) if has_zeros else words


def number_in(word: Any) -> float | None:
    """Return a value or word as a number, a bool as 0 or 1, or None if it is not a number."""
    number = as_number(word)
    return TRUTH.get(str(word).strip().lower()) if number is None else number


def interval_names(column: str, edges: Iterable[float]) -> list[str]:
    """Return the names of the intervals between edges, and of the two beyond them."""
    shown = [f"{edge:g}" for edge in edges]
    between = [f"{low}<={column}<{high}" for low, high in pairwise(shown)]
    return [f"{column}<{shown[0]}", *between, f"{column}>={shown[-1]}"]


class Part:
    """The contract of a part, which encodes `columns` of a table into `width` features.

    `names` returns the names of some features, and `entries` yields blocks of the encoded rows.
    """

    missing: str = "ignore"

    def slots(self, coded: CodedOf) -> list[tuple[int, int, float]]:
        """Return ranges of features (first, end), with the entries of a typical row in each."""
        return [(0, self.width(coded), 1.0)]

    def columns_of(self, coded: CodedOf, feature: int) -> tuple[str, ...]:
        """Return the columns of the table that one of its features encodes."""
        return self.columns

    if TYPE_CHECKING:

        @property
        def columns(self) -> tuple[str, ...]: ...
        def width(self, coded: CodedOf) -> int: ...
        def names(self, coded: CodedOf, columns: Codes) -> list[str]: ...
        def entries(self, coded: CodedOf, table: TableColumns) -> Iterator[csr_array]: ...

    @property
    def own_missing(self) -> int:
        """1 if missing values have their own feature, else 0."""
        return int(self.missing == "column")

    def _check_words(self, *names: str) -> None:
        for name in names:
            if (action := getattr(self, name)) not in _MISSING:
                raise ValueError(f"{name} must be one of {', '.join(_MISSING)}, got {action!r}")


class Coded(Part):
    """A part that encodes a column as one of `codes` integers (-1 for none), usable in a cross."""

    if TYPE_CHECKING:

        @property
        def codes(self) -> int: ...
        def codes_of(self, table: TableColumns, column: str) -> Codes: ...
        def values_of(self, column: str) -> list[str]: ...

    def width(self, coded: CodedOf) -> int:
        return self.codes

    def names(self, coded: CodedOf, columns: Codes) -> list[str]:
        return self.code_names(columns, self.columns[0])

    def code_names(self, codes: Codes, column: str) -> list[str]:
        """Return the names of some codes, from `values_of`: those of all values in their order."""
        shown = [*self.values_of(column), f"{column} (missing)"]
        return [shown[code] for code in codes.tolist()]

    def entries(self, coded: CodedOf, table: TableColumns) -> Iterator[csr_array]:
        yield indicators(table.codes(self, self.columns[0]), self.codes)

    @property
    def one_hot(self) -> bool:
        """Whether its features are indicators, of which a record has at most one."""
        return True

    @property
    def missing_code(self) -> int:
        """The code of a missing value."""
        return self.codes - 1 if self.own_missing else -1

    def _looked_up(self, places: Codes, words: Codes) -> Codes:
        """Return each record's code, from the index of its word."""
        # A missing value has index -1, which selects the appended last element.
        return np.append(places, self.missing_code)[words]


@dataclass(frozen=True)
class OfOneColumn:
    """Base of the parts that encode a single column of the table."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The column that the part encodes."""
        return (self.column,)
