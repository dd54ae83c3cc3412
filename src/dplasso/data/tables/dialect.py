"""How a text table is written: what stands between its fields, in its numbers, and in its bytes.

Facts of a file's format are treated as public. They are read off the header, which is no record,
and off a byte-order mark; no record is looked at, so none decides how another is read.
"""

import codecs
import re
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path

from dplasso.data.formats import plain_suffix
from dplasso.data.streams import line_blocks
from dplasso.errors import DataError

DELIMITERS = {".csv": ",", ".tsv": "\t"}
"""Suffixes of tables with a header, and what stands between their fields as a rule."""

_SHOWN = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_NAMED = {"tab": "\t", "\\t": "\t", "space": " ", "none": ""}
_HEADER_BYTES = 1 << 16
_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")
_GROUPED = re.compile(r"\s*[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?\s*")


@dataclass(frozen=True)
class Dialect:
    """How text tables are written; None where the header says it.

    `delimiter`: one character, or "tab".
    `decimal`: "." or ",". A comma that was asked for goes with points between groups of digits.
    `quote`: one character around fields, or "none".
    `encoding`: as Python calls it.
    """

    delimiter: str | None = None
    decimal: str | None = None
    quote: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote"):
            given = getattr(self, name)
            given = _NAMED.get(given, given)
            object.__setattr__(self, name, given)
            word, empty = ("tab", False) if name == "delimiter" else ("none", True)
            wrong = given is not None and (len(given) != 1 or given in "\r\n\0")
            if wrong and not (given == "" and empty):
                raise DataError(f"`{name}` must be one character or {word}, got {given!r}")
        if self.quote is not None and self.quote == self.delimiter:
            raise DataError(f"`delimiter` and `quote` cannot both be {self.quote!r}")
        if self.decimal not in (None, ".", ","):
            raise DataError(f"`decimal` must be . or , and not {self.decimal!r}")
        if self.encoding is not None:
            try:
                if codecs.lookup(self.encoding)._is_text_encoding:
                    return
            except (LookupError, ValueError):
                pass
            raise DataError(
                f"`encoding` {self.encoding!r} is not known; write for example utf-8 or cp1252"
            )

    @property
    def is_asked(self) -> bool:
        """Whether anything was said of it."""
        return any(getattr(self, field.name) is not None for field in fields(self))


def check_goes(path: Path, dialect: Dialect | None, *, text: bool) -> None:
    """Refuse what was said of a file that has none of it."""
    if dialect is None:
        return
    if not text:
        raise DataError(
            f"{path} is no text table; `delimiter`, `decimal`, `quote` and `encoding` go with CSV, "
            "and encoding with JSON lines"
        )
    if plain_suffix(path) not in DELIMITERS and replace(dialect, encoding=None).is_asked:
        raise DataError(
            f"{path}: JSON lines have an encoding, but no `delimiter`, `decimal` or `quote`"
        )


def sniffed(path: Path, asked: Dialect | None) -> Dialect:
    """Return how a text table is written: as asked, and for the rest as its header says."""
    asked = asked or Dialect()
    check_goes(path, asked, text=True)
    with closing(line_blocks(path, _HEADER_BYTES)) as blocks:
        line = next(blocks, (b"", 0))[0].split(b"\n", 1)[0]
    encoding = asked.encoding or _encoding(line)
    if (usual := DELIMITERS.get(plain_suffix(path))) is None:
        return Dialect(encoding=encoding)
    header = line.decode(encoding, "replace").strip("\r\n\ufeff")
    quote = asked.quote
    if quote is None:
        quote = "'" if '"' not in header and re.search(r"(^|\W)'[^']*'(\W|$)", header) else '"'
    delimiter = asked.delimiter
    if delimiter is None:
        mark = re.escape(quote)
        bare = re.sub(f"{mark}[^{mark}]*{mark}", "", header) if quote else header
        places = {one: bare.count(one) for one in (usual, *_SHOWN) if one != " "}
        delimiter = "\t" if usual in bare and usual == "\t" else max(places, key=places.__getitem__)
        delimiter = delimiter if places[delimiter] else usual
    decimal = asked.decimal or ("," if delimiter == ";" else ".")
    return Dialect(delimiter, decimal, quote, encoding)


def _encoding(line: bytes) -> str:
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        line.decode()
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def said(path: Path, asked: Dialect | None) -> str | None:
    """Say how a text table is taken to be written; None where it is as its name says."""
    found = sniffed(path, asked)
    usual = DELIMITERS.get(plain_suffix(path))
    if found in (Dialect(usual, ".", '"', "utf-8"), Dialect(encoding="utf-8")):
        return None
    told = []
    if found.delimiter is not None:
        told = [
            f"{_SHOWN.get(found.delimiter, repr(found.delimiter))} between fields",
            f"decimal {'comma' if found.decimal == ',' else 'point'}",
            f"quotes {found.quote}" if found.quote else "no quotes",
        ]
    told.append("UTF-8" if found.encoding == "utf-8" else str(found.encoding))
    options = "--delimiter, --decimal, --quote, --encoding set it"
    shown = f"as its header shows; {options}" if asked is None else "as asked"
    return f"{path.name}: {', '.join(told)} ({shown})"


def with_points(values: list[str], asked: Dialect | None) -> list[str]:
    """Write numbers with a decimal comma in the way that Python reads; nothing else is changed.

    A field is a number if all of it is: 3,5 and, where the comma was asked for, 1.234 or 1.234,5.
    Without that 1.234 may be a fraction, and 1.234,5 is no number.
    """
    grouped = asked is not None and asked.decimal == ","

    def plain(text: str) -> str:
        if "," in text and _COMMA.fullmatch(text):
            return text.replace(",", ".")
        if grouped and "." in text and _GROUPED.fullmatch(text):
            return text.replace(".", "").replace(",", ".")
        return text

    return list(map(plain, values))
