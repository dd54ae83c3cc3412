"""Margins of rows that a fitted estimator is shown, clipped or scaled as in training."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dplasso.data.store import Store, check_entries
from dplasso.encoding.encoder import PublicEncoder, is_frame
from dplasso.encoding.origin import check_same_origin, origin_of
from dplasso.errors import DataError
from dplasso.fit.records import store_of, validated
from dplasso.matrix.compressed import compress
from dplasso.matrix.design import refuse_damage
from dplasso.matrix.margins import clipped, column_margins, margins
from dplasso.matrix.transpose import transpose
from dplasso.matrix.unit_rows import row_factors, select_columns, unit_row_margins
from dplasso.runtime.threads import thread_pool


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
    X = validated(estimator, X, reset=False)
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
    `constant`: the constant entry of every row, as a part of its unit length.
    `norm_bound`: what longer rows are scaled down to and all divided by; None makes unit rows.
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
            X = validated(estimator, X, reset=False)
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
