"""Read records from CSV and JSON lines in bounded memory."""

import codecs
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from dplasso.data.formats import plain_suffix
from dplasso.data.source_files import BLOCK_BYTES, line_blocks
from dplasso.data.table_batches import (
    DELIMITERS,
    SEPARATOR_NOTE,
    Batch,
    Dialect,
    alike,
    check_columns,
)
from dplasso.errors import DataError

# Without a limit, an unclosed quote would make the rest of the file one field.
LONGEST_FIELD = 16 << 20

# Bytes in memory per character of text, including n-grams and hashes; measured on English reviews.
_BYTES_PER_CHARACTER = 32
_MOST_CHARACTERS = 4 << 20
_LINE_END = re.compile(rb"\r\n?|\n")
# Limits on the records and fields that are searched for values of the first line.
_RECORDS_LOOKED_AT, _FIELDS_LOOKED_AT = 1_000, 100_000


def column_names(path: Path, dialect: Dialect) -> list[str]:
    """Return the column names of CSV, or the keys of the first object of JSON lines.

    The names are in the first line, unless the dialect declares it a record. Raises `DataError` if
    the first line looks like a record.
    """
    with closing(_Lines(path, BLOCK_BYTES, dialect)) as lines:
        if plain_suffix(path) not in DELIMITERS:
            return list(next(_objects(lines), {}))
        rows = _csv_reader(lines)
        names = [name.strip() for name in next(rows)]
        if dialect.names:
            refuse_wrong_names(path, names, dialect.names)
            return dialect.names
        if dialect.header is False:
            return [f"column_{number}" for number in range(1, len(names) + 1)]
        if dialect.header is None:
            most = min(_RECORDS_LOOKED_AT, _FIELDS_LOOKED_AT // max(len(names), 1) + 1)
            refuse_record(path, names, islice(rows, most))
        return names


def batches(
    path: Path, columns: Sequence[str], memory_bytes: int, dialect: Dialect
) -> Iterator[Batch]:
    """Yield batches of some columns of a file, or of some keys of its objects."""
    block_bytes = min(BLOCK_BYTES, max(memory_bytes // 8, 1 << 12))
    lines = _Lines(path, block_bytes, dialect)
    most = min(memory_bytes // _BYTES_PER_CHARACTER, _MOST_CHARACTERS)
    is_csv = plain_suffix(path) in DELIMITERS
    rows = partial(_csv_rows, column_names(path, dialect)) if is_csv else _json_rows
    records: list[list[Any]] = []
    starts: list[int] = []

    def batch(starts: list[int]) -> Batch:
        fields = dict(zip(columns, map(list, zip(*records, strict=True)), strict=True))
        return Batch(path, fields, "line", starts, lines.done)

    before = 0
    with closing(lines):
        for row, line in rows(lines, columns):
            records.append(row)
            starts.append(line)
            # A record takes memory even if its text is empty.
            if lines.characters - before + 16 * len(records) >= most:
                yield batch(starts)
                records, starts, before = [], [], lines.characters
        if records:
            yield batch(starts)


def labels(batch: Batch, column: str) -> list[Any]:
    """Return the values of a column; text is stripped."""
    values = batch.columns[column]
    words = [value.strip() if isinstance(value, str) else value for value in values]
    return batch.labels(column, words)


class _Lines:
    """The lines of a file as text, for `csv`, and the progress of reading."""

    def __init__(self, path: Path, block_bytes: int, dialect: Dialect) -> None:
        self.path = path
        self.dialect = dialect
        self._blocks = line_blocks(path, block_bytes)
        self.number = 0
        self.characters = 0
        self.done = 0

    def close(self) -> None:
        """Close the file."""
        self._blocks.close()

    def __iter__(self) -> Iterator[str]:
        decoder, held = codecs.getincrementaldecoder(str(self.dialect.encoding))(), ""
        for block, done in chain(self._blocks, [(b"", None)]):
            self.done = self.done if done is None else done
            try:
                text = held + decoder.decode(block, final=done is None)
            except UnicodeError as error:
                # Only the Unicode codecs give the position of an error.
                start = getattr(error, "start", 0)
                number = self.number + len(_LINE_END.findall(block[:start])) + 1
                encoding = str(self.dialect.encoding).upper()
                raise DataError(
                    f"{self.path}, line {number}: this is not {encoding} text; set the encoding "
                    "with --encoding, for example cp1252"
                ) from None
            # Unlike str.splitlines, this splits only at line ends, and keeps them for csv.
            lines = list(io.StringIO(text, newline=""))
            # In UTF-16 a block may end in the middle of a line end.
            whole = done is None or not lines or lines[-1].endswith("\n")
            held = "" if whole else lines.pop()
            for line in lines:
                self.number += 1
                self.characters += len(line)
                noted = self.number == 1 and self.dialect.delimiter and self.dialect.has_header
                if not (noted and SEPARATOR_NOTE.fullmatch(line)):
                    yield line


def _csv_reader(lines: _Lines) -> Iterator[list[str]]:
    if csv.field_size_limit() < LONGEST_FIELD:
        csv.field_size_limit(LONGEST_FIELD)
    rows = csv.reader(iter(lines), delimiter=str(lines.dialect.delimiter), strict=True)
    start = 1
    try:
        for row in rows:
            yield row
            start = lines.number + 1
    except csv.Error as error:
        raise DataError(
            f"{lines.path}, the record from line {start} on: {error}; check for a quote that is "
            "not closed or doubled"
        ) from None
    if start == 1:
        raise DataError(f"{lines.path} is empty; a header with the column names is needed")


def _csv_rows(
    names: Sequence[str], lines: _Lines, columns: Sequence[str]
) -> Iterator[tuple[list[str], int]]:
    """Yield the fields of some columns, and the line in which each record begins."""
    rows = _csv_reader(lines)
    if lines.dialect.has_header:
        next(rows)
    places = _places(lines.path, names, columns)
    start = lines.number + 1
    for row in rows:
        if row and len(row) != len(names):
            has = "header" if lines.dialect.has_header else "list of names"
            raise DataError(
                f"{lines.path}, line {start} has {len(row)} fields, but the {has} has {len(names)}"
            )
        if row:
            yield [row[place] for place in places], start
        start = lines.number + 1


def _places(path: Path, names: Sequence[str], columns: Sequence[str]) -> list[int]:
    # A first line with none of the names may be a record, so the message must not quote it.
    if {alike(name) for name in names} & {alike(name) for name in columns}:
        check_columns(names, columns, f"{path}:")
    places = {name: place for place, name in enumerate(names)}
    for name in columns:
        if name not in places:
            cut = len(names) == 1 and any(mark in names[0] for mark in ",;|\t")
            cure = "set the character between fields with --delimiter"
            if not cut:
                cure = "if it is a record, name the columns with --columns NAME,NAME,..."
            raise DataError(
                f"{path}: no column {name!r} in the first line, which has {_fields(names)}; {cure}"
            )
    return [places[name] for name in columns]


def _json_rows(lines: _Lines, columns: Sequence[str]) -> Iterator[tuple[list[Any], int]]:
    for record in _objects(lines):
        for key in columns:
            if key not in record:
                raise DataError(f"{lines.path}, line {lines.number}: the key {key!r} is missing")
        yield [record[key] for key in columns], lines.number


def _objects(lines: _Lines) -> Iterator[dict[str, Any]]:
    for line in lines:
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            problem = "" if isinstance(record, dict) else f" but a {type(record).__name__}"
        except (ValueError, RecursionError) as error:
            problem = f": {error}"
        if problem:
            raise DataError(f"{lines.path}, line {lines.number}: not a JSON object{problem}")
        yield record


_NUMBER = re.compile(r"[+-]?\d[\d.,]*([eE][+-]?\d+)?")
_WHOLE = re.compile(r"\d+")
_SENTENCE = re.compile(r"(\S+\s+){3,}\S+[.!]|(\S+\s+){11,}\S*[^\s?]", re.DOTALL)


def refuse_record(path: Path, first: Sequence[str], records: Iterable[Sequence[str]]) -> None:
    """Raise `DataError` if the first line of a table looks like the `records` below it."""
    if (why := _why_record(first, records)) is not None:
        raise DataError(
            f"{path}: the first line looks like a record, not like names of columns: {why}. If it "
            "is a record, name the columns with --columns NAME,NAME,... or number them with "
            "--no-header; if it holds the names, pass --header"
        )


def _why_record(first: Sequence[str], records: Iterable[Sequence[str]]) -> str | None:
    fields = [field for field in first if field]
    numbers = [field for field in fields if _NUMBER.fullmatch(field)]
    # Names may be numbers if they count the columns, or are years.
    whole = [int(field) for field in fields if _WHOLE.fullmatch(field)]
    counted = len(whole) == len(fields) and whole == [n + whole[0] for n in range(len(whole))]
    if fields and len(numbers) == len(fields) and not counted:
        return "all its fields are numbers"
    if fractions := sum(not _WHOLE.fullmatch(field) for field in numbers):
        return f"{fractions:,} of its {len(first):,} fields are numbers with a sign or a fraction"
    if sentences := sum(_SENTENCE.fullmatch(field) is not None for field in fields):
        return f"{sentences:,} of its {len(first):,} fields are sentences"
    again = set[int]()
    for record in records:
        held = [field.strip() for field in record]
        # Ignore a header that is repeated inside the file.
        if held != list(first):
            pairs = enumerate(zip(held, first, strict=False))
            again |= {place for place, (field, name) in pairs if field and field == name}
    if again:
        return f"{len(again):,} of its {len(first):,} fields occur again in their column"
    return None


def _fields(line: Sequence[str]) -> str:
    return "1 field" if len(line) == 1 else f"{len(line):,} fields"


def refuse_wrong_names(path: Path, first: Sequence[str], names: Sequence[str]) -> None:
    """Raise `DataError` if the number of declared names is wrong, or the first line holds them."""
    if len(names) != len(first):
        raise DataError(
            f"{path}: --columns names {len(names):,} columns, but the first line has "
            f"{_fields(first)}; name each column, or set the character between fields with "
            "--delimiter"
        )
    if [name.lower() for name in names] == [field.lower() for field in first]:
        raise DataError(
            f"{path}: the first line already holds the names in --columns; leave --columns out"
        )
