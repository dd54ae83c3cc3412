"""A matrix in memory as a stream of row blocks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from dplasso.data.blocks import BlockSource, RowBlock, cut_rows
from dplasso.data.people import WORDS
from dplasso.data.source_files import Progress
from dplasso.errors import DataError
from dplasso.matrix.compressed import without_duplicates


def matrix_source(
    X: Any,
    y: ArrayLike,
    people: NDArray[np.int64] | None = None,
    *,
    columns_declared: bool = False,
    name: str = "the matrix",
) -> BlockSource:
    """Return a matrix in memory as a stream of row blocks, for example to write it to a store.

    Duplicate entries are summed. Values become float64, except float32 without duplicates.
    `people`: the hashes from `hash_people`.
    """
    rows = csr_array(without_duplicates(X))
    if rows.dtype != np.float32:
        rows = rows.astype(np.float64, copy=False)
    labels = np.asarray(y)
    if labels.shape != (rows.shape[0],):
        raise DataError(
            f"{name} has {rows.shape[0]} records, but the labels have the shape {labels.shape}; "
            "pass one label for each record"
        )

    def blocks(memory_bytes: int, progress: Progress | None = None, /) -> Iterator[RowBlock]:
        for begin, end, part in cut_rows(rows, memory_bytes):
            whose = None if people is None else people[WORDS * begin : WORDS * end]
            yield RowBlock(*part, labels[begin:end], whose)
            if progress is not None:
                progress(end, labels.size)

    return BlockSource(name, rows.shape[1], blocks, labels.size, columns_declared)
