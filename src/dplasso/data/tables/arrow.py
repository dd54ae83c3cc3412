"""Parquet and Arrow tables as row blocks, by encodings whose columns are public.

The columns of the result never depend on which values occur: they are the declared numbers of a
list column, the declared categories, or hashes. Taking categories from the records would release
which ones exist. One encoding is an exception by nature: list columns without ``n_features`` end at
the largest index that occurs.
"""

from collections.abc import Iterator, Mapping, Sequence
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
from dplasso.data.tables.hashing import check_hash_bits, hash_names
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


@dataclass(frozen=True)
class Categories:
    """One-hot by declared lists of categories.

    Attributes
    ----------
    lists : mapping of str to sequence
        Column of the table -> its categories, in the order in which they become columns. A
        missing value has no entry.
    unknown : {"error", "ignore"}
        What happens to a value that is not declared: refused, or no entry.
    """

    lists: Mapping[str, Sequence[Any]]
    unknown: str = "error"


@dataclass(frozen=True)
class HashedCategories:
    """One-hot by hashing ``column=value`` to a declared number of columns.

    Attributes
    ----------
    columns : sequence of str
        Columns of the table. A missing value has no entry.
    bits : int
        There are ``2**bits`` columns; two values that fall into one are one column.
    """

    columns: Sequence[str]
    bits: int


Encoding = ListColumns | Categories | HashedCategories
_Rows = tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]


def arrow_source(paths: Paths, encoding: Encoding, *, label_column: str) -> BlockSource:
    """Open Parquet or Arrow IPC (Feather 2) files as a stream of row blocks.

    Parameters
    ----------
    paths : str, Path or iterable of these
        Files, or patterns, that make one data set, in this order: ``.parquet``, ``.pq``,
        ``.arrow``, ``.feather``, ``.ipc``.
    encoding : ListColumns, Categories or HashedCategories
        How a record becomes a sparse row.
    label_column : str
        Column of the labels: numbers, strings or bools.

    Returns
    -------
    BlockSource
        Values are float32 where that is exact, else float64; progress is counted in bytes.

    Raises
    ------
    DataError
        If a file is missing, of another kind, or lacks a column. What is wrong with a record is
        told, with file and row (from 1), when it is read.
    ValueError
        If the encoding cannot be used.
    """
    columns = _check(encoding)
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
                rows = _encode(encoding, path, batch)
                yield RowBlock(*rows, read_labels(path, label_column, batch))
                if progress is not None:
                    progress(files.before(i) + batch.done, files.total)
            files.check_unchanged(i)

    return BlockSource(files.name, _n_features(encoding), blocks, files.total)


def _check(encoding: Encoding) -> list[str]:
    """Refuse an encoding that makes no sense; return the columns it reads."""
    match encoding:
        case ListColumns(indices, values, n_features):
            if n_features is not None and not 1 <= n_features < 2**63:
                raise ValueError(f"n_features must be from 1 to 2**63 - 1, got {n_features!r}")
            return [indices] if values is None else [indices, values]
        case Categories(lists, unknown):
            if unknown not in ("error", "ignore"):
                raise ValueError(f"unknown must be 'error' or 'ignore', got {unknown!r}")
            if not lists:
                raise ValueError("declare the categories of at least one column")
            for column, categories in lists.items():
                _check_categories(column, categories)
            return list(lists)
        case HashedCategories(columns, bits):
            check_hash_bits(bits)
            if not columns or len(set(columns)) != len(columns):
                raise ValueError("name at least one column to hash, each once")
            return list(columns)


def _check_categories(column: str, categories: Sequence[Any]) -> None:
    if isinstance(categories, str) or not isinstance(categories, Sequence) or not categories:
        raise ValueError(f"the categories of column {column!r} must be a list of at least one")
    kinds = {type(category) for category in categories}
    if not (kinds <= {int, float} or len(kinds) == 1) or not kinds <= {str, bool, int, float}:
        raise ValueError(
            f"the categories of column {column!r} must be all strings, all numbers or all bools"
        )
    if len(set(categories)) != len(categories):
        raise ValueError(f"the categories of column {column!r} hold one twice")


def _n_features(encoding: Encoding) -> int | None:
    match encoding:
        case ListColumns(_, _, n_features):
            return n_features
        case Categories(lists, _):
            return sum(len(categories) for categories in lists.values())
        case HashedCategories(_, bits):
            return 1 << bits


def _encode(encoding: Encoding, path: Path, batch: Batch) -> _Rows:
    match encoding:
        case ListColumns():
            return _list_rows(encoding, path, batch)
        case Categories():
            return _category_rows(encoding, path, batch)
        case HashedCategories():
            return _hashed_rows(encoding, path, batch)


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
        allowed = f"0 to {limit - 1} are declared" if encoding.n_features else "they count from 0"
        raise DataError(
            f"{_row(path, encoding.indices, batch, rows[at])}: index {indices[at]}; {allowed}"
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
                f"{_row(path, encoding.indices, batch, rows[at])}: index {indices[at]} is "
                "there twice"
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
        raise DataError(
            f"{_row(path, encoding.values, batch, row)}: value {values[at]} is not finite"
        )
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


def _category_rows(encoding: Categories, path: Path, batch: Batch) -> _Rows:
    places = np.empty((batch.records.num_rows, len(encoding.lists)), np.int64)
    offset = 0
    for k, (column, categories) in enumerate(encoding.lists.items()):
        values = decoded(batch.records.column(column))
        try:
            declared = pa.array(categories).cast(values.type)
        except (pa.ArrowException, TypeError) as error:
            raise DataError(
                f"{path}, column {column!r}: it holds {values.type}, the declared categories "
                f"are like {categories[0]!r}"
            ) from error
        found = pc.index_in(values, value_set=declared)
        unknown = np.asarray(pc.and_(found.is_null(), values.is_valid()))
        if encoding.unknown == "error" and unknown.any():
            row = int(np.argmax(unknown))
            raise DataError(
                f"{_row(path, column, batch, row)}: {values[row].as_py()!r} is not among the "
                "declared categories"
            )
        place = pc.fill_null(found, -1).to_numpy(zero_copy_only=False)
        places[:, k] = np.where(place < 0, -1, place + offset)
        offset += len(categories)
    return _rows_from_places(places, offset)


def _hashed_rows(encoding: HashedCategories, path: Path, batch: Batch) -> _Rows:
    places = np.full((batch.records.num_rows, len(encoding.columns)), -1, np.int64)
    for k, column in enumerate(encoding.columns):
        values = decoded(batch.records.column(column))
        try:
            coded = values.cast(pa.string()).dictionary_encode()
        except pa.ArrowException as error:
            raise DataError(
                f"{path}, column {column!r}: {values.type} is not a category; give a column of "
                "strings, numbers or bools"
            ) from error
        # The distinct values of this batch are hashed once each; none is kept.
        hashed = hash_names(
            [f"{column}={word}" for word in coded.dictionary.to_pylist()], encoding.bits
        )
        code = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
        places[code >= 0, k] = hashed[code[code >= 0]]
    places.sort(axis=1)
    # Values of one record that share a column are one entry.
    places[:, 1:][places[:, 1:] == places[:, :-1]] = -1
    return _rows_from_places(places, 1 << encoding.bits)


def _rows_from_places(places: NDArray[np.int64], n_features: int) -> _Rows:
    """Turn a table of column numbers, ascending but for -1 (no entry), into rows of ones."""
    held = places >= 0
    starts = np.zeros(places.shape[0] + 1, np.int64)
    np.cumsum(held.sum(axis=1), out=starts[1:])
    indices = places[held].astype(_index_type(n_features))
    return starts, indices, np.ones(indices.size, np.float32)


def _index_type(n_features: int) -> type[np.signedinteger[Any]]:
    return np.int32 if n_features < _INT32_COLUMNS else np.int64


def _row(path: Path, column: str, batch: Batch, row: int) -> str:
    return f"{path}, column {column!r}, row {batch.first_row + row + 1}"
