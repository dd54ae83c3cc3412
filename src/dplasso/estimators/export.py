"""A fitted model as plain scikit-learn, for tools that know nothing of this package."""

import math
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


def to_sklearn(self: Any, *, scaling: bool = True) -> Any:
    """Return the model as a fitted, dense model of scikit-learn alone.

    It predicts the same labels and has the same `decision_function` (up to rounding). Its linear
    part is a LogisticRegression where this model's probabilities are the sigmoid of the margin,
    and otherwise, with a `residual_bound` below 1, an SGDClassifier without `predict_proba`:
    scikit-learn has no model with such probabilities.

    Parameters
    ----------
    scaling : bool, default=True
        Whether to put in front what this model does to rows: a MinMaxScaler that clips to
        `feature_bound` (dense rows only), or a Normalizer, of the columns that have weights where
        some were chosen, after a StandardScaler where strong columns are halved. Without it rows
        must be such already: entries within `feature_bound` (0 and 1 are within a bound of 1), or
        rows of length 1 in these columns.

    Returns
    -------
    Pipeline, or LogisticRegression or SGDClassifier without `scaling`
        Fitted. No part of it refers to this package.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        Before `fit`.
    ValueError
        If there are more than two classes or 10^8 columns; or with `scaling`, if `row_norm` is a
        number: no transformer of scikit-learn scales only the longer rows.
    """
    # Nothing else needs these, and importing them takes longer than a small fit.
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler

    check_is_fitted(self, "coef_")
    if self.classes_.size > 2:
        raise ValueError(
            f"only a model of two classes can become one of scikit-learn, and this one has "
            f"{self.classes_.size}; weights(dense=True) and intercept_ hold its linear part"
        )
    kept, bound, norm_bound, constant, halvings = self.family.reading(self)
    if scaling and norm_bound is not None:
        raise ValueError(
            f"nothing in scikit-learn scales rows as row_norm={self.row_norm!r} does: with "
            f"scaling=False, divide the rows by max({norm_bound:.9g}, their length) yourself"
        )
    coefficients = self.weights(dense=True) * math.sqrt(1.0 - constant**2)
    doubled = np.exp2(halvings)
    if halvings.any():
        coefficients[slice(None) if kept is None else kept] *= doubled
    # Entries are clipped alike whether their column has a weight or not.
    selects = scaling and kept is not None and bound is None
    sigmoid = self.privacy_.residual_bound == 1.0
    linear = LogisticRegression() if sigmoid else SGDClassifier(loss="hinge")
    linear.coef_ = coefficients[np.newaxis, kept if selects else slice(None)]
    linear.intercept_ = self.intercept_.copy()
    linear.n_iter_ = np.array([self.n_iter_]) if sigmoid else self.n_iter_
    linear.classes_ = self.classes_.copy()
    names = getattr(self, "feature_names_in_", None)
    _set_columns(linear, linear.coef_.size, None if scaling else names)
    if not scaling:
        return linear
    steps: list[Any] = [Normalizer() if bound is None else _clip(self.n_features_in_, bound)]
    if halvings.any():
        scaler = StandardScaler(with_mean=False)
        scaler.scale_, scaler.var_, scaler.n_features_in_ = doubled, doubled**2, doubled.size
        steps = [scaler, *steps]
    if selects:
        front = steps[0] if len(steps) == 1 else make_pipeline(*steps)
        steps = [ColumnTransformer([("kept", front, kept.tolist())])]
        steps[0].fit(np.zeros((1, self.n_features_in_)))
    _set_columns(steps[0], self.n_features_in_, names)
    return make_pipeline(*steps, linear)


def _clip(n_features: int, bound: float) -> Any:
    """Return a scaler that changes nothing within the bound and clips what lies beyond."""
    from sklearn.preprocessing import MinMaxScaler

    corners = np.repeat([[-bound], [bound]], n_features, axis=1)
    scaler = MinMaxScaler(feature_range=(-bound, bound), clip=True).fit(corners)
    # Rounding must not move entries: the map is the identity.
    scaler.scale_, scaler.min_ = np.ones(n_features), np.zeros(n_features)
    return scaler


def _set_columns(step: Any, n_features: int, names: Any) -> None:
    step.n_features_in_ = n_features
    if names is not None:
        step.feature_names_in_ = names
