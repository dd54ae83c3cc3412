"""How records become sparse rows: the options of ``dplasso convert`` for tables and texts."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dplasso.cli.options import flag, option
from dplasso.errors import DataError

if TYPE_CHECKING:
    from dplasso.data.encodings import TableEncoding
    from dplasso.data.text.reader import TextHashing

TABLES = "Tables (Parquet, Arrow)"
TEXTS = "Texts (CSV, JSON lines, tables)"
_HASH_BITS = 20


@dataclass(frozen=True)
class EncodingOptions:
    """Options for tables and texts; None or False where they are not given."""

    text: Annotated[
        bool,
        flag(
            "--text",
            "DATA holds texts (.csv, .tsv, .jsonl, compressed or not, .parquet, .arrow): hash "
            "their words. The vocabulary stays public, because none is learnt.",
            TEXTS,
        ),
    ] = False
    text_column: Annotated[
        str | None, option("--text-column", "Where the text is. Default: text.", "NAME", TEXTS)
    ] = None
    label_column: Annotated[
        str | None,
        option(
            "--label-column",
            "Tables and texts: where the label is. Default: label.",
            "NAME",
            TABLES,
        ),
    ] = None
    hash_bits: Annotated[
        int | None,
        option("--hash-bits", f"Hash to 2^B columns. Default: {_HASH_BITS}.", "B", TEXTS),
    ] = None
    ngrams: Annotated[
        str | None,
        option("--ngrams", "Runs of so many words are features. Default: 1,1.", "FROM,TO", TEXTS),
    ] = None
    binary: Annotated[
        bool,
        flag(
            "--binary",
            "1 for what occurs, instead of how often: the noise pays for the largest value.",
            TEXTS,
        ),
    ] = False
    keep_case: Annotated[bool, flag("--keep-case", "Do not lower capitals.", TEXTS)] = False
    indices: Annotated[
        str | None,
        option("--indices", "Column of lists of column numbers, from 0.", "NAME", TABLES),
    ] = None
    values: Annotated[
        str | None,
        option("--values", "Column of lists of their values. Default: all 1.", "NAME", TABLES),
    ] = None
    categories: Annotated[
        Path | None,
        option(
            "--categories",
            'One-hot by public lists: a JSON file {"city": ["Rome", "Oslo"], ...}.',
            "FILE",
            TABLES,
        ),
    ] = None
    ignore_unknown: Annotated[
        bool,
        flag(
            "--ignore-unknown",
            "A category that is not listed has no entry (default: an error).",
            TABLES,
        ),
    ] = False
    hash_columns: Annotated[
        str | None,
        option(
            "--hash-columns",
            "One-hot by hashing: these columns, without any list.",
            "NAME,NAME",
            TABLES,
        ),
    ] = None

    def encoding(
        self, data: Sequence[str], n_features: int | None, *, others: dict[str, bool]
    ) -> "TextHashing | TableEncoding | None":
        """Return what `dplasso.data.encodings.encode_files` takes; refuse options that clash.

        `n_features` is ``--features``, which lists of column numbers take; `others` says which
        options for svmlight text and .npz are given.
        """
        from dplasso.data.encodings import is_table

        if self.text:
            self._refuse(
                ("indices", "values", "categories", "ignore_unknown", "hash_columns"),
                "a table without --text",
            )
            _refuse_others(others | {"--features": n_features is not None})
            return self._text()
        self._refuse(("text_column", "ngrams", "binary", "keep_case"), "--text")
        if is_table(data[0]):
            declared = n_features is not None and self.indices is None
            _refuse_others(others | {"--features": declared})
            return self._table(data[0], n_features)
        self._refuse(
            tuple(field.name for field in fields(self)), "Parquet and Arrow files or --text"
        )
        return None

    def _text(self) -> "TextHashing":
        from dplasso.data.text.reader import TextHashing

        given = self.ngrams or "1,1"
        try:
            shortest, longest = (int(part) for part in given.split(","))
        except ValueError:
            raise typer.BadParameter(f"--ngrams {given}: write FROM,TO, for example 1,2") from None
        return TextHashing(self._bits(), (shortest, longest), self.binary, not self.keep_case)

    def _table(self, path: str, n_features: int | None) -> "TableEncoding":
        ways = [self.indices, self.categories, self.hash_columns]
        if sum(way is not None for way in ways) != 1:
            raise typer.BadParameter(
                f"{path} is a table: say with one of --indices, --categories, --hash-columns or "
                "--text what its columns mean"
            )
        try:
            from dplasso.data.tables.arrow import Categories, HashedCategories, ListColumns
        except ImportError as error:
            raise DataError(str(error)) from error
        if self.indices is None:
            self._refuse(("values",), "--indices")
        if self.categories is None:
            self._refuse(("ignore_unknown",), "--categories")
        if self.hash_columns is not None:
            names = tuple(name.strip() for name in self.hash_columns.split(","))
            return HashedCategories(names, self._bits())
        self._refuse(("hash_bits",), "--hash-columns or --text")
        if self.indices is not None:
            return ListColumns(self.indices, self.values, n_features)
        from dplasso.data.encodings import read_categories

        assert self.categories is not None
        unknown = "ignore" if self.ignore_unknown else "error"
        return Categories(read_categories(self.categories), unknown)

    def _bits(self) -> int:
        return _HASH_BITS if self.hash_bits is None else self.hash_bits

    def _refuse(self, names: Sequence[str], needed: str) -> None:
        """Raise where an option is given that would be ignored."""
        for name in names:
            if getattr(self, name) not in (None, False):
                raise typer.BadParameter(f"--{name.replace('_', '-')} goes with {needed}")


def _refuse_others(others: dict[str, bool]) -> None:
    for name, given in others.items():
        if given:
            raise typer.BadParameter(f"{name} does not go with this kind of data")
