"""One way in for every data file: `read_data` looks at the name and calls the right reader."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from dplasso.data.label_map import check_label_map, map_labels
from dplasso.data.npz import read_npz
from dplasso.data.source_files import Paths, SourceFiles, source_files
from dplasso.data.streams import Progress, shifted
from dplasso.data.svmlight.reader import read_svmlight
from dplasso.errors import DataError


@dataclass(frozen=True)
class Dataset:
    """Records and their labels.

    Attributes
    ----------
    X : csr_array or StoreMatrix, shape (n_records, n_features)
        float32 from svmlight text; the stored type from .npz. Sorted, without duplicates.
    y : array, shape (n_records,)
        The labels as read: numbers, strings or bools.
    source : str
        Where they came from, for messages.
    people : int64 array, shape (n_records,), or None
        Whose row each is, as numbers, where that was asked for.
    """

    X: Any
    y: NDArray[Any]
    source: str
    people: NDArray[np.int64] | None = None


def read_data(
    paths: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    labels_path: str | Path | None = None,
    label_map: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Read data files: svmlight text, plain or compressed, or scipy's sparse .npz.

    Parameters
    ----------
    paths : str, Path or iterable of these
        One file, or several that make one data set, in this order; a name with ``*``, ``?`` or
        ``[`` that is no file is a pattern. ``.svm``, ``.svmlight``, ``.libsvm``, ``.txt`` or no
        suffix (svmlight text, also with ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` after it), or
        ``.npz``.
    n_features : int, optional
        Number of columns. Default: the largest column in svmlight text, the largest stored
        shape in .npz. Files with fewer columns are widened; a column beyond it is an error.
    zero_based : bool, default False
        Whether svmlight indices count columns from 0 (.npz has no such choice).
    labels_path : str or Path, optional
        For a single .npz only: a .npy file of labels, where the .npz itself holds none.
    label_map : mapping of str to number, optional
        What the labels mean, such as ``{"neg": 0, "pos": 1}``; any other label is an error.
    progress : callable, optional
        Called as ``progress(done, total)`` along the way, in bytes on disk of all files.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If a file is missing, of a kind that is not read, damaged, malformed, or changes
        meanwhile: the message names the file and the line or array.
    """
    files = source_files(paths)
    if files.kind == "npz":
        X, y = read_npz_files(
            files,
            n_features=n_features,
            labels_path=labels_path,
            label_map=label_map,
            progress=progress,
        )
    else:
        refuse_labels_path(files, labels_path)
        X, y = read_svmlight(
            files,
            n_features=n_features,
            zero_based=zero_based,
            label_map=label_map,
            progress=progress,
        )
    return Dataset(X, y, files.name)


def refuse_labels_path(files: SourceFiles, labels_path: str | Path | None) -> None:
    """Refuse labels beside svmlight text.

    Raises DataError if there are any.
    """
    if labels_path is not None:
        raise DataError(
            f"{files.paths[0]}: svmlight text has its own labels; leave labels_path out"
        )


def read_npz_files(
    files: SourceFiles,
    *,
    n_features: int | None = None,
    labels_path: str | Path | None = None,
    label_map: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> tuple[csr_array, NDArray[Any]]:
    """Read .npz files as one data set, as wide as the widest of them.

    `files`: in the order of the records.
    `n_features`, `labels_path`, `label_map`, `progress`: as for `read_data`.

    Returns `X`, shape (n_records, n_features).
    `y`, shape (n_records,).

    Raises DataError as `read_npz` does; if labels differ in kind between files, or are not in the
    map; if `labels_path` is given for several files.
    """
    if labels_path is not None and len(files.paths) > 1:
        raise DataError(f"{labels_path}: one file of labels cannot serve several .npz files")
    meaning = None if label_map is None else check_label_map(label_map)
    parts: list[csr_array] = []
    labels: list[NDArray[Any]] = []
    for i, path in enumerate(files.paths):
        files.check_unchanged(i)
        X, y = read_npz(
            path,
            labels_path=labels_path,
            n_features=n_features,
            progress=shifted(progress, files.before(i), files.total),
        )
        y = y if meaning is None else map_labels(y, meaning, str(path))
        if labels and _kind(y) != _kind(labels[0]):
            raise DataError(
                f"{path}: the labels are {_kind(y)}, those of {files.paths[0]} are "
                f"{_kind(labels[0])}; the files of one data set need labels of one kind"
            )
        parts.append(X)
        labels.append(y)
    if len(parts) == 1:
        return parts[0], labels[0]
    n_columns = max(X.shape[1] for X in parts)
    wide = [csr_array((X.data, X.indices, X.indptr), (X.shape[0], n_columns)) for X in parts]
    whole = csr_array(vstack(wide, format="csr"))
    whole.has_canonical_format = True
    return whole, np.concatenate(labels)


def _kind(labels: NDArray[Any]) -> str:
    return {"b": "bools", "U": "strings"}.get(labels.dtype.kind, "numbers")
