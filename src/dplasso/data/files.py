"""One way in for every data file: `read_data` looks at the name and calls the right reader."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.data.npz import read_npz
from dplasso.data.paths import kind_of
from dplasso.data.streams import Progress
from dplasso.data.svmlight import read_svmlight
from dplasso.errors import DataError


@dataclass(frozen=True)
class Dataset:
    """Records and their labels.

    Attributes
    ----------
    X : csr_array, shape (n_records, n_features)
        float32 from svmlight text; the stored type from .npz. Sorted, without duplicates.
    y : array, shape (n_records,)
        The labels as read: numbers, strings or bools.
    source : str
        Where they came from, for messages.
    """

    X: csr_array
    y: NDArray[Any]
    source: str


def read_data(
    path: str | Path,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    labels_path: str | Path | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Read a data file: svmlight text, plain or compressed, or scipy's sparse .npz.

    Parameters
    ----------
    path : str or Path
        ``.svm``, ``.svmlight``, ``.libsvm``, ``.txt`` or no suffix (svmlight text, also with
        ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` after it), or ``.npz``.
    n_features : int, optional
        Number of columns. Default: the largest column in svmlight text, the stored shape in
        .npz. Files with fewer columns are widened; a column beyond it is an error.
    zero_based : bool, default False
        Whether svmlight indices count columns from 0 (.npz has no such choice).
    labels_path : str or Path, optional
        For .npz only: a .npy file of labels, where the .npz itself holds none.
    progress : callable, optional
        Called as ``progress(done, total)`` along the way, in bytes of the file on disk.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If the file is missing, of a kind that is not read, damaged, or malformed: the message
        names the file and the line or array.
    """
    path = Path(path)
    if kind_of(path) == "npz":
        X, y = read_npz(path, labels_path=labels_path, n_features=n_features, progress=progress)
        return Dataset(X, y, str(path))
    if labels_path is not None:
        raise DataError(f"{path}: svmlight text has its own labels; leave labels_path out")
    features, labels = read_svmlight(
        path, n_features=n_features, zero_based=zero_based, progress=progress
    )
    return Dataset(features, labels, str(path))
