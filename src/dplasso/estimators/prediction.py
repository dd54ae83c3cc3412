"""What fitted estimators of every family do alike; each class takes these as its methods."""

import math
from os import PathLike
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dplasso.gradient_descent.run import CONSTANT
from dplasso.losses.clipped_multinomial import clipped_multinomial_probabilities
from dplasso.losses.logistic import class_probabilities
from dplasso.losses.multinomial import multinomial_probabilities, norm_bound
from dplasso.model import write_model
from dplasso.training.inputs import decision_margins, unit_margins


def predict(self: Any, X: Any) -> NDArray[Any]:
    """Predict the label of each row.

    Parameters
    ----------
    X : sparse or dense matrix, shape (N, D), or a store
        The rows.

    Returns
    -------
    ndarray, shape (N,)
        Entries of `classes_`.
    """
    margins = self.decision_function(X)
    place = (margins > 0).astype(np.intp) if margins.ndim == 1 else margins.argmax(axis=1)
    labels: NDArray[Any] = self.classes_[place]
    return labels


def dense_margins(self: Any, X: Any) -> NDArray[np.float64]:
    """Compute the margins of unit rows, of an estimator of the gradient family."""
    check_is_fitted(self, "coef_")
    params = self.model_.params
    dense = self.coef_ if isinstance(self.coef_, np.ndarray) else self.coef_.toarray()
    single = dense.shape[0] == 1
    return unit_margins(
        self,
        X,
        dense.ravel() if single else np.ascontiguousarray(dense.T),
        float(self.intercept_[0]) if single else self.intercept_,
        CONSTANT if params["fit_intercept"] else 0.0,
        None if params["row_norm"] == "unit" else float(params["row_norm"]),
        effective_n_jobs(self.n_jobs),
    )


def lasso_margins(self: Any, X: Any) -> NDArray[np.float64]:
    """Compute the margins of clipped rows, or of a refit those of unit rows, of a LASSO."""
    check_is_fitted(self, "coef_")
    release, bound = self.model_.release, self.privacy_.feature_bound
    offset = float(self.intercept_[0])
    refitted = release if getattr(release, "refitted", None) is not None else None
    several = self.coef_.shape[0] > 1
    if refitted or several:
        kept = refitted.columns if refitted else np.unique(self.coef_.indices)
        return unit_margins(
            self,
            X,
            self.coef_[:, kept].toarray().T.copy() if several else self.coef_.data,
            self.intercept_ if several else offset,
            CONSTANT if self.model_.params["fit_intercept"] else 0.0,
            None,
            effective_n_jobs(self.n_jobs),
            kept=kept,
            bound=None if refitted else bound,
        )
    return decision_margins(self, X, self.coef_.indices, self.coef_.data, bound, offset)


def within_bounds(self: Any, targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clip predicted targets to the interval that the training targets were clipped to."""
    low, high = self.privacy_.target_bounds
    clipped: NDArray[np.float64] = np.clip(targets, low, high)
    return clipped


def predict_proba(self: Any, X: Any) -> NDArray[np.float64]:
    """Predict the probability of each label, by the inverse link of the bounded loss.

    Parameters
    ----------
    X : sparse or dense matrix, shape (N, D), or a store
        The rows.

    Returns
    -------
    ndarray of float64, shape (N, K)
        Columns in the order of `classes_`.
    """
    margins, bound = self.decision_function(X), self.privacy_.residual_bound
    if margins.ndim == 1:
        return class_probabilities(margins, bound)
    if "l1_radius" not in self.model_.params:
        return multinomial_probabilities(margins, bound)
    if getattr(self.model_.release, "refitted", None) is None:
        return clipped_multinomial_probabilities(margins, bound)
    return multinomial_probabilities(margins, norm_bound(self.classes_.size, bound))


def predict_log_proba(self: Any, X: Any) -> NDArray[np.float64]:
    """Predict the logarithm of the probability of each label, as `predict_proba`."""
    logarithms: NDArray[np.float64] = np.log(self.predict_proba(X))
    return logarithms


def save(self: Any, path: str | PathLike[str]) -> None:
    """Write the fitted model to a file (docs/model-file.md); no pickle in it.

    The file holds the parameters of the fit, whatever was set since.

    Parameters
    ----------
    path : path
        Replaced at once when everything is written, never left half-written.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        Before `fit`.
    OSError
        If the file cannot be written.
    ValueError
        If a label or parameter is of a kind that the file cannot hold.
    """
    check_is_fitted(self, "coef_")
    write_model(self.model_, path)


def classifier_tags(self: Any) -> Any:
    """Return scikit-learn's tags: sparse input, classes."""
    tags = ClassifierMixin.__sklearn_tags__(self)
    tags.input_tags.sparse = True
    # scikit-learn's checks train on a few dozen records, where privacy leaves only noise.
    tags.classifier_tags.poor_score = bool(self.epsilon != math.inf)
    return tags


def regressor_tags(self: Any) -> Any:
    """Return scikit-learn's tags: sparse input, numbers."""
    tags = RegressorMixin.__sklearn_tags__(self)
    tags.input_tags.sparse = True
    # And on targets in intervals that no check can declare.
    tags.regressor_tags.poor_score = True
    return tags
