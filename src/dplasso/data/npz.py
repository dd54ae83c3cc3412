"""Reading and writing scipy's sparse .npz with labels; nothing in the file is ever unpickled.

The layout is that of ``scipy.sparse.save_npz`` (so scipy reads the matrix of a file written
here), and one more array, ``y``. A file of scipy's own gets its labels from a .npy beside it.
"""

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from dplasso.data.streams import FileMark, Progress, check_readable, check_unchanged
from dplasso.errors import DataError
from dplasso.files.atomic import atomic_write
from dplasso.matrix.check import check_rows

LABEL_KEYS = ("y", "labels")

# zipfile, its decompressors and numpy's header parser raise a dozen unrelated types.
_DAMAGE = Exception
_WITHOUT_BYTES = ("Object arrays", "there are bytes after")
_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))


def read_npz(
    path: str | Path,
    *,
    labels_path: str | Path | None = None,
    n_features: int | None = None,
    progress: Progress | None = None,
) -> tuple[csr_array, NDArray[Any]]:
    """Read a sparse matrix and its labels from .npz.

    Parameters
    ----------
    path : str or Path
        As written by `write_npz`, or by ``scipy.sparse.save_npz`` (CSR, CSC or COO).
    labels_path : str or Path, optional
        A .npy file of labels. Default: the array ``y`` or ``labels`` in the file; failing
        these, the file ``NAME.y.npy`` beside ``NAME.npz``.
    n_features : int, optional
        Number of columns. Default: the stored shape.
    progress : callable, optional
        Called as ``progress(done, total)`` after each array, in bytes of the file on disk.

    Returns
    -------
    X : csr_array, shape (n_records, n_features)
        float32 or float64 and int32 or int64 as stored; narrower and whole-number values
        become the narrower of the two float types that holds them all. Rows are sorted.
    y : array, shape (n_records,)

    Raises
    ------
    DataError
        If the file is missing, damaged, not a sparse matrix, or has no labels; if labels and
        rows differ in number; if an index is out of range or there twice, or a value is NaN or
        infinite.
    """
    path = Path(path)
    check_readable(path)
    arrays = _read_arrays(path, progress)
    n_rows, _ = _shape(path, arrays)
    if n_rows == 0:
        raise DataError(f"{path}: the file holds no records")
    # Before the matrix: a damaged number of rows is noticed here.
    y = _labels(path, arrays, labels_path, n_rows)
    X = _matrix(path, arrays)
    if n_features is not None:
        X = _with_columns(path, X, n_features)
    return X, y


def write_npz(path: str | Path, X: Any, y: Any) -> None:
    """Write a sparse matrix and its labels to one .npz, in full or not at all.

    Parameters
    ----------
    path : str or Path
        Replaced if it exists.
    X : sparse or dense, shape (n_records, n_features)
        Written as CSR; float32 and float64 keep their type.
    y : array_like, shape (n_records,)
        Numbers, strings or bools.

    Raises
    ------
    DataError
        If `read_npz` would refuse the file, or it cannot be written.
    """
    path = Path(path)
    matrix = csr_array(X)
    labels = np.asarray(y)
    _check_labels(path, "y", labels, matrix.shape[0])
    arrays: dict[str, Any] = {
        "format": np.array(b"csr"),
        "_is_array": np.array(True),
        "shape": np.array(matrix.shape, np.int64),
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "y": labels,
    }
    _matrix(path, arrays)
    try:
        with atomic_write(path) as file:
            np.savez_compressed(file, **arrays)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error


def npz_shape(path: str | Path) -> tuple[int, int]:
    """Read how many rows and columns a .npz holds, and nothing else.

    `path`: as for `read_npz`.

    Raises DataError if the file is missing, damaged, or no sparse matrix.
    """
    path = Path(path)
    check_readable(path)
    return _shape(path, _read_arrays(path, None, only=("format", "shape")))


def _read_arrays(
    path: Path, progress: Progress | None, only: tuple[str, ...] | None = None
) -> dict[str, NDArray[Any]]:
    arrays = {}
    name = ""
    mark = FileMark.of(path)
    try:
        total = mark.size
        done = 0
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                if only is not None and name not in only:
                    continue
                with archive.open(member) as file:
                    arrays[name] = _read_array(file)
                done += member.compress_size
                if progress is not None:
                    progress(min(done, total), total)
    except _DAMAGE as error:
        check_unchanged(path, mark)
        where = f", array {name!r}" if name else ""
        raise DataError(
            f"{path}{where}: not an undamaged .npz of plain arrays: {_reason(error)}"
        ) from None
    check_unchanged(path, mark)
    return arrays


def _reason(error: Exception) -> str:
    """Say what is wrong with a file; numpy would quote its bytes."""
    if isinstance(error, zipfile.BadZipFile) or str(error).startswith(_WITHOUT_BYTES):
        return " ".join(str(error).split())
    return f"its bytes are no array ({type(error).__name__})"


def _read_array(file: IO[bytes]) -> NDArray[Any]:
    array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    # Reading to the very end is also what makes zipfile compare the checksum.
    if file.read(1):
        raise ValueError("there are bytes after the array")
    return array


def _shape(path: Path, arrays: dict[str, NDArray[Any]]) -> tuple[int, int]:
    layout = _text(_array(path, arrays, "format", 0))
    if layout not in ("csr", "csc", "coo"):
        raise DataError(f"{path}: sparse format {layout!r} cannot be read; use csr, csc or coo")
    shape = _array(path, arrays, "shape", 1)
    if shape.size != 2 or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise DataError(f"{path}, array 'shape': two numbers from 0 are needed")
    n_rows, n_columns = (int(size) for size in shape)
    if max(n_rows, n_columns) >= 2**63:
        raise DataError(f"{path}, array 'shape': sizes must be below 2**63")
    return n_rows, n_columns


def _matrix(path: Path, arrays: dict[str, NDArray[Any]]) -> csr_array:
    """Check every array of the layout, and build the matrix from them."""
    n_rows, n_columns = _shape(path, arrays)
    layout = _text(arrays["format"])
    values = _values(path, _array(path, arrays, "data", 1))
    if layout == "coo":
        rows = _indices(path, "row", _array(path, arrays, "row", 1), values.size, n_rows)
        columns = _indices(path, "col", _array(path, arrays, "col", 1), values.size, n_columns)
        order = np.lexsort((columns, rows))
        starts = np.zeros(n_rows + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=n_rows), out=starts[1:])
        values, columns = values[order], columns[order]
        X = csr_array((values, columns, starts), shape=(n_rows, n_columns))
    else:
        n_major, n_minor = (n_rows, n_columns) if layout == "csr" else (n_columns, n_rows)
        minor = _indices(path, "indices", _array(path, arrays, "indices", 1), values.size, n_minor)
        starts = _starts(path, _array(path, arrays, "indptr", 1), n_major, values.size)
        parts, size = (values, minor, starts), (n_rows, n_columns)
        X = csr_array(parts, size) if layout == "csr" else csr_array(csc_array(parts, size))
    if not X.has_sorted_indices:
        X = X.sorted_indices()
    _refuse_duplicates(path, X)
    X.has_canonical_format = True
    return X


def _array(path: Path, arrays: dict[str, NDArray[Any]], name: str, ndim: int) -> NDArray[Any]:
    if name not in arrays:
        raise DataError(
            f"{path}: array {name!r} is missing; the layout of scipy.sparse.save_npz is needed"
        )
    array = arrays[name]
    if array.ndim != ndim:
        raise DataError(f"{path}, array {name!r}: {array.ndim} dimensions instead of {ndim}")
    return array


def _text(array: NDArray[Any]) -> str:
    value = array.item()
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _values(path: Path, values: NDArray[Any]) -> NDArray[Any]:
    kind, width = values.dtype.kind, values.dtype.itemsize
    if kind not in "fiub" or width > 8:
        raise DataError(f"{path}, array 'data': values of type {values.dtype} are not read")
    # Whole numbers of 16 bits at most are exact in float32, those of 32 bits in float64.
    narrow = width <= 2 or (kind == "f" and width == 4)
    values = values.astype(np.float32 if narrow else np.float64, copy=False)
    finite = np.isfinite(values)
    if not finite.all():
        at = int(np.argmin(finite))
        raise DataError(f"{path}, array 'data': entry {at} is not a finite number")
    return values


def _indices(
    path: Path, name: str, indices: NDArray[Any], n_entries: int, size: int
) -> NDArray[Any]:
    if indices.dtype.kind not in "iu":
        raise DataError(f"{path}, array {name!r}: whole numbers are needed, not {indices.dtype}")
    if indices.size != n_entries:
        raise DataError(
            f"{path}: array {name!r} has {indices.size} entries and 'data' has {n_entries}"
        )
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        wrong = (indices < 0) | (indices >= size)
        at = int(np.argmax(wrong))
        raise DataError(f"{path}, array {name!r}: entry {at} is not one of 0 to {size - 1}")
    return _native(indices)


def _starts(path: Path, starts: NDArray[Any], n_major: int, n_entries: int) -> NDArray[Any]:
    if starts.dtype.kind not in "iu" or starts.size != n_major + 1:
        raise DataError(
            f"{path}, array 'indptr': {n_major + 1} whole numbers are needed, "
            f"not {starts.size} of type {starts.dtype}"
        )
    if starts[0] != 0 or starts[-1] != n_entries or (starts[1:] < starts[:-1]).any():
        raise DataError(
            f"{path}, array 'indptr': it must rise from 0 to the number of entries, {n_entries}"
        )
    return _native(starts)


def _native(indices: NDArray[Any]) -> NDArray[Any]:
    """Return int32 and int64 as they are, other whole numbers (all in range) as int64."""
    return indices if indices.dtype in _INDEX_TYPES else indices.astype(np.int64)


def _refuse_duplicates(path: Path, X: csr_array) -> None:
    _, row, _ = check_rows(X.indptr.astype(np.int64, copy=False), X.indices, X.shape[1])
    if row >= 0:
        raise DataError(f"{path}: row {row} (from 0) has a column twice")


def _with_columns(path: Path, X: csr_array, n_features: int) -> csr_array:
    if not 1 <= n_features < 2**63:
        raise DataError(f"n_features must be from 1 to 2**63 - 1, not {n_features}")
    if X.nnz and X.indices.max() >= n_features:
        raise DataError(f"{path}: an entry is beyond the {n_features} columns declared")
    X = csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
    X.has_canonical_format = True
    return X


def _labels(
    path: Path, arrays: dict[str, NDArray[Any]], labels_path: str | Path | None, n_rows: int
) -> NDArray[Any]:
    beside = path.with_suffix(".y.npy")
    if labels_path is None:
        for key in LABEL_KEYS:
            if key in arrays:
                return _check_labels(path, key, arrays[key], n_rows)
        if not beside.exists():
            raise DataError(
                f"{path}: no labels; store them in the file as 'y', or beside it as {beside.name}"
            )
        labels_path = beside
    labels_path = Path(labels_path)
    check_readable(labels_path)
    try:
        with labels_path.open("rb") as file:
            labels = _read_array(file)
    except _DAMAGE as error:
        raise DataError(
            f"{labels_path}: not an undamaged .npy of plain labels: {_reason(error)}"
        ) from None
    return _check_labels(labels_path, None, labels, n_rows)


def _check_labels(path: Path, key: str | None, y: NDArray[Any], n_rows: int) -> NDArray[Any]:
    where = f"{path}, array {key!r}" if key else str(path)
    if y.ndim != 1 or y.dtype.kind not in "fiubU":
        raise DataError(
            f"{where}: labels must be one row of numbers, strings or bools, "
            f"not {y.ndim} dimensions of {y.dtype}"
        )
    if y.size != n_rows:
        raise DataError(f"{where}: {y.size} labels for {n_rows} records")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        at = int(np.argmin(np.isfinite(y)))
        raise DataError(f"{where}: label {at} is not a finite number")
    return y
