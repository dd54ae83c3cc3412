"""How well a model predicts labelled data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.errors import DataError


@dataclass(frozen=True)
class Scores:
    """Scores of one classifier on one labelled data set.

    `n_samples`: rows scored.
    `accuracy`: share of rows whose predicted label is right.
    `auc`: area under the ROC curve; None where the rows hold one class only. Of more than two
    classes, the mean over those present of each against all others.
    `log_loss`: mean negative log-likelihood, in nats.
    `majority_accuracy`: accuracy of always answering the class that most of these rows have.
    `classes`: the labels.
    `confusion`: rows of each class, in their order, by the class that was predicted.
    """

    n_samples: int
    accuracy: float
    auc: float | None
    log_loss: float
    majority_accuracy: float
    classes: list[Any]
    confusion: list[list[int]]


@dataclass(frozen=True)
class RegressionScores:
    """Scores of one regression on one data set.

    `n_samples`: rows scored.
    `r2`: part of the targets' variance that is explained; None where they have none.
    `mae`: mean absolute error, in the target's unit.
    """

    n_samples: int
    r2: float | None
    mae: float


def auc_text(auc: float | None) -> str:
    """Word the area under a ROC curve."""
    return "undefined (one class)" if auc is None else f"{auc:.4f}"


def scores_text(scores: Scores | RegressionScores) -> str:
    """Word the scores of test rows in one line."""
    rows = f"on {scores.n_samples:,} rows"
    if isinstance(scores, RegressionScores):
        return f"R^2 {r2_text(scores.r2)}, mean absolute error {scores.mae:.4g} {rows}"
    name = "AUC" if len(scores.classes) == 2 else "macro AUC"
    return f"{name} {auc_text(scores.auc)}, accuracy {scores.accuracy:.4f} {rows}"


def r2_text(r2: float | None) -> str:
    """Word the explained part of the variance."""
    return "undefined (equal targets)" if r2 is None else f"{r2:.4f}"


def check_known(y: NDArray[Any], classes: ArrayLike, source: str) -> None:
    """Raise `DataError` at the first of the labels `y` that is none of the model's classes."""
    known = np.asarray(classes)
    strange = ~np.isin(y, known)
    if strange.any():
        row = int(np.argmax(strange))
        raise DataError(
            f"{source}: the label of row {row + 1} is not one of the model's classes, "
            f"{' and '.join(str(label) for label in known[:5])}"
        )


def score(model: Any, X: Any, y: NDArray[Any], source: str) -> Scores | RegressionScores:
    """Score a fitted model on labelled rows.

    Raises DataError if a label is not one of a classifier's classes; `source` says where it is
    from.
    """
    if not hasattr(model, "classes_"):
        return _score_regression(model, X, np.asarray(y, dtype=np.float64))
    check_known(y, model.classes_, source)
    order = np.argsort(model.classes_)
    number = order[np.searchsorted(model.classes_, y, sorter=order)]
    margin = np.asarray(model.decision_function(X), dtype=np.float64)
    n_classes = model.classes_.size
    predicted = (margin > 0).astype(np.intp) if margin.ndim == 1 else margin.argmax(axis=1)
    confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(confusion, (number, predicted), 1)
    return Scores(
        n_samples=number.size,
        accuracy=float(np.mean(predicted == number)),
        auc=_auc(number, margin),
        log_loss=_log_loss(number, margin, model.privacy_.residual_bound),
        majority_accuracy=float(confusion.sum(axis=1).max() / number.size),
        classes=model.classes_.tolist(),
        confusion=confusion.tolist(),
    )


def _score_regression(model: Any, X: Any, y: NDArray[np.float64]) -> RegressionScores:
    error, spread = model.predict(X) - y, float(np.var(y))
    return RegressionScores(
        n_samples=y.size,
        r2=None if spread == 0.0 else 1.0 - float(np.mean(error * error)) / spread,
        mae=float(np.mean(np.abs(error))),
    )


def _auc(number: NDArray[Any], margin: NDArray[np.float64]) -> float | None:
    from sklearn.metrics import roc_auc_score

    from dplasso.losses.multinomial import softmax

    present = np.unique(number)
    if present.size < 2:
        return None
    if margin.ndim == 1:
        return float(roc_auc_score(number, margin))
    # What ranks the rows of a class is its probability, not its margin.
    probabilities = softmax(margin)
    each = [roc_auc_score(number == k, probabilities[:, k]) for k in present.tolist()]
    return float(np.mean(each))


def _log_loss(number: NDArray[Any], margin: NDArray[np.float64], bound: float) -> float:
    from dplasso.losses.logistic import Logistic
    from dplasso.losses.multinomial import Multinomial

    if margin.ndim == 1:
        probabilities, lost = Logistic(bound).link(margin), np.abs(margin) + np.log(bound)
    else:
        probabilities = Multinomial(margin.shape[1], bound).link(margin)
        given = np.take_along_axis(margin, number[:, np.newaxis], axis=1)[:, 0]
        lost = margin.max(axis=1) - given
    # Of a margin so wrong that its probability is too small for a float.
    given = probabilities[np.arange(number.size), number]
    return float(
        np.mean(np.where(given > 0, -np.log(given, where=given > 0, out=lost.copy()), lost))
    )
