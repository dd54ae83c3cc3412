"""Write records in memory to a store."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from dplasso.data import store
from dplasso.data.blocks import matrix_source
from dplasso.data.people import hash_people, number_groups
from dplasso.encoding.origin import columns_declared, refuse_lost_edges
from dplasso.errors import DataError
from dplasso.fit.records import local_records
from dplasso.runtime.progress import late_progress

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class StoreWriter(BaseEstimator):
    """What scikit-learn's messages name when `write_store` refuses records."""


def write_store(
    path: str | os.PathLike[str],
    X: Any,
    y: "ArrayLike",
    *,
    groups: "ArrayLike | None" = None,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> store.Store:
    """Write records in memory to a store, and open it.

    A fit on the store returns the same model as a fit on X, y and `groups`. The store appears when
    it is complete. Use ``dplasso convert`` for files that are larger than memory.

    Parameters
    ----------
    path : str or path-like
        The folder to make.
    X : sparse or dense matrix, shape (N, D)
        One record per row, as for `fit`. Rows of `PublicEncoder.transform` keep their schema, and
        data frames the names of their columns.
    y : array-like, shape (N,)
        Labels or targets: finite numbers, booleans or texts, all of one type.
    groups : array-like, shape (N,), default=None
        The person each row belongs to: texts or whole numbers. The store keeps hashes of them, and
        a fit uses them as its `groups`.
    force : bool, default=False
        Whether to replace a store at `path`, once the new one is complete.
    progress : callable, optional
        Called as ``progress(done, total)`` in rows. By default, a line appears every two seconds.

    Returns
    -------
    Store
        The store, open.

    Raises
    ------
    ValueError, TypeError
        If X, y or `groups` cannot be stored, or `fit` would refuse them.
    StoreError
        If `path` exists and is not a store, or `force` is false, or another process writes there.
    FileNotFoundError
        If the parent folder does not exist.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from dplasso import write_store
    >>> folder = tempfile.mkdtemp()
    >>> write_store(f"{folder}/s.store", np.eye(3), ["no", "yes", "no"], groups=[7, 8, 7]).shape
    (3, 3)
    """
    refuse_lost_edges(X)
    if isinstance(X, store.Store):
        raise DataError("X is a store already", advice="copy its folder, or pass X.tocsr()")
    if y is None:
        raise DataError("`y` is None", advice="pass a label or a target for each row")
    records = local_records(StoreWriter(), X, y)
    labels, people = _of_one_type(y, records.y), None
    if groups is not None:
        number_groups([("groups", groups, labels.size)])  # Refuses what a fit refuses.
        people, _ = hash_people(groups, lambda row: f"groups, row {row + 1:,}")
    rows, declared = csr_array(records.X), columns_declared(records.origin)
    return store.write_blocks(
        matrix_source(rows, labels, people, declared=declared),
        path,
        force=force,
        origin=records.described(),
        progress=progress or late_progress(f"writing {Path(path).name}", "rows"),
    )


def _of_one_type(y: Any, labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as a store keeps them; `DataError` if one changes how others are kept."""
    if isinstance(y, list | tuple) or labels.dtype.kind not in "biufU":
        values = list(y if isinstance(y, list | tuple) else labels)
        labels = np.asarray(values).reshape(labels.shape)
        booleans = {isinstance(value, bool | np.bool_) for value in values}
        if labels.dtype.kind not in "biufU" or labels.tolist() != values or len(booleans) > 1:
            raise DataError(
                "`y` mixes types, or holds a value that is not a finite number, a text or a "
                "boolean; pass labels of one type"
            )
    return labels.astype(np.float64) if labels.dtype == np.longdouble else labels
