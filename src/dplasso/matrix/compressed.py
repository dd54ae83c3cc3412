"""Convert the caller's matrix to the arrays of the kernels, with as few copies as possible."""

from collections.abc import Callable
from copy import copy
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dplasso.errors import DataError
from dplasso.runtime.compilation import kernel
from dplasso.runtime.threads import cut, thread_pool

_LARGEST = float(np.finfo(np.float64).max)
# So few entries and columns are left to scipy: to compile loops of our own takes longer.
FEW = 2**21
# Entries that are compared at once.
_COMPARED = 2**16
_OUTSIDE = "X is not a valid sparse matrix: an index lies outside 0 to {}, or its pointers decrease"


Make = Callable[[int, Any], NDArray[Any]]
"""Makes an array of so many numbers of a type, in memory or in a temporary file."""


class Compressed(NamedTuple):
    """A matrix in rows or in columns; the arrays may be the caller's.

    `indices`: column (row) numbers, each at most once per row (column).
    `values`: entries before clipping; empty if every entry is `constant`.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.integer]
    values: NDArray[np.floating]
    constant: float


def as_scipy(rows: Compressed, n_columns: int) -> sp.csr_array:
    """Return rows as a matrix of scipy, with a byte for each entry if all entries are equal."""
    values = rows.values if rows.values.size else np.empty(rows.indices.size, dtype=np.int8)
    parts = values, rows.indices, rows.indptr
    return sp.csr_array(parts, shape=(rows.indptr.size - 1, n_columns))


def check_rows(
    indptr: NDArray[np.int64], indices: NDArray[np.integer], n_columns: int
) -> tuple[int, int, int]:
    """Find malformed rows; return (outside, unordered, largest column), -1 for none.

    They are the first row with pointers or columns outside the matrix, and the first before that
    one whose columns do not ascend strictly.
    """
    fits = (indptr[:-1] >= 0) & (indptr[1:] >= indptr[:-1]) & (indptr[1:] <= indices.size)
    n_rows = len(fits) if fits.all() else int(fits.argmin())
    outside, unordered, largest = n_rows if n_rows < len(fits) else -1, -1, -1
    starts = indptr[: n_rows + 1]
    first, last = (int(starts[0]), int(starts[-1])) if n_rows else (0, 0)
    for begin in range(first, last, _COMPARED):
        end = min(begin + _COMPARED, last)
        some = indices[begin:end]
        largest = max(largest, int(some.max()))
        if some.min() < 0 or largest >= n_columns:
            place = begin + int(((some < 0) | (some >= n_columns)).argmax())
            outside = int(np.searchsorted(starts, place, side="right")) - 1
            end = int(starts[outside])
        # Each entry beside the one before it, except the first of a row.
        before = max(begin - 1, first)
        if unordered < 0 and end - before > 1:
            falls = indices[before + 1 : end] <= indices[before : end - 1]
            heads = starts[slice(*np.searchsorted(starts, [before + 1, end]))]
            falls[heads - before - 1] = False
            if falls.any():
                place = before + 1 + int(falls.argmax())
                unordered = int(np.searchsorted(starts, place, side="right")) - 1
        if outside >= 0:
            break
    return outside, unordered, largest


@kernel
def clip(value, bound):
    """Return a number clipped to [-bound, bound], as a double; 0 for NaN."""
    number = np.float64(value)
    # Selections instead of branches, which the processor could not predict.
    number = bound if number > bound else number
    number = -bound if number < -bound else number
    return number if number == number else 0.0


def clip_all(numbers: NDArray[Any], bound: float) -> NDArray[np.float64]:
    """Return numbers clipped to [-bound, bound]; 0 for NaN."""
    within: Any = np.maximum(numbers.astype(np.float64, copy=False), -bound)
    within = np.minimum(within, bound)
    return np.where(within == within, within, 0.0)


def clipped(matrix: Compressed, bound: float) -> Compressed:
    """Return a matrix with its entries clipped to [-bound, bound]; copied if any is beyond.

    The copy has double precision, because the bound need not be a float32. So an entry does not
    depend on other entries.
    """
    values = matrix.values
    # An entry of NaN must not keep others from being clipped.
    if values.size and not max(float(values.max()), -float(values.min())) <= bound:
        values = np.clip(values.astype(np.float64), -bound, bound)
    return matrix._replace(
        values=values,
        constant=float(np.clip(matrix.constant, -bound, bound)),
    )


def working_dtype(X: Any) -> np.dtype:
    """Return the type in which entries are kept: float32 if exact, or float64."""
    try:
        kind = np.dtype(getattr(X, "dtype", np.float64))
    except TypeError:
        # A type of another library; its entries are checked after their conversion.
        return np.dtype(np.float64)
    if kind.kind in "biuf" and np.can_cast(kind, np.float32):
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def format_of(X: Any) -> str:
    """Return the name of scipy's format of a sparse matrix; "" for anything else."""
    is_matrix = sp.issparse(X) and getattr(X, "ndim", 2) == 2
    return str(getattr(X, "format", "")) if is_matrix else ""


def checked(X: Any) -> Any:
    """Return X; DataError for a sparse matrix that `compress` refuses.

    scipy must not select from a matrix or convert it before: it follows invalid indices and
    pointers.
    """
    form = format_of(X)
    if form and X.dtype.kind not in "biufc":
        # scipy converts them and adds up duplicates, in an order that other records may change.
        raise DataError(
            "X is a sparse matrix of objects or texts",
            advice="convert its entries, in the attribute data, to numbers",
        )
    if form in ("csr", "csc", "bsr"):
        _first_unordered(X)
    if form == "coo":
        for places, size in zip((X.row, X.col), X.shape, strict=True):
            if places.size and not 0 <= places.min() <= places.max() < size:
                raise DataError(_OUTSIDE.format(size - 1))
    return X


def without_duplicates(X: Any) -> Any:
    """Return a sparse matrix of real numbers as canonical CSR or CSC, others unchanged.

    scipy adds up duplicates in an order that depends on other rows when it converts a matrix.
    Raises DataError as `compress` does.
    """
    form = format_of(X)
    if form not in ("", "csr", "csc"):
        X = copy(checked(X))
        if form == "coo":
            # Otherwise the conversion would add up duplicates.
            X.has_canonical_format = True
        X = X.tocsr()
    return canonical(X) if form and X.dtype.kind in "biuf" else checked(X)


def _first_unordered(X: Any, n_threads: int = 1) -> int:
    """Check a matrix; return its first row (column) that does not ascend, -1 for none."""
    shape = np.floor_divide(X.shape, getattr(X, "blocksize", 1)).tolist()
    n_major, n_minor = shape[::-1] if X.format == "csc" else shape
    # Pointers have the type of those of stores, so that kernels are compiled once.
    indptr, indices = _plain(X.indptr.astype(np.int64, copy=False)), _plain(X.indices)
    if indptr.size != n_major + 1 or indptr[0] != 0 or indptr[-1] > min(indices.size, len(X.data)):
        raise DataError("X is not a valid sparse matrix: its row pointers do not fit its entries")
    # Cut by rows, because pointers may not ascend.
    edges = cut(0, n_major, n_threads)
    # Indices that are not integers count as outside.
    faults = np.zeros((1, 3), dtype=np.int64)
    if indices.dtype.kind in "iu":
        with thread_pool(n_threads) as threads:
            parts = [indptr[first : last + 1] for first, last in pairwise(edges)]
            faults = np.array(threads.run(lambda t: check_rows(parts[t], indices, n_minor)))
    outside, unordered, _ = faults.max(axis=0)
    if outside >= 0:
        raise DataError(_OUTSIDE.format(n_minor - 1))
    return int(unordered)


def compress(X: Any, n_threads: int = 1) -> tuple[Compressed, bool]:
    """View a matrix as compressed rows, or as columns if it is CSC; return which.

    `X`, shape (N, D): float32 or float64, finite. Arrays are reused where possible. Kernels are
    compiled for each type, so pointers have 64 bits, indices 32 if these suffice, and all arrays
    appear to be writable. Raises DataError for an index outside the matrix or inconsistent
    pointers.
    """
    if not sp.issparse(X):
        X = sp.csr_array(X)
    by_rows = X.format == "csr"
    # Duplicate entries add up before they are clipped, else one record could exceed the bound.
    X = canonical(X, n_threads)
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
    """Presents the memory of an array to numpy as writable, although nothing writes to it."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.__array_interface__ = {
            **array.__array_interface__,
            "data": (array.ctypes.data, False),
        }


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous array that the compiler takes for writable, without copying it."""
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else np.asarray(_Writable(array))


def canonical(X: Any, n_threads: int = 1) -> Any:
    """Return CSR (CSC) whose columns (rows) ascend strictly: X itself, or else a copy.

    A copy is of float64, because sums of entries must not depend on whether another record made the
    matrix one of double precision. Raises DataError as `compress` does.
    """
    if _first_unordered(X, n_threads) < 0:
        return X
    size = int(X.indptr[-1])
    with np.errstate(over="ignore"):
        entries = X.data[:size].astype(np.float64)

    def summed(entries: NDArray[Any]) -> Any:
        rows = type(X)((entries, X.indices[:size], X.indptr), shape=X.shape)
        # Two counting sorts keep the order of the entries of one column; scipy's own sort does not.
        rows = rows.tocsc().tocsr() if X.format == "csr" else rows.tocsr().tocsc()
        rows.sum_duplicates()
        return rows

    sums = summed(entries)
    if not np.isfinite(sums.data).all():
        # A sum of finite entries that overflows becomes the largest number.
        not_finite = summed(~np.isfinite(entries)).data
        np.clip(sums.data, -_LARGEST, _LARGEST, out=sums.data, where=~not_finite)
    return sums


def all_equal(values: NDArray[Any]) -> bool:
    """Return whether all entries are equal, reading no more of them than necessary."""
    starts = range(0, values.size, _COMPARED)
    return all(bool((values[p : p + _COMPARED] == values[0]).all()) for p in starts)
