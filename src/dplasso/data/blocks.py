"""Records as a stream of row blocks, for what must not hold all of them in memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


from dplasso.data.npz import read_npz
from dplasso.data.paths import Paths, expand, named, one_kind
from dplasso.data.streams import Progress
from dplasso.data.svmlight import read_svmlight
from dplasso.errors import DataError


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
    """

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[Any]
    labels: NDArray[Any]


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
    """

    name: str
    n_features: int | None
    blocks: Blocks
    total: int | None


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
    files = expand(paths)
    kind = one_kind(files)
    if label_map is not None:
        raise NotImplementedError
    if kind == "svmlight":
        if labels_path is not None:
            raise DataError(f"{files[0]}: svmlight text has its own labels; leave labels_path out")
        return _svmlight_source(files, n_features, zero_based)
    if labels_path is not None and len(files) > 1:
        raise DataError(f"{labels_path}: one file of labels does not go with several .npz")
    return _npz_source(files, n_features, labels_path)


def _svmlight_source(files: list[Path], n_features: int | None, zero_based: bool) -> BlockSource:
    def blocks(memory_bytes: int, progress: Progress | None = None) -> Iterator[RowBlock]:
        for path in files:
            X, y = read_svmlight(path, n_features=n_features, zero_based=zero_based)
            yield RowBlock(X.indptr.astype(np.int64), X.indices, X.data, y)

    return BlockSource(named(files), n_features, blocks, None)


def _npz_source(
    files: list[Path], n_features: int | None, labels_path: str | Path | None
) -> BlockSource:
    def blocks(memory_bytes: int, progress: Progress | None = None) -> Iterator[RowBlock]:
        for path in files:
            X, y = read_npz(path, n_features=n_features, labels_path=labels_path)
            yield RowBlock(X.indptr.astype(np.int64), X.indices, X.data, y)

    return BlockSource(named(files), n_features, blocks, None)
