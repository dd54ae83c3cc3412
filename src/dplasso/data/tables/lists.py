"""Parquet and Arrow tables whose records are lists of column numbers.

Without ``n_features`` the number of columns is taken from the data: the largest index, plus one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import BlockSource, RowBlock
from dplasso.data.source_files import Paths, source_files
from dplasso.data.streams import Progress
from dplasso.data.tables.files import (
    ARROW_SUFFIXES,
    Batch,
    column_names,
    decoded,
    pa,
    pc,
    read_labels,
    record_batches,
    refuse_missing,
)
from dplasso.errors import DataError
from dplasso.matrix.compressed import working_dtype

_INT32_COLUMNS = 2**31


@dataclass(frozen=True)
class ListColumns:
    """Each record holds a list of its column numbers, from 0, and perhaps one of their values.

    Attributes
    ----------
    indices : str
        Column of lists of whole numbers, in any order, without duplicates.
    values : str or None
        Column of lists of numbers, as long; None makes every value 1.
    n_features : int or None
        Number of columns D; None takes the largest index + 1 from the data.
    """

    indices: str
    values: str | None = None
    n_features: int | None = None


_Rows = tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]


def list_source(paths: Paths, lists: ListColumns, *, label_column: str) -> BlockSource:
    """Open Parquet or Arrow IPC (Feather 2) files of lists as a stream of row blocks.

    `paths`: files, or patterns, that make one data set, in this order: ``.parquet``, ``.pq``,
    ``.arrow``, ``.feather``, ``.ipc``. `label_column` holds numbers, strings or bools. Values are
    float32 where that is exact, else float64; progress is counted in bytes.

    Raises DataError if a file is missing, of another kind, or lacks a column. What is wrong with a
    record is told, with file and row (from 1), when it is read.
    """
    n_features = lists.n_features
    if n_features is not None and not 1 <= n_features < 2**63:
        raise ValueError(f"n_features must be from 1 to 2**63 - 1, got {n_features!r}")
    columns = [lists.indices] if lists.values is None else [lists.indices, lists.values]
    if label_column in columns:
        raise ValueError(f"column {label_column!r} cannot be both label and feature")
    files = source_files(paths)
    for path in files.paths:
        if path.suffix.lower() not in ARROW_SUFFIXES:
            raise DataError(f"{path}: the name must end in one of {', '.join(ARROW_SUFFIXES)}")
        column_names(path)

    def blocks(memory_bytes: int, progress: Progress | None = None, /) -> Iterator[RowBlock]:
        for i, path in enumerate(files.paths):
            files.check_unchanged(i)
            for batch in record_batches(path, [*columns, label_column], memory_bytes):
                yield RowBlock(
                    *_list_rows(lists, path, batch), read_labels(path, label_column, batch)
                )
                if progress is not None:
                    progress(files.before(i) + batch.done, files.total)
            files.check_unchanged(i)

    return BlockSource(files.name, n_features, blocks, files.total)


def _list_rows(encoding: ListColumns, path: Path, batch: Batch) -> _Rows:
    starts, flat = _flat_list(path, encoding.indices, batch)
    if not pa.types.is_integer(flat.type):
        raise DataError(
            f"{path}, column {encoding.indices!r}: lists of whole numbers are needed, "
            f"not of {flat.type}"
        )
    indices = flat.to_numpy(zero_copy_only=False)
    rows = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    limit = encoding.n_features or 2**63 - 1
    bad = (indices < 0) | (indices >= limit)
    if bad.any():
        at = int(np.argmax(bad))
        allowed = f"0 to {limit - 1}, as declared" if encoding.n_features else "0 or more"
        raise DataError(
            f"{_row(path, encoding.indices, batch, rows[at])}: an index is not {allowed}"
        )
    values = _list_values(encoding, path, batch, starts)
    same_row = rows[1:] == rows[:-1]
    if np.any(same_row & (indices[1:] <= indices[:-1])):
        order = np.lexsort((indices, rows))
        indices, values = indices[order], values[order]
        twice = same_row & (indices[1:] == indices[:-1])
        if twice.any():
            at = int(np.argmax(twice))
            raise DataError(
                f"{_row(path, encoding.indices, batch, rows[at])}: an index appears twice"
            )
    largest = encoding.n_features or (int(indices.max()) + 1 if indices.size else 1)
    return starts, indices.astype(_index_type(largest), copy=False), values


def _list_values(
    encoding: ListColumns, path: Path, batch: Batch, starts: NDArray[np.int64]
) -> NDArray[Any]:
    if encoding.values is None:
        return np.ones(int(starts[-1]), np.float32)
    theirs, flat = _flat_list(path, encoding.values, batch)
    different = theirs[1:] - theirs[:-1] != starts[1:] - starts[:-1]
    if different.any():
        row = int(np.argmax(different))
        raise DataError(
            f"{_row(path, encoding.values, batch, row)}: {theirs[row + 1] - theirs[row]} values "
            f"for {starts[row + 1] - starts[row]} indices"
        )
    kind = flat.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            f"{path}, column {encoding.values!r}: lists of numbers are needed, not of {kind}"
        )
    found = flat.to_numpy(zero_copy_only=False)
    values: NDArray[Any] = found.astype(working_dtype(found), copy=False)
    bad = ~np.isfinite(values)
    if bad.any():
        at = int(np.argmax(bad))
        row = int(np.searchsorted(starts, at, side="right")) - 1
        raise DataError(f"{_row(path, encoding.values, batch, row)}: a value is not finite")
    return values


def _flat_list(path: Path, column: str, batch: Batch) -> tuple[NDArray[np.int64], pa.Array]:
    """Return the starts of the lists, from 0, and their items end to end."""
    lists = batch.records.column(column)
    kind = lists.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or _is_fixed_list(kind)):
        raise DataError(f"{path}, column {column!r}: lists are needed, not {kind}")
    refuse_missing(path, column, batch, lists)
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(pc.list_value_length(lists).to_numpy(zero_copy_only=False), out=starts[1:])
    flat = decoded(lists.flatten())
    if flat.null_count:
        at = int(np.argmax(flat.is_null().to_numpy(zero_copy_only=False)))
        row = int(np.searchsorted(starts, at, side="right")) - 1
        raise DataError(f"{_row(path, column, batch, row)}: an item of the list is missing")
    return starts, flat


def _is_fixed_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_list(kind))


def _index_type(n_features: int) -> type[np.signedinteger[Any]]:
    return np.int32 if n_features < _INT32_COLUMNS else np.int64


def _row(path: Path, column: str, batch: Batch, row: int) -> str:
    return f"{path}, column {column!r}, row {batch.first_row + row + 1}"
