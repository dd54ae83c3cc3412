"""The training problem as arrays the kernels read, laid out at the least cost."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.data.store.reader import Store
from dplasso.errors import DataError
from dplasso.matrix.compressed import Compressed, compress
from dplasso.matrix.numbering import AS_GIVEN, Numbering, by_frequency
from dplasso.matrix.transpose import transpose


class Problem(NamedTuple):
    """Data and public parameters of one training run.

    Attributes
    ----------
    rows, columns : Compressed
        X by rows and by columns. The column numbers in `rows` are internal ones.
    has_columns : bool
        Without, `columns` stands for nothing and columns are found by reading all rows.
    columns_internal : bool
        Whether `columns` stand in the internal order too.
    checked : bool
        Whether every index is known to lie inside the matrix.
    numbering : Numbering
        Where the coordinates stand in alpha.
    labels : ndarray of int8, shape (N,)
        0 or 1.
    n_columns : int
        D.
    intercept : bool
        Coordinate D is a constant column of value `bound`.
    bound : float
        Entries are clipped to [-bound, bound].
    radius : float
        Radius of the L1 ball.
    unit : float
        Fixed-point units per unit of alpha, S = 2^32 / bound.
    margin_unit : float
        Fixed-point units of a margin per unit of x, 2^b / bound.
    n_steps : int
        T.
    """

    rows: Compressed
    columns: Compressed
    has_columns: bool
    columns_internal: bool
    checked: bool
    numbering: Numbering
    labels: NDArray[np.int8]
    n_columns: int
    intercept: bool
    bound: float
    radius: float
    unit: float
    margin_unit: float
    n_steps: int


# |q x S| <= 2^32 for every record; sums of fewer than 2^31 of them fit 64 bits.
SHARE_BITS = 32
MAX_ROWS = 2**31 - 1
# Margins carry this many bits behind |x| = bound, fewer (21 at T = 2 million) in long runs.
_MARGIN_BITS = 40


def gradient_unit(bound: float) -> float:
    """Return S = 2^32 / bound, the fixed-point units per unit of alpha."""
    return float(2.0**SHARE_BITS / bound)


def margin_unit(bound: float, n_steps: int) -> float:
    """Return the fixed-point units per unit of x in which margins are summed.

    Chosen from public numbers so that `n_steps` steps cannot overflow 62 bits.
    """
    total = n_steps * (n_steps + 3) // 2
    bits = min(_MARGIN_BITS, 62 - total.bit_length())
    return float(2.0**bits / bound)


# Costs in nanoseconds, on one core of a common server; only their ratios matter. Reading an index,
# transposing an entry, setting up a column of the transpose, relabelling an entry, and what a touch
# of a gradient costs more where popular columns do not share cache lines.
_SCAN, _TRANSPOSE, _COLUMN, _RELABEL, _SCATTERED = 0.6, 12.0, 6.0, 3.0, 0.6
# Gradients that fit a core's cache need no renumbering.
_CACHED_COLUMNS = 2**17


def worth_transposing(n_entries: int, n_columns: int, n_steps: int) -> bool:
    """Say whether having X by columns saves more than it costs.

    Without it every step reads all column indices to find the chosen column.
    """
    return n_steps * n_entries * _SCAN > n_entries * _TRANSPOSE + n_columns * _COLUMN


def worth_renumbering(n_entries: int, n_rows: int, n_columns: int, n_steps: int) -> bool:
    """Say whether storing the gradients of popular columns together saves more than it costs.

    A step touches the rows of one column: on average as many entries as the rows of a column drawn
    at random have.
    """
    if n_columns <= _CACHED_COLUMNS:
        return False
    touched = n_steps * (n_entries / n_columns) * (n_entries / max(1, n_rows))
    return touched * _SCATTERED > n_entries * _RELABEL + n_columns * _COLUMN


@njit(cache=True, nogil=True)
def _relabel(indices, internal, first, last, relabelled):
    """Translate some column numbers."""
    for p in range(np.uint64(first), np.uint64(last)):
        relabelled[p] = internal[np.uint64(indices[p])]


def relabel(rows: Compressed, numbering: Numbering, n_threads: int = 1) -> Compressed:
    """Return rows with internal column numbers, in the given order within each row.

    Parameters
    ----------
    rows : Compressed
        By rows.
    numbering : Numbering
        The internal numbers.
    n_threads : int, default=1
        Threads to use.

    Returns
    -------
    Compressed
        New indices; pointers and values are those of `rows`.
    """
    relabelled = np.empty_like(rows.indices)
    edges = np.linspace(0, relabelled.size, n_threads + 1).astype(np.int64)

    def part(t: int) -> None:
        _relabel(rows.indices, numbering.internal, edges[t], edges[t + 1], relabelled)

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(part, range(n_threads)))
    return rows._replace(indices=relabelled)


def build_problem(
    X: Any,
    labels: NDArray[np.int8],
    *,
    bound: float,
    radius: float,
    n_steps: int,
    intercept: bool,
    by_columns: bool,
    n_threads: int,
) -> Problem:
    """Lay out a training run, copying of X no more than pays.

    Parameters
    ----------
    X : csr or csc matrix or array, ndarray, or Store, shape (N, D)
        float32 or float64, finite. Never written to. A store has both orientations, internal
        column numbers, and entries that nobody has looked at yet.
    labels : ndarray of int8, shape (N,)
        0 or 1.
    bound, radius, n_steps, intercept
        As in `Problem`.
    by_columns : bool
        Whether the solver looks rows up by column.
    n_threads : int
        Threads for the copies.

    Returns
    -------
    Problem

    Raises
    ------
    DataError
        See `dplasso.matrix.compressed.compress`; for a store of more than `MAX_ROWS` rows.
    """
    if isinstance(X, Store):
        layout = _map_store(X, intercept)
    else:
        layout = _lay_out(X, n_steps, intercept, by_columns, n_threads)
    return Problem(
        **layout,
        labels=labels,
        n_columns=X.shape[1],
        intercept=intercept,
        bound=bound,
        radius=radius,
        unit=gradient_unit(bound),
        margin_unit=margin_unit(bound, n_steps),
        n_steps=n_steps,
    )


def _map_store(store: Store, intercept: bool) -> dict[str, Any]:
    """Take a store's arrays as they are; only the maps of its columns may have to grow by one."""
    if store.shape[0] > MAX_ROWS:
        raise DataError(f"{store.path} has {store.shape[0]:,} rows; {MAX_ROWS:,} is the most")
    internal, original = store.internal_column, store.original_column
    if intercept:
        last = store.shape[1]
        kind = np.int32 if last < 2**31 - 1 else np.int64
        internal = np.append(internal, last).astype(kind)
        original = np.append(original, last).astype(kind)
    return {
        "rows": store.rows,
        "columns": store.columns,
        "has_columns": True,
        "columns_internal": True,
        "checked": False,
        "numbering": Numbering(internal, original),
    }


def _lay_out(
    X: Any, n_steps: int, intercept: bool, by_columns: bool, n_threads: int
) -> dict[str, Any]:
    """Turn a matrix in memory into what the solver needs of it."""
    matrix, given_by_rows = compress(X)
    (n_rows, n_columns), n_entries = X.shape, matrix.indices.size
    rows = matrix if given_by_rows else transpose(matrix, n_rows, n_threads)
    columns, has_columns = matrix, not given_by_rows
    if by_columns and given_by_rows and worth_transposing(n_entries, n_columns, n_steps):
        columns, has_columns = transpose(matrix, n_columns, n_threads), True
    numbering = AS_GIVEN
    if by_columns and has_columns and worth_renumbering(n_entries, n_rows, n_columns, n_steps):
        numbering = by_frequency(np.diff(columns.indptr), intercept)
        rows = relabel(rows, numbering, n_threads)
    return {
        "rows": rows,
        "columns": columns,
        "has_columns": has_columns,
        "columns_internal": False,
        "checked": True,
        "numbering": numbering,
    }
