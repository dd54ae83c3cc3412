"""Export a fitted model as plain scikit-learn, for use without this package."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dplasso.errors import ParameterError
from dplasso.estimators.margins import loss_of
from dplasso.model.linear import reading_for


class Plain(NamedTuple):
    """A fitted classifier as plain arrays; the `kept` columns are read, all if these are none.

    Entries are clipped to `bound`, or else rows are divided by the `divisors` of columns and by
    their length, which is at least `norm_bound`. The residual bound C, `loss_bound`, bounds a
    record's residuals together if `by_length` (docs/multiclass.md).
    """

    kept: NDArray[np.integer]
    bound: float | None
    norm_bound: float | None
    divisors: NDArray[np.float64]
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    loss_bound: float
    by_length: bool

    @property
    def is_softmax(self) -> bool:
        """Whether probabilities are the softmax or sigmoid of margins, as without clipping."""
        return self.loss_bound >= (math.sqrt(2.0) if self.by_length else 1.0)


def plain_of(fitted: Any) -> Plain:
    """Return a fitted classifier as plain arrays; ValueError for more than 10^8 columns."""
    check_is_fitted(fitted, "coef_")
    scaling, bound = reading_for(fitted.model_)
    kept, exponents = scaling.kept, scaling.scale_exponents
    weights = np.atleast_2d(fitted.weights(dense=True)) * math.sqrt(1.0 - scaling.constant**2)
    divisors = np.exp2(exponents, dtype=np.float64) if exponents.any() else np.zeros(0)
    if divisors.size:
        weights[:, kept if kept.size else slice(None)] *= divisors
    terms = loss_of(fitted).link_terms
    return Plain(kept, bound, scaling.norm_bound, divisors, weights, fitted.intercept_, *terms)


def to_sklearn(self: Any, *, scaling: bool = True) -> Any:
    """Return the model as a fitted, dense scikit-learn model that does not need this package.

    Its last step is the linear model, with `coef_`, and with the same labels and margins. It has
    probabilities only if these are the sigmoid or softmax of the margins, which they are not in
    most private fits. `to_onnx` exports those.

    Parameters
    ----------
    scaling : bool, default=True
        Whether to include the scaling or clipping of rows. Without it, entries must be within
        `feature_bound`, or rows must have length 1 in the columns with weights.

    Returns
    -------
    Pipeline, or its last step without `scaling`
        The fitted model.

    Raises
    ------
    ValueError
        For many labels or more than 10^8 columns. With `scaling`, also if `row_norm` is a number,
        because no transformer of scikit-learn scales only the longer rows.
    """
    # Imported here because the imports take longer than a small fit.
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler

    plain = plain_of(self)
    if self.privacy_.many_labels:
        raise ValueError("scikit-learn has no linear model for many labels; use to_onnx() instead")
    if scaling and plain.norm_bound is not None:
        raise ParameterError(
            f"scikit-learn has no transformer for `row_norm={self.row_norm!r}`: pass scaling=False "
            f"and divide the rows by max({plain.norm_bound:.9g}, their length) yourself"
        )
    # Clipping needs no selection of columns, because it treats all columns alike.
    selects = scaling and plain.kept.size > 0 and plain.bound is None
    linear = LogisticRegression() if plain.is_softmax else SGDClassifier(loss="hinge")
    linear.coef_ = plain.weights[:, plain.kept if selects else slice(None)]
    linear.intercept_ = plain.intercept.copy()
    linear.n_iter_ = np.array([self.n_iter_]) if plain.is_softmax else self.n_iter_
    linear.classes_ = self.classes_.copy()
    names = getattr(self, "feature_names_in_", None)
    _set_columns(linear, linear.coef_.shape[1], None if scaling else names)
    if not scaling:
        return linear
    front = Normalizer() if plain.bound is None else _clip(self.n_features_in_, plain.bound)
    steps: list[Any] = [front]
    if plain.divisors.size:
        scaler = StandardScaler(with_mean=False)
        scaler.scale_, scaler.var_ = plain.divisors, plain.divisors**2
        scaler.n_features_in_ = plain.divisors.size
        steps = [scaler, *steps]
    if selects:
        front = steps[0] if len(steps) == 1 else make_pipeline(*steps)
        steps = [ColumnTransformer([("kept", front, plain.kept.tolist())])]
        steps[0].fit(np.zeros((1, self.n_features_in_)))
    _set_columns(steps[0], self.n_features_in_, names)
    return make_pipeline(*steps, linear)


def _clip(n_features: int, bound: float) -> Any:
    """Return a scaler that clips entries to the bound and does not change others."""
    from sklearn.preprocessing import MinMaxScaler

    corners = np.repeat([[-bound], [bound]], n_features, axis=1)
    scaler = MinMaxScaler(feature_range=(-bound, bound), clip=True).fit(corners)
    # Set the identity exactly, so that rounding does not change entries.
    scaler.scale_, scaler.min_ = np.ones(n_features), np.zeros(n_features)
    return scaler


def _set_columns(step: Any, n_features: int, names: Any) -> None:
    step.n_features_in_ = n_features
    if names is not None:
        step.feature_names_in_ = names
