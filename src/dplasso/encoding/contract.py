"""The contract of a part of a schema, and the columns of a table that it is given."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import Rows
from dplasso.data.labels import TRUTH, as_number
from dplasso.data.tables.batches import alike, decimal_of_groups
from dplasso.errors import DataError

Where = Callable[[str, int | None], str]
"""Says in words where a value stands: in which column, and in which row, counted from 0."""

_MISSING = ("column", "ignore", "error")
USUAL_MISSING = ("NA", "N/A", "#N/A", "NaN", "null", "?", "-", ".")
"""Words that stand for a missing value in most tables."""
# No number and no date is called so.
_NEVER_VALUES = (*USUAL_MISSING, "None", "nil")
Codes = NDArray[np.int64]
CodedOf = Callable[[str], "Coded"]
"""Gives the one part whose codes of a column a cross takes."""


class Slot(NamedTuple):
    """At most one entry a record: its column, -1 for none, and its value, None for 1."""

    columns: NDArray[np.int64]
    values: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, codes: NDArray[np.int64], offset: int) -> "Slot":
        """Return entries in columns from `offset` on; -1 stands for none."""
        return cls(np.where(codes < 0, -1, codes + offset))


class TableColumns:
    """The columns of a table; `where` serves messages, `missing` are words for missing values."""

    def __init__(
        self, table: Mapping[str, Any], where: Where, missing: Collection[str] = ()
    ) -> None:
        self.table = table
        self.where = where
        self.missing = frozenset(map(alike, missing))
        self._codes: dict[tuple[Coded, str], NDArray[np.int64]] = {}

    def codes(self, part: "Coded", column: str) -> NDArray[np.int64]:
        """Return each record's code, -1 for none; a part's codes of a column are found once."""
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
            raise DataError(f"{self.where(column, None)}: numbers are needed, not {kind}")
        try:
            cast = values.cast(pa.float64(), safe=text)
        except pa.ArrowInvalid:
            given = values.to_pylist()
            numbers = [None if word is None else number_in(word) for word in given]
            for row, (word, number) in enumerate(zip(given, numbers, strict=True)):
                if word is not None and number is None:
                    place, mark = self.where(column, row), decimal_of_groups(str(word))
                    cure = '; a word for missing values belongs under "missing" in the schema'
                    if mark is not None:
                        cure = f"; --decimal {mark} reads numbers with marks between thousands"
                    raise DataError(f"{place}: the value is not a number{cure}") from None
            cast = pa.array(numbers, pa.float64())
        found: NDArray[np.float64] = cast.to_numpy(zero_copy_only=False)
        self._refuse_missing(column, np.isnan(found), missing)
        return found

    def dates(self, column: str, format: str, missing: str) -> NDArray[np.datetime64]:
        """Return a column as days, NaT where it is missing; `format` is that of words."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values, text = self._decoded(column)
        if text:
            read = pc.strptime(values, format=format, unit="s", error_is_null=True)
            wrong = pc.and_(read.is_null(), values.is_valid()).to_numpy(zero_copy_only=False)
            if wrong.any():
                place = self.where(column, int(np.argmax(wrong)))
                raise DataError(f"{place}: the value is not a date as {format} says")
            values = read
        elif not (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
            if values.null_count < len(values):
                raise DataError(f"{self.where(column, None)}: dates are needed, not {values.type}")
            values = values.cast(pa.date32())
        days: NDArray[np.datetime64] = values.to_numpy(zero_copy_only=False).astype("M8[D]")
        self._refuse_missing(column, np.isnat(days), missing)
        return days

    def _decoded(self, column: str) -> tuple[Any, bool]:
        """Return a column, and whether it is text: trimmed, one without a value missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = as_arrow(self.table[column], self.where(column, None))
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_string_view(values.type):
            values = values.cast(pa.string())
        text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        if text:
            values = pc.utf8_trim_whitespace(values)
            absent = ["", *self.missing, *map(alike, _NEVER_VALUES)]
            is_absent = pc.is_in(pc.utf8_lower(values), pa.array(absent, values.type))
            values = pc.if_else(is_absent, None, values)
        return values, text

    def texts(self, column: str, missing: str) -> tuple[list[str], NDArray[np.bool_]]:
        """Return texts, and which are missing or empty."""
        given = self.table[column]
        texts = given if isinstance(given, list) else given.to_pylist()
        absent = np.array([text is None for text in texts], np.bool_)
        self._refuse_missing(column, absent, missing)
        for row, text in enumerate(texts):
            if not isinstance(text, str | None):
                raise DataError(f"{self.where(column, row)}: the value is not text")
        return [text or "" for text in texts], np.array([not text for text in texts], np.bool_)

    def words(
        self, column: str, missing: str, declared: Collection[Any] = ()
    ) -> tuple[list[str], NDArray[np.int64]]:
        """Return the distinct values as words, and each record's word by number, -1 if missing.

        A word for missing values is a value where it is `declared` as one.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        values = as_arrow(self.table[column], self.where(column, None))
        if pa.types.is_floating(values.type):
            values = pc.if_else(pc.is_nan(values), None, values)
        try:
            if not pa.types.is_dictionary(values.type):
                values = values.dictionary_encode()
            words = values.dictionary.cast(pa.string()).to_pylist()
        except pa.ArrowException:
            kind = values.type
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            raise DataError(
                f"{self.where(column, None)}: {kind} is not a category; give a column of strings, "
                "numbers or bools"
            ) from None
        words = [word and word.strip() for word in words]
        indices = values.indices.cast(pa.int64()).fill_null(-1)
        codes = indices.to_numpy(zero_copy_only=False).copy()
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


def as_arrow(values: Any, place: str) -> Any:
    """Return a column, a list or series unless it is one already, as an array of pyarrow."""
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, OverflowError):
        # Arrow's message quotes the value that it could not take.
        raise DataError(f"{place}: its values are not of one kind") from None


def number_in(word: Any) -> float | None:
    """Return the number that a value or a word stands for; of a bool 0 or 1."""
    number = as_number(word)
    return TRUTH.get(str(word).strip().lower()) if number is None else number


def lowered(value: Any) -> str:
    """Return a value as a word in small letters."""
    return str(value).lower()


class Part:
    """The contract of a part.

    It takes `columns` of the table and makes `width` columns: `names` returns the names of some of
    them, `entries` yields the entries of a table in their order. `described` says in words what it
    declares of the table, `slots` how many entries a usual row has.
    """

    missing: str = "ignore"

    def slots(self, coded: CodedOf) -> list[tuple[int, int, float]]:
        """Return first and last + 1 of columns, and how many entries a usual row has in them."""
        return [(0, self.width(coded), 1.0)]

    if TYPE_CHECKING:

        @property
        def columns(self) -> tuple[str, ...]: ...
        def width(self, coded: CodedOf) -> int: ...
        def names(self, coded: CodedOf, columns: Codes) -> list[str]: ...
        def described(self) -> str: ...
        def entries(
            self, coded: CodedOf, table: TableColumns, offset: int
        ) -> Iterator[Slot | Rows]: ...

    @property
    def own_missing(self) -> int:
        """1 if a missing value has a column of its own, else 0."""
        return int(self.missing == "column")

    def _check_words(self, *names: str) -> None:
        for name in names:
            if (given := getattr(self, name)) not in _MISSING:
                raise ValueError(f"{name} must be one of {', '.join(_MISSING)}, got {given!r}")

    def _check_bools(self, *names: str) -> None:
        for name in names:
            if not isinstance(given := getattr(self, name), bool):
                raise ValueError(f"{name} must be true or false, got {given!r}")


class Coded(Part):
    """A part that encodes a column to one of `codes` values, which a cross may take.

    `codes_of` returns each record's code, -1 for none; `code_names` the names of codes. Unless a
    part says otherwise, each code is a column.
    """

    if TYPE_CHECKING:

        @property
        def codes(self) -> int: ...
        def codes_of(self, table: TableColumns, column: str) -> Codes: ...
        def code_names(self, codes: Codes, column: str) -> list[str]: ...

    def width(self, coded: CodedOf) -> int:
        return self.codes

    def names(self, coded: CodedOf, columns: Codes) -> list[str]:
        return self.code_names(columns, self.columns[0])

    def entries(self, coded: CodedOf, table: TableColumns, offset: int) -> Iterator[Slot]:
        yield Slot.of(table.codes(self, self.columns[0]), offset)

    @property
    def one_hot(self) -> bool:
        """Whether its columns are indicators of categories, of which a record has one."""
        return True

    @property
    def missing_code(self) -> int:
        """The code of a missing value."""
        return self.codes - 1 if self.own_missing else -1

    def _looked_up(self, places: Codes, words: Codes) -> Codes:
        """Return each record's place by the number of its word."""
        # The number -1, of a missing value, finds the last place.
        return np.append(places, self.missing_code)[words]


@dataclass(frozen=True)
class OfOneColumn:
    """What takes one column of the table."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of the table that it takes."""
        return (self.column,)
