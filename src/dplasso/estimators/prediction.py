"""What fitted classifiers of every family do alike; each class takes these as its methods."""

import math
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dplasso.losses.logistic import class_probabilities
from dplasso.model import write_model


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
    positive = self.decision_function(X) > 0
    labels: NDArray[Any] = self.classes_[positive.astype(np.intp)]
    return labels


def predict_proba(self: Any, X: Any) -> NDArray[np.float64]:
    """Predict the probability of each label, by the inverse link (DESIGN.md, section 4).

    Parameters
    ----------
    X : sparse or dense matrix, shape (N, D), or a store
        The rows.

    Returns
    -------
    ndarray of float64, shape (N, 2)
        Columns in the order of `classes_`.
    """
    margins = self.decision_function(X)
    return class_probabilities(margins, self.privacy_.residual_bound)


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
    """Return scikit-learn's tags: sparse input, two classes."""
    tags = ClassifierMixin.__sklearn_tags__(self)
    tags.input_tags.sparse = True
    tags.classifier_tags.multi_class = False
    # scikit-learn's checks train on a few dozen records, where privacy leaves only noise.
    tags.classifier_tags.poor_score = bool(self.epsilon != math.inf)
    return tags
