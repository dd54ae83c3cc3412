"""Reading svmlight (LIBSVM) text: ``label index:value index:value ...``, one record a line.

The text comes in blocks of whole lines. Threads parse them, each block on its own to arrays of
its own (`parse_lines` holds no state, its kernel releases the interpreter lock), and the results
are handed on in file order. So the memory beyond the result is a few blocks.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array

from dplasso.data.label_map import check_label_map
from dplasso.data.source_files import Paths, SourceFiles, source_files
from dplasso.data.streams import BLOCK_BYTES, Block, Progress, line_blocks
from dplasso.data.svmlight.kernel import INDEX_MAX
from dplasso.data.svmlight.lines import INT32_MAX, Format, LineError, Lines, parse_lines
from dplasso.errors import DataError

MOST_THREADS = 8
"""More would wait for the one that reads and decompresses."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def usable_threads() -> int:
    """Return how many threads parse where nothing else is said: the cores there are, 8 at most."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), MOST_THREADS)
    return min(os.cpu_count() or 1, MOST_THREADS)


class _FileBlock(NamedTuple):
    """A block, and the number of its file."""

    file: int
    block: Block


def check_format(
    n_features: int | None, zero_based: bool, label_map: Mapping[str, float] | None
) -> Format:
    """Check how svmlight text is to be understood.

    Raises DataError if `n_features` is out of range or the label map is malformed.
    """
    if n_features is not None and not 1 <= n_features <= INDEX_MAX:
        raise DataError(f"n_features must be from 1 to 2**63 - 1, not {n_features}")
    return Format(n_features, zero_based, None if label_map is None else check_label_map(label_map))


def parsed_blocks(
    files: SourceFiles,
    layout: Format,
    *,
    block_bytes: int = BLOCK_BYTES,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Generator[Lines]:
    """Parse files block by block, in parallel and in order.

    `block_bytes`: bytes of text parsed at a time; about four more blocks than threads are in
    memory.
    `n_threads`: threads that parse. Default: the cores there are, 8 at most.
    `progress`: called as ``progress(done, total)`` after each block, in bytes on disk of all
    files.

    Raises DataError if a file cannot be read, changes, or a line is malformed: the message names
    the file, the line and what is wrong. At the end, if there was no record, or no column.
    """
    line, file = 0, 0
    n_records, largest = 0, -1 if layout.n_features is None else layout.n_features

    def parse(item: _FileBlock) -> tuple[_FileBlock, Lines | LineError]:
        found = parse_lines(item.block.text, layout)
        return item._replace(block=item.block._replace(text=b"")), found

    with (
        closing(_text_blocks(files, block_bytes)) as texts,
        closing(_in_order(parse, texts, n_threads or usable_threads())) as results,
    ):
        for item, found in results:
            if item.file != file:
                line, file = 0, item.file
            if isinstance(found, LineError):
                raise DataError(f"{files.paths[file]}, line {line + found.line}: {found}")
            line += found.n_lines
            n_records += found.labels.size
            largest = max(largest, found.largest)
            yield found
            if progress is not None:
                progress(files.before(file) + item.block.done, files.total)
    if n_records == 0:
        what = "the file holds" if len(files.paths) == 1 else "the files hold"
        raise DataError(f"{files.name}: {what} no records")
    if largest < 0:
        raise DataError(
            f"{files.name}: no record has an entry; say how many columns with n_features"
        )


def _text_blocks(files: SourceFiles, block_bytes: int) -> Generator[_FileBlock]:
    for number, (path, mark) in enumerate(zip(files.paths, files.marks, strict=True)):
        with closing(line_blocks(path, block_bytes, mark)) as blocks:
            for block in blocks:
                yield _FileBlock(number, block)


def _in_order(
    work: Callable[[Item], Result], items: Iterator[Item], n_threads: int
) -> Generator[Result]:
    """Apply `work` in threads, a little ahead of the caller, and yield results in order.

    An error of `items` is raised when the results of all items before it have been handed on.
    """
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="dplasso-parse")
    ahead: deque[Future[Result]] = deque()
    try:
        failed = None
        try:
            for item in items:
                ahead.append(pool.submit(work, item))
                if len(ahead) > n_threads:
                    yield ahead.popleft().result()
        except DataError as error:
            failed = error
        while ahead:
            yield ahead.popleft().result()
        if failed is not None:
            raise failed
    finally:
        pool.shutdown(cancel_futures=True)


class _Growing:
    """A one-dimensional array that is appended to, in place where the system can."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._array: NDArray[Any] = np.empty(0, dtype)
        self._size = 0

    def append(self, part: NDArray[Any]) -> None:
        end = self._size + part.size
        if end > self._array.size:
            self._array.resize(end + end // 8, refcheck=False)
        self._array[self._size : end] = part
        self._size = end

    def widen(self, dtype: DTypeLike) -> None:
        self._array = self._array[: self._size].astype(dtype)

    def finish(self) -> NDArray[Any]:
        self._array.resize(self._size, refcheck=False)
        return self._array


def read_svmlight(
    paths: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    label_map: Mapping[str, float] | None = None,
    progress: Progress | None = None,
    block_bytes: int = BLOCK_BYTES,
    n_threads: int | None = None,
) -> tuple[csr_array, NDArray[np.float64]]:
    """Read svmlight text, plain or compressed, to a sparse matrix and its labels.

    A line is ``label index:value index:value ...``; a ``qid:number`` after the label and
    everything from ``#`` on are ignored, as are blank lines. Indices count columns from 1 and
    increase along a line. Explicit zeros are kept.

    Parameters
    ----------
    paths : str, Path or iterable of these
        Files, or patterns such as ``part-*.svm.gz``, that make one data set, in this order;
        ``.gz``, ``.bz2``, ``.xz`` and ``.zst`` are decompressed.
    n_features : int, optional
        Number of columns. Default: the largest column in the files; say it where the columns
        are public and the files are not, and to give a test file the shape of its training file.
    zero_based : bool, default False
        Whether indices count columns from 0.
    label_map : mapping of str to number, optional
        What the labels mean, such as ``{"neg": 0, "pos": 1}``; any other label is an error.
        Labels that are numbers are compared as numbers. Default: labels are numbers and mean
        themselves.
    progress : callable, optional
        Called as ``progress(done, total)`` after each block, in bytes on disk of all files.
    block_bytes : int, default 2 MiB
        Bytes of text parsed at a time.
    n_threads : int, optional
        Threads that parse; they never change the result. Default: the cores there are, 8 at
        most.

    Returns
    -------
    X : csr_array of float32, shape (n_records, n_features)
        Each value is the double nearest to the text, rounded to float32. Indices are int32
        where they fit, else int64.
    y : float64 array, shape (n_records,)
        The labels as they stand in the file, or what the label map says they mean.

    Raises
    ------
    DataError
        If a file cannot be read or changes meanwhile, there is no record, or a line is
        malformed: the message names the file, the line and what is wrong.
    """
    layout = check_format(n_features, zero_based, label_map)
    labels, row_ends = _Growing(np.float64), _Growing(np.int64)
    columns, values = _Growing(np.int32), _Growing(np.float32)
    row_ends.append(np.zeros(1, np.int64))
    largest, n_entries, wide = -1, 0, False
    parsed = parsed_blocks(
        source_files(paths),
        layout,
        block_bytes=block_bytes,
        n_threads=n_threads,
        progress=progress,
    )
    with closing(parsed) as blocks:
        for lines in blocks:
            if lines.columns.dtype == np.int64 and not wide:
                columns.widen(np.int64)
                wide = True
            labels.append(lines.labels)
            row_ends.append(lines.row_ends + n_entries)
            columns.append(lines.columns)
            values.append(lines.values)
            largest = max(largest, lines.largest)
            n_entries += lines.values.size
    y = labels.finish()
    n_features = n_features or largest + 1
    # scipy holds both index arrays in one type.
    wide = max(n_features, n_entries) > INT32_MAX
    index_type = np.int64 if wide else np.int32
    X = csr_array(
        (
            values.finish(),
            columns.finish().astype(index_type, copy=False),
            row_ends.finish().astype(index_type, copy=False),
        ),
        shape=(y.size, n_features),
    )
    X.has_canonical_format = True
    return X, y
