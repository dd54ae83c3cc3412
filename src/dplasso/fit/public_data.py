"""A prior trained on public rows, with plain scikit-learn; no private row comes near it."""

import reprlib
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from dplasso.data.store import Store
from dplasso.errors import DataError, ParameterTypeError
from dplasso.fit.given import Given
from dplasso.fit.records import local_records
from dplasso.fit.task import Task
from dplasso.gradient_descent.schedule import CONSTANT
from dplasso.matrix.compressed import checked, compress
from dplasso.matrix.unit_rows import row_factors
from dplasso.runtime.threads import thread_pool

_FOLDS = 5
# Strengths that cross-validation chooses among; rows are of unit length.
_STRENGTHS = tuple(10.0**power for power in range(-2, 5))


def checked_public_data(data: Any) -> tuple[Any, Any]:
    """Return X and y; TypeError if there are not two."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ParameterTypeError(
            "`public_data` must be a pair (X, y) of rows and their labels, got "
            + " ".join(reprlib.repr(data).split())
        )
    return data[0], data[1]


def trained_on(X: Any, y: Any, method: Any, task: Task) -> Given:
    """Return a model of public rows, read as the method reads rows; of many labels one of each.

    Its strength of regularisation is the best of a few by cross-validation on the same rows.

    Raises DataError for NaN, missing labels, or a class that is not the task's.
    """
    model, strength, _ = task.plain_model()
    try:
        public = local_records(model, X, y, takes_matrix=task.many_labels)
        labels = task.plain_labels(np.asarray(public.y))
    except ValueError as error:
        raise DataError(f"`public_data`: {error}") from error
    rows = public.X.X.tocsr() if isinstance(public.X, Store) else csr_array(checked(public.X))
    rows = method.as_read(rows.astype(np.float64))
    # The penalty leaves a column without an entry at zero.
    seen = np.unique(rows.indices)
    each = [_trained(rows[:, seen], own, task) for own in labels.reshape(len(labels), -1).T]
    model, classes = each[0], getattr(each[0], "classes_", None)
    of_each, told = "", f" with {strength} = {getattr(model, strength):g}"
    if task.many_labels:
        classes, of_each, told = task.classes, " for each label", ""
    weights = np.zeros((sum(len(np.atleast_2d(one.coef_)) for one in each), public.n_features))
    weights[:, seen] = np.concatenate([np.atleast_2d(one.coef_) for one in each])
    return Given(
        weights,
        np.concatenate([np.atleast_1d(one.intercept_) for one in each]).astype(np.float64),
        f"a {type(model).__name__} of scikit-learn{of_each} trained on {len(labels):,} public rows"
        + told,
        names=public.feature_names,
        labels=None if classes is None else classes.tolist(),
        learns=task.learns,
        schema=None if public.origin is None else public.origin.schema,
    )


def _trained(rows: csr_array, labels: NDArray[Any], task: Task) -> Any:
    """Return a plain model of some rows, of the best of a few strengths."""
    model, strength, scoring = task.plain_model()
    if task.many_labels and labels.min() == labels.max():
        # A label that all rows have or lack says nothing of the columns.
        model.coef_, model.intercept_ = np.zeros((1, rows.shape[1])), np.zeros(1)
        return model
    if (folds := task.folds(labels, _FOLDS)) is not None:
        model = GridSearchCV(model, {strength: _STRENGTHS}, scoring=scoring, cv=folds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, labels)
    return getattr(model, "best_estimator_", model)


def scaled_rows(
    rows: csr_array, norm_bound: float | None, fit_intercept: bool, n_threads: int
) -> csr_array:
    """Return rows scaled as noisy gradient descent scales them."""
    with thread_pool(n_threads) as threads:
        constant = CONSTANT if fit_intercept else 0.0
        factors = row_factors(compress(rows)[0], constant, norm_bound, threads)
    return csr_array(diags_array(factors) @ rows)
