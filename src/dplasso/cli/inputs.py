"""Options for reading data, and reading with a progress bar."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from dplasso.cli import output
from dplasso.data.formats import Dataset, is_table, table_format
from dplasso.data.table_batches import Dialect, said
from dplasso.encoding.data_files import read_records
from dplasso.encoding.origin import Origin, check_same_origin, origin_of
from dplasso.encoding.schema import Schema, read_schema
from dplasso.errors import DataError

BESIDE_CLUSTER = "cannot be combined with --cluster: leave one of them out"


@dataclass(frozen=True)
class DialectOptions(Dialect):
    """Options for the dialect of text tables.

    Tables that are text
    --------------------
    delimiter : CHARACTER
        The character between fields, or tab. Default: detected in the header.
    decimal : .|,
        The decimal separator. Default: a comma if fields are separated by semicolons.
    encoding : NAME
        The text encoding, for example utf-8, cp1252 or utf-16. Default: detected in the header,
        else utf-8.
    columns : NAME,NAME,...
        The names of the columns of a file without a header.
    header
        Whether the first line holds the names of the columns; with --no-header they are called
        column_1, column_2, ... Default: it does, and a first line that looks like a record is
        refused.
    """

    def say(self, files: Sequence[Path]) -> None:
        """Print the detected dialect of each text table."""
        for path in files:
            written = path.is_file() and is_table(path) and table_format(path).compressible
            if written and (words := said(path, self)) is not None:
                output.note(words)


@dataclass(frozen=True)
class ReadingOptions:
    """Options for reading a data set.

    Data
    ----
    binarize
        Turn every non-zero value into 1. Do this for --method lasso or frank-wolfe on texts: their
        noise grows with the largest value that a row may have.
    zero_based
        svmlight columns count from 0 (default: from 1).
    labels : FILE
        A .npy file with the labels of a .npz that holds none.
    schema : FILE
        Tables: a JSON file that declares how to encode the columns (dplasso schema draft). A model
        knows the schema it was trained with.
    label_column : NAME
        Tables: the column with the label. Default: that of the schema, or else label.
    """

    binarize: bool = False
    zero_based: bool = False
    labels: Path | None = None
    schema: Path | None = None
    label_column: str | None = None
    dialect: DialectOptions = DialectOptions()

    @property
    def beside(self) -> tuple[Path | None, ...]:
        """Files that are read besides the data."""
        return (self.labels, self.schema)

    def declared(self) -> Schema | None:
        """Read ``--schema``, with the label's column."""
        return None if self.schema is None else self.labelled(read_schema(self.schema))

    def labelled(self, schema: Schema) -> Schema:
        """Return the schema with a label column: ``--label-column``, its own, or ``label``."""
        return replace(schema, label=self.label_column or schema.label or "label")

    def check_tables(self, files: Sequence[Path]) -> None:
        """Refuse ``--label-column`` for files that are not tables."""
        if not any(map(is_table, files)):
            refuse({"--label-column": self.label_column}, "is for tables: leave it out")

    def of_rows(self) -> dict[str, Any]:
        """Return the options that `dplasso.encoding.data_files.encode_files` takes."""
        return {
            "zero_based": self.zero_based,
            "labels_path": self.labels,
            "binarize": self.binarize,
            "dialect": self.dialect,
        }

    def read(
        self,
        files: Sequence[Path],
        bars: output.Bars,
        n_features: int | None,
        schema: Schema | None = None,
        like: Origin | None = None,
        **more: Any,
    ) -> Dataset:
        """Read files (from `expand`) as one data set, or open a store, under a progress bar.

        `like`: the origin of rows whose columns must have the same meaning.
        """
        rest = f" and {len(files) - 1} more" if len(files) > 1 else ""
        self.check_tables(files)
        self.dialect.say(files)
        with bars.task(f"reading {files[0].name}{rest}") as progress:
            more |= self.of_rows() | {"schema": schema, "progress": progress}
            rows = read_records(files, n_features=n_features, **more)
        check_same_origin(like, origin_of(rows.X), rows.source)
        return rows

    def read_for(
        self, fitted: Any, files: Sequence[Path], bars: output.Bars, *, labelled: bool
    ) -> Dataset:
        """Read rows for a fitted model as its training rows were read."""
        origin = fitted.model_.origin
        schema, n_features, reading = self.declared(), fitted.n_features_in_, self
        if origin is not None:
            if self.binarize and not origin.binarize:
                raise DataError("the model was trained without --binarize; leave it out here")
            ours = origin.schema
            if schema is not None and (ours is None or not ours.same_columns(schema)):
                raise DataError(
                    f"{self.schema} is not the schema that the model was trained with; leave "
                    "--schema out: the model knows its own"
                )
            # A store was encoded and made binary when it was made; others are so now.
            store = files[0].is_dir()
            reading = replace(self, binarize=origin.binarize and not store)
            schema = None if ours is None or not any(map(is_table, files)) else self.labelled(ours)
            if store or ours is not None:
                # "The columns differ" is a better message than "there are more columns".
                n_features = None
        rows = reading.read(files, bars, n_features, schema, origin, labelled=labelled)
        if origin is None:
            output.warn(
                "warning: the model does not say how its columns were made; give --binarize or "
                "--schema here if it was fitted with them"
            )
        return rows


def refuse(options: dict[str, Any], why: str) -> None:
    """Refuse options that would be ignored."""
    for name, value in options.items():
        if value not in (None, False):
            raise typer.BadParameter(f"{name} {why}")
