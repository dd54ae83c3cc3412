"""How well a model predicts labelled data."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import confusion_matrix, roc_auc_score

from dplasso.cli import output
from dplasso.errors import DataError
from dplasso.losses.logistic import Logistic
from dplasso.losses.multinomial import Multinomial, softmax

# Classes of a table that a screen holds; JSON has them all.
_MOST_SHOWN = 12


def _measured(scores: Mapping[str, Any]) -> dict[str, str]:
    """Word what is measured by its name, what matters most first."""
    if "r2" in scores:
        r2 = "undefined (equal targets)" if scores["r2"] is None else f"{scores['r2']:.4f}"
        return {"R^2": r2, "mean absolute error": f"{scores['mae']:.4g}"}
    name = "AUC" if len(scores["classes"]) == 2 else "macro AUC"
    auc = "undefined (one class)" if scores["auc"] is None else f"{scores['auc']:.4f}"
    return {name: auc, "accuracy": f"{scores['accuracy']:.4f}"}


def scores_text(scores: Mapping[str, Any]) -> str:
    """Word the scores of test rows in one line."""
    told = ", ".join(f"{name} {value}" for name, value in _measured(scores).items())
    return f"{told} on {scores['n_samples']:,} rows"


def print_scores(scores: Mapping[str, Any]) -> None:
    """Print all scores, and of a few classes the rows of each by the class predicted."""
    facts, measured = {"rows": f"{scores['n_samples']:,}"}, _measured(scores)
    if "r2" in scores:
        output.facts(facts | measured, right=True)
        return
    facts["accuracy"] = measured.pop("accuracy")
    facts["  of the majority class"] = f"{scores['majority_accuracy']:.4f}"
    output.facts(facts | measured | {"log-loss": f"{scores['log_loss']:.4f}"}, right=True)
    if 2 < len(scores["classes"]) <= _MOST_SHOWN:
        labels = [f"{c:g}" if isinstance(c, float) else str(c) for c in scores["classes"]]
        table = [
            [label, *(f"{count:,}" for count in counts)]
            for label, counts in zip(labels, scores["confusion"], strict=True)
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


def score(model: Any, X: Any, y: NDArray[Any], source: str) -> dict[str, Any]:
    """Score a fitted model on labelled rows; `source` says in an error where they are from.

    `auc` is None where the rows hold one class only, and of more than two classes the mean over
    those present of each against all others; `r2` is None where all targets are equal. `log_loss`
    is in nats; `majority_accuracy` that of always answering the class that most of these rows have;
    `confusion` has the rows of each class by the class predicted.
    """
    if not hasattr(model, "classes_"):
        y = np.asarray(y, dtype=np.float64)
        error, spread = model.predict(X) - y, float(np.var(y))
        r2 = None if spread == 0.0 else 1.0 - float(np.mean(error * error)) / spread
        return {"n_samples": y.size, "r2": r2, "mae": float(np.mean(np.abs(error)))}
    check_known(y, model.classes_, source)
    order = np.argsort(model.classes_)
    number = order[np.searchsorted(model.classes_, y, sorter=order)]
    margin = np.asarray(model.decision_function(X), dtype=np.float64)
    predicted = (margin > 0).astype(np.intp) if margin.ndim == 1 else margin.argmax(axis=1)
    confusion = confusion_matrix(number, predicted, labels=range(model.classes_.size))
    return {
        "n_samples": number.size,
        "accuracy": float(np.mean(predicted == number)),
        "auc": _auc(number, margin),
        "log_loss": _log_loss(number, margin, model.privacy_.residual_bound),
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
    # What ranks the rows of a class is its probability, not its margin.
    probabilities = softmax(margin)
    each = [roc_auc_score(number == k, probabilities[:, k]) for k in present.tolist()]
    return float(np.mean(each))


def _log_loss(number: NDArray[Any], margin: NDArray[np.float64], bound: float) -> float:
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
