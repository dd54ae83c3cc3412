"""Records as a stream of row blocks, for code that must not hold all of them in memory."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from dplasso.data.files import read_npz_files, refuse_labels_path
from dplasso.data.npz import npz_shape
from dplasso.data.source_files import Paths, SourceFiles, source_files
from dplasso.data.streams import BLOCK_BYTES, Progress
from dplasso.data.svmlight.lines import Format
from dplasso.data.svmlight.reader import check_format, parsed_blocks, usable_threads
from dplasso.errors import DataError
from dplasso.matrix.compressed import add_duplicates

# A block of text makes arrays of up to about this many times its size, itself included: short
# entries make 12 bytes of 4, and the kernel's columns are wider while it works.
_ARRAYS_PER_TEXT = 8
# Blocks in memory besides one for each thread: read ahead, waiting, handed out.
_BESIDE_THREADS = 4
_LEAST_TEXT = 64 << 10


class RowBlock(NamedTuple):
    """Consecutive records.

    Attributes
    ----------
    indptr : int64 array, shape (n + 1,)
        Where the rows begin and end in `indices` and `values`, from 0.
    indices : int32 or int64 array
        Columns from 0, strictly ascending within a row; int64 where int32 does not hold them.
    values : float32 or float64 array
        As long as `indices`.
    labels : array, shape (n,)
        Numbers, strings or bools, as read or as mapped.
    people : int64 array, shape (2 n,), or None
        Whose row each is (`dplasso.data.people`), where the source says so.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[Any]
    labels: NDArray[Any]
    people: NDArray[np.int64] | None = None


class Blocks(Protocol):
    """``blocks(memory_bytes, progress=None)``; each call starts again from the first record."""

    def __call__(
        self, memory_bytes: int, progress: Progress | None = None, /
    ) -> Iterator[RowBlock]:
        """Yield all records in order, using about `memory_bytes` for everything at work."""


@dataclass(frozen=True)
class BlockSource:
    """A data set as row blocks.

    Attributes
    ----------
    name : str
        For messages.
    n_features : int or None
        Columns, where known in advance; None means the largest index + 1.
    blocks : callable
        ``blocks(memory_bytes, progress=None)`` yields the records in order as `RowBlock`, each
        of one record at least; it may be called again, for another pass. ``progress(done,
        total)`` is called along the way.
    total : int or None
        What `progress` counts up to: bytes on disk or rows; None if it is not known.
    columns_declared : bool
        Whether `n_features`, where known, is public: declared, not taken from the data.
    """

    name: str
    n_features: int | None
    blocks: Blocks
    total: int | None
    columns_declared: bool = True


def block_source(
    paths: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    labels_path: str | Path | None = None,
    label_map: Mapping[str, float] | None = None,
) -> BlockSource:
    """Open data files as a stream of row blocks.

    Parameters
    ----------
    paths : str, Path or iterable of these
        Files, or patterns such as ``part-*.svm.gz``, that make one data set, in this order:
        svmlight text, plain or compressed, or .npz as `read_npz` takes them.
    n_features : int, optional
        Number of columns. Default: the largest in svmlight text (known when it has been read),
        the largest stored shape in .npz.
    zero_based : bool, default False
        Whether svmlight indices count columns from 0.
    labels_path : str or Path, optional
        For a single .npz: a .npy file of labels.
    label_map : mapping of str to number, optional
        What the labels mean, such as ``{"neg": 0, "pos": 1}``; any other label is an error.

    Returns
    -------
    BlockSource

    Raises
    ------
    DataError
        If a file is missing, or of a kind that is not read. What is wrong inside the files is
        raised while the blocks are read.
    """
    files = source_files(paths)
    if files.kind == "svmlight":
        refuse_labels_path(files, labels_path)
        layout = check_format(n_features, zero_based, label_map)
        svmlight = partial(_svmlight_blocks, files, layout)
        return BlockSource(files.name, n_features, svmlight, files.total)
    declared = n_features is not None
    if n_features is None:
        n_features = max(npz_shape(path)[1] for path in files.paths)

    def npz(memory_bytes: int, progress: Progress | None = None, /) -> Iterator[RowBlock]:
        # Each array is compressed as a whole, and may be stored by column or by entry.
        X, y = read_npz_files(
            files,
            n_features=n_features,
            labels_path=labels_path,
            label_map=label_map,
            progress=progress,
        )
        yield from _cut(X, y, memory_bytes)

    return BlockSource(files.name, n_features, npz, files.total, declared)


def _svmlight_blocks(
    files: SourceFiles, layout: Format, memory_bytes: int, progress: Progress | None = None
) -> Iterator[RowBlock]:
    n_threads = usable_threads()
    text = memory_bytes // ((n_threads + _BESIDE_THREADS) * _ARRAYS_PER_TEXT)
    parsed = parsed_blocks(
        files,
        layout,
        block_bytes=min(max(text, _LEAST_TEXT), BLOCK_BYTES),
        n_threads=n_threads,
        progress=progress,
    )
    with closing(parsed) as blocks:
        for lines in blocks:
            if lines.labels.size:
                starts = np.concatenate(([0], lines.row_ends))
                yield RowBlock(starts, lines.columns, lines.values, lines.labels)


def matrix_source(X: Any, y: ArrayLike, name: str = "the matrix") -> BlockSource:
    """Return a matrix in memory as a stream of row blocks, to write it to a store for example.

    Parameters
    ----------
    X : sparse or dense matrix, shape (N, D)
        The records. Duplicate entries are added up; float32 stays, other numbers
        become float64.
    y : array-like, shape (N,)
        Labels: numbers, strings or bools.
    name : str, default="the matrix"
        For messages.

    Returns
    -------
    BlockSource

    Raises
    ------
    DataError
        If there is not one label for each record.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dplasso.data.blocks import matrix_source
    >>> from dplasso.data.store import write_store
    >>> place = Path(tempfile.mkdtemp()) / "eye.store"
    >>> write_store(matrix_source(np.eye(3), [0, 1, 1]), place, memory=2**27).shape
    (3, 3)
    """
    rows = csr_array(X)
    if rows.dtype != np.float32:
        rows = rows.astype(np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()
        add_duplicates(rows)
    labels = np.asarray(y)
    if labels.shape != (rows.shape[0],):
        raise DataError(
            f"{name}: there are {rows.shape[0]} records and labels of shape {labels.shape}; "
            "one label for each is needed"
        )

    def blocks(memory_bytes: int, progress: Progress | None = None, /) -> Iterator[RowBlock]:
        done = 0
        for block in _cut(rows, labels, memory_bytes):
            yield block
            done += block.labels.size
            if progress is not None:
                progress(done, labels.size)

    return BlockSource(name, rows.shape[1], blocks, labels.size, columns_declared=False)


def _cut(X: csr_array, y: NDArray[Any], memory_bytes: int) -> Iterator[RowBlock]:
    """Yield blocks of a matrix whose entries take up about `memory_bytes`."""
    entry_bytes = X.indices.itemsize + X.data.itemsize
    most = max(1, memory_bytes // entry_bytes)
    row = 0
    while row < y.size:
        # As many rows as fit, counting entries, starts and labels; at least one.
        end = int(np.searchsorted(X.indptr, X.indptr[row] + most, side="right")) - 1
        end = max(row + 1, min(end, row + max(1, memory_bytes // 16)))
        at = slice(X.indptr[row], X.indptr[end])
        starts = X.indptr[row : end + 1].astype(np.int64) - X.indptr[row]
        yield RowBlock(starts, X.indices[at], X.data[at], y[row:end])
        row = end
