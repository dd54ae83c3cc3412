"""Rows whose columns are centred: from each entry of such a column a released number is taken."""

import numpy as np
from numpy.typing import NDArray

from dplasso.matrix.compressed import Compressed, Make, clip
from dplasso.runtime.compilation import kernel
from dplasso.runtime.threads import Threads, even_parts


def centred_rows(
    rows: Compressed,
    centres: NDArray[np.float64],
    limits: NDArray[np.float64],
    threads: Threads,
    make: Make = np.empty,
) -> Compressed:
    """Return rows from whose entries the centre of the column is taken, in double precision.

    What is left is clipped to the column's limit, because differences of huge numbers may not be
    finite. Columns whose centre is 0 keep their entries. The others have an entry in every row.
    """
    columns = np.flatnonzero(centres)
    if not columns.size:
        return rows
    edges = even_parts(rows.indptr, threads.count)
    counts = np.zeros_like(rows.indptr)
    threads.run(lambda t: _count_entries(rows, columns, edges[t], edges[t + 1], counts))
    indptr = np.cumsum(counts)
    indices = make(int(indptr[-1]), rows.indices.dtype)
    centred = Compressed(indptr, indices, make(indices.size, np.float64), 0.0)
    arguments = rows, columns, centres, limits
    threads.run(lambda t: _centre(*arguments, edges[t], edges[t + 1], centred))
    return centred


@kernel
def _count_entries(rows, columns, first, last, counts):
    """Set ``counts[i + 1]`` to the number of entries of row i once it is centred."""
    for i in range(first, last):
        count, k = columns.size, 0
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            while k < columns.size and columns[k] < rows.indices[p]:
                k += 1
            count += not (k < columns.size and columns[k] == rows.indices[p])
        counts[i + 1] = count


@kernel
def _centre(rows, columns, centres, limits, first, last, centred):
    """Merge the entries of some rows with those that the centres add, both by column."""
    for i in range(first, last):
        place, k = np.uint64(centred.indptr[i]), 0
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            column = np.int64(rows.indices[p])
            while k < columns.size and columns[k] < column:
                centred.indices[place] = columns[k]
                centred.values[place] = clip(-centres[columns[k]], limits[columns[k]])
                place += np.uint64(1)
                k += 1
            value = np.float64(rows.values[p]) if rows.values.size else np.float64(rows.constant)
            centred.indices[place] = column
            centred.values[place] = clip(value - centres[column], limits[column])
            place += np.uint64(1)
            k += k < columns.size and columns[k] == column
        while k < columns.size:
            centred.indices[place] = columns[k]
            centred.values[place] = clip(-centres[columns[k]], limits[columns[k]])
            place += np.uint64(1)
            k += 1
