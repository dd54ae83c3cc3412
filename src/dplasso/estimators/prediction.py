"""What fitted classifiers say of new rows, whatever their family."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.losses.logistic import class_probabilities


def predicted_labels(estimator: Any, X: Any) -> NDArray[Any]:
    """Return the label of each row, the positive one where the margin is positive."""
    positive = estimator.decision_function(X) > 0
    labels: NDArray[Any] = estimator.classes_[positive.astype(np.intp)]
    return labels


def predicted_probabilities(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Return the probabilities of both labels, by the inverse link of the loss that was used."""
    margins = estimator.decision_function(X)
    return class_probabilities(margins, estimator.privacy_.residual_bound)
