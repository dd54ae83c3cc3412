"""Records from CSV (with a header) and JSON lines, in bounded memory; errors name lines."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dplasso.data.formats import plain_suffix
from dplasso.data.streams import BLOCK_BYTES, line_blocks
from dplasso.data.tables.batches import Batch
from dplasso.errors import DataError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}

# A quote that is never closed would otherwise take the rest of the file for one field.
LONGEST_FIELD = 16 << 20

# Bytes for each character of text, n-grams and hashes included; measured on English reviews.
_BYTES_PER_CHARACTER = 32
_MOST_CHARACTERS = 4 << 20


def column_names(path: Path) -> list[str]:
    """Return the names in the header of CSV, or the keys of the first object of JSON lines."""
    lines = _Lines(path, BLOCK_BYTES)
    if plain_suffix(path) in _DELIMITERS:
        return next(_csv_reader(lines))
    return list(next(_objects(lines), {}))


def batches(path: Path, columns: Sequence[str], memory_bytes: int) -> Iterator[Batch]:
    """Stream some columns of a file, or keys of its objects; `DataError` names a wrong line."""
    lines = _Lines(path, min(BLOCK_BYTES, max(memory_bytes // 8, 1 << 12)))
    most = min(memory_bytes // _BYTES_PER_CHARACTER, _MOST_CHARACTERS)
    rows = _csv_rows if plain_suffix(path) in _DELIMITERS else _json_rows
    records: list[list[Any]] = []
    starts: list[int] = []

    def batch(starts: list[int]) -> Batch:
        found = dict(zip(columns, map(list, zip(*records, strict=True)), strict=True))
        return Batch(path, found, "line", starts, lines.done)

    before = 0
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
    """Return a column's values as they stand."""
    return list(batch.columns[column])


class _Lines:
    """A file's lines as text, and how far they reach; `csv` takes this for an open file."""

    def __init__(self, path: Path, block_bytes: int) -> None:
        self.path = path
        self._blocks = line_blocks(path, block_bytes)
        self.number = 0
        self.characters = 0
        self.done = 0

    def __iter__(self) -> Iterator[str]:
        for block, done in self._blocks:
            self.done = done
            try:
                text = block.decode()
            except UnicodeDecodeError as error:
                number = self.number + block.count(b"\n", 0, error.start) + 1
                raise DataError(
                    f"{self.path}, line {number}: this is not UTF-8 text; convert the file first"
                ) from None
            # Only these line ends count, and csv needs to see them.
            for line in io.StringIO(text, newline=""):
                self.number += 1
                self.characters += len(line)
                yield line


def _csv_reader(lines: _Lines) -> Iterator[list[str]]:
    if csv.field_size_limit() < LONGEST_FIELD:
        csv.field_size_limit(LONGEST_FIELD)
    rows = csv.reader(iter(lines), delimiter=_DELIMITERS[plain_suffix(lines.path)], strict=True)
    start = 1
    try:
        for row in rows:
            yield row
            start = lines.number + 1
    except csv.Error as error:
        raise DataError(
            f"{lines.path}, the record from line {start} on: {error}; is a quote not closed or "
            "doubled?"
        ) from None
    if start == 1:
        raise DataError(f"{lines.path}: the file is empty; a header with the names is needed")


def _csv_rows(lines: _Lines, columns: Sequence[str]) -> Iterator[tuple[list[str], int]]:
    """Yield the fields of the columns, and the line in which each record begins."""
    rows = _csv_reader(lines)
    header = next(rows)
    places = [_place(lines.path, header, name) for name in columns]
    start = lines.number + 1
    for row in rows:
        if row and len(row) != len(header):
            raise DataError(
                f"{lines.path}, line {start}: {len(row)} fields, the header has {len(header)}"
            )
        if row:
            yield [row[place] for place in places], start
        start = lines.number + 1


def _place(path: Path, header: list[str], name: str) -> int:
    # Without a header the first line is a record: it is not quoted.
    found = [number for number, other in enumerate(header, 1) if other == name]
    if not found:
        raise DataError(f"{path}: no column {name!r} among the {len(header)} of the first line")
    if found[1:]:
        raise DataError(
            f"{path}: columns {found[0]} and {found[1]} of the first line have one name"
        )
    return found[0] - 1


def _json_rows(lines: _Lines, columns: Sequence[str]) -> Iterator[tuple[list[Any], int]]:
    for found in _objects(lines):
        for key in columns:
            if key not in found:
                raise DataError(f"{lines.path}, line {lines.number}: there is no {key!r}")
        yield [found[key] for key in columns], lines.number


def _objects(lines: _Lines) -> Iterator[dict[str, Any]]:
    for line in lines:
        if not line.strip():
            continue
        try:
            found = json.loads(line)
            problem = "" if isinstance(found, dict) else f" but a {type(found).__name__}"
        except (ValueError, RecursionError) as error:
            problem = f": {error}"
        if problem:
            raise DataError(f"{lines.path}, line {lines.number}: not a JSON object{problem}")
        yield found
