"""Parquet and Arrow files as batches of records, in bounded memory, with errors that name rows."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import INT32_MAX, MOST_COLUMNS, Rows
from dplasso.data.source_files import check_readable
from dplasso.data.tables.batches import Batch, ListColumns, check_columns
from dplasso.errors import DataError
from dplasso.matrix.compressed import check_rows, working_dtype

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError(
        "Tables (CSV, JSON lines, Parquet, Arrow) are read with pyarrow, which is not installed; "
        "install it with: pip install 'dplasso[arrow]'"
    ) from error

# Bytes that one entry may take at a time: stored, flattened, sorted, and handed on.
_BYTES_PER_ENTRY = 64
_MOST_ROWS = 1 << 16
_PAGE_BUFFER = 1 << 20


def column_names(path: Path) -> list[str]:
    """Return the names of a file's columns, from its schema."""
    check_readable(path)
    with _undamaged(path):
        if _is_parquet(path):
            return list(pq.read_schema(path).names)
        with pa.OSFile(str(path)) as file:
            return list(pa.ipc.open_file(file).schema.names)


def batches(path: Path, columns: Sequence[str], memory_bytes: int) -> Iterator[Batch]:
    """Stream some columns of a Parquet or Arrow IPC (Feather 2) file."""
    names = column_names(path)
    check_columns(names, columns, f"{path}:")
    size, first_row = path.stat().st_size, 0
    with _undamaged(path):
        read = _parquet if _is_parquet(path) else _ipc
        for records, share in read(path, columns, memory_bytes):
            found = {name: records.column(name) for name in columns}
            numbers = range(first_row + 1, first_row + records.num_rows + 1)
            yield Batch(path, found, "row", numbers, int(share * size))
            first_row += records.num_rows


def _parquet(
    path: Path, columns: Sequence[str], memory_bytes: int
) -> Iterator[tuple[pa.RecordBatch, float]]:
    # Column chunks are read page by page, not whole.
    with pq.ParquetFile(
        path, buffer_size=_PAGE_BUFFER, pre_buffer=False, page_checksum_verification=True
    ) as file:
        n_rows, done = file.metadata.num_rows, 0
        rows = _rows_at_once(file.metadata, memory_bytes)
        for records in file.iter_batches(rows, columns=list(columns), use_threads=False):
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
    path: Path, columns: Sequence[str], memory_bytes: int
) -> Iterator[tuple[pa.RecordBatch, float]]:
    with pa.memory_map(str(path)) as mapped:
        file = pa.ipc.open_file(mapped)
        for i in range(file.num_record_batches):
            stored = file.get_batch(i).select(list(columns))
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


def labels(batch: Batch, column: str) -> NDArray[Any]:
    """Return a column's values as whole numbers, float64, bools or strings; none is missing."""
    found = _decoded(batch.columns[column])
    _refuse_missing(batch, column, found)
    kind, types = found.type, pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return np.asarray(found.to_pylist(), dtype=np.str_)
    array: NDArray[Any] = found.to_numpy(zero_copy_only=False)
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"{batch.where(column)}: labels must be numbers, strings or bools, not {kind}"
        )
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def list_rows(lists: ListColumns, batch: Batch) -> Rows:
    """Return the rows that lists write out; `DataError` names the row of what is wrong."""
    column = lists.indices
    starts, numbers = _flat_list(batch, column, "iu", "whole numbers")
    # A number that int64 does not hold becomes a negative one, which is refused.
    indices = numbers.astype(np.int64)
    values = _list_values(batch, lists.values, starts)
    limit = lists.n_features or MOST_COLUMNS
    outside, unordered, largest = check_rows(starts, indices, limit)
    if outside < 0 <= unordered:
        rows = np.repeat(np.arange(batch.n_rows), np.diff(starts))
        order = np.lexsort((indices, rows))
        indices, values = indices[order], values[order]
        _, twice, _ = check_rows(starts, indices, limit)
        if twice >= 0:
            raise DataError(f"{batch.where(column, twice)}: an index appears twice")
    if outside >= 0:
        allowed = f"0 to {limit - 1}, as declared" if lists.n_features else "0 or more"
        raise DataError(f"{batch.where(column, outside)}: an index is not {allowed}")
    narrow = max(largest, lists.n_features or 0) <= INT32_MAX
    return Rows(starts, indices.astype(np.int32) if narrow else indices, values)


def _list_values(batch: Batch, column: str | None, starts: NDArray[np.int64]) -> NDArray[Any]:
    if column is None:
        return np.ones(int(starts[-1]), np.float32)
    theirs, numbers = _flat_list(batch, column, "biuf", "numbers")
    ours, found = np.diff(starts), np.diff(theirs)
    if (ours != found).any():
        row = int(np.argmax(ours != found))
        raise DataError(f"{batch.where(column, row)}: {found[row]} values for {ours[row]} indices")
    values: NDArray[Any] = numbers.astype(working_dtype(numbers), copy=False)
    _refuse(batch, column, starts, ~np.isfinite(values), "a value is not finite")
    return values


def _flat_list(
    batch: Batch, column: str, kinds: str, what: str
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the starts of the lists, from 0, and their items, of these kinds, end to end."""
    lists = batch.columns[column]
    kind, types = lists.type, pa.types
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        raise DataError(f"{batch.where(column)}: lists are needed, not {kind}")
    _refuse_missing(batch, column, lists)
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(pc.list_value_length(lists).to_numpy(zero_copy_only=False), out=starts[1:])
    flat = _decoded(lists.flatten())
    if flat.null_count:
        missing = flat.is_null().to_numpy(zero_copy_only=False)
        _refuse(batch, column, starts, missing, "an item of the list is missing")
    numbers: NDArray[Any] = flat.to_numpy(zero_copy_only=False)
    if numbers.dtype.kind not in kinds:
        raise DataError(f"{batch.where(column)}: lists of {what} are needed, not of {flat.type}")
    return starts, numbers


def _refuse(
    batch: Batch, column: str, starts: NDArray[np.int64], wrong: NDArray[np.bool_], problem: str
) -> None:
    """Raise `DataError` that names the row of the first item that is wrong."""
    if wrong.any():
        row = int(np.searchsorted(starts, wrong.argmax(), side="right")) - 1
        raise DataError(f"{batch.where(column, row)}: {problem}")


def _refuse_missing(batch: Batch, column: str, values: pa.Array) -> None:
    """Raise `DataError` that names the first row of a column without a value."""
    if values.null_count:
        at = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        raise DataError(f"{batch.where(column, at)}: the value is missing")


def _decoded(values: pa.Array) -> pa.Array:
    """Undo dictionary encoding: the list of distinct values in a file is never used."""
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    """Word what pyarrow raises on a damaged file, in whose schema names are decoded when asked."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        kind = "Parquet" if _is_parquet(path) else "Arrow IPC (Feather 2)"
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not a complete, undamaged {kind} file: {reason}") from error
