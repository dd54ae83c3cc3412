"""A prior trained on public rows, with plain scikit-learn; no private row comes near it."""

import reprlib
import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from dplasso.data.store import Store
from dplasso.errors import DataError
from dplasso.fit.given import Given, text_of
from dplasso.fit.records import local_records
from dplasso.fit.task import Task
from dplasso.gradient_descent.plan import CONSTANT
from dplasso.matrix.compressed import compress
from dplasso.matrix.unit_rows import row_factors
from dplasso.runtime.threads import thread_pool

_FOLDS = 5
# Strengths that cross-validation chooses among; rows are of unit length.
_STRENGTHS = tuple(10.0**power for power in range(-2, 5))


def checked_public_data(data: Any) -> tuple[Any, Any]:
    """Return X and y; TypeError if there are not two."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise TypeError(
            f"public_data must be a pair (X, y) of rows and their labels, got {reprlib.repr(data)}"
        )
    return data[0], data[1]


def trained_on(X: Any, y: Any, method: Any, task: Task) -> Given:
    """Return a model of public rows, read as the method reads rows.

    Its strength of regularisation is the best of a few by cross-validation on the same rows.

    Raises ValueError for NaN, missing labels, or a class that is not the task's.
    """
    numbers = task.target_bounds is not None
    model: Any = Ridge() if numbers else LogisticRegression(max_iter=1_000)
    try:
        public = local_records(model, X, y)
        labels = np.asarray(public.y, dtype=np.float64) if numbers else public.y
    except ValueError as error:
        raise DataError(f"public_data: {error}") from error
    rows = public.X.X.tocsr() if isinstance(public.X, Store) else csr_array(public.X)
    rows = method.as_read(rows.astype(np.float64))
    # The penalty leaves a column without an entry at zero.
    seen, name = np.unique(rows.indices), "C"
    rows = rows[:, seen]
    if numbers:
        low, high = task.target_bounds or (0.0, 1.0)
        name, labels = "alpha", np.clip(labels, low, high)
        n_folds, folds = min(_FOLDS, labels.size), KFold
    else:
        found, counts = np.unique(labels, return_counts=True)
        ours = {text_of(label) for label in task.classes.tolist()}
        if found.size < 2 or {text_of(label) for label in found.tolist()} != ours:
            raise DataError(
                f"public_data has the classes {', '.join(map(text_of, found.tolist()))}, and the "
                f"data have {', '.join(map(text_of, task.classes.tolist()))}; they must be the same"
            )
        n_folds, folds = min(_FOLDS, int(counts.min())), StratifiedKFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if n_folds < 2:
            model.fit(rows, labels)
        else:
            scoring = "neg_mean_squared_error" if numbers else "neg_log_loss"
            split = folds(n_folds, shuffle=True, random_state=0)
            search = GridSearchCV(model, {name: _STRENGTHS}, scoring=scoring, cv=split)
            model = search.fit(rows, labels).best_estimator_
    coefficients = np.atleast_2d(model.coef_)
    weights = np.zeros((coefficients.shape[0], public.n_features))
    weights[:, seen] = coefficients
    return Given(
        weights,
        np.atleast_1d(model.intercept_).astype(np.float64),
        f"a {type(model).__name__} of scikit-learn trained on {labels.size:,} public rows with "
        f"{name} = {getattr(model, name):g}",
        names=public.feature_names,
        labels=None if numbers else model.classes_.tolist(),
        learns="numbers" if numbers else "classes",
        schema=None if public.origin is None else public.origin.schema,
    )


def scaled_rows(
    rows: csr_array, norm_bound: float | None, fit_intercept: bool, n_threads: int
) -> csr_array:
    """Return rows scaled as noisy gradient descent scales them."""
    with thread_pool(n_threads) as threads:
        constant = CONSTANT if fit_intercept else 0.0
        factors = row_factors(compress(rows)[0], constant, norm_bound, threads)
    return csr_array(diags_array(factors) @ rows)
