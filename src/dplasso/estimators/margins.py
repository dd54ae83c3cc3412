"""How a fitted estimator reads rows, and the margins of rows read in this way."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dplasso.data.store import Store, check_entries
from dplasso.encoding.encoder import PublicEncoder, is_frame
from dplasso.encoding.origin import check_same_origin, origin_of
from dplasso.errors import DataError
from dplasso.fit.declared_targets import Labels
from dplasso.fit.records import store_of, validated
from dplasso.fit.task import Task
from dplasso.matrix.compressed import Compressed, checked, clipped, compress
from dplasso.matrix.design import refuse_damage
from dplasso.matrix.transpose import transpose
from dplasso.matrix.unit_rows import row_factors, select_columns, unit_row_margins
from dplasso.model.linear import Reading, reading_for
from dplasso.phases.releases import Descended
from dplasso.runtime.threads import Threads, count_threads, thread_pool


def reading(fitted: Any) -> Reading:
    """Return how a fitted estimator's model reads rows."""
    return reading_for(fitted.model_)


def task_of(fitted: Any) -> Task:
    """Return what a fitted classifier has learnt."""
    check_is_fitted(fitted, "coef_")
    return Labels().of_classes(fitted.classes_, many_labels=fitted.privacy_.many_labels)


def loss_of(fitted: Any) -> Any:
    """Return the loss whose link makes probabilities of a fitted classifier's margins."""
    task, statement = task_of(fitted), fitted.privacy_
    by_gradients = fitted.model_.released.last(Descended) is not None
    stated = statement.find("gradients" if by_gradients else "vertices")
    bound = stated.numbers["residual_bound"]
    return task.gradient_loss(bound) if by_gradients else task.vertex_loss(bound)


def margins(fitted: Any, X: Any) -> NDArray[np.float64]:
    """Compute the margins of rows, shape (N,), or (N, K) for K > 2 classes.

    Of a store, only the columns that the model looks at are read. A table is encoded by the model's
    schema. Raises ValueError if X has another number of columns than the training data, or NaN or
    infinity.
    """
    check_is_fitted(fitted, "coef_")
    with thread_pool(count_threads(fitted.n_jobs)) as threads:
        rows, weights, factor = read_rows(fitted, encoded(fitted, X), threads)
        return unit_row_margins(rows, weights, factor, fitted.intercept_, threads)


def read_rows(
    fitted: Any, X: Any, threads: Threads
) -> tuple[Compressed, NDArray[np.float64], NDArray[np.float64]]:
    """Return encoded rows as the model reads them, its weights, and what entries are multiplied by.

    Rows and weights have the columns of `reading(fitted).kept`; of a whole store in its own order.
    """
    kept, bound, norm_bound, constant, scale_exponents = reading(fitted)
    weights, store = _weights(fitted.coef_, kept), store_of(X)
    if store is None:
        X = validated(fitted, X, reset=False)
        matrix, by_rows = compress(X if kept is None else checked(X)[:, kept])
        rows = matrix if by_rows else transpose(matrix, X.shape[0], threads.count)
    else:
        _check_columns(fitted, store)
        if kept is None:
            check_entries(store, "rows", n_threads=threads.count)
            original = store.original_column[: weights.shape[0]]
            rows, weights = store.rows, weights[original]
            scale_exponents = scale_exponents[original] if scale_exponents.size else scale_exponents
        else:
            rows = _stored_rows(store, store.internal_column[kept], threads.count)
    if bound is None:
        return rows, weights, row_factors(rows, constant, norm_bound, threads, scale_exponents)
    return clipped(rows, bound), weights, np.ones(rows.indptr.size - 1)


def _weights(coefficients: Any, kept: NDArray[np.integer] | None) -> NDArray[np.float64]:
    """Return the weights of the columns that are looked at, shape (k,), or (k, K)."""
    if isinstance(coefficients, np.ndarray):
        dense = coefficients
    elif kept is None:
        dense = coefficients.toarray()
    else:
        # Selecting columns of a sparse array takes memory for all of them.
        entries = coefficients.tocoo()
        dense = np.zeros((coefficients.shape[0], kept.size))
        dense[entries.row, np.searchsorted(kept, entries.col)] = entries.data
    return dense[0] if dense.shape[0] == 1 else np.ascontiguousarray(dense.T)


def _stored_rows(store: Store, columns: NDArray[np.integer], n_threads: int) -> Compressed:
    """Return some columns of a store by rows, their row numbers checked before they are used."""
    pointers, indices = store.columns.indptr, store.columns.indices
    for j in columns:
        rows = indices[int(pointers[j]) : int(pointers[j + 1])]
        if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < store.shape[0]:
            refuse_damage()
    return select_columns(store.columns, columns, store.shape[0], n_threads)[0]


def encoded(fitted: Any, X: Any) -> Any:
    """Encode a table if the model knows by what schema; refuse rows of another origin."""
    origin = fitted.model_.origin
    if origin is not None and origin.schema is not None and is_frame(X):
        X = PublicEncoder(origin.schema).transform(X)
        if origin.binarize:
            X.data[:] = 1  # no entry is 0
        return X
    check_same_origin(origin, origin_of(X))
    return X


def _check_columns(fitted: Any, store: Store) -> None:
    if store.shape[1] != fitted.n_features_in_:
        raise DataError(
            f"{store.path} has {store.shape[1]:,} columns, but the model was trained on "
            f"{fitted.n_features_in_:,}; convert the data with as many (--features)"
        )
