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
    """A fitted classifier as plain arrays.

    `kept`, shape (k,): columns that the model uses; None for all.
    `bound`: entries are clipped to [-bound, bound]; None for scaled rows.
    `norm_bound`: rows are divided by the maximum of this and their length; None for their length.
    `divisors`, shape (k,) or (D,): divisors of the columns before rows are scaled; empty for none.
    `weights`, shape (K or 1, k or D), and `intercept`: the parameters of the margins.
    `loss_bound`: the residual bound C. `by_length`: whether C bounds the L2 norm of a record's
    residuals, instead of each residual (docs/multiclass.md).
    """

    kept: NDArray[np.integer] | None
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
    kept, bound, norm_bound, constant, scale_exponents = reading_for(fitted.model_)
    weights = np.atleast_2d(fitted.weights(dense=True)) * math.sqrt(1.0 - constant**2)
    divisors = np.exp2(scale_exponents, dtype=np.float64) if scale_exponents.any() else np.zeros(0)
    if divisors.size:
        weights[:, slice(None) if kept is None else kept] *= divisors
    terms = loss_of(fitted).link_terms
    return Plain(kept, bound, norm_bound, divisors, weights, fitted.intercept_, *terms)


def to_sklearn(self: Any, *, scaling: bool = True, probabilities: bool = True) -> Any:
    """Return the model as a fitted, dense scikit-learn model that does not need this package.

    It predicts the same labels and, up to rounding, the same probabilities. If these are not the
    sigmoid or softmax of the margins, as in private fits, its last step is a StackingClassifier
    around the linear model, `estimators_[0]`.

    Parameters
    ----------
    scaling : bool, default=True
        Whether to include the scaling or clipping of rows. Without it, entries must be within
        `feature_bound`, or rows must have length 1 in the columns with weights.
    probabilities : bool, default=True
        Whether to include probabilities. Without them the last step is the linear model, with
        `coef_` and the same `decision_function`.

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
    selects = scaling and plain.kept is not None and plain.bound is None
    linear = LogisticRegression() if plain.is_softmax else SGDClassifier(loss="hinge")
    linear.coef_ = plain.weights[:, plain.kept if selects else slice(None)]
    linear.intercept_ = plain.intercept.copy()
    linear.n_iter_ = np.array([self.n_iter_]) if plain.is_softmax else self.n_iter_
    linear.classes_ = self.classes_.copy()
    names = getattr(self, "feature_names_in_", None)
    _set_columns(linear, linear.coef_.shape[1], None if scaling else names)
    last = linear
    if probabilities and not plain.is_softmax:
        last = _stacked(linear, plain)
    if not scaling:
        return last
    front = Normalizer() if plain.bound is None else _clip(self.n_features_in_, plain.bound)
    steps: list[Any] = [front]
    if plain.divisors.size:
        scaler = StandardScaler(with_mean=False)
        scaler.scale_, scaler.var_ = plain.divisors, plain.divisors**2
        scaler.n_features_in_ = plain.divisors.size
        steps = [scaler, *steps]
    if selects and plain.kept is not None:
        front = steps[0] if len(steps) == 1 else make_pipeline(*steps)
        steps = [ColumnTransformer([("kept", front, plain.kept.tolist())])]
        steps[0].fit(np.zeros((1, self.n_features_in_)))
    _set_columns(steps[0], self.n_features_in_, names)
    return make_pipeline(*steps, last)


def _stacked(linear: Any, plain: Plain) -> Any:
    """Return a stack of a linear model and a model that converts its margins to probabilities."""
    from sklearn.ensemble import StackingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import LabelEncoder

    size = linear.classes_.size
    parts, coefficients = (
        _two(plain.loss_bound) if size == 2 else _several(size, plain.loss_bound, plain.by_length)
    )
    odds = LogisticRegression()
    odds.coef_, odds.intercept_ = coefficients, np.zeros(len(coefficients))
    odds.classes_, odds.n_iter_ = np.arange(size), np.array([0])
    odds.n_features_in_ = coefficients.shape[1]
    last = make_pipeline(parts, odds)
    stacked = StackingClassifier([("linear", linear)], last, cv="prefit")
    stacked.estimators_, stacked.final_estimator_ = [linear], last
    stacked.stack_method_, stacked.classes_ = ["decision_function"], linear.classes_
    stacked._label_encoder = LabelEncoder()
    stacked._label_encoder.classes_ = linear.classes_
    stacked._n_feature_outs = [1 if size == 2 else size]
    if hasattr(linear, "feature_names_in_"):
        stacked.feature_names_in_ = linear.feature_names_in_
    return stacked


def _of(function: Any, **options: Any) -> Any:
    from sklearn.preprocessing import FunctionTransformer

    return FunctionTransformer(function, kw_args=options or None)


def _two(bound: float) -> tuple[Any, NDArray[np.float64]]:
    """Return a transformer of a margin m to parts of the log-odds, and their coefficients.

    The log-odds are ``log sigma(min(m, -t)) + clip(m, -t, t) - log sigma(-max(m, t))``, where
    ``sigma(t) = C``.
    """
    from scipy.special import log_expit
    from sklearn.pipeline import make_pipeline, make_union

    t = math.log(bound / (1.0 - bound))
    low = make_pipeline(_of(np.clip, a_min=None, a_max=-t), _of(log_expit))
    high = make_pipeline(_of(np.clip, a_min=t, a_max=None), _of(np.negative), _of(log_expit))
    parts = make_union(low, _of(np.clip, a_min=-t, a_max=t), high)
    return parts, np.array([[1.0, 1.0, -1.0]])


def _several(size: int, bound: float, by_length: bool) -> tuple[Any, NDArray[np.float64]]:
    """Return the same for K classes: ``log p_j + log max(1, d_j / C)``, up to a constant.

    Here p is the softmax of the margins, and d_j the length of ``p - e_j``, or ``1 - p_j``.
    """
    from scipy.spatial.distance import cdist
    from scipy.special import log_softmax, softmax
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import MinMaxScaler

    if by_length:
        far = _of(cdist, XB=np.eye(size))
    else:
        far = MinMaxScaler().fit(np.eye(size))
        far.scale_, far.min_ = np.full(size, -1.0), np.ones(size)
    beyond = make_pipeline(
        _of(softmax, axis=1), far, _of(np.clip, a_min=bound, a_max=None), _of(np.log)
    )
    coefficients = np.concatenate([np.eye(size), np.eye(size)], axis=1)
    return make_union(_of(log_softmax, axis=1), beyond), coefficients


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
