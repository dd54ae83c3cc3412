"""How well a model predicts labelled data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.errors import DataError


@dataclass(frozen=True)
class Scores:
    """Scores of one model on one labelled data set.

    Attributes
    ----------
    n_samples : int
        Rows scored.
    accuracy : float
        Share of rows whose predicted label is right.
    auc : float or None
        Area under the ROC curve; None where the rows hold one class only.
    log_loss : float
        Mean negative log-likelihood, in nats.
    majority_accuracy : float
        Accuracy of always answering the class that most of these rows have.
    """

    n_samples: int
    accuracy: float
    auc: float | None
    log_loss: float
    majority_accuracy: float


def auc_text(auc: float | None) -> str:
    """Word the area under a ROC curve."""
    return "undefined (one class)" if auc is None else f"{auc:.4f}"


def check_known(y: NDArray[Any], classes: ArrayLike, source: str) -> None:
    """Raise `DataError` at the first of the labels `y` that is none of the model's classes."""
    known = np.asarray(classes)
    strange = ~np.isin(y, known)
    if strange.any():
        row = int(np.argmax(strange))
        raise DataError(
            f"{source}: row {row + 1} has the label {y[row]}, but the model's classes are "
            f"{' and '.join(str(label) for label in known[:5])}"
        )


def score(model: Any, X: Any, y: NDArray[Any], source: str) -> Scores:
    """Score a fitted classifier on labelled rows.

    Raises
    ------
    DataError
        If a label is not one of the model's classes; `source` says where it is from.
    """
    from sklearn.metrics import roc_auc_score

    from dplasso.losses.logistic import class_probabilities

    check_known(y, model.classes_, source)
    positive = np.asarray(y == model.classes_[1])
    margin = np.asarray(model.decision_function(X), dtype=np.float64)
    share = float(positive.mean())
    one_class = share in (0.0, 1.0)
    bound = model.privacy_.residual_bound
    given = class_probabilities(margin, bound)[np.arange(len(positive)), positive.astype(np.intp)]
    # Of a margin so wrong that its probability is too small for a float.
    lost = np.abs(margin) + np.log(bound)
    losses = np.where(given > 0, -np.log(given, where=given > 0, out=lost.copy()), lost)
    return Scores(
        n_samples=len(positive),
        accuracy=float(np.mean((margin > 0) == positive)),
        auc=None if one_class else float(roc_auc_score(positive, margin)),
        log_loss=float(np.mean(losses)),
        majority_accuracy=max(share, 1.0 - share),
    )
