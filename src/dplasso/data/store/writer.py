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

from dplasso.data.blocks import BlockSource, RowBlock, check_shape
from dplasso.data.store.arrays import ArrayFiles
from dplasso.data.store.format import (
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
from dplasso.data.store.kernel import column_starts
from dplasso.data.store.place import check_place, put_in_place, unfinished
from dplasso.data.store.reader import Store, open_store
from dplasso.data.store.rows import RowWriter
from dplasso.data.store.transpose import Transposition
from dplasso.data.streams import exhaust, in_order
from dplasso.files.atomic import open_private, report_disk_full
from dplasso.matrix.numbering import invert, number_by_count

StageProgress = Callable[[str, int, int], None]
DEFAULT_MEMORY = 2 * 2**30
# Counts, both maps and starts of the columns, at the moment when all of them are in memory.
_COLUMN_BYTES = 24
_SOURCE_BYTES = 1 << 28


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
