"""From a stream of row blocks to a store on disk, in bounded memory."""

import errno
import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import (
    INT32_MAX,
    MOST_COLUMNS,
    BlockSource,
    RowBlock,
    check_finite,
    check_shape,
)
from dplasso.data.labels import labels_of_one_kind
from dplasso.data.people import WORDS
from dplasso.data.store.arrays import ArrayFiles
from dplasso.data.store.header import (
    COLUMNS_DECLARED,
    HEADER_FILE,
    LABELS,
    PEOPLE,
    ArrayEntry,
    StoreHeader,
    header_text,
    index_dtype,
    map_array,
)
from dplasso.data.store.kernel import column_starts, count_columns
from dplasso.data.store.opening import Store, open_store
from dplasso.data.store.place import check_place, put_in_place, unfinished
from dplasso.data.store.transposition import Transposition
from dplasso.data.streams import exhaust, in_order
from dplasso.errors import DataError
from dplasso.files.atomic import open_private, report_disk_full
from dplasso.matrix.compressed import check_rows
from dplasso.matrix.numbering import invert, number_by_count

_MOST_WORDS = 2**16

StageProgress = Callable[[str, int, int], None]
DEFAULT_MEMORY = 2 * 2**30
# Counts, both maps and starts of the columns, at the moment when all of them are in memory.
_COLUMN_BYTES = 24
_SOURCE_BYTES = 1 << 28


class RowWriter:
    """Records written to the files of a store so far.

    `counts`: entries of each column; as long as there is room, at least `n_columns`.
    `constant`: the value of every entry, as long as there is no file of values.
    `words`: the numbers that words have among the labels; None where labels are numbers.
    """

    def __init__(
        self, files: ArrayFiles, name: str, n_features: int | None, most_columns: int
    ) -> None:
        self.n_rows = self.n_entries = 0
        self.n_columns = n_features or 0
        self.constant = 1.0
        self.largest_value = 0.0
        self.value_dtype: np.dtype[Any] = np.dtype(np.float32)
        self.words: dict[str, int] | None = None
        self._files, self._name, self._declared = files, name, n_features
        self._most_columns = most_columns
        self._label_kind: str | None = None
        self._check_room(self.n_columns)
        self.counts = np.zeros(self.n_columns, np.int64)
        files.new("rows.indptr", np.int64).append(np.zeros(1, np.int64))
        wide = self.n_columns > INT32_MAX + 1
        files.new("rows.indices", np.int64 if wide else np.int32, checksums=False)

    def add(self, block: RowBlock) -> None:
        """Write one more block."""
        indptr, indices, values = block.indptr, block.indices, block.values
        outside, unordered, largest = check_rows(indptr, indices, self._declared or MOST_COLUMNS)
        if outside >= 0 or unordered >= 0:
            bad = unordered if unordered >= 0 else outside
            raise DataError(
                f"{self._name}: row {self.n_rows + bad + 1} has a column twice, out of order or "
                f"outside the {'' if self._declared is None else self._declared} columns declared"
            )
        if int(indptr[-1]) != indices.size or values.size != indices.size:
            raise DataError(f"{self._name}: its rows do not fit its entries")
        self._make_room(int(largest) + 1)
        count_columns(indices, self.counts)
        self._add_values(indptr, values)
        self._files["rows.indices"].append(indices)
        self._files["rows.indptr"].append(indptr[1:].astype(np.int64, copy=False) + self.n_entries)
        self._add_labels(block.labels)
        self._add_people(block)
        self.n_entries += indices.size
        self.n_rows += indptr.size - 1

    def _check_room(self, n_columns: int) -> None:
        if n_columns > self._most_columns:
            raise MemoryError(
                f"{self._name}: counting {n_columns:,} columns takes more than the memory allowed, "
                f"which is enough for {self._most_columns:,}; allow more (--memory) or "
                "hash the columns to fewer"
            )

    def _make_room(self, n_columns: int) -> None:
        if n_columns > INT32_MAX + 1:
            self._files.widen("rows.indices", np.int64)
        if n_columns > self.counts.size:
            self._check_room(n_columns)
            grown = np.zeros(min(n_columns + n_columns // 4, self._most_columns), np.int64)
            grown[: self.counts.size] = self.counts
            self.counts = grown
        self.n_columns = max(self.n_columns, n_columns)

    def _add_values(self, indptr: NDArray[np.int64], values: NDArray[Any]) -> None:
        name = "rows.values"
        self.value_dtype = np.result_type(self.value_dtype, values.dtype)
        if name in self._files:
            self._files.widen(name, self.value_dtype)
        if not values.size:
            return
        if self.n_entries == 0:
            self.constant = float(values[0])
        low, high = check_finite(self._name, indptr, values, self.n_rows)
        self.largest_value = max(self.largest_value, -low, high)
        if name not in self._files and not low == high == self.constant:
            self._files.new(name, self.value_dtype).append_constant(self.constant, self.n_entries)
        if name in self._files:
            self._files[name].append(values)

    def _add_labels(self, given: NDArray[Any]) -> None:
        text = given.dtype.kind not in "biuf"
        given = given.astype(np.str_) if text else given
        labels, self._label_kind = labels_of_one_kind(given, self._place, self._label_kind)
        if text:
            labels = self._numbers(labels)
        if LABELS not in self._files:
            self._files.new(LABELS, labels.dtype)
        self._files.widen(LABELS, labels.dtype).append(labels)

    def _place(self, row: int) -> str:
        return f"{self._name}, row {self.n_rows + row + 1}"

    def _numbers(self, labels: NDArray[Any]) -> NDArray[np.int32]:
        """Return the numbers of words; a new word gets the next one."""
        words = self.words = self.words or {}
        distinct, inverse = np.unique(labels, return_inverse=True)
        codes = [words.setdefault(str(word), len(words)) for word in distinct]
        if len(words) > _MOST_WORDS:
            raise DataError(
                f"{self._name}: more than {_MOST_WORDS:,} different labels by row "
                f"{self.n_rows + labels.size:,}; a classifier needs two"
            )
        return np.array(codes, np.int32)[inverse]

    def _add_people(self, block: RowBlock) -> None:
        given = block.people
        if given is not None and self.n_rows == 0:
            self._files.new(PEOPLE, np.int64)
        if (given is not None) != (PEOPLE in self._files) or (
            given is not None and given.size != WORDS * block.labels.size
        ):
            raise DataError(f"{self._name}: some of its rows have a person, others do not")
        if given is not None:
            self._files[PEOPLE].append(given)


def write_store(
    source: BlockSource,
    path: str | os.PathLike[str],
    *,
    memory: int = DEFAULT_MEMORY,
    force: bool = False,
    origin: Mapping[str, Any] | None = None,
    progress: StageProgress | None = None,
    n_threads: int = 1,
) -> Store:
    """Write records to a store: both orientations, labels, maps of the columns. Return it, opened.

    The source is read once. The store appears at `path` when it is complete and on the disk; until
    then it is beside it, in a directory of its name and ``.partial``, which is removed where this
    fails, and by the next call where the process was killed.

    `memory`: bytes that the process may hold in all, what it holds already included (but half of
    this is taken in any case). 24 bytes per column are the least.
    `force`: whether a store at `path` may be replaced; it stays until the new one is complete.
    `origin`: how the columns were made, kept in the header: plain JSON.
    `progress`: called with a stage ("reading", "partitioning", "sorting"), what is done, and of how
    much.
    `n_threads`: for the second and third pass.
    """
    place = Path(path).resolve()
    check_place(place, force=force)
    budget = max(memory - _anonymous_bytes(), memory // 2)
    tell = progress or (lambda _stage, _done, _total: None)
    declared = source.n_features is not None and source.columns_declared
    with unfinished(place) as directory:
        with ArrayFiles(directory) as files:
            rows = _write_rows(files, source, place, budget, tell)
            with report_disk_full(place):
                arrays = _finish_arrays(files, rows, budget, n_threads, tell)
        header = StoreHeader(
            shape=(rows.n_rows, rows.n_columns),
            nnz=rows.n_entries,
            value_dtype=rows.value_dtype.newbyteorder("<").str,
            constant=None if "rows.values" in arrays else rows.constant,
            largest_value=rows.largest_value,
            label_words=None if rows.words is None else tuple(rows.words),
            source=source.name,
            origin={**(origin or {}), COLUMNS_DECLARED: declared},
            written_by=f"dplasso {version('dplasso')}",
            arrays=arrays,
        )
        with report_disk_full(place):
            with open_private(directory / HEADER_FILE, "x") as file:
                file.write(header_text(header))
                file.flush()
                os.fsync(file.fileno())
            # The records may have come from, or replace, the store itself; look again.
            check_place(place, force=force)
            put_in_place(directory, place)
    return open_store(place)


def _write_rows(
    files: ArrayFiles, source: BlockSource, place: Path, budget: int, tell: StageProgress
) -> RowWriter:
    """Write all rows, each block while the source makes the next one."""
    with report_disk_full(place):
        rows = RowWriter(files, source.name, source.n_features, budget // _COLUMN_BYTES)

    def add(block: RowBlock) -> None:
        with report_disk_full(place):
            rows.add(block)

    blocks = source.blocks(min(budget // 2, _SOURCE_BYTES), partial(tell, "reading"))
    exhaust(in_order(add, blocks, 1))
    check_shape(source.name, rows.n_rows, rows.n_columns)
    return rows


def _finish_arrays(
    files: ArrayFiles, rows: RowWriter, budget: int, n_threads: int, tell: StageProgress
) -> dict[str, ArrayEntry]:
    """Renumber the columns, make the files by columns, and complete all files."""
    entries = files.finish("rows.indptr", LABELS, PEOPLE)
    _check_disk(files, rows)
    internal = _number_columns(files, rows, budget)
    entries |= files.finish("internal_column", "original_column", "columns.indptr")
    row_starts, column_starts = (
        map_array(files[name].path, np.int64, files[name].size)
        for name in ("rows.indptr", "columns.indptr")
    )
    # Its map, and the part of each column.
    memory = max(budget - rows.n_columns * (internal.itemsize + 2), budget // 4)
    work = Transposition(files, row_starts, column_starts, memory=memory, n_threads=n_threads)
    work.renumber_and_partition(internal, partial(tell, "partitioning"))
    with ThreadPoolExecutor(1) as pool:
        # Complete files are sent to the disk while the rest is sorted.
        flushing = pool.submit(files.finish, "rows.indices", "rows.values")
        work.sort_parts(partial(tell, "sorting"))
        return entries | files.finish("columns.indices", "columns.values") | flushing.result()


def _number_columns(files: ArrayFiles, rows: RowWriter, budget: int) -> NDArray[Any]:
    """Renumber columns by frequency; write both maps and where each column starts."""
    n_columns, index = rows.n_columns, index_dtype(rows.n_columns)
    counts = rows.counts[:n_columns]
    rows.counts = counts[:0]
    internal, original = np.empty(n_columns, index), np.empty(n_columns, index)
    most = int(counts.max())
    if most * 8 < max(budget // 4, 8 * n_columns):
        number_by_count(counts, np.zeros(most + 1, np.int64), internal)
        invert(internal, original)
    else:
        original[:] = np.argsort(-counts, kind="stable")
        invert(original, internal)
    starts = np.empty(n_columns + 1, np.int64)
    column_starts(counts, original, starts)
    files.new("internal_column", index).append(internal)
    files.new("original_column", index).append(original)
    files.new("columns.indptr", np.int64).append(starts)
    return internal


def _check_disk(files: ArrayFiles, rows: RowWriter) -> None:
    """Find out now, before the long part, whether the rest will fit on the disk."""
    value_bytes = files["rows.values"].dtype.itemsize if "rows.values" in files else 0
    entry_bytes = index_dtype(rows.n_rows).itemsize + value_bytes + 4
    needed = rows.n_entries * entry_bytes + rows.n_columns * 24
    free = shutil.disk_usage(files.directory).free
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"the disk is full: {needed / 1e9:.3g} GB more needed, {free / 1e9:.3g} GB free",
        )


def _anonymous_bytes() -> int:
    """Return the memory the process holds already, files apart; 0 where the system does not say."""
    try:
        fields = Path("/proc/self/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
