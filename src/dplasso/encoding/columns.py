"""Columns of a table as numbers, words and texts, and the entries that parts make of them."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import INT32_MAX, Rows
from dplasso.data.labels import TRUTH, as_number
from dplasso.errors import DataError

if TYPE_CHECKING:
    from dplasso.encoding.contract import Coded
    from dplasso.encoding.schema import Schema

Where = Callable[[str, int | None], str]
"""Says in words where a value stands: in which column, and in which row, counted from 0."""


class Slot(NamedTuple):
    """At most one entry a record: its column, -1 for none, and its value, None for 1."""

    columns: NDArray[np.int64]
    values: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, codes: NDArray[np.int64], offset: int) -> "Slot":
        """Return entries in columns from `offset` on; -1 stands for none."""
        return cls(np.where(codes < 0, -1, codes + offset))


def encode(schema: "Schema", table: Mapping[str, Any], n_rows: int, where: Where) -> Rows:
    """Encode records of a table, as float32; None, NaN and an empty string are missing values."""
    columns = TableColumns(table, where)
    blocks: list[Slot | Rows] = []
    for part, offset in zip(schema.parts, schema.offsets, strict=False):
        blocks += part.entries(schema, columns, offset)
    return _assembled(blocks, n_rows, schema.n_features)


class TableColumns:
    """The columns of a table; `where` serves messages."""

    def __init__(self, table: Mapping[str, Any], where: Where) -> None:
        self.table = table
        self.where = where
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
                    place = self.where(column, row)
                    raise DataError(f"{place}: the value is not a number") from None
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
        """Return a column, and whether it is text: trimmed, an empty one missing."""
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
            values = pc.if_else(pc.equal(values, ""), None, values)
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

    def words(self, column: str, missing: str) -> tuple[list[str], NDArray[np.int64]]:
        """Return the distinct values as words, and each record's word by number, -1 if missing."""
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
        indices = values.indices.cast(pa.int64()).fill_null(-1)
        codes = indices.to_numpy(zero_copy_only=False).copy()
        if empty := [k for k, word in enumerate(words) if not word]:
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


def _assembled(blocks: list[Slot | Rows], n_rows: int, n_features: int) -> Rows:
    """Put blocks side by side; each block's columns follow those of the blocks before it."""
    index = np.int32 if n_features <= INT32_MAX + 1 else np.int64
    counts = np.zeros(n_rows, np.int64)
    for block in blocks:
        counts += block.columns >= 0 if isinstance(block, Slot) else np.diff(block.indptr)
    starts = np.zeros(n_rows + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    indices, values = np.empty(starts[-1], index), np.ones(starts[-1], np.float32)
    free = starts[:-1].copy()
    for block in blocks:
        if isinstance(block, Slot):
            held = block.columns >= 0
            at = free[held]
            indices[at] = block.columns[held]
            if block.values is not None:
                values[at] = block.values[held]
            free += held
        else:
            lengths = np.diff(block.indptr)
            at = np.arange(block.indices.size) + np.repeat(free - block.indptr[:-1], lengths)
            indices[at], values[at] = block.indices, block.values
            free += lengths
    return Rows(starts, indices, values)


def number_in(word: Any) -> float | None:
    """Return the number that a value or a word stands for; of a bool 0 or 1."""
    number = as_number(word)
    return TRUTH.get(str(word).strip().lower()) if number is None else number
