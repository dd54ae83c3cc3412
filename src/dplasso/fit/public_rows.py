"""The parameter `public_rows`: latent directions of public rows, for the columns of the records."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from dplasso.data.store import Store
from dplasso.encoding.encoder import PublicEncoder, is_frame
from dplasso.encoding.origin import check_same_origin, origin_of
from dplasso.errors import DataError, ParameterError, ParameterTypeError, shown
from dplasso.fit.records import LocalRecords, store_of
from dplasso.matrix.geometry import Geometry, Progress
from dplasso.runtime.progress import late_progress

# ``learn(records)``
Learn = Callable[[Any], Geometry]


def geometry_of(public_rows: Any, verbose: int | None = None) -> Learn | None:
    """Return what makes the geometry for some records; None without public rows.

    If it takes long, it says how far it is, unless `verbose` is 0.

    Raises OSError, ModelFileError if the path is not that of a geometry; TypeError for no rows.
    """
    if public_rows is None:
        return None
    if isinstance(public_rows, str | os.PathLike):
        public_rows = Geometry.load(public_rows)
    elif not isinstance(public_rows, Geometry) and len(np.shape(public_rows)) != 2:
        raise ParameterTypeError(
            f"`public_rows` must be rows or a Geometry, got {shown(public_rows)}",
            advice="give a matrix with the columns of the data; behind steps of a pipeline, "
            "`pipeline[:-1].transform(rows)`",
        )
    progress = None if verbose == 0 else late_progress("learning directions of the public rows")
    return lambda records: _for_records(public_rows, records, progress)


def _for_records(public_rows: Any, records: Any, progress: Progress | None) -> Geometry:
    """Return the geometry of public rows that have the records' columns.

    Raises DataError for rows that have others.
    """
    if not isinstance(records, LocalRecords):
        raise ParameterError(
            "`public_rows` needs all records in one process", advice="leave `engine` out"
        )
    n_features = records.shape[1]
    found = public_rows.n_features if isinstance(public_rows, Geometry) else None
    if found is None:
        rows = _encoded(public_rows, records)
        found = int(np.shape(rows)[1])
    if found != n_features:
        raise DataError(
            f"`public_rows` has {found:,} columns and the data have {n_features:,}",
            advice="encode both in the same way",
        )
    if isinstance(public_rows, Geometry):
        return public_rows
    return Geometry.learn(rows, progress=progress)


def _encoded(public_rows: Any, records: LocalRecords) -> Any:
    """Return public rows as a matrix, a table encoded as the records were."""
    origin, names = records.origin, records.feature_names
    if is_frame(public_rows):
        if origin is not None and origin.schema is not None:
            encoded = PublicEncoder(origin.schema).transform(public_rows)
            if origin.binarize:
                encoded.data[:] = 1  # no entry is 0
            return encoded
        own = [str(name) for name in public_rows.columns]
        if names is not None and own != [str(name) for name in names]:
            raise DataError(
                "`public_rows` does not have the column names of the data",
                advice="give the same columns in the same order",
            )
        return np.asarray(public_rows, dtype=np.float64)
    check_same_origin(origin, origin_of(public_rows), "`public_rows`")
    store = store_of(public_rows)
    if isinstance(store, Store):
        return store.X.tocsr()
    return public_rows if hasattr(public_rows, "shape") else np.asarray(public_rows)
