"""The options that say how to read data or encode it, and the reading itself with its bar."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from dplasso.cli import output
from dplasso.cli.options import option_name
from dplasso.data.blocks import Rows, gather
from dplasso.data.formats import Dataset, is_table, table_format
from dplasso.data.labels import check_label_map, labels_of_one_kind, map_labels, parse_label_map
from dplasso.data.source_files import source_files
from dplasso.data.table_batches import Batch, Dialect, ListColumns, said, table_source
from dplasso.encoding.encoder import warn_of_draft
from dplasso.encoding.files import need_pyarrow, read_categories, read_records
from dplasso.encoding.hashed import Hashed, Text
from dplasso.encoding.origin import check_same_origin, origin_of
from dplasso.encoding.parts import Categories
from dplasso.encoding.schema import Schema, read_schema
from dplasso.errors import DataError, PrivacyLeakWarning

BESIDE_CLUSTER = "does not go with --cluster; leave one of them out"
_HASH_BITS = 20
# Options that need one of some others.
_NEEDS = {
    ("--text-column", "--ngrams", "--binary", "--keep-case"): ("--text",),
    ("--values",): ("--indices",),
    ("--ignore-unknown",): ("--categories",),
    ("--hash-bits",): ("--hash-columns", "--text"),
}


@dataclass(frozen=True)
class DialectOptions(Dialect):
    """Options for the dialect of text tables.

    Tables that are text
    --------------------
    delimiter : CHARACTER
        The character between fields, or tab. Default: detected in the header.
    decimal : .|,
        The decimal separator. Default: a comma if fields are separated by semicolons.
    quote : CHARACTER
        The quote character, or none. Default: detected in the header.
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

    @property
    def asked(self) -> Dialect | None:
        """The dialect that was asked for, or None."""
        return self if self.is_asked else None

    def say(self, files: Sequence[Path]) -> None:
        """Print the detected dialect of each file that its name does not give away."""
        for path in files:
            written = path.is_file() and is_table(path) and table_format(path).compressible
            if written and (words := said(path, self.asked)) is not None:
                output.note(words)


@dataclass(frozen=True)
class ReadingOptions:
    """Options for reading a data set.

    Data
    ----
    binarize
        Turn every non-zero value into 1. Noise grows with the largest value that a row may have, so
        ones do far better than tf-idf.
    zero_based
        svmlight columns count from 0 (default: from 1).
    labels : FILE
        A .npy file with the labels of a .npz that holds none.
    label_map : LABEL=NUMBER,...
        What the labels in the data mean, for example neg=0,pos=1; any other label is an error.
        Needed where labels are text.
    schema : FILE
        Tables: what their columns are, declared in a JSON file (dplasso schema draft). A model
        knows the schema it was trained with.
    label_column : NAME
        Tables: where the label is. Default: as the schema says, else label. For a multi-label
        model NAME,NAME,... in its order; default: its own names.
    """

    binarize: bool = False
    zero_based: bool = False
    labels: Path | None = None
    label_map: str | None = None
    schema: Path | None = None
    label_column: str | None = None
    dialect: DialectOptions = DialectOptions()

    def meaning(self) -> dict[str, float] | None:
        """Read ``--label-map``."""
        return None if self.label_map is None else parse_label_map(self.label_map)

    def declared(self) -> Schema | None:
        """Read ``--schema``, with the label's column; warn of a draft."""
        if self.schema is None:
            return None
        found = self.labelled(read_schema(self.schema))
        with warnings.catch_warnings():
            warnings.filterwarnings("always", category=PrivacyLeakWarning)
            warn_of_draft(found)
        return found

    def labelled(self, schema: Schema) -> Schema:
        """Return a schema that says where the label is: as ``--label-column``, itself, or label."""
        return replace(schema, label=self.label_column or schema.label or "label")

    def of_rows(self) -> dict[str, Any]:
        """Return the options that `dplasso.encoding.files.encode_files` takes."""
        return {
            "zero_based": self.zero_based,
            "labels_path": self.labels,
            "label_map": self.meaning(),
            "binarize": self.binarize,
            "dialect": self.dialect.asked,
        }

    def read(
        self,
        files: Sequence[Path],
        bars: output.Bars,
        n_features: int | None,
        schema: Schema | None = None,
        **more: Any,
    ) -> Dataset:
        """Read files (from `expand`) as one data set, or open a store, under a progress bar."""
        rest = f" and {len(files) - 1} more" if len(files) > 1 else ""
        self.dialect.say(files)
        with bars.task(f"reading {files[0].name}{rest}") as progress:
            more |= self.of_rows() | {"schema": schema, "progress": progress}
            return read_records(files, n_features=n_features, **more)

    def read_labels(self, files: Sequence[Path], labels: Sequence[Any]) -> NDArray[Any]:
        """Return the labels of each row of multi-label tables, from a column for each label."""
        if not is_table(files[0]):
            raise DataError(
                f"{files[0]}: the model predicts {len(labels)} labels of each row, and such a file "
                "has one; give a table with a column for each label, or score it in Python"
            )
        names = list(map(str, labels))
        if self.label_column is not None:
            names = self.label_column.split(",")
        meaning, before = self.meaning(), 0

        def column(batch: Batch, name: str) -> NDArray[Any]:
            given, where = table_format(batch.path).reader.labels(batch, name), batch.where(name)
            labels, _ = labels_of_one_kind(given, partial(batch.where, name), None)
            if meaning is not None:
                labels = map_labels(labels, check_label_map(meaning), where, before)
            if labels.dtype.kind == "U":
                raise DataError(f"{where}: labels are text; say what they mean with --label-map")
            return labels

        def rows(batch: Batch) -> Rows:
            nonlocal before
            found = np.column_stack([column(batch, name) for name in names])
            n_rows, n_labels = found.shape
            before += n_rows
            starts, places = np.arange(n_rows + 1) * n_labels, np.tile(np.arange(n_labels), n_rows)
            return Rows(starts, places, found.ravel())

        asked, opened = self.dialect.asked, source_files(files)
        source = table_source(opened, names, rows, len(names), label=None, dialect=asked)
        return gather(source)[0].toarray()

    def read_for(
        self, fitted: Any, files: Sequence[Path], bars: output.Bars, *, labelled: bool
    ) -> Dataset:
        """Read rows for a fitted model in the way that its training rows were read."""
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
        rows = reading.read(files, bars, n_features, schema, labelled=labelled)
        check_same_origin(origin, origin_of(rows.X), rows.source)
        if origin is None:
            output.warn(
                "warning: the model does not say how its columns were made; give --binarize or "
                "--schema here if it was fitted with them"
            )
        return rows


@dataclass(frozen=True)
class EncodingOptions:
    """Options that are short ways to write a schema.

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
        """Return what `encode_files` takes; refuse options that clash."""
        ways = {
            "--schema": reading.schema,
            "--indices": self.indices,
            "--categories": self.categories,
            "--hash-columns": self.hash_columns,
            "--text": self.text,
        }
        ours = {option_name(field.name): getattr(self, field.name) for field in fields(self)}
        if not (self.text or is_table(data[0])):
            refuse(ours | {"--label-column": reading.label_column}, "goes with tables or --text")
            refuse({"--schema": reading.schema}, "goes with tables")
            return None
        declared = n_features if self.indices is None else None
        others = {"--zero-based": reading.zero_based, "--labels": reading.labels}
        refuse(others | {"--features": declared}, "does not go with this kind of data")
        for names, needed in _NEEDS.items():
            if not any(ours[one] for one in needed):
                refuse({name: ours[name] for name in names}, f"goes with {' or '.join(needed)}")
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
        shortest, _, longest = (self.ngrams or "1,1").partition(",")
        if not (shortest.isdecimal() and longest.isdecimal()):
            raise typer.BadParameter(f"--ngrams {self.ngrams}: write FROM,TO, for example 1,2")
        words = (int(shortest), int(longest)), self.binary, not self.keep_case
        return Schema((Text(self.text_column or "text", bits, *words, missing="error"),))


def refuse(given: dict[str, Any], why: str) -> None:
    """Refuse options that would be ignored."""
    for name, value in given.items():
        if value not in (None, False):
            raise typer.BadParameter(f"{name} {why}")
