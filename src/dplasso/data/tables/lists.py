"""Parquet and Arrow tables whose records are lists of column numbers."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import BlockSource, Rows
from dplasso.data.formats import INT32_MAX, MOST_COLUMNS, check_n_features, table_format
from dplasso.data.source_files import Paths, source_files
from dplasso.data.tables.batches import Batch, table_source
from dplasso.data.tables.dialect import Dialect
from dplasso.errors import DataError
from dplasso.matrix.compressed import check_rows, working_dtype


@dataclass(frozen=True)
class ListColumns:
    """Each record holds a list of its column numbers, from 0, and perhaps one of their values.

    `indices`: column of lists of whole numbers, in any order, without duplicates.
    `values`: column of lists of numbers, as long; None makes every value 1.
    """

    indices: str
    values: str | None = None
    n_features: int | None = None

    def __post_init__(self) -> None:
        check_n_features(self.n_features)


def list_source(
    paths: Paths, lists: ListColumns, *, label_column: str, dialect: Dialect | None = None
) -> BlockSource:
    """Open Parquet or Arrow IPC (Feather 2) files of lists as a stream of row blocks."""
    columns = [name for name in (lists.indices, lists.values) if name is not None]
    if label_column in columns:
        raise ValueError(f"column {label_column!r} cannot be both label and feature")
    files = source_files(paths)
    for path in files.paths:
        if table_format(path).compressible:
            raise DataError(f"{path}: lists are read from Parquet and Arrow files")
    encode = partial(_list_rows, lists)
    return table_source(
        files, columns, encode, lists.n_features, label=label_column, dialect=dialect
    )


def _list_rows(lists: ListColumns, batch: Batch) -> Rows:
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
    from dplasso.data.tables.arrow import decoded, pa, pc, refuse_missing

    lists = batch.columns[column]
    kind, types = lists.type, pa.types
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        raise DataError(f"{batch.where(column)}: lists are needed, not {kind}")
    refuse_missing(batch, column, lists)
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(pc.list_value_length(lists).to_numpy(zero_copy_only=False), out=starts[1:])
    flat = decoded(lists.flatten())
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
