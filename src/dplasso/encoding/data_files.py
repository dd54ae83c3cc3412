"""Read data files of any format as sparse rows, and record how their columns were made."""

from collections.abc import Generator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from dplasso.data.blocks import BlockSource, Piece, binarized, files_source, gather
from dplasso.data.formats import Dataset, block_source, is_table
from dplasso.data.people import number_people
from dplasso.data.source_files import Paths, Progress, check_readable, expand, source_files
from dplasso.data.store import is_store, open_store
from dplasso.data.table_batches import DETECTED, Batch, Dialect, TableReader, refuse_dialect
from dplasso.encoding.contract import as_arrow
from dplasso.encoding.hashed import Text
from dplasso.encoding.origin import Origin, with_origin
from dplasso.encoding.schema import Schema, encode
from dplasso.errors import DataError, need

# A draft reads fewer rows if the table has very many columns.
_DRAFT_ROWS, _DRAFT_FIELDS = 1 << 16, 1 << 23
_DRAFT_BYTES = 1 << 27


def encode_files(
    paths: Paths,
    schema: Schema | None = None,
    *,
    person_column: str | None = None,
    binarize: bool = False,
    labelled: bool = True,
    dialect: Dialect = DETECTED,
    **layout: Any,
) -> BlockSource:
    """Open data files as sparse rows; errors in their content are raised during reading.

    `schema`: of a table. Svmlight text and .npz take a `Layout` instead.
    `person_column`: column that identifies the person of each row; needs a schema.
    `labelled`: whether to read the labels of tables and .npz; otherwise they are all 0.
    """
    files = expand(paths)
    _check_schema(files, schema, layout)
    if person_column is not None and schema is None:
        raise DataError(
            f"{files[0]} does not say which person each row belongs to: only a table that a "
            "schema encodes has a person column (CSV, JSON lines, Parquet, Arrow)"
        )
    if schema is not None:
        source = _table_source(files, schema, labelled, person_column, dialect)
    else:
        refuse_dialect(files[0], dialect)
        source = block_source(files, labelled=labelled, **layout)
    return binarized(source) if binarize else source


def read_records(
    paths: Paths,
    *,
    n_features: int | None = None,
    schema: Schema | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Dataset:
    """Read data files into memory, or open one store; options are those of `encode_files`."""
    files = expand(paths)
    stores = [path for path in files if path.is_dir()]
    if stores:
        if len(files) > 1:
            raise DataError(
                f"{stores[0]} is a folder: a store is a whole data set, so pass it alone"
            )
        if not is_store(stores[0]) and any(map(is_store, stores[0].iterdir())):
            raise DataError(
                f"{stores[0]} is a folder of stores, which only a fit on a cluster can read; use "
                "--cluster threads to run one in this process"
            )
        _refuse_folder(stores[0])
        options.pop("labelled", None)
        refuse_dialect(stores[0], options.pop("dialect", DETECTED))
        store = open_store(stores[0])
        _refuse_options(options | {"schema": schema}, "a store; pass it to the conversion")
        if n_features is not None and n_features != store.shape[1]:
            raise DataError(
                f"{stores[0]} has {store.shape[1]:,} columns, but `n_features` is {n_features:,}; "
                "convert the data with that number of columns"
            )
        return Dataset(store.X, store.y, str(stores[0]))
    source = encode_files(files, schema, n_features=n_features, **options)
    X, y, people = gather(source, progress)
    numbers = None if people is None else number_people(people)
    declared = schema is not None or n_features is not None
    origin = Origin(schema, options.get("binarize", False), columns_declared=declared)
    return Dataset(with_origin(X, origin), y, source.name, numbers)


def _check_schema(files: list[Path], schema: Schema | None, layout: Mapping[str, Any]) -> None:
    """Raise `DataError` for a table without a schema, other files with one, and wrong options."""
    if not any(map(is_table, files)):
        if schema is None:
            return
        check_readable(files[0])
        raise DataError(
            f"{files[0]} is not a table; a schema encodes CSV, JSON lines, Parquet or Arrow: save "
            "the data in one of these formats"
        )
    if schema is None:
        raise DataError(
            f"{files[0]} is a table and needs a schema (--schema); draft one with: dplasso "
            f"schema draft {files[0]}"
        )
    n_features = layout.get("n_features")
    if n_features is not None and n_features != schema.n_features:
        raise DataError(
            f"the schema makes {schema.n_features:,} columns, but `n_features` is "
            f"{n_features:,}; leave `n_features` out"
        )
    _refuse_options(dict(layout) | {"n_features": None}, "a table")


def _refuse_options(options: Mapping[str, Any], what: str) -> None:
    for name, value in options.items():
        if value not in (None, False):
            raise DataError(f"`{name}` cannot be combined with {what}")


def _refuse_folder(path: Path) -> None:
    """Raise `DataError` for a folder of tables; say how to pass them."""
    if path.is_dir() and (suffixes := {file.suffix for file in path.iterdir() if is_table(file)}):
        raise DataError(f"{path} is a folder of tables: pass its files, '{path}/*{min(suffixes)}'")


def _table_source(
    paths: Paths, schema: Schema, labelled: bool, person: str | None, dialect: Dialect
) -> BlockSource:
    """Return tables as row blocks; all labels are 0 if not `labelled`."""
    if labelled and schema.label is None:
        raise DataError(
            'the schema names no column of labels; name it in the schema ("label") or with '
            "--label-column"
        )
    if person is not None and person in (*schema.columns, schema.label):
        raise DataError(
            f"column {person!r} identifies people, so it cannot be a feature or the label: "
            "remove it from the schema"
        )
    texts = [isinstance(part, Text) for part in schema.parts]
    if not all(texts):
        need("pyarrow", "A table")
    files = source_files(paths)
    readers = [TableReader(path, dialect) for path in files.paths]
    label = schema.label if labelled else None
    wanted = [*schema.columns, *(name for name in (label, person) if name is not None)]
    # The words of a text take more memory than the entries of other columns.
    share = 0.5 if any(texts) else 1.0

    def read(i: int, memory_bytes: int) -> Generator[Piece]:
        reader = readers[i]
        for batch in reader.batches(wanted, int(memory_bytes * share), person):
            labels = np.zeros(batch.n_rows) if label is None else reader.module.labels(batch, label)
            names = (
                None if person is None else (batch.columns[person], partial(batch.where, person))
            )
            rows = encode(schema, batch.columns, batch.where)
            yield Piece(rows, labels, batch.done, partial(batch.where, str(label)), names)

    return files_source(files, schema.n_features, read)


def first_rows(
    path: str | Path,
    most: int | None = None,
    dialect: Dialect = DETECTED,
    progress: Progress | None = None,
) -> Any:
    """Return the first rows of a table file as pyarrow.Table; by default 65,536 or fewer."""
    need("pyarrow", "A table")
    import pyarrow as pa

    path = Path(path)
    _refuse_folder(path)
    check_readable(path)
    if not is_table(path):
        raise DataError(
            f"{path} is not a table; draft a schema from CSV, JSON lines, Parquet or Arrow"
        )
    reader = TableReader(path, dialect)
    names = reader.column_names()
    most = most or max(1, min(_DRAFT_ROWS, _DRAFT_FIELDS // max(len(names), 1)))
    batches: list[Batch] = []
    n_rows = 0
    for batch in reader.batches(names, _DRAFT_BYTES):
        batches.append(batch)
        n_rows += batch.n_rows
        if progress is not None:
            progress(min(n_rows, most), most)
        if n_rows >= most:
            break
    if not batches:
        raise DataError(f"{path} has no records; a draft needs at least one")
    columns = {}
    for name, first in batches[0].columns.items():
        parts = [batch.columns[name] for batch in batches]
        whole = [*chain(*parts)] if isinstance(first, list) else pa.chunked_array(parts)
        columns[name] = as_arrow(whole, f"{path}, column {name!r}")
    return pa.table(columns).slice(0, most)
