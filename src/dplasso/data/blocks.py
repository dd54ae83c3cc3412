"""Records as a stream of row blocks, for what must not hold all of them in memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dplasso.data.streams import Progress


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
    paths: list[Path],
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    labels_path: Path | None = None,
) -> BlockSource:
    """Stand in until the streaming reader is here: one file, read whole."""
    from dplasso.data.files import read_data

    data = read_data(
        paths[0], n_features=n_features, zero_based=zero_based, labels_path=labels_path
    )

    def blocks(memory_bytes: int, progress: Progress | None = None) -> Iterator[RowBlock]:
        step = max(1, int(data.X.shape[0] * memory_bytes / (8 * data.X.nnz + 1)))
        for first in range(0, data.X.shape[0], step):
            part = data.X[first : first + step]
            yield RowBlock(
                part.indptr.astype(np.int64), part.indices, part.data, data.y[first : first + step]
            )
            if progress:
                progress(first + part.shape[0], data.X.shape[0])

    return BlockSource(str(paths[0]), data.X.shape[1], blocks, data.X.shape[0])
