"""How records become sparse rows: the options of ``dplasso convert`` for tables and texts."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import typer

from dplasso.cli.options import option_name
from dplasso.cli.reading import ReadingOptions
from dplasso.data.formats import is_table
from dplasso.data.tables.lists import ListColumns
from dplasso.encoding.files import read_categories
from dplasso.encoding.parts import Categories, Hashed, Text
from dplasso.encoding.schema import Schema
from dplasso.encoding.source import need_pyarrow

_HASH_BITS = 20
# Options that mean something beside any of others only.
_NEEDS = {
    ("--text-column", "--ngrams", "--binary", "--keep-case"): ("--text",),
    ("--values",): ("--indices",),
    ("--ignore-unknown",): ("--categories",),
    ("--hash-bits",): ("--hash-columns", "--text"),
}


@dataclass(frozen=True)
class EncodingOptions:
    """Options for tables, each a way to write a schema; None or False where they are not given.

    Texts: a short way to write a schema
    ------------------------------------
    text
        DATA holds texts: hash their words. The vocabulary stays public, because none is learnt.
    text_column : NAME
        Where the text is. Default: text.
    hash_bits : B
        Hash to 2^B columns. Default: 20.
    ngrams : FROM,TO
        Features are runs of FROM to TO words. Default: 1,1.
    binary
        1 for what occurs, instead of how often: noise grows with the largest value.
    keep_case
        Keep capital letters.

    Tables: short ways to write a schema
    ------------------------------------
    indices : NAME
        Column of lists of column numbers, from 0.
    values : NAME
        Column of lists of their values. Default: all 1.
    categories : FILE
        One-hot by public lists: a JSON file {"city": ["Rome", "Oslo"], ...}.
    ignore_unknown
        A category that is not listed has no entry (default: an error).
    hash_columns : NAME,NAME
        One-hot by hashing: these columns, without a list of categories.
    """

    text: bool = False
    text_column: str | None = None
    hash_bits: int | None = None
    ngrams: str | None = None
    binary: bool = False
    keep_case: bool = False
    indices: str | None = None
    values: str | None = None
    categories: Path | None = None
    ignore_unknown: bool = False
    hash_columns: str | None = None

    def encoding(
        self, data: Sequence[str], n_features: int | None, reading: ReadingOptions
    ) -> Schema | ListColumns | None:
        """Return what `dplasso.encoding.files.encode_files` takes; refuse options that clash.

        `n_features` is ``--features``, which lists of column numbers take.
        """
        ways = {
            "--schema": reading.schema,
            "--indices": self.indices,
            "--categories": self.categories,
            "--hash-columns": self.hash_columns,
            "--text": self.text,
        }
        ours = {option_name(field.name): getattr(self, field.name) for field in fields(self)}
        if not (self.text or is_table(data[0])):
            _refuse(ours | {"--label-column": reading.label_column}, "goes with tables or --text")
            _refuse({"--schema": reading.schema}, "goes with tables")
            return None
        declared = n_features if self.indices is None else None
        others = {"--zero-based": reading.zero_based, "--labels": reading.labels}
        _refuse(others | {"--features": declared}, "does not go with this kind of data")
        for names, needed in _NEEDS.items():
            if not any(ours[one] for one in needed):
                _refuse({name: ours[name] for name in names}, f"goes with {' or '.join(needed)}")
        if sum(bool(way) for way in ways.values()) != 1:
            raise typer.BadParameter(
                f"{data[0]} is a table: say with one of {', '.join(ways)} what its columns mean"
            )
        if self.indices is not None:
            need_pyarrow()
            return ListColumns(self.indices, self.values, n_features)
        return reading.declared() or reading.labelled(self._schema())

    def _schema(self) -> Schema:
        """Write the options as a schema."""
        bits = _HASH_BITS if self.hash_bits is None else self.hash_bits
        if self.hash_columns is not None:
            names = tuple(name.strip() for name in self.hash_columns.split(","))
            return Schema((Hashed(names, bits, missing="ignore"),))
        if self.categories is not None:
            unknown = "ignore" if self.ignore_unknown else "error"
            lists = read_categories(self.categories).items()
            return Schema(tuple(Categories(*pair, unknown, missing="ignore") for pair in lists))
        given = self.ngrams or "1,1"
        try:
            shortest, longest = (int(part) for part in given.split(","))
        except ValueError:
            raise typer.BadParameter(f"--ngrams {given}: write FROM,TO, for example 1,2") from None
        words = (shortest, longest), self.binary, not self.keep_case
        return Schema((Text(self.text_column or "text", bits, *words, missing="error"),))


def _refuse(given: dict[str, Any], why: str) -> None:
    """Refuse options that would be ignored."""
    for name, value in given.items():
        if value not in (None, False):
            raise typer.BadParameter(f"{name} {why}")
