"""Files of tables as row blocks by a schema, in bounded memory: CSV, JSON lines, Parquet, Arrow."""

from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from dplasso.data.blocks import BlockSource, Rows
from dplasso.data.formats import is_table
from dplasso.data.source_files import Paths, source_files
from dplasso.data.streams import Progress, check_readable
from dplasso.data.tables import batches
from dplasso.data.tables.dialect import Dialect
from dplasso.encoding.columns import as_arrow, encode
from dplasso.encoding.parts import Text
from dplasso.encoding.schema import Schema
from dplasso.errors import DataError

# Of a table of very many columns a draft looks at fewer rows.
_DRAFT_ROWS, _DRAFT_FIELDS = 1 << 16, 1 << 24
_DRAFT_BYTES = 1 << 27
# Fields made into arrays at a time: an array of few rows takes as long as one of many.
_FIELDS_AT_ONCE = 1 << 22


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


def first_rows(
    path: str | Path,
    most: int | None = None,
    dialect: Dialect | None = None,
    progress: Progress | None = None,
) -> Any:
    """Return the first rows of a table file as pyarrow.Table, with all its columns.

    `most` of them; by default 65,536, or fewer if that is more than 2**24 fields. `progress` takes
    the rows read so far, and how many there may be.
    """
    need_pyarrow()
    import pyarrow as pa

    path = Path(path)
    check_readable(path)
    if not is_table(path):
        raise DataError(
            f"{path}: a schema is drafted from a table: CSV, JSON lines, Parquet, Arrow"
        )
    reader = batches.TableReader(path, dialect)
    names = reader.column_names()
    most = most or max(1, min(_DRAFT_ROWS, _DRAFT_FIELDS // max(len(names), 1)))
    pieces: list[Any] = []
    waiting: list[batches.Batch] = []
    n_rows = 0
    for batch in reader.batches(names, _DRAFT_BYTES):
        waiting.append(batch)
        n_rows += batch.n_rows
        if progress is not None:
            progress(min(n_rows, most), most)
        if sum(one.n_rows for one in waiting) * len(names) >= _FIELDS_AT_ONCE:
            pieces.append(_joined(waiting))
            waiting = []
        if n_rows >= most:
            break
    if waiting:
        pieces.append(_joined(waiting))
    if not pieces:
        raise DataError(f"{path} has no records; at least one is needed")
    return pa.concat_tables(pieces, promote_options="permissive").slice(0, most)


def _joined(found: list[batches.Batch]) -> Any:
    """Return consecutive batches of a file as pyarrow.Table."""
    import pyarrow as pa

    columns = {}
    for name, first in found[0].columns.items():
        parts = [batch.columns[name] for batch in found]
        whole = [*chain(*parts)] if isinstance(first, list) else pa.chunked_array(parts)
        columns[name] = as_arrow(whole, f"{found[0].path}, column {name!r}")
    return pa.table(columns)
