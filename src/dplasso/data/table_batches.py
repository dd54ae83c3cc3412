"""Read tables: the dialect of text tables, and batches of named columns.

The dialect is detected from the header, which is not a record, and from a byte-order mark. So no
record affects how another is read. Without a header, and in JSON lines, it has fixed defaults.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from dplasso.data.formats import plain_suffix, table_format
from dplasso.data.source_files import line_blocks
from dplasso.errors import DataError

DELIMITERS = {".csv": ",", ".tsv": "\t"}
"""Suffixes of tables with delimited fields, and their usual delimiters."""

_SHOWN = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_NAMED = {"tab": "\t", "\\t": "\t", "space": " "}
_HEADER_BYTES = 1 << 16
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
SEPARATOR_NOTE = re.compile(r'\ufeff?"?sep=(.)"?\s*')
"""The line that Excel writes before a header to declare the delimiter."""
_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")
_GROUPED = {
    ",": re.compile(r"\s*[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?\s*"),
    ".": re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?\s*"),
}


@dataclass(frozen=True)
class Dialect:
    """The format of text tables; None for settings to detect from the header.

    `delimiter`: one character, or "tab".
    `decimal`: "." or ",". Setting it also allows the other mark as thousands separator.
    `encoding`: Python's name of the encoding.
    `header`: whether the first line is a header; None for a header that is checked.
    `columns`: comma-separated column names of a file without a header.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    columns: str | None = None

    def __post_init__(self) -> None:
        mark = self.delimiter
        if mark is not None:
            mark = _NAMED.get(mark, mark)
            object.__setattr__(self, "delimiter", mark)
            if len(mark) != 1 or mark in '\r\n\0"':
                raise DataError(f"`delimiter` must be one character or tab, got {mark!r}")
        if self.decimal not in (None, ".", ","):
            raise DataError(f"`decimal` must be . or , but not {self.decimal!r}")
        if self.columns is not None:
            if self.header:
                raise DataError(
                    "`columns` and `header` cannot be combined: `columns` names the columns of a "
                    "file without a header. Pass one of them"
                )
            if not all(self.names or [None]) or len(set(self.names)) < len(self.names):
                raise DataError("`columns` must be different names, separated by commas")
        if self.encoding is not None:
            try:
                if codecs.lookup(self.encoding)._is_text_encoding:
                    return
            except (LookupError, ValueError):
                pass
            raise DataError(
                f"`encoding` {self.encoding!r} is unknown; use for example utf-8 or cp1252"
            )

    @property
    def is_asked(self) -> bool:
        """Whether any setting is specified."""
        return any(getattr(self, field.name) is not None for field in fields(self))

    @property
    def names(self) -> list[str]:
        """The names in `columns`; empty if it is None."""
        return [] if self.columns is None else [n.strip() for n in next(csv.reader([self.columns]))]

    @property
    def has_header(self) -> bool:
        """Whether the first line is a header."""
        return self.columns is None and self.header is not False


DETECTED = Dialect()
"""The dialect of which all settings are detected."""


def refuse_dialect(path: Path, asked: Dialect) -> None:
    """Raise `DataError` if a dialect is asked for, for a file that is not a text table."""
    if asked.is_asked:
        raise DataError(
            f"{path} is not a text table; leave out `delimiter`, `decimal`, `columns`, `header` "
            "and `encoding`, which are for CSV (JSON lines: encoding only)"
        )


def sniffed(path: Path, asked: Dialect) -> Dialect:
    """Return the dialect of a text table: as `asked`, otherwise detected from the header.

    Without a header, all that was not asked for has a fixed default: the first line is a record.
    """
    usual = DELIMITERS.get(plain_suffix(path))
    if usual is None and replace(asked, encoding=None).is_asked:
        raise DataError(
            f"{path}: JSON lines have no `delimiter`, `decimal`, `header` or `columns`; leave "
            "these out"
        )
    with closing(line_blocks(path, _HEADER_BYTES)) as blocks:
        start = next(blocks, (b"", 0))[0]
    marked = "utf-16" if start.startswith(_UTF_16) else "utf-8"
    if usual is None:
        return Dialect(encoding=asked.encoding or marked)
    encoding, note, header = asked.encoding or "utf-8", "", ""
    if asked.has_header:
        encoding = asked.encoding or marked
        note, header = _note_and_header(start, encoding)
        valid = start.startswith((note + header).encode())
        if asked.encoding is None and encoding == "utf-8" and not valid:
            encoding = "cp1252"
            note, header = _note_and_header(start, encoding)
    delimiter = asked.delimiter
    if delimiter is None and (declared := SEPARATOR_NOTE.fullmatch(note)):
        delimiter = declared[1]
    if delimiter is None:
        bare = re.sub('"[^"]*"', "", header)
        places = {sign: bare.count(sign) for sign in (usual, *_SHOWN) if sign != " "}
        delimiter = "\t" if usual in bare and usual == "\t" else max(places, key=places.__getitem__)
        delimiter = delimiter if places[delimiter] else usual
    decimal = asked.decimal or ("," if delimiter == ";" else ".")
    return Dialect(delimiter, decimal, encoding, asked.header, asked.columns)


def _note_and_header(start: bytes, encoding: str) -> tuple[str, str]:
    """Return the line that declares the delimiter, or "", and the header, which ends as for csv."""
    lines = io.StringIO(start.decode(encoding, "replace"), newline="")
    first = lines.readline()
    return (first, lines.readline()) if SEPARATOR_NOTE.fullmatch(first) else ("", first)


def said(path: Path, asked: Dialect) -> str | None:
    """Describe the dialect of a text table for the user; None if it is the usual one."""
    dialect = sniffed(path, asked)
    usual = DELIMITERS.get(plain_suffix(path))
    if dialect in (Dialect(usual, ".", "utf-8"), Dialect(encoding="utf-8")):
        return None
    phrases = []
    if not dialect.has_header:
        n_names = len(dialect.names)
        phrases = [f"no header, {f'{n_names} columns named' if n_names else 'columns numbered'}"]
    if dialect.delimiter is not None:
        phrases += [
            f"{_SHOWN.get(dialect.delimiter, repr(dialect.delimiter))} between fields",
            f"decimal {'comma' if dialect.decimal == ',' else 'point'}",
        ]
    phrases.append("UTF-8" if dialect.encoding == "utf-8" else str(dialect.encoding))
    options = "--delimiter, --decimal, --encoding set it"
    shown = "as asked" if asked.is_asked else f"as its header shows; {options}"
    return f"{path.name}: {', '.join(phrases)} ({shown})"


def with_points(values: list[str], decimal: str, asked: Dialect) -> list[str]:
    """Convert numbers to Python's notation, and leave other fields unchanged.

    With a decimal comma 3,5 is a number. Thousands separators are read only if the user set
    `decimal`.
    """
    grouped = None if asked.decimal is None else _GROUPED[decimal]
    if decimal == "." and grouped is None:
        return values
    group = "." if decimal == "," else ","

    def plain(text: str) -> str:
        if decimal == "," in text and _COMMA.fullmatch(text):
            return text.replace(",", ".")
        if grouped and group in text and grouped.fullmatch(text):
            return text.replace(group, "").replace(",", ".")
        return text

    return list(map(plain, values))


def decimal_of_groups(text: str) -> str | None:
    """Return the decimal mark of a number with thousands separators and a fraction, or None."""
    last = text[max(text.rfind(","), text.rfind("."))] if "," in text and "." in text else ""
    return last if last and _GROUPED[last].fullmatch(text) else None


class Batch(NamedTuple):
    """Consecutive records of a table file.

    `columns`: by name, a pyarrow.Array, or a list of the fields of a text file.
    `unit`, `numbers`: "line" or "row", and the number of each record.
    """

    path: Path
    columns: dict[str, Any]
    unit: str
    numbers: Sequence[int]
    done: int

    @property
    def n_rows(self) -> int:
        """The number of records."""
        return len(self.numbers)

    def where(self, column: str, row: int | None = None) -> str:
        """Describe the place of a value, or of a column if `row` is None."""
        at = f"{self.path}, column {column!r}"
        return at if row is None else f"{at}, {self.unit} {self.numbers[row]}"

    def labels(self, column: str, values: list[Any]) -> list[Any]:
        """Return the values of the label's column, if none is missing or empty."""
        for missing in (None, ""):
            if missing in values:
                self.refuse_label(column, values.index(missing))
        return values

    def refuse_label(self, column: str, row: int) -> NoReturn:
        """Raise `DataError` for a missing label."""
        place = self.where(column, row)
        raise DataError(f"{place}: the label is missing; add it, or leave this {self.unit} out")


def check_columns(names: Sequence[str], wanted: Sequence[str], whose: str) -> None:
    """Raise `DataError` unless each wanted column exists exactly once."""
    counts = Counter(names)
    for column in wanted:
        if counts[column] != 1:
            fault = "no column" if column not in counts else "more than one column"
            there = ", ".join(map(repr, names[:200]))
            like = [name for name in counts if alike(name) == alike(column) and name != column]
            cure = f": write {like[0]!r} with the same case and blanks" if like else ""
            raise DataError(f"{whose} {fault} {column!r}{cure}; there are {there}")


def alike(word: Any) -> str:
    """Return a word in lower case without blanks at its ends."""
    return str(word).strip().lower()


class TableReader:
    """Read a table file with the module for its format."""

    def __init__(self, path: Path, dialect: Dialect) -> None:
        file_format = table_format(path)
        self.path, self.module, self._asked = path, file_format.reader, dialect
        self._dialect: tuple[Dialect, ...] = ()
        if file_format.compressible:
            self._dialect = (sniffed(path, dialect),)
        else:
            refuse_dialect(path, dialect)

    def column_names(self) -> list[str]:
        """Return the names of the columns."""
        names: list[str] = self.module.column_names(self.path, *self._dialect)
        return names

    def batches(
        self, columns: Sequence[str], memory_bytes: int, as_they_stand: str | None = None
    ) -> Iterator[Batch]:
        """Yield batches of some columns; ids in `as_they_stand` keep their commas."""
        decimal = "".join(dialect.decimal or "" for dialect in self._dialect)
        for batch in self.module.batches(self.path, columns, memory_bytes, *self._dialect):
            for name in set(columns) - {as_they_stand} if decimal else ():
                batch.columns[name] = with_points(batch.columns[name], decimal, self._asked)
            yield batch
