"""Files of tables as row blocks by a schema, in bounded memory: CSV, JSON lines, Parquet, Arrow."""

from importlib import import_module
from pathlib import Path
from typing import Any

from dplasso.data.blocks import BlockSource, Rows
from dplasso.data.formats import is_table
from dplasso.data.source_files import Paths, source_files
from dplasso.data.streams import check_readable
from dplasso.data.tables import batches
from dplasso.data.tables.dialect import Dialect
from dplasso.encoding.columns import as_arrow, encode
from dplasso.encoding.parts import Text
from dplasso.encoding.schema import Schema
from dplasso.errors import DataError

_DRAFT_BYTES = 1 << 26


def table_source(
    paths: Paths,
    schema: Schema,
    *,
    labelled: bool = True,
    person_column: str | None = None,
    dialect: Dialect | None = None,
) -> BlockSource:
    """Open files of tables as encoded row blocks; without `labelled` all labels are 0."""
    if labelled and schema.label is None:
        raise DataError(
            f"{schema.columns[0]!r} and the other columns are encoded, but which holds the labels? "
            'name it in the schema ("label") or with --label-column'
        )
    if person_column is not None and person_column in (*schema.columns, schema.label):
        raise DataError(
            f"column {person_column!r} says which person each row belongs to, so it can be neither "
            "a feature nor the label: leave it out of the schema"
        )
    texts = [isinstance(part, Text) for part in schema.parts]
    if not all(texts):
        need_pyarrow()

    def encoded(batch: batches.Batch) -> Rows:
        return encode(schema, batch.columns, batch.n_rows, batch.where)

    return batches.table_source(
        source_files(paths),
        schema.columns,
        encoded,
        schema.n_features,
        label=schema.label if labelled else None,
        person=person_column,
        # Words of a text take more memory than entries of other columns.
        memory_share=0.5 if any(texts) else 1.0,
        dialect=dialect,
    )


def need_pyarrow() -> None:
    """Raise `DataError` if pyarrow, which reads tables, is not installed."""
    try:
        import_module("dplasso.data.tables.arrow")
    except ImportError as error:
        raise DataError(str(error)) from error


def first_rows(path: str | Path, most: int, dialect: Dialect | None = None) -> Any:
    """Return at most so many rows of a table file as pyarrow.Table, with all its columns."""
    need_pyarrow()
    import pyarrow as pa

    path = Path(path)
    check_readable(path)
    if not is_table(path):
        raise DataError(
            f"{path}: a schema is drafted from a table: CSV, JSON lines, Parquet, Arrow"
        )
    reader = batches.TableReader(path, dialect)
    pieces: list[Any] = []
    for batch in reader.batches(reader.column_names(), _DRAFT_BYTES):
        columns = {
            name: as_arrow(values, f"{path}, column {name!r}")
            for name, values in batch.columns.items()
        }
        pieces.append(pa.table(columns))
        if sum(piece.num_rows for piece in pieces) >= most:
            break
    if not pieces:
        raise DataError(f"{path} has no records; at least one is needed")
    return pa.concat_tables(pieces, promote_options="permissive").slice(0, most)
