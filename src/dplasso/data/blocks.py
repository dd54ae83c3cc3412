"""Records as a stream of row blocks, so that a data set need not fit in memory."""

import math
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array

from dplasso.data.labels import labels_of_one_kind
from dplasso.data.people import WORDS, hash_people
from dplasso.data.source_files import Progress, SourceFiles
from dplasso.errors import DataError

MOST_COLUMNS = 2**63 - 1
INT32_MAX = 2**31 - 1
# Memory for one block if all blocks are joined in memory.
_BLOCK_BYTES = 1 << 28


class Rows(NamedTuple):
    """Sparse rows with strictly ascending columns; indices are int64 if int32 is too narrow."""

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[Any]


class RowBlock(NamedTuple):
    """Consecutive records: `Rows`, their labels, and perhaps the hashes from `hash_people`."""

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[Any]
    labels: NDArray[Any]
    people: NDArray[np.int64] | None = None


class Piece(NamedTuple):
    """Some records of a file, before their labels are checked.

    `where`: describes the place of a label, from its row counted from 0.
    `names`: the ids of the people, as a list or a table column, and a function like `where`.
    """

    rows: Rows
    labels: NDArray[Any] | list[Any]
    done: int
    where: Callable[[int], str]
    names: tuple[Any, Callable[[int], str]] | None = None


Blocks = Callable[..., Iterator[RowBlock]]
"""``blocks(memory_bytes, progress=None)`` yields all records in order, anew at each call.

It uses about `memory_bytes` of memory in total.
"""


@dataclass(frozen=True)
class BlockSource:
    """A data set as row blocks.

    `n_features`: number of columns; None for the largest index + 1.
    `total`: the final value of progress, in bytes on disk or rows.
    `columns_declared`: whether `n_features` is public rather than computed from the data.
    """

    name: str
    n_features: int | None
    blocks: Blocks
    total: int | None
    columns_declared: bool = True


def files_source(
    files: SourceFiles,
    n_features: int | None,
    read: Callable[[int, int], Generator[Piece]],
    *,
    declared: bool = True,
) -> BlockSource:
    """Return files as row blocks; ``read(i, memory_bytes)`` yields the pieces of file ``i``."""

    def blocks(memory_bytes: int, progress: Progress | None = None, /) -> Iterator[RowBlock]:
        label_kind: str | None = None
        name_kind: str | None = None
        for i in range(len(files.paths)):
            files.check_unchanged(i)
            try:
                with closing(read(i, memory_bytes)) as pieces:
                    for rows, raw_labels, done, where, names in pieces:
                        people = None
                        if names is not None:
                            people, name_kind = hash_people(*names, name_kind)
                        if len(raw_labels):
                            labels, label_kind = labels_of_one_kind(raw_labels, where, label_kind)
                            yield RowBlock(*rows, labels, people)
                        if progress is not None:
                            progress(files.before(i) + done, files.total)
            except DataError:
                # If the file has changed, report the change, not the malformed line it caused.
                files.check_unchanged(i)
                raise
            files.check_unchanged(i)

    return BlockSource(files.name, n_features, blocks, files.total, declared)


def cut_rows(X: csr_array, memory_bytes: int) -> Iterator[tuple[int, int, Rows]]:
    """Yield ranges of at least one row, as views of about `memory_bytes` each."""
    most = max(1, memory_bytes // (X.indices.itemsize + X.data.itemsize))
    begin = 0
    while begin < X.shape[0]:
        # The memory of a row is that of its entries, its start and its label.
        end = int(np.searchsorted(X.indptr, X.indptr[begin] + most, side="right")) - 1
        end = max(begin + 1, min(end, begin + max(1, memory_bytes // 16)))
        starts = X.indptr[begin : end + 1].astype(np.int64)
        at = slice(starts[0], starts[-1])
        yield begin, end, Rows(starts - starts[0], X.indices[at], X.data[at])
        begin = end


def matrix_source(
    X: csr_array, labels: NDArray[Any], people: NDArray[np.int64] | None, *, declared: bool
) -> BlockSource:
    """Return a matrix in memory, with ascending columns, as row blocks."""

    def blocks(memory_bytes: int, progress: Progress | None = None, /) -> Iterator[RowBlock]:
        for begin, end, rows in cut_rows(X, memory_bytes):
            whose = None if people is None else people[WORDS * begin : WORDS * end]
            yield RowBlock(*rows, labels[begin:end], whose)
            if progress is not None:
                progress(end, labels.size)

    return BlockSource("the matrix", X.shape[1], blocks, labels.size, declared)


def binarized(source: BlockSource) -> BlockSource:
    """Replace every non-zero value by 1; explicit zeros stay."""

    def blocks(memory_bytes: int, progress: Progress | None = None, /) -> Iterator[RowBlock]:
        first = 0
        for block in source.blocks(memory_bytes, progress):
            check_finite(source.name, block.indptr, block.values, first)
            yield block._replace(values=(block.values != 0).astype(block.values.dtype))
            first += block.labels.size

    return replace(source, blocks=blocks)


def check_finite(
    name: str, indptr: NDArray[np.int64], values: NDArray[Any], n_before: int
) -> tuple[float, float]:
    """Return the smallest and the largest value; `DataError` if a value is not finite."""
    if not values.size:
        return 0.0, 0.0
    low, high = float(values.min()), float(values.max())
    if not -math.inf < low <= high < math.inf:
        at = int(np.argmin(np.isfinite(values)))
        row = n_before + int(np.searchsorted(indptr, at, side="right"))
        raise DataError(f"{name}: row {row} holds NaN or infinity; pass finite numbers only")
    return low, high


def check_shape(name: str, n_rows: int, n_columns: int) -> None:
    """Raise `DataError` for a source without records or columns."""
    if n_rows == 0:
        raise DataError(f"{name} holds no records; at least one is needed")
    if n_columns == 0:
        raise DataError(f"{name}: no record has an entry; set the number of columns, `n_features`")


def gather(
    source: BlockSource, progress: Progress | None = None
) -> tuple[csr_array, NDArray[Any], NDArray[np.int64] | None]:
    """Read all records into memory; return the matrix, labels and hashes of the people."""
    with closing(source.blocks(_BLOCK_BYTES, progress)) as blocks:  # type: ignore[type-var]
        X, labels, people = joined(blocks, source.n_features)
    check_shape(source.name, *X.shape)
    return X, labels, people


def joined(
    blocks: Iterable[RowBlock], n_features: int | None
) -> tuple[csr_array, NDArray[Any], NDArray[np.int64] | None]:
    """Join blocks; the memory used is that of the result and little more than one block."""
    ends, columns, values = _Growing(np.int64), _Growing(np.int32), _Growing(np.float32)
    labels, people = _Growing(np.float64), _Growing(np.int64)
    ends.append(np.zeros(1, np.int64))
    largest = -1
    for block in blocks:
        ends.append(block.indptr[1:] + columns.size)
        columns.append(block.indices)
        values.append(block.values)
        labels.append(block.labels)
        if block.people is not None:
            people.append(block.people)
        if n_features is None:
            largest = max(largest, int(block.indices.max(initial=-1)))
    indptr, indices = ends.finish(), columns.finish()
    n_columns = largest + 1 if n_features is None else n_features
    # scipy needs the same type for both index arrays.
    wide = indices.dtype == np.int64 or max(n_columns, indices.size) > INT32_MAX
    kind = np.int64 if wide else np.int32
    parts = values.finish(), indices.astype(kind, copy=False), indptr.astype(kind, copy=False)
    X = csr_array(parts, shape=(indptr.size - 1, n_columns))
    X.has_canonical_format = True
    return X, labels.finish(), people.finish() if people.size else None


class _Growing:
    """A flat array that grows, in place if the system can; a single part is not copied."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._array: NDArray[Any] = np.empty(0, dtype)
        self._ours = False
        self.size = 0

    def append(self, part: NDArray[Any]) -> None:
        begin, self.size = self.size, self.size + part.size
        if not begin:
            self._array = part
            return
        kind, room = np.result_type(self._array, part), self.size + self.size // 8
        if not self._ours or kind != self._array.dtype:
            grown = np.empty(room, kind)
            grown[:begin] = self._array[:begin]
            self._array, self._ours = grown, True
        elif self.size > self._array.size:
            self._array.resize(room, refcheck=False)
        self._array[begin : self.size] = part

    def finish(self) -> NDArray[Any]:
        if self._ours:
            self._array.resize(self.size, refcheck=False)
        return self._array
