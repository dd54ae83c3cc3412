"""Scores of a model on labelled data, without noise."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import confusion_matrix, roc_auc_score

from dplasso.cli import output
from dplasso.data.labels import numbers_of
from dplasso.errors import DataError
from dplasso.estimators.predictions import loss_of
from dplasso.losses.multinomial import softmax

# A larger table does not fit a screen; JSON has all classes.
_MOST_SHOWN = 12


def _measured(scores: Mapping[str, Any]) -> dict[str, str]:
    """Return the main scores by name, the most important first."""
    if "r2" in scores:
        r2 = "undefined (equal targets)" if scores["r2"] is None else f"{scores['r2']:.4f}"
        return {"R^2": r2, "mean absolute error": f"{scores['mae']:.4g}"}
    name = "AUC" if len(scores["classes"]) == 2 else "macro AUC"
    auc = "undefined (one class)" if scores["auc"] is None else f"{scores['auc']:.4f}"
    return {name: auc, "accuracy": f"{scores['accuracy']:.4f}"}


def scores_text(scores: Mapping[str, Any]) -> str:
    """Return the scores of test rows in one line."""
    measured = ", ".join(f"{name} {value}" for name, value in _measured(scores).items())
    return f"{measured} on {scores['n_samples']:,} rows"


def print_scores(scores: Mapping[str, Any]) -> None:
    """Print all scores, and the confusion matrix unless there are many classes."""
    facts, measured = {"rows": f"{scores['n_samples']:,}"}, _measured(scores)
    if "r2" in scores:
        output.facts(facts | measured, right=True)
        return
    facts["accuracy"] = measured.pop("accuracy")
    facts["  of the majority class"] = f"{scores['majority_accuracy']:.4f}"
    output.facts(facts | measured | {"log-loss": f"{scores['log_loss']:.4f}"}, right=True)
    if 2 < len(scores["classes"]) <= _MOST_SHOWN:
        labels = [f"{c:g}" if isinstance(c, float) else str(c) for c in scores["classes"]]
        rows = zip(labels, scores["confusion"], strict=True)
        table = [[label, *(f"{count:,}" for count in counts)] for label, counts in rows]
        headings = ["class", *(f">{label}" for label in labels)]
        output.table(headings, table, title="Rows of each class by the class predicted")


def numbers_in(source: str, y: NDArray[Any], classes: ArrayLike) -> NDArray[np.intp]:
    """Return the place of each label among the classes; `DataError` for any other label."""
    try:
        return numbers_of(y, np.asarray(classes)).astype(np.intp)
    except DataError as error:
        raise DataError(error.problem, where=source) from None


def score(model: Any, X: Any, y: NDArray[Any], source: str) -> dict[str, Any]:
    """Score a fitted model on labelled rows; errors name their `source`.

    `auc` is None if the rows hold one class only. For more classes it is the mean over those
    present, each against all others. `r2` is None if all targets are equal.
    """
    if not hasattr(model, "classes_"):
        # Squares of huge targets would overflow.
        unit = max(1.0, float(np.max(np.abs(y))))
        y = np.asarray(y, dtype=np.float64) / unit
        error, spread = model.predict(X) / unit - y, float(np.var(y))
        r2 = None if spread == 0.0 else 1.0 - float(np.mean(error * error)) / spread
        return {"n_samples": y.size, "r2": r2, "mae": unit * float(np.mean(np.abs(error)))}
    number = numbers_in(source, y, model.classes_)
    margin = np.asarray(model.decision_function(X), dtype=np.float64)
    predicted = (margin > 0).astype(np.intp) if margin.ndim == 1 else margin.argmax(axis=1)
    own = loss_of(model.model_).link(margin)[np.arange(number.size), number]
    confusion = confusion_matrix(number, predicted, labels=range(model.classes_.size))
    return {
        "n_samples": number.size,
        "accuracy": float(np.mean(predicted == number)),
        "auc": _auc(number, margin),
        # The probability of a very wrong margin may be too small for a float.
        "log_loss": float(-np.log(np.maximum(own, np.finfo(float).tiny)).mean()),
        "majority_accuracy": float(confusion.sum(axis=1).max() / number.size),
        "classes": model.classes_.tolist(),
        "confusion": confusion.tolist(),
    }


def _auc(number: NDArray[Any], margin: NDArray[np.float64]) -> float | None:
    present = np.unique(number)
    if present.size < 2:
        return None
    if margin.ndim == 1:
        return float(roc_auc_score(number, margin))
    # Probabilities rank the rows of a class; margins do not.
    probabilities = softmax(margin)
    each = [roc_auc_score(number == k, probabilities[:, k]) for k in present.tolist()]
    return float(np.mean(each))
