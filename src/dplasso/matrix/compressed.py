"""From the caller's matrix to the arrays the kernels read, copying only what must be."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from dplasso.errors import DataError
from dplasso.runtime.threads import cut, thread_pool

_OUTSIDE = "X is not a valid sparse matrix: an index lies outside 0 to {}, or its pointers decrease"


class Compressed(NamedTuple):
    """One orientation of X, by rows or by columns; the arrays may be the caller's.

    `indices`: column (row) numbers, each at most once in a row (column).
    `values`: entries as given, not clipped; empty when every entry is `constant`.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.integer]
    values: NDArray[np.floating]
    constant: float


@njit(cache=True, nogil=True)
def check_rows(indptr, indices, n_columns):
    """Look for rows that cannot be those of a matrix; return (outside, unordered, largest column).

    They are the first row whose pointers or columns lie outside the matrix, and the first, up to
    that one, whose columns do not ascend strictly; -1 where there is none. The same for columns.
    """
    unordered, largest = -1, np.int64(-1)
    for i in range(indptr.size - 1):
        begin, end = indptr[i], indptr[i + 1]
        if begin > end or begin < 0 or end > indices.size:
            return i, unordered, largest
        if begin == end:
            continue
        # A row that ascends lies where its ends do; told without a branch for each entry.
        falls = False
        for p in range(np.uint64(begin) + np.uint64(1), np.uint64(end)):
            falls |= indices[p] <= indices[p - np.uint64(1)]
        if not falls and indices[begin] >= 0 and indices[end - 1] < n_columns:
            largest = max(largest, np.int64(indices[end - 1]))
            continue
        before = np.int64(-1)
        for p in range(begin, end):
            k = np.int64(indices[p])
            if k < 0 or k >= n_columns:
                return i, unordered, largest
            if k <= before and unordered < 0:
                unordered = i
            before = k
            largest = max(largest, k)
    return -1, unordered, largest


@njit(cache=True, nogil=True)
def clip(value, bound):
    """Return a number clipped to [-bound, bound], as a double; 0 for NaN."""
    number = np.float64(value)
    # Chosen, not branched to: which way a residual goes nobody can predict.
    number = bound if number > bound else number
    number = -bound if number < -bound else number
    return number if number == number else 0.0


def clipped(matrix: Compressed, bound: float) -> Compressed:
    """Return a matrix with its entries clipped to [-bound, bound]; copied if any is beyond."""
    values = matrix.values
    if values.size and max(values.max(), -values.min()) > bound:
        values = np.clip(values, -bound, bound)
    return matrix._replace(
        values=values,
        constant=float(np.clip(matrix.constant, -bound, bound)),
    )


def working_dtype(X: Any) -> np.dtype:
    """Return the type in which the entries of anything are kept: float32 if exact, or float64."""
    try:
        kind = np.dtype(getattr(X, "dtype", np.float64))
    except TypeError:
        # Another library's type; what numpy makes of its entries is seen later.
        return np.dtype(np.float64)
    if kind.kind in "biuf" and np.can_cast(kind, np.float32):
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def format_of(X: Any) -> str:
    """Return the name of scipy's format of a sparse matrix; "" for anything else."""
    known = sp.issparse(X) and getattr(X, "ndim", 2) == 2
    return str(getattr(X, "format", "")) if known else ""


def checked(X: Any) -> Any:
    """Return anything as it is; DataError for a sparse matrix that `compress` refuses.

    Whoever has scipy select from a matrix, or convert it, asks first: it reads and writes wherever
    indices and pointers say.
    """
    form = format_of(X)
    if form in ("csr", "csc", "bsr"):
        _first_unordered(X)
    if form == "coo":
        for places, size in zip((X.row, X.col), X.shape, strict=True):
            if places.size and not 0 <= places.min() <= places.max() < size:
                raise DataError(_OUTSIDE.format(size - 1))
    return X


def _first_unordered(X: Any, n_threads: int = 1) -> int:
    """Return the first row (column) whose indices do not ascend, -1 for none; check all of them."""
    shape = np.floor_divide(X.shape, getattr(X, "blocksize", 1)).tolist()
    n_major, n_minor = shape[::-1] if X.format == "csc" else shape
    # Pointers of one type, as stores have them: kernels are compiled once for both.
    indptr, indices = _plain(X.indptr.astype(np.int64, copy=False)), _plain(X.indices)
    if indptr.size != n_major + 1 or indptr[0] != 0 or indptr[-1] > min(indices.size, len(X.data)):
        raise DataError("X is not a valid sparse matrix: its row pointers do not fit its entries")
    # Pointers are not known to ascend yet: parts of the rows, not of the entries.
    edges = cut(0, n_major, n_threads)
    # Of fractions, or of no numbers, no comparison says where they point.
    found = np.zeros((1, 3), dtype=np.int64)
    if indices.dtype.kind in "iu":
        with thread_pool(n_threads) as threads:
            parts = [indptr[first : last + 1] for first, last in pairwise(edges)]
            found = np.array(threads.run(lambda t: check_rows(parts[t], indices, n_minor)))
    outside, unordered, _ = found.max(axis=0)
    if outside >= 0:
        raise DataError(_OUTSIDE.format(n_minor - 1))
    return int(unordered)


def compress(X: Any, n_threads: int = 1) -> tuple[Compressed, bool]:
    """View a matrix as compressed rows, or as columns if it is CSC; return which.

    `X`, shape (N, D): float32 or float64, finite; never written to. Its arrays are taken where they
    will do. Kernels are compiled for each type that they meet: pointers get 64 bits, indices 32
    where these are enough, and all arrays look as if they could be written to.

    Raises DataError if an index lies outside the matrix or the row pointers are inconsistent.
    """
    if not sp.issparse(X):
        X = sp.csr_array(X)
    by_rows = X.format == "csr"
    if _first_unordered(X, n_threads) >= 0:
        # Duplicate entries add up before they are clipped, else one record could exceed the bound.
        X = X.copy()
        add_duplicates(X)
    indptr = _plain(X.indptr.astype(np.int64, copy=False))
    n_entries = int(indptr[-1])
    n_minor = X.shape[by_rows]
    narrow = np.int32 if n_minor <= np.iinfo(np.int32).max else X.indices.dtype
    indices = _plain(X.indices)[:n_entries].astype(narrow, copy=False)
    values = _plain(X.data)[:n_entries]
    constant = 0.0
    if n_entries and all_equal(values):
        constant, values = float(values[0]), values[:0]
    return Compressed(indptr, indices, values, constant), by_rows


class _Writable:
    """What numpy takes for the memory of an array that can be written to, though nothing does."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.__array_interface__ = {
            **array.__array_interface__,
            "data": (array.ctypes.data, False),
        }


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as most are, not copied: in one piece, and to the compiler writable."""
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else np.asarray(_Writable(array))


def add_duplicates(X: Any) -> None:
    """Add up entries stored twice, in place; what overflows becomes the largest number.

    Entries are finite. Sums that are no number (infinities of both signs) become 0: each by the
    entries of its own row.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        X.sum_duplicates()
    np.nan_to_num(X.data, copy=False, nan=0.0)


def all_equal(values: NDArray[Any]) -> bool:
    """Return whether all entries are one value, looking at no more of them than it takes."""
    blocks = range(0, values.size, 2**14)
    return all(bool((values[p : p + 2**14] == values[0]).all()) for p in blocks)
