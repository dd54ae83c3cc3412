"""From a stream of row blocks to a store on disk, in bounded memory."""

import errno
import os
import shutil
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import BlockSource, check_shape
from dplasso.data.store.array_writer import ArrayWriter
from dplasso.data.store.external_transpose import (
    Orientation,
    cut_parts,
    renumber_and_partition,
    sort_parts,
)
from dplasso.data.store.format import (
    COLUMNS_DECLARED,
    HEADER_FILE,
    PEOPLE,
    ArrayEntry,
    StoreHeader,
    array_file,
    header_text,
    index_dtype,
    map_array,
)
from dplasso.data.store.kernel import column_starts
from dplasso.data.store.place import (
    OFFSETS_FILE,
    check_place,
    put_in_place,
    unfinished,
)
from dplasso.data.store.reader import Store, open_store
from dplasso.data.store.row_writer import RowWriter
from dplasso.files.atomic import report_disk_full
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
    """Write records to a store: both orientations, labels and maps of the columns.

    The source is read once. The store appears at `path` when it is complete and on the disk; until
    then it is beside it, in a directory of its name and ``.partial``, which is removed where this
    fails, and by the next call where the process was killed.

    `memory`: bytes that the process may hold in all, what it holds already included (but half of
    this is taken in any case). 24 bytes per column are the least.
    `force`: whether a store at `path` may be replaced; it stays until the new one is complete.
    `origin`: how the columns were made, kept in the header: plain JSON. Whether their number was
    declared is added.
    `progress`: called with a stage ("reading", "partitioning", "sorting"), what is done, and the
    total.
    `n_threads`: for the second and third pass. Neither they nor `memory` change the store.

    Returns the store, opened.

    Raises `DataError` if the source does, holds no record or no column, or breaks its promise;
    `StoreError` if something other than a store is at `path`, or another process is writing it;
    `MemoryError` if there are more columns than can be counted in `memory`; `OSError` if it cannot
    be written, for instance on a full disk. Nothing is left then.
    """
    place = Path(path).resolve()
    check_place(place, force=force)
    declared = source.n_features is not None and source.columns_declared
    origin = {**(origin or {}), COLUMNS_DECLARED: declared}
    budget = max(memory - _anonymous_bytes(), memory // 2)
    with unfinished(place) as directory:
        with ExitStack() as files:
            work = _Conversion(directory, place, budget, progress or _untold, n_threads, files)
            header = _write_arrays(work, source, origin)
        with report_disk_full(place):
            _write_header(directory, header)
            # The records may have come from, or replace, the store itself; look again.
            check_place(place, force=force)
            put_in_place(directory, place)
    return open_store(place)


@dataclass(frozen=True)
class _Conversion:
    """Where a store is written, in how many bytes of memory, and the files that are open."""

    directory: Path
    place: Path
    budget: int
    tell: StageProgress
    n_threads: int
    files: ExitStack

    def path(self, name: str) -> Path:
        return array_file(self.directory, name)

    def new(self, path: Path, dtype: Any) -> ArrayWriter:
        writer = ArrayWriter(path, dtype)
        self.files.callback(writer.close)
        return writer

    def counting(self, stage: str, total: int) -> Callable[[int], None]:
        """Return what adds up the progress of several threads."""
        lock = threading.Lock()
        done = 0

        def more(count: int) -> None:
            nonlocal done
            with lock:
                done += count
                self.tell(stage, done, total)

        return more


def _write_arrays(work: _Conversion, source: BlockSource, origin: Mapping[str, Any]) -> StoreHeader:
    with report_disk_full(work.place):
        most_columns = work.budget // _COLUMN_BYTES
        spill = RowWriter(work.directory, source.name, source.n_features, most_columns)
    work.files.callback(spill.close)
    _spill_all(work, source, spill)
    check_shape(source.name, spill.n_rows, spill.n_columns)
    with report_disk_full(work.place):
        entries = {"rows.indptr": spill.indptr.finish(), "labels": spill.labels.finish()}
        entries |= _finish({PEOPLE: spill.people})
        entries |= _transpose(work, spill)
    return StoreHeader(
        shape=(spill.n_rows, spill.n_columns),
        nnz=spill.n_entries,
        value_dtype=spill.value_dtype.newbyteorder("<").str,
        constant=spill.constant if spill.values is None else None,
        largest_value=spill.largest_value,
        label_words=spill.label_words,
        source=source.name,
        origin=origin,
        written_by=f"dplasso {version('dplasso')}",
        arrays=entries,
    )


def _spill_all(work: _Conversion, source: BlockSource, spill: RowWriter) -> None:
    """Write all rows, each block while the source makes the next one."""

    def add(block: Any) -> None:
        with report_disk_full(work.place):
            spill.add(block)

    told = partial(work.tell, "reading")
    blocks = source.blocks(min(work.budget // 2, _SOURCE_BYTES), told)
    with ThreadPoolExecutor(1) as pool:
        before: Future[None] | None = None
        for block in blocks:
            if before is not None:
                before.result()
            before = pool.submit(add, block)
            del block
        if before is not None:
            before.result()


def _transpose(work: _Conversion, spill: RowWriter) -> dict[str, ArrayEntry]:
    """Renumber the columns and make the files by columns."""
    n_entries, values = spill.n_entries, spill.values
    _check_disk(work.directory, spill)
    internal, entries = _number_columns(work, spill)
    starts = map_array(work.path("columns.indptr"), np.int64, spill.n_columns + 1)
    # Its map, and the part of each column.
    working = max(work.budget - spill.n_columns * (internal.itemsize + 2), work.budget // 4)
    value_bytes = values.dtype.itemsize if values else 0
    parts = cut_parts(starts, value_bytes, working, work.n_threads)
    row_starts = map_array(work.path("rows.indptr"), np.int64, spill.n_rows + 1)
    rows = Orientation(row_starts, spill.indices, values)
    columns = Orientation(
        starts,
        work.new(work.path("columns.indices"), index_dtype(spill.n_rows)),
        work.new(work.path("columns.values"), values.dtype) if values else None,
    )
    offsets = work.new(work.directory / OFFSETS_FILE, parts.offset_dtype)
    for writer in (columns.indices, columns.values, offsets):
        if writer:
            writer.reserve(n_entries)
    shares = {"memory": working, "n_threads": work.n_threads}
    spill.indices.pieces = renumber_and_partition(
        rows,
        internal,
        parts,
        starts,
        columns,
        offsets,
        progress=work.counting("partitioning", n_entries),
        **shares,
    )
    with ThreadPoolExecutor(1) as pool:
        # Complete files are synced to the disk while the rest is sorted.
        flushing = pool.submit(_finish, {"rows.indices": spill.indices, "rows.values": values})
        sums, value_sums = sort_parts(
            columns, offsets, parts, progress=work.counting("sorting", n_entries), **shares
        )
        columns.indices.pieces = sums
        if columns.values:
            columns.values.pieces = value_sums
        offsets.close()
        offsets.path.unlink()
        entries |= _finish({"columns.indices": columns.indices, "columns.values": columns.values})
        return entries | flushing.result()


def _finish(writers: Mapping[str, ArrayWriter | None]) -> dict[str, ArrayEntry]:
    return {name: writer.finish() for name, writer in writers.items() if writer is not None}


def _number_columns(
    work: _Conversion, spill: RowWriter
) -> tuple[NDArray[Any], dict[str, ArrayEntry]]:
    """Renumber columns by frequency; write both maps and where each column starts."""
    n_columns, index = spill.n_columns, index_dtype(spill.n_columns)
    counts = spill.counts[:n_columns]
    spill.counts = counts[:0]
    internal, original = np.empty(n_columns, index), np.empty(n_columns, index)
    most = int(counts.max())
    if most * 8 < max(work.budget // 4, 8 * n_columns):
        number_by_count(counts, np.zeros(most + 1, np.int64), internal)
        invert(internal, original)
    else:
        original[:] = np.argsort(-counts, kind="stable")
        invert(original, internal)
    starts = np.empty(n_columns + 1, np.int64)
    column_starts(counts, original, starts)
    arrays = {
        "internal_column": internal,
        "original_column": original,
        "columns.indptr": starts,
    }
    entries = {}
    for name, array in arrays.items():
        writer = work.new(work.path(name), array.dtype)
        writer.append(array)
        entries[name] = writer.finish()
    return internal, entries


def _check_disk(directory: Path, spill: RowWriter) -> None:
    """Find out now, before the long part, whether the rest will fit on the disk."""
    value_bytes = spill.value_dtype.itemsize if spill.values else 0
    row_bytes = index_dtype(spill.n_rows).itemsize
    needed = spill.n_entries * (row_bytes + value_bytes + 4) + spill.n_columns * 24
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"the disk is full: {needed / 1e9:.3g} GB more needed, {free / 1e9:.3g} GB free",
        )


def _write_header(directory: Path, header: StoreHeader) -> None:
    with (directory / HEADER_FILE).open("x") as file:
        file.write(header_text(header))
        file.flush()
        os.fsync(file.fileno())


def _untold(_stage: str, _done: int, _total: int) -> None:
    """Report to nobody."""


def _anonymous_bytes() -> int:
    """Return the memory the process holds already, files apart; 0 where the system does not say."""
    try:
        fields = Path("/proc/self/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
