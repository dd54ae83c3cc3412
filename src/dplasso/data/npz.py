"""Read scipy's sparse .npz files with labels, without unpickling anything."""

import sys
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

from dplasso.data.blocks import MOST_COLUMNS, BlockSource, Piece, cut_rows, files_source
from dplasso.data.formats import Layout
from dplasso.data.source_files import SourceFiles, check_readable
from dplasso.errors import DataError
from dplasso.matrix.compressed import check_rows, checked, working_dtype

_Arrays = dict[str, NDArray[Any]]

LABEL_KEYS = ("y", "labels")
_LAYOUTS = {
    "csr": (csr_array, ("indices", "indptr")),
    "csc": (csc_array, ("indices", "indptr")),
    "coo": (coo_array, ("row", "col")),
}

_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))


def row_source(files: SourceFiles, layout: Layout) -> BlockSource:
    """Open .npz files as row blocks; by default the widest file sets the number of columns."""
    if layout.labels_path is not None and len(files.paths) > 1:
        raise DataError(
            f"{layout.labels_path}: a file of labels needs a single .npz file; to use several "
            "files, store the labels in each as 'y'"
        )
    n_features = layout.n_features or max(
        _shape(path, _read_arrays(path, only=("format", "shape")))[2] for path in files.paths
    )

    def read(i: int, memory_bytes: int) -> Generator[Piece]:
        path, size = files.paths[i], files.stats[i].st_size
        X, y = read_npz(path, layout, n_features)
        for begin, end, rows in cut_rows(X, memory_bytes):
            yield Piece(rows, y[begin:end], size * end // y.size, partial(_row, path, begin))

    return files_source(files, n_features, read, declared=layout.n_features is not None)


def _row(path: Path, begin: int, row: int) -> str:
    return f"{path}, row {begin + row + 1}"


def read_npz(
    path: Path, layout: Layout, n_features: int | None = None
) -> tuple[csr_array, NDArray[Any]]:
    """Return the sparse matrix (CSR, CSC or COO) of a .npz, as sorted CSR, and its labels."""
    arrays = _read_arrays(path)
    layout_of_arrays, n_rows, n_columns = _shape(path, arrays)
    if n_rows == 0:
        raise DataError(f"{path} holds no records; at least one is needed")
    # Labels first: their number shows a damaged number of rows.
    wanted = layout.labelled or layout.labels_path is not None
    labels = _labels(path, arrays, layout.labels_path, n_rows) if wanted else None
    X = _matrix(path, arrays, layout_of_arrays, (n_rows, n_columns))
    y = np.zeros(n_rows) if labels is None else labels
    if n_features is None or n_features == n_columns:
        return X, y
    if X.nnz and X.indices.max() >= n_features:
        raise DataError(f"{path}: an entry is beyond the {n_features} declared columns")
    X = csr_array((X.data, X.indices, X.indptr), shape=(n_rows, n_features))
    X.has_canonical_format = True
    return X, y


def _read_arrays(path: Path, only: tuple[str, ...] | None = None) -> _Arrays:
    check_readable(path)
    try:
        with path.open("rb") as file, np.load(file) as archive:
            names = [name for name in archive.files if not only or name in only]
            return {name: np.asarray(archive[name]) for name in names}
    # zipfile, its decompressors and numpy's header parser raise a dozen unrelated exceptions.
    except Exception as error:
        raise _damaged(path, ".npz of plain arrays", error) from None


def _damaged(path: Path, what: str, error: Exception) -> DataError:
    """Return an error for a damaged file; the message of numpy would quote its bytes."""
    return DataError(f"{path}: not an undamaged {what} ({type(error).__name__})")


def _array(path: Path, arrays: _Arrays, name: str, ndim: int = 1) -> NDArray[Any]:
    if name not in arrays:
        raise DataError(
            f"{path}: array {name!r} is missing; write the file with scipy.sparse.save_npz"
        )
    array = arrays[name]
    if array.ndim != ndim:
        raise DataError(f"{path}, array {name!r}: {array.ndim} dimensions instead of {ndim}")
    return array


def _shape(path: Path, arrays: _Arrays) -> tuple[str, int, int]:
    """Return the sparse format, and the numbers of rows and columns."""
    value = _array(path, arrays, "format", 0).item()
    layout = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    if layout not in _LAYOUTS:
        raise DataError(f"{path}: sparse format {layout!r} cannot be read; use csr, csc or coo")
    shape = _array(path, arrays, "shape")
    if shape.size != 2 or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise DataError(f"{path}, array 'shape': it must be two non-negative whole numbers")
    n_rows, n_columns = shape.tolist()
    if max(n_rows, n_columns) > MOST_COLUMNS:
        raise DataError(f"{path}, array 'shape': sizes must be below 2**63")
    return layout, n_rows, n_columns


def _matrix(path: Path, arrays: _Arrays, layout: str, shape: tuple[int, int]) -> csr_array:
    make, names = _LAYOUTS[layout]
    values = _values(path, _array(path, arrays, "data"))
    first, second = (_whole_numbers(path, name, _array(path, arrays, name)) for name in names)
    try:
        if layout == "coo":
            X = make((values, (first, second)), shape)
            # Prevents scipy from summing duplicates, which are refused below.
            X.has_canonical_format = True
        else:
            # scipy would leave out entries beyond the last pointer.
            if not second.size or second[-1] != first.size:
                raise ValueError("the last of its pointers is not the number of its entries")
            X = checked(make((values, first, second), shape))
        X = csr_array(X)
    except ValueError as error:
        raise DataError(f"{path}: the arrays do not form a {layout} matrix: {error}") from None
    X.sort_indices()
    _, row, _ = check_rows(X.indptr.astype(np.int64, copy=False), X.indices, X.shape[1])
    if row >= 0:
        raise DataError(f"{path}: row {row} (from 0) has two entries in one column")
    X.has_canonical_format = True
    return X


def _values(path: Path, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "fiub" or values.dtype.itemsize > 8:
        raise DataError(f"{path}, array 'data': values of type {values.dtype} are not supported")
    values = values.astype(working_dtype(values), copy=False)
    finite = np.isfinite(values)
    if not finite.all():
        at = int(np.argmin(finite))
        raise DataError(f"{path}, array 'data': entry {at} is not a finite number")
    return values


def _whole_numbers(path: Path, name: str, numbers: NDArray[Any]) -> NDArray[Any]:
    """Return integers as int32 or int64."""
    if numbers.dtype.kind not in "iu" or (numbers.dtype.kind == "u" and (numbers >> 63).any()):
        raise DataError(f"{path}, array {name!r}: it must hold whole numbers, not {numbers.dtype}")
    return numbers if numbers.dtype in _INDEX_TYPES else numbers.astype(np.int64)


def _labels(
    path: Path, arrays: _Arrays, labels_path: str | Path | None, n_rows: int
) -> NDArray[Any]:
    key = next((key for key in LABEL_KEYS if key in arrays), None)
    if labels_path is None and key is not None:
        where, y = f"{path}, array {key!r}", arrays[key]
    else:
        beside = Path(labels_path or path.with_suffix(".y.npy"))
        if labels_path is None and not beside.exists():
            raise DataError(
                f"{path} has no labels; store them in the file as 'y', or beside it as "
                f"{beside.name}"
            )
        check_readable(beside)
        where = str(beside)
        try:
            with beside.open("rb") as file:
                y = np.lib.format.read_array(file, allow_pickle=False)
        except Exception as error:
            raise _damaged(beside, ".npy of plain labels", error) from None
    if y.ndim != 1 or y.dtype.kind not in "fiubU":
        raise DataError(
            f"{where}: labels must be a one-dimensional array of numbers, strings or bools, "
            f"not {y.ndim} dimensions of {y.dtype}"
        )
    if y.size != n_rows:
        raise DataError(f"{where}: {y.size} labels for {n_rows} records")
    if y.dtype.kind == "U" and y.itemsize:
        native = np.ascontiguousarray(y.astype(y.dtype.newbyteorder("=")))
        # numpy accepts any 32 bits as a character, but Python does not.
        if native.view(np.uint32).max() > sys.maxunicode:
            raise DataError(f"{where}: a label holds an invalid Unicode character")
    return y
