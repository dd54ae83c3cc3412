"""How well a model predicts labelled data."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.cli import output
from dplasso.errors import DataError

# Classes of a table that a screen holds; JSON has them all.
_MOST_SHOWN = 12


@dataclass(frozen=True)
class Scores:
    """Scores of one classifier on one labelled data set.

    `auc` is None where the rows hold one class only; of more than two classes, the mean over those
    present of each against all others. `log_loss` is in nats; `majority_accuracy` that of always
    answering the class that most of these rows have; `confusion` has the rows of each class by the
    class that was predicted.
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
    """Scores of one regression on one data set; `r2` is None where all targets are equal."""

    n_samples: int
    r2: float | None
    mae: float


def _auc_text(scores: Scores) -> tuple[str, str]:
    name = "AUC" if len(scores.classes) == 2 else "macro AUC"
    return name, "undefined (one class)" if scores.auc is None else f"{scores.auc:.4f}"


def _r2_text(r2: float | None) -> str:
    return "undefined (equal targets)" if r2 is None else f"{r2:.4f}"


def scores_text(scores: Scores | RegressionScores) -> str:
    """Word the scores of test rows in one line."""
    rows = f"on {scores.n_samples:,} rows"
    if isinstance(scores, RegressionScores):
        return f"R^2 {_r2_text(scores.r2)}, mean absolute error {scores.mae:.4g} {rows}"
    name, auc = _auc_text(scores)
    return f"{name} {auc}, accuracy {scores.accuracy:.4f} {rows}"


def print_scores(scores: Scores | RegressionScores) -> None:
    """Print all scores, and of a few classes the rows of each by the class predicted."""
    facts = {"rows": f"{scores.n_samples:,}"}
    if isinstance(scores, RegressionScores):
        facts |= {"R^2": _r2_text(scores.r2), "mean absolute error": f"{scores.mae:.4g}"}
        output.facts(facts, right=True)
        return
    name, auc = _auc_text(scores)
    facts |= {
        "accuracy": f"{scores.accuracy:.4f}",
        "  of the majority class": f"{scores.majority_accuracy:.4f}",
        name: auc,
        "log-loss": f"{scores.log_loss:.4f}",
    }
    output.facts(facts, right=True)
    if 2 < len(scores.classes) <= _MOST_SHOWN:
        labels = [f"{c:g}" if isinstance(c, float) else str(c) for c in scores.classes]
        table = [
            [label, *(f"{count:,}" for count in counts)]
            for label, counts in zip(labels, scores.confusion, strict=True)
        ]
        headings = ["class", *(f">{label}" for label in labels)]
        output.table(headings, table, title="Rows of each class by the class predicted")


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
    """Score a fitted model on labelled rows; `source` says in an error where they are from."""
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

    from dplasso.losses.multinomial import multinomial_probabilities

    present = np.unique(number)
    if present.size < 2:
        return None
    if margin.ndim == 1:
        return float(roc_auc_score(number, margin))
    # What ranks the rows of a class is its probability, not its margin.
    probabilities = multinomial_probabilities(margin, math.sqrt(2.0))
    each = [roc_auc_score(number == k, probabilities[:, k]) for k in present.tolist()]
    return float(np.mean(each))


def _log_loss(number: NDArray[Any], margin: NDArray[np.float64], bound: float) -> float:
    from dplasso.losses.logistic import class_probabilities
    from dplasso.losses.multinomial import multinomial_probabilities

    if margin.ndim == 1:
        probabilities, lost = class_probabilities(margin, bound), np.abs(margin) + np.log(bound)
    else:
        probabilities = multinomial_probabilities(margin, bound)
        given = np.take_along_axis(margin, number[:, np.newaxis], axis=1)[:, 0]
        lost = margin.max(axis=1) - given
    # Of a margin so wrong that its probability is too small for a float.
    given = probabilities[np.arange(number.size), number]
    return float(
        np.mean(np.where(given > 0, -np.log(given, where=given > 0, out=lost.copy()), lost))
    )
