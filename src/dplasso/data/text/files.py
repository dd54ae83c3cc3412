"""Records of text and label from CSV, JSON lines and Parquet, one after the other."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dplasso.data.streams import BLOCK_BYTES, COMPRESSED_SUFFIXES, check_readable, line_blocks
from dplasso.errors import DataError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON_SUFFIXES = (".jsonl", ".ndjson")
_TABLE_SUFFIXES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
TEXT_SUFFIXES = (*_DELIMITERS, *_JSON_SUFFIXES, *_TABLE_SUFFIXES)

# A quote that is never closed would otherwise take the rest of the file for one field.
LONGEST_FIELD = 16 << 20


class TextRecord(NamedTuple):
    """A text, its label as read, where it stands (line or row) and the bytes of the file behind."""

    text: str
    label: Any
    where: str
    done: int


def check_text_file(path: Path) -> None:
    """Refuse a file that `text_records` cannot read by its name.

    Raises DataError if it is missing, or of another kind.
    """
    check_readable(path)
    if _suffix(path) not in TEXT_SUFFIXES:
        raise DataError(
            f"{path}: text is read from {', '.join(TEXT_SUFFIXES)}; the first four also with "
            f"{', '.join(COMPRESSED_SUFFIXES)} after it"
        )


def text_records(
    path: Path, text_column: str, label_column: str, memory_bytes: int
) -> Iterator[TextRecord]:
    """Stream texts and labels from a file.

    `path`: ``.csv`` or ``.tsv`` with a header, UTF-8; ``.jsonl`` or ``.ndjson``, one object a line
    (all four also compressed); Parquet or Arrow.
    `text_column`, `label_column`: names in the header, keys of the objects, or columns of the
    table.
    `memory_bytes`: what the raw text read ahead may use, about.

    Yields: labels of CSV are strings, others as JSON or the table has them.

    Raises DataError if the file is missing, damaged or malformed: with its line.
    """
    check_text_file(path)
    suffix = _suffix(path)
    if suffix in _TABLE_SUFFIXES:
        return _table_records(path, text_column, label_column, memory_bytes)
    block_bytes = min(BLOCK_BYTES, max(memory_bytes // 8, 1 << 12))
    if suffix in _JSON_SUFFIXES:
        return _json_records(path, text_column, label_column, block_bytes)
    return _csv_records(path, text_column, label_column, block_bytes, _DELIMITERS[suffix])


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
        self.done = 0

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks:
            try:
                text = block.text.decode()
            except UnicodeDecodeError as error:
                number = self.number + block.text.count(b"\n", 0, error.start) + 1
                raise DataError(
                    f"{self._path}, line {number}: this is not UTF-8 text; convert the file first"
                ) from error
            self.done = block.done
            # Only these ends of lines count, and csv needs to see them.
            for line in io.StringIO(text, newline=""):
                self.number += 1
                yield line


def _csv_records(
    path: Path, text_column: str, label_column: str, block_bytes: int, delimiter: str
) -> Iterator[TextRecord]:
    if csv.field_size_limit() < LONGEST_FIELD:
        csv.field_size_limit(LONGEST_FIELD)
    lines = _Lines(path, block_bytes)
    rows = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    start = 1
    try:
        header = next(rows, None)
        if header is None:
            raise DataError(f"{path}: the file is empty; a header with the names is needed")
        text_at, label_at = (_place(path, header, name) for name in (text_column, label_column))
        start = lines.number + 1
        for row in rows:
            if row:
                if len(row) != len(header):
                    raise DataError(
                        f"{path}, line {start}: {len(row)} fields, the header has {len(header)}"
                    )
                yield TextRecord(row[text_at], row[label_at], f"line {start}", lines.done)
            start = lines.number + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, the record from line {start} on: {error}; is a quote not closed or doubled?"
        ) from error


def _place(path: Path, header: list[str], name: str) -> int:
    if header.count(name) != 1:
        fault = "no column" if name not in header else "more than one column"
        raise DataError(f"{path}: {fault} {name!r}; there are {', '.join(map(repr, header))}")
    return header.index(name)


def _json_records(
    path: Path, text_column: str, label_column: str, block_bytes: int
) -> Iterator[TextRecord]:
    lines = _Lines(path, block_bytes)
    for line in lines:
        if not line.strip():
            continue
        where = f"line {lines.number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, {where}: not a JSON object: {error}") from error
        if not isinstance(record, dict):
            raise DataError(f"{path}, {where}: not a JSON object but a {type(record).__name__}")
        for key in (text_column, label_column):
            if key not in record:
                raise DataError(f"{path}, {where}: there is no {key!r}")
        text = record[text_column]
        if not isinstance(text, str):
            shown = json.dumps(text)[:40]
            raise DataError(f"{path}, {where}: {text_column!r} is {shown}, not text")
        yield TextRecord(text, record[label_column], where, lines.done)


def _table_records(
    path: Path, text_column: str, label_column: str, memory_bytes: int
) -> Iterator[TextRecord]:
    from dplasso.data.tables.files import (
        decoded,
        pa,
        read_labels,
        record_batches,
        refuse_missing,
    )

    for batch in record_batches(path, [text_column, label_column], memory_bytes // 2):
        texts = decoded(batch.records.column(text_column))
        refuse_missing(path, text_column, batch, texts)
        if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
            raise DataError(f"{path}, column {text_column!r}: text is needed, not {texts.type}")
        labels = read_labels(path, label_column, batch)
        for i, (text, label) in enumerate(zip(texts.to_pylist(), labels, strict=True)):
            where = f"row {batch.first_row + i + 1}"
            yield TextRecord(
                text, label.item() if isinstance(label, np.generic) else label, where, batch.done
            )
