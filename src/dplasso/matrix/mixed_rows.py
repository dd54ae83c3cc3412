"""Private rows beside their latent rows: one linear map of a row, and one scale.

A mixed row has the D entries of a unit row and k latent entries, both weighted by public numbers.
Each is a function of its own row and of public values: entries are added up in the order in which
the row has them, in double precision, whatever the other rows are. Rows are made unit rows after
that, so no sensitivity changes.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.matrix.compressed import Compressed
from dplasso.matrix.geometry import Geometry
from dplasso.matrix.numbering import AS_GIVEN, Numbering
from dplasso.matrix.scaling import Mix
from dplasso.matrix.unit_rows import row_factors
from dplasso.runtime.threads import Threads, even_parts


def mixed_rows(
    rows: Compressed, numbering: Numbering, geometry: Geometry, mix: Mix, threads: Threads
) -> tuple[Compressed, Numbering]:
    """Return rows with k latent entries behind their D own, and the numbers of the columns.

    Without a part for their own entries (`part` 1) rows have the latent ones alone.
    """
    own, latent = mix.weights(geometry)
    n_rows, n_columns, count = rows.indptr.size - 1, geometry.n_features, mix.n_directions
    keeps = own > 0.0
    first = n_columns if keeps else 0
    place = np.full(n_columns, -1, dtype=np.int64)
    internal = numbering.internal
    place[internal[geometry.columns] if internal.size else geometry.columns] = np.arange(
        geometry.columns.size
    )
    lengths = count + np.diff(rows.indptr) * keeps
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    kind = np.int32 if first + count < 2**31 else np.int64
    mixed = Compressed(
        indptr,
        np.empty(int(indptr[-1]), dtype=kind),
        np.empty(int(indptr[-1]), dtype=np.float32),
        0.0,
    )
    factor = row_factors(rows, 0.0, None, threads)
    directions = np.ascontiguousarray(geometry.directions[:, :count])
    edges = even_parts(rows.indptr, threads.count)

    def part(t: int) -> None:
        some = edges[t], edges[t + 1]
        _mix_rows(rows, factor, place, directions, own, latent, first, *some, mixed)

    if n_rows:
        threads.run(part)
    return mixed, _numbers_of(numbering, first, count) if keeps else AS_GIVEN


def _numbers_of(numbering: Numbering, n_columns: int, count: int) -> Numbering:
    """Return the numbers of the columns with so many more behind them."""
    if not numbering.original.size:
        return numbering
    more = np.arange(n_columns, n_columns + count, dtype=numbering.original.dtype)
    return Numbering(
        np.concatenate([numbering.internal[:n_columns], more]),
        np.concatenate([numbering.original[:n_columns], more]),
    )


@njit(cache=True, nogil=True)
def _mix_rows(rows, factor, place, directions, own, latent, first, begin_row, end_row, mixed):
    values, count = rows.values, directions.shape[1]
    constant = np.float64(rows.constant)
    sums = np.empty(count)
    for i in range(begin_row, end_row):
        sums[:] = 0.0
        q = np.uint64(mixed.indptr[i])
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            value = (np.float64(values[p]) if values.size else constant) * factor[i]
            j = rows.indices[p]
            if first:
                mixed.indices[q] = j
                mixed.values[q] = np.float32(own * value)
                q += np.uint64(1)
            if place[np.uint64(j)] >= 0:
                direction = directions[np.uint64(place[np.uint64(j)])]
                for k in range(np.uint64(count)):
                    sums[k] += value * np.float64(direction[k])
        for k in range(np.uint64(count)):
            mixed.indices[q] = first + k
            mixed.values[q] = np.float32(latent * sums[k])
            q += np.uint64(1)


@njit(cache=True, nogil=True)
def squared_length(rows, i):
    """Return the squared length of a mixed row, added up in the order of its entries."""
    found = 0.0
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
        found += np.float64(rows.values[p]) * np.float64(rows.values[p])
    return found


def unmixed(
    weights: NDArray[np.float64], geometry: Geometry, mix: Mix
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights of the D columns that weights of mixed rows stand for, shape (D, K).

    Also, shape (D,), their standard deviations if those of all mixed weights are 1.
    """
    own, latent = mix.weights(geometry)
    n_columns, columns = geometry.n_features, geometry.columns
    directions = geometry.directions[:, : mix.n_directions]
    found = own * weights[:n_columns]
    found[columns] += latent * (directions @ weights[n_columns:].astype(np.float32))
    squares = np.full(n_columns, own * own)
    squares[columns] += latent * latent * np.einsum("jk,jk->j", directions, directions)
    return found, np.sqrt(squares)
