"""Read Parquet and Arrow files as batches of records in bounded memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dplasso.data.source_files import check_readable
from dplasso.data.table_batches import Batch, check_columns
from dplasso.errors import DataError

# Bytes in memory for each entry: stored, flattened, sorted and yielded.
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
    """Yield batches of some columns of a Parquet or Arrow IPC (Feather 2) file."""
    names = column_names(path)
    check_columns(names, columns, f"{path}:")
    size, first_row = path.stat().st_size, 0
    with _undamaged(path):
        read = _parquet if _is_parquet(path) else _ipc
        for records, share in read(path, columns, memory_bytes):
            arrays = {name: records.column(name) for name in columns}
            numbers = range(first_row + 1, first_row + records.num_rows + 1)
            yield Batch(path, arrays, "row", numbers, int(share * size))
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
    # pyarrow stops without an error at pages with too few rows.
    if done != n_rows:
        raise pa.ArrowInvalid(f"it holds {done} of {n_rows} rows")


def _rows_at_once(metadata: pq.FileMetaData, memory_bytes: int) -> int:
    """Choose the number of rows to read at a time from the sizes of the row groups.

    Sizes of columns would be more precise, but reading them from a damaged file can crash pyarrow
    26.
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
    # Arrow does not check the offsets in a file, and damaged offsets could point anywhere.
    records.validate()
    for name, column in zip(records.schema.names, records.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            # Arrow's message quotes the value.
            fault = f"column {name!r} holds a value that its type, {column.type}, does not allow"
            raise pa.ArrowInvalid(fault) from None
    columns = list(map(without_views, records.columns))
    records = pa.RecordBatch.from_arrays(columns, records.schema.names)
    per_row = 8 * records.nbytes / max(records.num_rows, 1) + _BYTES_PER_ENTRY
    step = int(min(max(memory_bytes / per_row, 1), _MOST_ROWS))
    for first in range(0, records.num_rows, step):
        yield records.slice(first, min(step, records.num_rows - first))


def without_views(values: Any) -> Any:
    """Return an array with plain texts, because Arrow computes little with views of texts."""
    kind = values.type
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        return values.cast(pa.dictionary(kind.index_type, pa.string()))
    return values.cast(pa.string()) if pa.types.is_string_view(kind) else values


def labels(batch: Batch, column: str) -> NDArray[Any]:
    """Return a column as whole numbers, float64, bools or strings; refuse missing values."""
    values = batch.columns[column]
    if pa.types.is_dictionary(values.type):
        # A file's list of distinct values is never used.
        values = values.dictionary_decode()
    if values.null_count:
        batch.refuse_label(column, int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))))
    kind, types = values.type, pa.types
    if types.is_string(kind) or types.is_large_string(kind):
        return np.asarray(batch.labels(column, values.to_pylist()), dtype=np.str_)
    if types.is_decimal(kind):
        # Arrow's own conversion rounds by the number of digits of the column.
        values = values.cast(pa.string()).cast(pa.float64())
    array: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"{batch.where(column)}: labels must be numbers, strings or bools, not {kind}"
        )
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    """Convert pyarrow's errors on a damaged file to `DataError`."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        kind = "Parquet" if _is_parquet(path) else "Arrow IPC (Feather 2)"
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not a complete, undamaged {kind} file: {reason}") from error
