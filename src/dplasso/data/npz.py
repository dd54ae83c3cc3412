"""Reading and writing scipy's sparse .npz with labels; nothing in the file is ever unpickled.

The layout is that of ``scipy.sparse.save_npz`` (so scipy reads the matrix of a file written
here), and one more array, ``y``. A file of scipy's own gets its labels from a .npy beside it.
"""

import zipfile
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

from dplasso.data.blocks import (
    BlockSource,
    Piece,
    cut_rows,
    files_source,
    rows_between,
    with_mapped_labels,
)
from dplasso.data.formats import MOST_COLUMNS, Layout
from dplasso.data.source_files import SourceFiles
from dplasso.data.streams import check_readable
from dplasso.errors import DataError
from dplasso.files.atomic import atomic_write
from dplasso.matrix.compressed import check_rows, working_dtype

LABEL_KEYS = ("y", "labels")
_LAYOUTS = {
    "csr": (csr_array, ("indices", "indptr")),
    "csc": (csc_array, ("indices", "indptr")),
    "coo": (coo_array, ("row", "col")),
}

# zipfile, its decompressors and numpy's header parser raise a dozen unrelated types.
_DAMAGE = Exception
_WITHOUT_BYTES = ("Object arrays", "there are bytes after")
_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))


def row_source(files: SourceFiles, layout: Layout) -> BlockSource:
    """Open .npz files as row blocks, as wide as the widest; each is read as a whole."""
    if layout.labels_path is not None and len(files.paths) > 1:
        raise DataError(f"{layout.labels_path}: one file of labels cannot serve several .npz files")
    n_features = layout.n_features or max(npz_shape(path)[1] for path in files.paths)

    def read(i: int, memory_bytes: int) -> Generator[Piece]:
        path, mark = files.paths[i], files.marks[i]
        X, y = read_npz(path, labels_path=layout.labels_path, n_features=n_features)
        for begin, end in cut_rows(X, memory_bytes):
            done, place = mark.size * end // y.size, partial(_row, path, begin)
            yield Piece(rows_between(X, begin, end), y[begin:end], done, place)

    source = files_source(files, n_features, read, declared=layout.n_features is not None)
    if layout.label_map is not None:
        source = with_mapped_labels(source, layout.label_map.words)
    return source


def _row(path: Path, begin: int, row: int) -> str:
    return f"{path}, row {begin + row + 1}"


def read_npz(
    path: str | Path, *, labels_path: str | Path | None = None, n_features: int | None = None
) -> tuple[csr_array, NDArray[Any]]:
    """Read a sparse matrix and its labels from .npz.

    `path`: as written by `write_npz`, or by ``scipy.sparse.save_npz`` (CSR, CSC or COO).
    `labels_path`: a .npy file of labels. Default: the array ``y`` or ``labels`` in the file;
    failing these, the file ``NAME.y.npy`` beside ``NAME.npz``.
    `n_features`: columns. Default: the stored shape.

    Returns the matrix, sorted, and the labels. float32 and float64, int32 and int64 stay; other
    values become the narrower of the two float types that holds them all.

    Raises `DataError` if the file is missing, damaged, no sparse matrix or without labels; if
    labels and rows differ in number, an index is out of range or there twice, or a value is NaN or
    infinite.
    """
    path = Path(path)
    arrays = _read_arrays(path)
    n_rows, n_columns = _shape(path, arrays)
    if n_rows == 0:
        raise DataError(f"{path}: the file holds no records")
    # Before the matrix: a damaged number of rows is noticed here.
    y = _labels(path, arrays, labels_path, n_rows)
    X = _matrix(path, arrays)
    if n_features is None or n_features == n_columns:
        return X, y
    if X.nnz and X.indices.max() >= n_features:
        raise DataError(f"{path}: an entry is beyond the {n_features} columns declared")
    X = csr_array((X.data, X.indices, X.indptr), shape=(n_rows, n_features))
    X.has_canonical_format = True
    return X, y


def write_npz(path: str | Path, X: Any, y: Any) -> None:
    """Write a matrix, as CSR, and its labels to one .npz, in full or not at all.

    Raises `DataError` if `read_npz` would refuse the file, or it cannot be written.
    """
    path = Path(path)
    matrix = csr_array(X)
    labels = np.asarray(y)
    _check_labels(f"{path}, array 'y'", labels, matrix.shape[0])
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


def npz_shape(path: Path) -> tuple[int, int]:
    """Read how many rows and columns a .npz holds, and nothing else."""
    return _shape(path, _read_arrays(path, only=("format", "shape")))


def _read_arrays(path: Path, only: tuple[str, ...] | None = None) -> dict[str, NDArray[Any]]:
    check_readable(path)
    arrays = {}
    name = ""
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                if only is None or name in only:
                    with archive.open(member) as file:
                        arrays[name] = _read_array(file)
    except _DAMAGE as error:
        where = f", array {name!r}" if name else ""
        raise DataError(
            f"{path}{where}: not an undamaged .npz of plain arrays: {_reason(error)}"
        ) from None
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
    if layout not in _LAYOUTS:
        raise DataError(f"{path}: sparse format {layout!r} cannot be read; use csr, csc or coo")
    shape = _array(path, arrays, "shape", 1)
    if shape.size != 2 or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise DataError(f"{path}, array 'shape': two numbers from 0 are needed")
    n_rows, n_columns = (int(size) for size in shape)
    if max(n_rows, n_columns) > MOST_COLUMNS:
        raise DataError(f"{path}, array 'shape': sizes must be below 2**63")
    return n_rows, n_columns


def _matrix(path: Path, arrays: dict[str, NDArray[Any]]) -> csr_array:
    """Check every array of the layout, and build the matrix from them."""
    shape, layout = _shape(path, arrays), _text(arrays["format"])
    make, names = _LAYOUTS[layout]
    values = _values(path, _array(path, arrays, "data", 1))
    first, second = (_whole_numbers(path, name, _array(path, arrays, name, 1)) for name in names)
    try:
        if layout == "coo":
            X = make((values, (first, second)), shape)
            # Duplicates shall be refused, not added up.
            X.has_canonical_format = True
        else:
            X = make((values, first, second), shape)
            X.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"{path}: its arrays make no {layout} matrix: {error}") from None
    X = csr_array(X)
    if not X.has_sorted_indices:
        X = X.sorted_indices()
    _, row, _ = check_rows(X.indptr.astype(np.int64, copy=False), X.indices, X.shape[1])
    if row >= 0:
        raise DataError(f"{path}: row {row} (from 0) has a column twice")
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
    if values.dtype.kind not in "fiub" or values.dtype.itemsize > 8:
        raise DataError(f"{path}, array 'data': values of type {values.dtype} are not read")
    values = values.astype(working_dtype(values), copy=False)
    finite = np.isfinite(values)
    if not finite.all():
        at = int(np.argmin(finite))
        raise DataError(f"{path}, array 'data': entry {at} is not a finite number")
    return values


def _whole_numbers(path: Path, name: str, numbers: NDArray[Any]) -> NDArray[Any]:
    """Return int32 and int64 as they are, other whole numbers as int64."""
    if numbers.dtype.kind not in "iu" or (numbers.dtype.kind == "u" and (numbers >> 63).any()):
        raise DataError(f"{path}, array {name!r}: whole numbers are needed, not {numbers.dtype}")
    return numbers if numbers.dtype in _INDEX_TYPES else numbers.astype(np.int64)


def _labels(
    path: Path, arrays: dict[str, NDArray[Any]], labels_path: str | Path | None, n_rows: int
) -> NDArray[Any]:
    beside = path.with_suffix(".y.npy")
    if labels_path is None:
        for key in LABEL_KEYS:
            if key in arrays:
                return _check_labels(f"{path}, array {key!r}", arrays[key], n_rows)
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
    return _check_labels(str(labels_path), labels, n_rows)


def _check_labels(where: str, y: NDArray[Any], n_rows: int) -> NDArray[Any]:
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
