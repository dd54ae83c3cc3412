"""How records become sparse rows: the options of ``dplasso convert`` for tables and texts."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dplasso.cli.options import flag, option
from dplasso.cli.reading import ReadingOptions

if TYPE_CHECKING:
    from dplasso.data.tables.lists import ListColumns
    from dplasso.encoding.schema import Schema

TABLES = "Tables: short ways to write a schema"
TEXTS = "Texts: a short way to write a schema"
_HASH_BITS = 20


@dataclass(frozen=True)
class EncodingOptions:
    """Options for tables, each a way to write a schema; None or False where they are not given."""

    text: Annotated[
        bool,
        flag(
            "--text",
            "DATA holds texts: hash their words. The vocabulary stays public, because none is "
            "learnt.",
            TEXTS,
        ),
    ] = False
    text_column: Annotated[
        str | None, option("--text-column", "Where the text is. Default: text.", "NAME", TEXTS)
    ] = None
    hash_bits: Annotated[
        int | None,
        option("--hash-bits", f"Hash to 2^B columns. Default: {_HASH_BITS}.", "B", TEXTS),
    ] = None
    ngrams: Annotated[
        str | None,
        option(
            "--ngrams", "Features are runs of FROM to TO words. Default: 1,1.", "FROM,TO", TEXTS
        ),
    ] = None
    binary: Annotated[
        bool,
        flag(
            "--binary",
            "1 for what occurs, instead of how often: noise grows with the largest value.",
            TEXTS,
        ),
    ] = False
    keep_case: Annotated[bool, flag("--keep-case", "Keep capital letters.", TEXTS)] = False
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
            "One-hot by hashing: these columns, without a list of categories.",
            "NAME,NAME",
            TABLES,
        ),
    ] = None

    def encoding(
        self, data: Sequence[str], n_features: int | None, reading: ReadingOptions
    ) -> "Schema | ListColumns | None":
        """Return what `dplasso.encoding.files.encode_files` takes; refuse options that clash.

        `n_features` is ``--features``, which lists of column numbers take.
        """
        from dplasso.data.formats import is_table

        others = {"--zero-based": reading.zero_based, "--labels": reading.labels is not None}
        declared = n_features is not None and self.indices is None
        if self.text or is_table(data[0]):
            _refuse_others(others | {"--features": declared})
        else:
            self._refuse(tuple(field.name for field in fields(self)), "tables or --text")
            if reading.label_column is not None:
                raise typer.BadParameter("--label-column goes with tables or --text")
            if reading.schema is not None:
                raise typer.BadParameter("--schema goes with tables")
            return None
        if not self.text:
            self._refuse(("text_column", "ngrams", "binary", "keep_case"), "--text")
        given = {
            "--schema": reading.schema,
            "--indices": self.indices,
            "--categories": self.categories,
            "--hash-columns": self.hash_columns,
            "--text": self.text or None,
        }
        ways = [name for name, value in given.items() if value is not None]
        if len(ways) != 1:
            raise typer.BadParameter(
                f"{data[0]} is a table: say with one of {', '.join(given)} what its columns mean"
            )
        if self.indices is None:
            self._refuse(("values",), "--indices")
        if self.categories is None:
            self._refuse(("ignore_unknown",), "--categories")
        if self.hash_columns is None and not self.text:
            self._refuse(("hash_bits",), "--hash-columns or --text")
        if self.indices is not None:
            from dplasso.encoding.source import need_pyarrow

            need_pyarrow()
            from dplasso.data.tables.lists import ListColumns

            return ListColumns(self.indices, self.values, n_features)
        return reading.declared() or reading.labelled(self._schema())

    def _schema(self) -> "Schema":
        """Write the options as a schema."""
        from dplasso.encoding.parts import Categories, Hashed, Text
        from dplasso.encoding.schema import Schema

        bits = _HASH_BITS if self.hash_bits is None else self.hash_bits
        if self.hash_columns is not None:
            names = tuple(name.strip() for name in self.hash_columns.split(","))
            return Schema((Hashed(names, bits, missing="ignore"),))
        if self.categories is not None:
            from dplasso.encoding.files import read_categories

            unknown = "ignore" if self.ignore_unknown else "error"
            lists = read_categories(self.categories).items()
            return Schema(tuple(Categories(*pair, unknown, missing="ignore") for pair in lists))
        given = self.ngrams or "1,1"
        try:
            shortest, longest = (int(part) for part in given.split(","))
        except ValueError:
            raise typer.BadParameter(f"--ngrams {given}: write FROM,TO, for example 1,2") from None
        text = Text(
            self.text_column or "text",
            bits,
            (shortest, longest),
            self.binary,
            not self.keep_case,
            missing="error",
        )
        return Schema((text,))

    def _refuse(self, names: Sequence[str], needed: str) -> None:
        """Raise where an option is given that would be ignored."""
        for name in names:
            if getattr(self, name) not in (None, False):
                raise typer.BadParameter(f"--{name.replace('_', '-')} goes with {needed}")


def _refuse_others(others: dict[str, bool]) -> None:
    for name, given in others.items():
        if given:
            raise typer.BadParameter(f"{name} does not go with this kind of data")
