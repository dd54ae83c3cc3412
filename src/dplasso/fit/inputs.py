"""What `fit` and `predict` are given: matrices, checked as scikit-learn does, or a store."""

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from dplasso.data.refusals import in_our_words
from dplasso.data.store import Store, StoreMatrix, check_entries
from dplasso.encoding.encoder import PublicEncoder, is_frame
from dplasso.encoding.origin import Origin, check_same_origin, origin_of
from dplasso.errors import DataError
from dplasso.matrix.compressed import compress, working_dtype
from dplasso.matrix.design import refuse_damage
from dplasso.matrix.margins import clipped, column_margins, margins
from dplasso.matrix.transpose import transpose
from dplasso.matrix.unit_rows import row_factors, select_columns, unit_row_margins
from dplasso.runtime.threads import thread_pool


def store_of(X: Any) -> Store | None:
    """Return the store that `X` is, or whose matrix it is; None for anything else."""
    if isinstance(X, StoreMatrix):
        return X.store
    return X if isinstance(X, Store) else None


@dataclass(frozen=True)
class Inputs:
    """Records and labels as given to a fit, checked.

    `X`, shape (N, D): float32 or float64. The entries of a store are looked at by `train`.
    `y`, shape (N,): labels as given.
    `weights`, shape (N,): how much each record counts, in [0, 1]; None for 1 each.
    `within`, shape (N,): which records of a store enter; None for all.
    `n_features`: D.
    `feature_names`, shape (D,): names of the columns, where X has them.
    `origin`: how the columns were made, where X or its store says so.
    """

    X: Any
    y: NDArray[Any]
    n_features: int
    feature_names: NDArray[np.object_] | None
    origin: Origin | None = None
    weights: NDArray[np.float64] | None = None
    within: NDArray[np.bool_] | None = None


def check_inputs(estimator: BaseEstimator, X: Any, y: ArrayLike | None) -> Inputs:
    """Check what `fit` is given.

    `estimator`: for the messages; left as it is.
    `y`, shape (N,): labels; None for a store, which has its own.

    Raises ValueError for NaN or infinity in X, labels that are missing or of another length, or no
    records.
    """
    store = store_of(X)
    if store is None:
        # scikit-learn notes the columns on the estimator: a fit that is refused must not.
        noted = copy(estimator)
        matrix, labels = _validate(noted, X, y, reset=True)
        names = getattr(noted, "feature_names_in_", None)
        return Inputs(matrix, np.asarray(labels), int(noted.n_features_in_), names, origin_of(X))
    if y is None:
        if isinstance(X, StoreMatrix):
            raise DataError(
                "y is missing: give fit(store), which has its own labels, or fit(store.X, store.y)"
            )
        y = store.y
    for size, name in zip(store.shape, ("row", "column"), strict=True):
        if size == 0:
            raise DataError(f"{store.path} has no {name}; at least one is needed")
    with in_our_words():
        labels = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        if labels.ndim != 1:
            raise DataError(f"y has the shape {labels.shape}; one label for each record is needed")
        check_consistent_length(store, labels)
    return Inputs(store, labels, int(store.shape[1]), None, origin_of(store))


def _validate(estimator: BaseEstimator, X: Any, *y: Any, reset: bool) -> Any:
    """Check a matrix, and labels if given, as scikit-learn does, copying as little as possible."""
    # The search for NaN adds everything up; that its sum overflows must not be heard of.
    with np.errstate(over="ignore", invalid="ignore"), in_our_words(X):
        return validate_data(
            estimator,
            X,
            *y,
            accept_sparse=("csr", "csc"),
            accept_large_sparse=True,
            dtype=(working_dtype(X), np.float32, np.float64),
            reset=reset,
        )


def decision_margins(
    estimator: BaseEstimator,
    X: Any,
    columns: NDArray[np.integer],
    weights: NDArray[np.float64],
    bound: float,
    offset: float,
) -> NDArray[np.float64]:
    """Compute ``clip(X) w + offset`` for rows that a fitted estimator is shown.

    `estimator`: fitted; says how many columns X must have.
    `X`, shape (N, D): the rows. Of a store, only the columns with a weight are read. A table is
    encoded by the model's schema.
    `columns`, shape (n_nonzero,): the columns with a weight, ascending.
    `weights`, shape (n_nonzero,): their weights.
    `bound`, `offset`: entries are clipped to [-bound, bound]; the intercept.

    Returns shape (N,).

    Raises ValueError if X has another number of columns than the training data, or NaN or
    infinity.
    """
    X = _encoded(estimator, X)
    store = store_of(X)
    if store is not None:
        _check_columns(estimator, store)
        numbers = store.internal_column[columns]
        return column_margins(store.columns, numbers, store.shape[0], weights, bound, offset)
    X = _validate(estimator, X, reset=False)
    matrix, by_rows = compress(X)
    dense = np.zeros(estimator.n_features_in_)
    dense[columns] = weights
    return margins(matrix, by_rows, X.shape[0], dense, bound, offset)


def unit_margins(
    estimator: BaseEstimator,
    X: Any,
    weights: NDArray[np.float64],
    offset: Any,
    constant: float,
    norm_bound: float | None,
    n_threads: int,
    *,
    kept: NDArray[np.int64] | None = None,
    bound: float | None = None,
) -> NDArray[np.float64]:
    """Compute the margins of unit rows that a fitted estimator is shown.

    `estimator`: fitted; says how many columns X must have.
    `X`, shape (N, D): the rows, scaled by their own entries as in training.
    `weights`, shape (D,): weights of unit rows, of the columns that are kept.
    `offset`, shape (K,): the intercept.
    `constant`, `norm_bound`: as in `dplasso.matrix.unit_rows.row_factors`.
    `n_threads`: threads.
    `kept`, shape (k,): columns that rows are looked at in, ascending; by default all.
    `bound`: instead of scaling rows, clip entries to [-bound, bound]; only with `kept`.

    Returns shape (N,), or (N, K) for weights of shape (D, K).

    Raises ValueError if X has another number of columns than the training data, or NaN or
    infinity.
    """
    X = _encoded(estimator, X)
    store = store_of(X)
    with thread_pool(n_threads) as threads:
        if store is not None and kept is not None:
            _check_columns(estimator, store)
            inner = store.internal_column[kept]
            _check_rows(store, inner)
            rows, _ = select_columns(store.columns, inner, store.shape[0], n_threads)
        elif store is not None:
            _check_columns(estimator, store)
            check_entries(store, "rows", n_threads=n_threads)
            rows, weights = store.rows, weights[store.original_column[: weights.shape[0]]]
        else:
            X = _validate(estimator, X, reset=False)
            matrix, by_rows = compress(X)
            if kept is not None:
                matrix, by_rows = compress(X[:, kept])
            rows = matrix if by_rows else transpose(matrix, X.shape[0], n_threads)
        if bound is not None:
            rows, factor = clipped(rows, bound), np.ones(rows.indptr.size - 1)
        else:
            factor = row_factors(rows, constant, norm_bound, threads)
        return unit_row_margins(rows, weights, factor, offset, threads)


def _check_rows(store: Store, inner: NDArray[np.integer]) -> None:
    """Refuse columns of a store whose row numbers lie outside the matrix, before they are used."""
    pointers, indices = store.columns.indptr, store.columns.indices
    for j in inner:
        rows = indices[int(pointers[j]) : int(pointers[j + 1])]
        if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < store.shape[0]:
            refuse_damage()


def _encoded(estimator: Any, X: Any) -> Any:
    """Encode a table if the model knows by what schema; refuse rows of another origin."""
    origin = estimator.model_.origin
    if origin is not None and origin.schema is not None and is_frame(X):
        X = PublicEncoder(origin.schema).transform(X)
        if origin.binarize:
            X.data[:] = 1  # no entry is 0
        return X
    check_same_origin(origin, origin_of(X))
    return X


def _check_columns(estimator: BaseEstimator, store: Store) -> None:
    if store.shape[1] != estimator.n_features_in_:
        raise DataError(
            f"{store.path} has {store.shape[1]:,} columns, but the model was trained on "
            f"{estimator.n_features_in_:,}; convert the data with as many (--features)"
        )
