"""Parquet and Arrow files as batches of records, in bounded memory, with errors that name rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.data.streams import check_readable
from dplasso.errors import DataError

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError(
        "Parquet and Arrow files are read with pyarrow, which is not installed; "
        "install it with: pip install 'dplasso[arrow]'"
    ) from error

__all__ = [
    "ARROW_SUFFIXES",
    "Batch",
    "column_names",
    "decoded",
    "pa",
    "pc",
    "read_labels",
    "record_batches",
    "refuse_missing",
]

PARQUET_SUFFIXES = (".parquet", ".pq")
IPC_SUFFIXES = (".arrow", ".feather", ".ipc")
ARROW_SUFFIXES = (*PARQUET_SUFFIXES, *IPC_SUFFIXES)

# Bytes that one entry may take at a time: stored, flattened, sorted, and handed on.
_BYTES_PER_ENTRY = 64
# What pyarrow raises on a damaged file; names in its schema are decoded as they are asked for.
_FAULTS = (pa.ArrowException, OSError, UnicodeDecodeError)
_MOST_ROWS = 1 << 16
_PAGE_BUFFER = 1 << 20


class Batch(NamedTuple):
    """Records of a file, and where they stand in it.

    Attributes
    ----------
    records : pyarrow.RecordBatch
        The columns asked for.
    first_row : int
        Number of the first record in its file, from 0.
    done : int
        Bytes of the file read so far, about.
    """

    records: pa.RecordBatch
    first_row: int
    done: int


def column_names(path: Path) -> list[str]:
    """Return the names of a file's columns, from its schema.

    Raises
    ------
    DataError
        If the file is missing, of another kind, or damaged.
    """
    check_readable(path)
    try:
        if path.suffix.lower() in PARQUET_SUFFIXES:
            return list(pq.read_schema(path).names)
        with pa.OSFile(str(path)) as file:
            return list(pa.ipc.open_file(file).schema.names)
    except _FAULTS as error:
        raise _damaged(path, error) from error


def record_batches(path: Path, columns: Sequence[str], memory_bytes: int) -> Iterator[Batch]:
    """Stream the records of a Parquet or Arrow IPC (Feather 2) file.

    Parameters
    ----------
    path : Path
        ``.parquet`` or ``.pq``; ``.arrow``, ``.feather`` or ``.ipc``.
    columns : sequence of str
        What to read; other columns are not touched.
    memory_bytes : int
        What one batch and the work on it may use, about. An Arrow file is mapped into memory;
        where its batches are compressed, a whole one is held at a time.

    Yields
    ------
    Batch

    Raises
    ------
    DataError
        If the file is missing, damaged, or lacks a column.
    """
    names = column_names(path)
    for column in columns:
        if names.count(column) != 1:
            fault = "no column" if column not in names else "more than one column"
            raise DataError(f"{path}: {fault} {column!r}; there are {', '.join(map(repr, names))}")
    size = path.stat().st_size
    read = _parquet if path.suffix.lower() in PARQUET_SUFFIXES else _ipc
    first_row = 0
    try:
        for records, share in read(path, list(columns), memory_bytes):
            yield Batch(records, first_row, int(share * size))
            first_row += records.num_rows
    except _FAULTS as error:
        raise _damaged(path, error) from error


def _parquet(
    path: Path, columns: list[str], memory_bytes: int
) -> Iterator[tuple[pa.RecordBatch, float]]:
    # Column chunks are read page by page, not whole.
    with pq.ParquetFile(
        path, buffer_size=_PAGE_BUFFER, pre_buffer=False, page_checksum_verification=True
    ) as file:
        n_rows, done = file.metadata.num_rows, 0
        rows = _rows_at_once(file.metadata, memory_bytes)
        for records in file.iter_batches(rows, columns=columns, use_threads=False):
            for piece in _sliced(records, memory_bytes):
                done += piece.num_rows
                yield piece, done / n_rows
    # pyarrow silently stops reading at pages with too few rows.
    if done != n_rows:
        raise pa.ArrowInvalid(f"{done} of {n_rows} rows are there")


def _rows_at_once(metadata: pq.FileMetaData, memory_bytes: int) -> int:
    """Choose the rows to read at a time, from the bytes of the groups of rows.

    A stored byte is taken for an entry, which few encodings undercut by much. The sizes of single
    columns would tell more, but asking a damaged file for them can end the process (pyarrow 26).
    """
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    per_row = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=1.0)
    return int(min(max(memory_bytes / (_BYTES_PER_ENTRY * max(per_row, 1.0)), 1), _MOST_ROWS))


def _ipc(
    path: Path, columns: list[str], memory_bytes: int
) -> Iterator[tuple[pa.RecordBatch, float]]:
    with pa.memory_map(str(path)) as mapped:
        file = pa.ipc.open_file(mapped)
        for i in range(file.num_record_batches):
            stored = file.get_batch(i).select(columns)
            done = 0
            for piece in _sliced(stored, memory_bytes):
                done += piece.num_rows
                yield piece, (i + done / stored.num_rows) / file.num_record_batches


def _sliced(records: pa.RecordBatch, memory_bytes: int) -> Iterator[pa.RecordBatch]:
    """Cut records so that the work on each piece fits the memory."""
    # Arrow trusts the offsets in a file; damaged ones could point anywhere.
    records.validate(full=True)
    per_row = 8 * records.nbytes / max(records.num_rows, 1) + _BYTES_PER_ENTRY
    step = int(min(max(memory_bytes / per_row, 1), _MOST_ROWS))
    for first in range(0, records.num_rows, step):
        yield records.slice(first, min(step, records.num_rows - first))


def read_labels(path: Path, column: str, batch: Batch) -> NDArray[Any]:
    """Return a column's values as labels.

    Returns
    -------
    ndarray, shape (n,)
        Whole numbers, float64, bools or strings.

    Raises
    ------
    DataError
        If a value is missing, not finite, or of another kind.
    """
    labels = decoded(batch.records.column(column))
    refuse_missing(path, column, batch, labels)
    kind = labels.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return np.asarray(labels.to_pylist(), dtype=np.str_)
    if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise DataError(
            f"{path}, column {column!r}: labels must be numbers, strings or bools, not {kind}"
        )
    found: NDArray[Any] = labels.to_numpy(zero_copy_only=False)
    if found.dtype.kind == "f":
        found = found.astype(np.float64)
        bad = ~np.isfinite(found)
        if bad.any():
            at = int(np.argmax(bad))
            raise DataError(
                f"{path}, column {column!r}, row {batch.first_row + at + 1}: the label is not a "
                "finite number"
            )
    return found


def refuse_missing(path: Path, column: str, batch: Batch, values: pa.Array) -> None:
    """Raise `DataError` that names the first row of a column without a value."""
    if values.null_count:
        at = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        raise DataError(
            f"{path}, column {column!r}, row {batch.first_row + at + 1}: the value is missing"
        )


def decoded(values: pa.Array) -> pa.Array:
    """Undo dictionary encoding: the list of distinct values in a file is never used."""
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _damaged(path: Path, error: Exception) -> DataError:
    kind = "Parquet" if path.suffix.lower() in PARQUET_SUFFIXES else "Arrow IPC (Feather 2)"
    reason = " ".join(str(error).split())
    return DataError(f"{path}: not a complete, undamaged {kind} file: {reason}")
