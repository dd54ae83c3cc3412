"""Records from CSV and JSON lines, in bounded memory, with errors that name lines."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dplasso.data.streams import BLOCK_BYTES, COMPRESSED_SUFFIXES, line_blocks
from dplasso.errors import DataError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON_SUFFIXES = (".jsonl", ".ndjson")
_SUFFIXES = (*_DELIMITERS, *_JSON_SUFFIXES)

# A quote that is never closed would otherwise take the rest of the file for one field.
LONGEST_FIELD = 16 << 20

# Bytes for each character of text, n-grams and hashes included; measured on English reviews.
_BYTES_PER_CHARACTER = 32
_MOST_CHARACTERS = 4 << 20


class TextBatch(NamedTuple):
    """Records of a file of text.

    Attributes
    ----------
    columns : dict of str to list
        Values as read: strings of CSV, what JSON says.
    lines : list of int
        Where each record begins, from 1.
    done : int
        Bytes of the file read so far, about.
    """

    columns: dict[str, list[Any]]
    lines: list[int]
    done: int


def is_text_table(path: Path) -> bool:
    """Return whether a file's name is that of CSV or JSON lines, compressed or not."""
    return _suffix(path) in _SUFFIXES


def header_names(path: Path) -> list[str]:
    """Return the names in the header of CSV, or the keys of the first object of JSON lines."""
    if _suffix(path) in _JSON_SUFFIXES:
        for record, _ in _json_rows(path, _Lines(path, BLOCK_BYTES)):
            return list(record)
        return []
    names, _ = _csv_rows(path, _Lines(path, BLOCK_BYTES))
    return names


def text_batches(path: Path, columns: Sequence[str], memory_bytes: int) -> Iterator[TextBatch]:
    """Stream records from a file of text: values by name, and the line where each record begins.

    `path`: ``.csv`` or ``.tsv`` with a header, UTF-8; ``.jsonl`` or ``.ndjson``, one object a line;
    also compressed. `columns`: names in the header, or keys of the objects. `memory_bytes`: what
    the raw text read ahead and the work on it may use, about.

    Raises DataError if the file is missing, damaged or malformed: with its line.
    """
    lines = _Lines(path, min(BLOCK_BYTES, max(memory_bytes // 8, 1 << 12)))
    most = min(memory_bytes // _BYTES_PER_CHARACTER, _MOST_CHARACTERS)
    rows: Iterator[tuple[list[Any], int]]
    if _suffix(path) in _JSON_SUFFIXES:
        objects = _json_rows(path, lines)
        rows = ((_values(path, columns, found, line), line) for found, line in objects)
    else:
        header, fields = _csv_rows(path, lines)
        places = [_place(path, header, name) for name in columns]
        rows = (([row[place] for place in places], line) for row, line in fields)
    records: list[list[Any]] = []
    starts: list[int] = []
    before = lines.characters
    for row, line in rows:
        records.append(row)
        starts.append(line)
        # A record takes memory even if its text is empty.
        if lines.characters - before + 16 * len(records) >= most:
            yield _batch(columns, records, starts, lines.done)
            records, starts, before = [], [], lines.characters
    if records:
        yield _batch(columns, records, starts, lines.done)


def _batch(
    columns: Sequence[str], records: list[list[Any]], starts: list[int], done: int
) -> TextBatch:
    lists = map(list, zip(*records, strict=True))
    return TextBatch(dict(zip(columns, lists, strict=True)), starts, done)


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in COMPRESSED_SUFFIXES else suffix


class _Lines:
    """A file's lines as text, and how far they reach; `csv` takes this for an open file."""

    def __init__(self, path: Path, block_bytes: int) -> None:
        self._path = path
        self._blocks = line_blocks(path, block_bytes)
        self._lines: Iterator[str] = iter(())
        self.number = 0
        self.characters = 0
        self.done = 0

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks:
            try:
                text = block.text.decode()
            except UnicodeDecodeError as error:
                number = self.number + block.text.count(b"\n", 0, error.start) + 1
                raise DataError(
                    f"{self._path}, line {number}: this is not UTF-8 text; convert the file first"
                ) from None
            self.done = block.done
            # Only these line ends count, and csv needs to see them.
            for line in io.StringIO(text, newline=""):
                self.number += 1
                self.characters += len(line)
                yield line


def _csv_rows(path: Path, lines: _Lines) -> tuple[list[str], Iterator[tuple[list[str], int]]]:
    """Return the header, and the records with the line in which each begins."""
    if csv.field_size_limit() < LONGEST_FIELD:
        csv.field_size_limit(LONGEST_FIELD)
    rows = csv.reader(iter(lines), delimiter=_DELIMITERS[_suffix(path)], strict=True)
    try:
        header = next(rows, None)
    except csv.Error as error:
        raise _broken(path, 1, error) from None
    if header is None:
        raise DataError(f"{path}: the file is empty; a header with the names is needed")

    def records() -> Iterator[tuple[list[str], int]]:
        start = lines.number + 1
        try:
            for row in rows:
                if row:
                    if len(row) != len(header):
                        raise DataError(
                            f"{path}, line {start}: {len(row)} fields, the header has {len(header)}"
                        )
                    yield row, start
                start = lines.number + 1
        except csv.Error as error:
            raise _broken(path, start, error) from None

    return header, records()


def _broken(path: Path, start: int, error: csv.Error) -> DataError:
    return DataError(
        f"{path}, the record from line {start} on: {error}; is a quote not closed or doubled?"
    )


def _place(path: Path, header: list[str], name: str) -> int:
    # Without a header the first line is a record: it is not quoted.
    found = [number for number, other in enumerate(header, 1) if other == name]
    if not found:
        raise DataError(f"{path}: no column {name!r} among the {len(header)} of the first line")
    if len(found) > 1:
        raise DataError(
            f"{path}: columns {found[0]} and {found[1]} of the first line have one name"
        )
    return header.index(name)


def _json_rows(path: Path, lines: _Lines) -> Iterator[tuple[dict[str, Any], int]]:
    for line in lines:
        if not line.strip():
            continue
        where = f"line {lines.number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, {where}: not a JSON object: {error}") from None
        if not isinstance(record, dict):
            raise DataError(f"{path}, {where}: not a JSON object but a {type(record).__name__}")
        yield record, lines.number


def _values(path: Path, columns: Sequence[str], record: dict[str, Any], line: int) -> list[Any]:
    for key in columns:
        if key not in record:
            raise DataError(f"{path}, line {line}: there is no {key!r}")
    return [record[key] for key in columns]
