"""Files of tables as row blocks by a schema, in bounded memory: CSV, JSON lines, Parquet, Arrow."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import BlockSource, RowBlock
from dplasso.data.people import hash_people
from dplasso.data.source_files import Paths, source_files
from dplasso.data.streams import Progress, check_readable
from dplasso.data.text.files import header_names, is_text_table, text_batches
from dplasso.encoding.columns import encode
from dplasso.encoding.parts import Text
from dplasso.encoding.schema import Schema
from dplasso.errors import DataError

# As in dplasso.data.tables.files, which needs pyarrow.
_TABLE_SUFFIXES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_DRAFT_BYTES = 1 << 26


class Batch(NamedTuple):
    """Records of a file, their places, labels (a list: as read), bytes read so far, people."""

    columns: dict[str, Any]
    n_rows: int
    where: Callable[[int], str]
    labels: NDArray[Any] | list[Any]
    done: int
    people: Any


def is_table(path: str | Path) -> bool:
    """Return whether a file's name is that of a table: CSV, JSON lines, Parquet or Arrow."""
    return is_text_table(Path(path)) or is_binary_table(path)


def is_binary_table(path: str | Path) -> bool:
    """Return whether a file's name is that of a Parquet or Arrow table."""
    return Path(path).suffix.lower() in _TABLE_SUFFIXES


def table_source(
    paths: Paths, schema: Schema, *, labelled: bool = True, person_column: str | None = None
) -> BlockSource:
    """Open files of tables as a stream of encoded row blocks, float32; progress counts bytes.

    `paths`: files, or patterns, that make one data set, in this order: ``.csv`` and ``.tsv`` with a
    header, ``.jsonl`` and ``.ndjson`` (these also compressed), ``.parquet``, ``.pq``, ``.arrow``,
    ``.feather``, ``.ipc``. `labelled` says whether labels are read; otherwise they are all 0, and
    no label column is needed. Labels of text files are numbers if the first one is, else strings.
    `person_column`: where it says whose row each is; no feature and no label.

    Raises DataError if a file is missing, of another kind, or needs pyarrow, which is not there; if
    no label column is named, or the person's is encoded. What is wrong inside a file is told, with
    its place, when it is read.
    """
    if labelled and schema.label is None:
        raise DataError(
            f"{schema.columns[0]!r} and the other columns are encoded, but which holds the labels? "
            'name it in the schema ("label") or with --label-column'
        )
    if person_column is not None and person_column in (*schema.columns, schema.label):
        raise DataError(
            f"column {person_column!r} says whose row each is, so it can be neither a feature nor "
            "the label: leave it out of the schema"
        )
    files = source_files(paths)
    for path in files.paths:
        if not is_table(path):
            raise DataError(
                f"{path}: tables are read from .csv, .tsv, .jsonl, .ndjson (also compressed), "
                f"{', '.join(_TABLE_SUFFIXES)}"
            )
    if any(map(is_binary_table, files.paths)) or any(
        not isinstance(part, Text) for part in schema.parts
    ):
        need_pyarrow()
    label = schema.label if labelled else None

    def blocks(memory_bytes: int, progress: Progress | None = None, /) -> Iterator[RowBlock]:
        kind: str | None = None
        names: str | None = None
        for i, path in enumerate(files.paths):
            files.check_unchanged(i)
            for batch in _batches(path, schema, label, person_column, memory_bytes):
                where = partial(_where, path, batch.where)
                rows = encode(schema, batch.columns, batch.n_rows, where)
                labels = batch.labels
                if isinstance(labels, list):
                    kind, labels = _labels(path, labels, batch.where, kind)
                people = None
                if batch.people is not None:
                    assert person_column is not None
                    people, names = hash_people(batch.people, partial(where, person_column), names)
                yield RowBlock(*rows, labels, people)
                if progress is not None:
                    progress(files.before(i) + batch.done, files.total)
            files.check_unchanged(i)

    return BlockSource(files.name, schema.n_features, blocks, files.total)


def need_pyarrow() -> None:
    """Raise `DataError` if pyarrow, which reads tables, is not installed."""
    try:
        import dplasso.data.tables.files  # noqa: F401
    except ImportError as error:
        raise DataError(str(error)) from error


def first_rows(path: str | Path, most: int) -> Any:
    """Return at most so many rows of a table file as pyarrow.Table, with all its columns.

    Raises DataError if the file is missing, damaged or no table.
    """
    need_pyarrow()
    import pyarrow as pa

    from dplasso.data.tables.files import column_names, record_batches

    path = Path(path)
    check_readable(path)
    if is_binary_table(path):
        batches = record_batches(path, column_names(path), _DRAFT_BYTES)
        pieces = _until(most, (pa.Table.from_batches([batch.records]) for batch in batches))
    elif is_text_table(path):
        names = header_names(path)
        found = text_batches(path, names, _DRAFT_BYTES)
        pieces = _until(most, (_table(path, batch.columns) for batch in found))
    else:
        raise DataError(
            f"{path}: a schema is drafted from a table: CSV, JSON lines, Parquet, Arrow"
        )
    if not pieces:
        raise DataError(f"{path} has no records; at least one is needed")
    return pa.concat_tables(pieces, promote_options="permissive").slice(0, most)


def _table(path: Path, columns: Mapping[str, list[Any]]) -> Any:
    import pyarrow as pa

    arrays = {}
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(values)
        except (pa.ArrowException, OverflowError):
            raise DataError(f"{path}, column {name!r}: its values are not of one kind") from None
    return pa.table(arrays)


def _until(most: int, tables: Iterator[Any]) -> list[Any]:
    pieces: list[Any] = []
    for table in tables:
        pieces.append(table)
        most -= table.num_rows
        if most <= 0:
            break
    return pieces


def _where(path: Path, place: Callable[[int], str], column: str, row: int | None) -> str:
    at = f"{path}, column {column!r}"
    return at if row is None else f"{at}, {place(row)}"


def _batches(
    path: Path, schema: Schema, label: str | None, person: str | None, memory_bytes: int
) -> Iterator[Batch]:
    columns = [*schema.columns, *(name for name in (label, person) if name is not None)]
    texts = {part.column for part in schema.parts if isinstance(part, Text)}
    if is_binary_table(path):
        from dplasso.data.tables.files import read_labels, record_batches

        # Words of a text take more memory than entries of other columns.
        for found in record_batches(path, columns, memory_bytes // 2 if texts else memory_bytes):
            n_rows = found.records.num_rows
            labels = np.zeros(n_rows) if label is None else read_labels(path, label, found)
            arrays = {name: found.records.column(name) for name in schema.columns}
            people = None if person is None else found.records.column(person)
            yield Batch(arrays, n_rows, _rows_from(found.first_row), labels, found.done, people)
        return
    for records in text_batches(path, columns, memory_bytes):
        n_rows = len(records.lines)
        given = np.zeros(n_rows) if label is None else records.columns[label]
        people = None if person is None else records.columns[person]
        lines = _lines_of(records.lines)
        yield Batch(records.columns, n_rows, lines, given, records.done, people)


def _rows_from(first: int) -> Callable[[int], str]:
    return lambda row: f"row {first + row + 1}"


def _lines_of(lines: Sequence[int]) -> Callable[[int], str]:
    return lambda row: f"line {lines[row]}"


def _labels(
    path: Path, given: list[Any], where: Callable[[int], str], kind: str | None
) -> tuple[str, NDArray[Any]]:
    """Turn labels into an array of one kind, that of the first label of all."""
    kind = kind or _kind(given[0])
    labels = [_as_kind(label, kind) for label in given]
    if None in labels:
        row = labels.index(None)
        raise DataError(
            f"{path}, {where(row)}: the label is not a {kind}, as the first label is"
            if kind != "label"
            else f"{path}, {where(row)}: the label is neither a finite number nor a string nor a "
            "bool"
        )
    return kind, np.asarray(labels)


def _kind(label: Any) -> str:
    if isinstance(label, bool):
        return "bool"
    if isinstance(label, int | float):
        return "number" if np.isfinite(label) else "label"
    if isinstance(label, str):
        return "number" if _number(label) is not None else "string"
    return "label"


def _as_kind(label: Any, kind: str) -> Any:
    if kind == "bool":
        return label if isinstance(label, bool) else None
    if kind == "string":
        return label if isinstance(label, str) else None
    if kind == "number" and not isinstance(label, bool):
        return _number(label)
    return None


def _number(label: Any) -> float | None:
    try:
        number = float(label)
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None
