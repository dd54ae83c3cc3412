"""How each kind of part turns columns of a table into entries, a whole column at a time."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.encoding.hashing import hash_codes, hash_names
from dplasso.encoding.parts import Bins, Categories, Coded, Cross, Hashed, Number, Part, Text
from dplasso.encoding.schema import Schema
from dplasso.errors import DataError

Where = Callable[[str, int | None], str]
"""Words where a value stands: of its column's name and its row, from 0; None for the column."""

_INT32_COLUMNS = 2**31
_TRUTH = {"false": 0.0, "true": 1.0}


class Rows(NamedTuple):
    """Sparse rows: `indptr` int64; `indices` int32 where that holds them; `values` float32."""

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[np.float32]


class _Slot(NamedTuple):
    """At most one entry a record: its column, -1 for none, and its value, None for 1."""

    columns: NDArray[np.int64]
    values: NDArray[np.float32] | None = None


def encode(schema: Schema, table: Mapping[str, Any], n_rows: int, where: Where) -> Rows:
    """Encode records of a table; columns ascend within a row, each once.

    `table` holds the columns that the schema takes, as pyarrow.Array or list; None, NaN and an
    empty string are missing values. `where` serves messages.

    Raises DataError for a value that is not of its part's kind, or that the part declares an error.
    """
    reader = _Columns(table, where)
    blocks: list[_Slot | Rows] = []
    for part, offset in zip(schema.parts, schema.offsets, strict=False):
        blocks += _entries(schema, part, reader, offset)
    return _assembled(blocks, n_rows, schema.n_features)


class _Columns:
    """The table's columns, each read once: codes by part, numbers by name."""

    def __init__(self, table: Mapping[str, Any], where: Where) -> None:
        self.table = table
        self.where = where
        self._codes: dict[tuple[Coded, str], NDArray[np.int64]] = {}

    def codes(self, part: Coded, column: str) -> NDArray[np.int64]:
        """Return which of its `part.codes` values each record has, -1 for none."""
        if (part, column) not in self._codes:
            if isinstance(part, Categories):
                found = self._categories(part)
            elif isinstance(part, Bins):
                numbers = self.numbers(part)
                found = np.searchsorted(part.edges, numbers, side="right").astype(np.int64)
                found[np.isnan(numbers)] = part.codes - 1 if part.missing == "column" else -1
            else:
                words, found = self._words(column, part.missing)
                hashed = hash_names([f"{column}={word}" for word in words], part.bits)
                found = _looked_up(hashed.astype(np.int64), found, part)
            self._codes[part, column] = found
        return self._codes[part, column]

    def numbers(self, part: Bins | Number) -> NDArray[np.float64]:
        """Return a column as float64, NaN where it is missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = part.column
        values = self._arrow(column)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        kind, types = values.type, pa.types
        if types.is_string_view(kind):
            values, kind = values.cast(pa.string()), pa.string()
        text = types.is_string(kind) or types.is_large_string(kind)
        if types.is_boolean(kind):
            values = values.cast(pa.uint8())
        elif text:
            values = pc.utf8_trim_whitespace(values)
            values = pc.if_else(pc.equal(values, ""), None, values)
        elif types.is_temporal(kind) or not (
            types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind)
        ):
            raise DataError(f"{self.where(column, None)}: numbers are needed, not {kind}")
        try:
            cast = values.cast(pa.float64(), safe=text)
        except pa.ArrowInvalid:
            given = values.to_pylist()
            numbers = [None if word is None else _number_or_none(word) for word in given]
            for row, (word, number) in enumerate(zip(given, numbers, strict=True)):
                if word is not None and number is None:
                    place = self.where(column, row)
                    raise DataError(f"{place}: the value is not a number") from None
            cast = pa.array(numbers, pa.float64())
        found: NDArray[np.float64] = cast.to_numpy(zero_copy_only=False)
        self._refuse_missing(column, np.isnan(found), part.missing)
        return found

    def texts(self, part: Text) -> tuple[list[str], NDArray[np.bool_]]:
        """Return texts, and which are missing or empty."""
        given = self.table[part.column]
        texts = given if isinstance(given, list) else given.to_pylist()
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                if text is not None:
                    raise DataError(f"{self.where(part.column, row)}: the value is not text")
                if part.missing == "error":
                    raise DataError(f"{self.where(part.column, row)}: the value is missing")
        return [text or "" for text in texts], np.array([not text for text in texts], np.bool_)

    def _categories(self, part: Categories) -> NDArray[np.int64]:
        words, codes = self._words(part.column, part.missing)
        key = _key_of(part.categories)
        places = {key(category): place for place, category in enumerate(part.categories)}
        unknown = len(places) if part.unknown == "column" else -1
        found = np.array([places.get(key(word), unknown) for word in words], np.int64)
        if part.unknown == "error":
            strange = (codes >= 0) & (found[codes] < 0) if found.size else codes >= 0
            if strange.any():
                row = int(np.argmax(strange))
                raise DataError(
                    f"{self.where(part.column, row)}: the value is not among the declared "
                    "categories"
                )
        return _looked_up(found, codes, part)

    def _words(self, column: str, missing: str) -> tuple[list[str], NDArray[np.int64]]:
        """Return the distinct values of these records as words, and whose each record's is.

        The words serve to look up each value once; none is kept.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self._arrow(column)
        if pa.types.is_floating(values.type):
            values = pc.if_else(pc.is_nan(values), None, values)
        if not pa.types.is_dictionary(values.type):
            try:
                values = values.dictionary_encode()
            except pa.ArrowException:
                raise self._no_category(column, values.type) from None
        try:
            words = values.dictionary.cast(pa.string()).to_pylist()
        except pa.ArrowException:
            raise self._no_category(column, values.type.value_type) from None
        indices = values.indices.cast(pa.int64()).fill_null(-1)
        codes = indices.to_numpy(zero_copy_only=False).copy()
        if empty := [k for k, word in enumerate(words) if not word]:
            codes[np.isin(codes, empty)] = -1
            words = [word or "" for word in words]
        self._refuse_missing(column, codes < 0, missing)
        return words, codes

    def _arrow(self, column: str) -> Any:
        """Return a column as one pyarrow array."""
        import pyarrow as pa

        values = self.table[column]
        if not isinstance(values, list):
            return values
        try:
            return pa.array(values)
        except (pa.ArrowException, OverflowError):
            place = self.where(column, None)
            raise DataError(f"{place}: its values are not of one kind") from None

    def _no_category(self, column: str, kind: Any) -> DataError:
        return DataError(
            f"{self.where(column, None)}: {kind} is not a category; give a column of strings, "
            "numbers or bools"
        )

    def _refuse_missing(self, column: str, absent: NDArray[np.bool_], missing: str) -> None:
        if missing == "error" and absent.any():
            row = int(np.argmax(absent))
            raise DataError(f"{self.where(column, row)}: the value is missing")


def _entries(schema: Schema, part: Part, table: _Columns, offset: int) -> Iterator[_Slot | Rows]:
    """Return the entries of a part, in the order of their columns."""
    match part:
        case Categories() | Bins(cumulative=False):
            yield _Slot(_shifted(table.codes(part, part.column), offset))
        case Bins(edges=edges):
            codes, last = table.codes(part, part.column), len(edges)
            for k in range(1, last + 1):
                yield _Slot(np.where((codes >= k) & (codes <= last), offset + k - 1, -1))
            yield _Slot(np.where(codes > last, offset + last, -1))
        case Number():
            numbers = table.numbers(part)
            missing = np.isnan(numbers)
            with np.errstate(over="ignore"):
                scaled = np.clip((numbers - part.center) / part.bound, -1, 1)
            values = scaled.astype(np.float32)
            yield _Slot(np.where(missing | (values == 0), -1, offset), values)
            if part.missing == "column":
                yield _Slot(np.where(missing, offset + 1, -1))
        case Hashed():
            codes = np.stack([table.codes(part, column) for column in part.columns], axis=1)
            codes += (codes == 1 << part.bits) * np.arange(len(part.columns))
            codes.sort(axis=1)
            # Values of one record that share a column are one entry.
            codes[:, 1:][codes[:, 1:] == codes[:, :-1]] = -1
            for places in codes.T:
                yield _Slot(_shifted(places, offset))
        case Text():
            texts, empty = table.texts(part)
            rows = _hashed_texts(part, texts)
            yield rows._replace(indices=rows.indices + np.int64(offset))
            if part.missing == "column":
                yield _Slot(np.where(empty, offset + (1 << part.bits), -1))
        case Cross():
            combined = np.zeros(1, np.int64)
            none = np.zeros(1, np.bool_)
            for column in part.columns:
                coded = schema.coded(column)
                codes = table.codes(coded, column)
                none = none | (codes < 0)
                combined = combined * coded.codes + codes
            if part.bits is not None:
                combined = hash_codes(combined, part.bits)
            yield _Slot(np.where(none, -1, combined + offset))


def _hashed_texts(part: Text, texts: list[str]) -> Rows:
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        n_features=1 << part.bits,
        ngram_range=part.ngrams,
        binary=part.binary,
        lowercase=part.lowercase,
        alternate_sign=False,
        norm=None,
        dtype=np.float32,
    )
    X = vectorizer.transform(texts)
    X.sort_indices()
    return Rows(X.indptr.astype(np.int64), X.indices, X.data)


def _assembled(blocks: list[_Slot | Rows], n_rows: int, n_features: int) -> Rows:
    """Put blocks side by side; each block's columns follow those of the blocks before it."""
    index = np.int32 if n_features < _INT32_COLUMNS else np.int64
    counts = np.zeros(n_rows, np.int64)
    for block in blocks:
        counts += block.columns >= 0 if isinstance(block, _Slot) else np.diff(block.indptr)
    starts = np.zeros(n_rows + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    indices, values = np.empty(starts[-1], index), np.ones(starts[-1], np.float32)
    free = starts[:-1].copy()
    for block in blocks:
        if isinstance(block, _Slot):
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


def _looked_up(
    places: NDArray[np.int64], codes: NDArray[np.int64], part: Categories | Hashed
) -> NDArray[np.int64]:
    """Return each record's place, by the number of its word; -1 stands for a missing value."""
    # Index -1 finds the last place.
    return np.append(places, part.codes - 1 if part.missing == "column" else -1)[codes]


def _shifted(codes: NDArray[np.int64], offset: int) -> NDArray[np.int64]:
    return np.where(codes < 0, -1, codes + offset)


def _key_of(categories: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Return the key by which a declared category and a value's word are compared."""
    if isinstance(categories[0], bool):
        return lambda value: str(value).lower()
    if isinstance(categories[0], int | float):
        return _number_or_none
    return str


def _number_or_none(word: Any) -> float | None:
    """Read a number, or a bool as 0 or 1."""
    try:
        return float(word)
    except ValueError:
        return _TRUTH.get(word.strip().lower())
