"""Raw rows for a pipeline that a model file holds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.pipeline import Pipeline

from dplasso.cli import output
from dplasso.cli.inputs import ReadingOptions, refuse
from dplasso.data.blocks import Rows, gather, with_mapped_labels
from dplasso.data.formats import Dataset, is_table, plain_suffix, table_format
from dplasso.data.source_files import source_files
from dplasso.data.tables.batches import Batch, table_source
from dplasso.errors import DataError
from dplasso.matrix.compressed import without_duplicates
from dplasso.model.row_steps import RowSteps

_TEXT = "text"
_ENCODER = ["dplasso.encoding.encoder.PublicEncoder"]
# Without types, a number in a text file may be a number or a word.
_UNTYPED = (".csv", ".tsv")


def read_raw(
    pipeline: Pipeline,
    files: Sequence[Path],
    reading: ReadingOptions,
    bars: output.Bars,
    *,
    labelled: bool,
) -> tuple[Any, Dataset]:
    """Return a pipeline's last step, and the rows that the other steps make of some files."""
    steps, last = pipeline[:-1], pipeline[-1]
    held: RowSteps = last.model_.row_steps
    # The schema of an encoder alone is in the file, as without a pipeline.
    if list(held.types()) == _ENCODER:
        return last, reading.read_for(last, files, bars, labelled=labelled)
    refuse({"--schema": reading.schema}, "does not go with a model that knows its pipeline")
    if any(path.is_dir() for path in files):
        raise DataError(f"{files[0]} is a store, and the model takes raw rows: give it those")
    label = (reading.label_column or "label") if labelled else None
    if not is_table(files[0]):
        if held.takes_texts:
            raise DataError(
                f"{files[0]}: the model takes texts: give a table with a column of them"
            )
        n_inputs = held.inputs if isinstance(held.inputs, int) else None
        numbered = reading.read(files, bars, n_inputs)
        return last, Dataset(steps.transform(numbered.X), numbered.y, numbered.source)
    columns = [_text_column(files[0], reading)] if held.takes_texts else _columns(files[0], held)

    def rows(batch: Batch) -> Rows:
        made = steps.transform(_raw(batch, columns, texts=held.takes_texts))
        X = csr_array(without_duplicates(made))
        return Rows(X.indptr.astype(np.int64), X.indices, X.data)

    size = int(last.n_features_in_)
    source = table_source(source_files(files), columns, rows, size, label=label, memory_share=0.5)
    if (meaning := reading.meaning()) is not None and labelled:
        source = with_mapped_labels(source, meaning)
    with bars.task(f"reading {files[0].name}") as progress:
        X, y, _ = gather(source, progress)
    return last, Dataset(X, y, source.name)


def _text_column(path: Path, reading: ReadingOptions) -> str:
    """Return the column of the texts: text, or the only one besides the label."""
    names: list[str] = table_format(path).reader.column_names(path)
    others = [name for name in names if name != (reading.label_column or "label")]
    return others[0] if len(others) == 1 and _TEXT not in others else _TEXT


def _columns(path: Path, held: RowSteps) -> list[str]:
    if not isinstance(held.inputs, tuple):
        raise DataError(
            f"{path} is a table, and the model takes rows of numbers, not named columns"
        )
    if plain_suffix(path) in _UNTYPED:
        raise DataError(
            f"{path} does not say which columns are numbers: give JSON lines, Parquet or Arrow, or "
            "predict in Python (dplasso.load)"
        )
    return list(held.inputs)


def _raw(batch: Batch, names: list[str], *, texts: bool) -> Any:
    """Return what the first step takes: texts, or a table of the columns."""
    held = ((name, batch.columns[name]) for name in names)
    columns = {name: one if isinstance(one, list) else one.to_pylist() for name, one in held}
    if not texts:
        try:
            import pandas as pd
        except ImportError:
            raise DataError("this model takes tables: install pandas to fit or predict") from None
        return pd.DataFrame(columns)
    for row, text in enumerate(columns[names[0]]):
        if not isinstance(text, str):
            raise DataError(f"{batch.where(names[0], row)}: the text is missing")
    return columns[names[0]]
