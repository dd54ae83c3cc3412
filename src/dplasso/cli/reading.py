"""The options that say how to read data, and the reading itself with its progress bar."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from dplasso.cli import output
from dplasso.data.files import Dataset
from dplasso.data.formats import is_table
from dplasso.data.label_map import parse_label_map
from dplasso.encoding.encoder import warn_of_draft
from dplasso.encoding.files import read_records
from dplasso.encoding.origin import check_same_origin, origin_of
from dplasso.encoding.schema import Schema, read_schema
from dplasso.errors import DataError, PrivacyLeakWarning


@dataclass(frozen=True)
class ReadingOptions:
    """What the files of a data set do not say themselves.

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
        Tables: where the label is. Default: as the schema says, else label.
    """

    binarize: bool = False
    zero_based: bool = False
    labels: Path | None = None
    label_map: str | None = None
    schema: Path | None = None
    label_column: str | None = None

    def meaning(self) -> dict[str, float] | None:
        """Read ``--label-map``; anything malformed is wrong usage."""
        try:
            return None if self.label_map is None else parse_label_map(self.label_map)
        except DataError as error:
            raise typer.BadParameter(str(error)) from None

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
        }

    def read(
        self,
        files: Sequence[Path],
        bars: output.Bars,
        n_features: int | None,
        schema: Schema | None = None,
        **more: Any,
    ) -> Dataset:
        """Read files (from `expand`) as one data set, or open a store, under a progress bar.

        `n_features` None takes the number of columns from the files.
        """
        rest = f" and {len(files) - 1} more" if len(files) > 1 else ""
        with bars.task(f"reading {files[0].name}{rest}") as progress:
            more |= self.of_rows() | {"schema": schema, "progress": progress}
            return read_records(files, n_features=n_features, **more)

    def read_for(
        self, fitted: Any, files: Sequence[Path], bars: output.Bars, *, labelled: bool
    ) -> Dataset:
        """Read the rows that a fitted model shall be applied to, as its own were read."""
        origin = fitted.model_.origin
        schema, n_features, reading = self.declared(), fitted.n_features_in_, self
        if origin is not None:
            if self.binarize and not origin.binarize:
                raise DataError("the model was trained without --binarize; leave it out here too")
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
                # That the columns differ says more than that there are more of them.
                n_features = None
        rows = reading.read(files, bars, n_features, schema, labelled=labelled)
        check_same_origin(origin, origin_of(rows.X), rows.source)
        if origin is None:
            output.warn(
                "warning: the model does not say how its columns were made; give --binarize or "
                "--schema here if it was fitted with them"
            )
        return rows
