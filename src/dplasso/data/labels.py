"""Check labels and regression targets, and convert them to numbers."""

import math
import warnings
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.errors import DataError, ParameterError, in_our_words, shown

# A label has the first kind that fits it.
_LABEL_KINDS = ("bool", "number", "string")
# Up to this limit, floating-point numbers represent whole numbers exactly.
_LARGEST_WHOLE = 2**53

TRUTH = {"false": 0.0, "true": 1.0}


def classes_of(y: Any, declared: ArrayLike | None) -> NDArray[Any]:
    """Return the declared classes (of two, the negative first), or those of `y`, sorted."""
    # Imported here because workers start for every fit and do not need scikit-learn.
    from sklearn.utils.multiclass import check_classification_targets

    classes = None if declared is None else np.asarray(declared)
    if classes is None or classes.ndim:
        with in_our_words(), warnings.catch_warnings():
            # Whether scikit-learn takes many classes for numbers depends on how many records exist.
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            check_classification_targets(y if classes is None else np.ravel(classes))
    if classes is None:
        classes = np.unique(y)
        if classes.size == 1:
            raise DataError("`y` holds only one class; declare all classes with `classes`")
        return shortest(classes)
    classes = shortest(classes)
    if classes.ndim != 1 or not 2 <= len(set(classes.tolist())) == classes.size:
        raise ParameterError(
            f"`classes` must be two or more different labels, got {shown(declared)}"
        )
    return classes


def checked_class_weight(class_weight: Any, classes: Any) -> tuple[float, ...]:
    """Return the weights of the classes in their order, scaled so that the largest is 1."""
    weights = class_weight
    if isinstance(weights, Mapping):
        labels = list(weights if classes is None else classes)
        if set(weights) != set(labels):
            raise ParameterError(
                f"`class_weight` must have a weight for each label of `classes`, {labels}, and no "
                f"other; got {shown(class_weight)}"
            )
        weights = [weights[label] for label in labels]
    is_list = isinstance(weights, list | tuple) and len(weights) > 1
    if not is_list or (classes is not None and len(weights) != len(classes)):
        raise ParameterError(
            "`class_weight` must be None, 'balanced', a weight for each class in their order, or a "
            f"mapping of each label to a weight; got {shown(class_weight)}"
        )
    if not all(isinstance(weight, Real) and 0.0 < float(weight) < math.inf for weight in weights):
        raise ParameterError(f"`class_weight` must hold numbers > 0, got {shown(class_weight)}")
    weights = [float(weight) for weight in weights]
    return tuple(weight / max(weights) for weight in weights)


def numbers_of(
    y: NDArray[Any], classes: NDArray[Any], whose: str = "the declared classes"
) -> NDArray[np.float64]:
    """Return the index of each label in the classes; `DataError` for any other label."""
    if y.ndim != 1:
        raise DataError(f"`y` has the shape {y.shape}; it needs one label for each row")
    largest = max(map(abs, classes.tolist())) if classes.dtype.kind in "iu" else 0
    if y.dtype.kind == "f" and largest > _LARGEST_WHOLE:
        # If one label of a list is a float, numpy converts all of them to floats and rounds.
        raise DataError(
            "`y` holds floating-point labels, which cannot represent the large whole numbers of "
            f"{whose} exactly: pass `y` as whole numbers"
        )
    numbers = np.full(y.shape, -1.0)
    for number, label in enumerate(classes):
        numbers[y == label] = number
    refuse_strange(numbers < 0, whose, classes, y)
    return numbers


def label_matrix(y: NDArray[Any], n_labels: int) -> NDArray[np.float64]:
    """Return a matrix of zeros and ones, shape (N, L), as float64; `DataError` for any other."""
    if y.ndim != 2 or y.shape[1] != n_labels:
        raise DataError(
            f"`y` has the shape {y.shape}; it needs one column for each of {n_labels} labels"
        )
    strange = ~np.isin(y, (0, 1)).all(axis=1)
    if strange.any():
        raise DataError(
            "`y` has a column for each label and must hold 0 and 1 only; row "
            f"{int(np.argmax(strange)) + 1:,} of the rows used does not"
        )
    return np.ascontiguousarray(y, dtype=np.float64)


def refuse_strange(
    strange: NDArray[np.bool_], whose: str, classes: NDArray[Any], y: NDArray[Any] | None = None
) -> None:
    """Raise `DataError` if any row is `strange`: its label is not one of the classes.

    The message names the row, but not its label, because undeclared labels are private.
    """
    if np.any(strange):
        names = [repr(label) for label in classes.tolist()]
        # Very many may be ids, passed as classes by mistake.
        few = f" {', '.join(names[:-1])} and {names[-1]}" if len(names) <= 30 else ""
        at, ours = int(np.argmax(strange)), [str(label).strip().lower() for label in classes]
        like = y is not None and str(np.ravel(y)[at]).strip().lower() in ours
        cure = "it differs from a class only in type, blanks or capitals"
        raise DataError(
            f"`y` holds a label that is not one of {whose}{few}, in row {at + 1:,} of the rows "
            f"used; {cure if like else 'correct it, or declare it as a class too'}"
        )


def encode_targets(y: NDArray[Any], bounds: tuple[float, float]) -> NDArray[np.float64]:
    """Clip finite numbers to a public interval and scale it to [-1, 1]."""
    try:
        # With one text in a list, numpy writes all numbers as texts, float32 with fewer digits. All
        # durations have the unit of the finest.
        targets = None if y.dtype.kind in "USmM" else np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        targets = None
    if targets is None:
        raise DataError("`y` holds a value that is not a number, and a regression needs numbers")
    if not np.isfinite(targets).all():
        raise DataError("`y` holds NaN or infinity; a regression needs finite targets")
    low, high = bounds
    # The bounds are halved first, because their difference may overflow.
    middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    return np.clip((np.clip(targets, low, high) - middle) / half, -1.0, 1.0)


def shortest(labels: NDArray[Any]) -> NDArray[Any]:
    """Return text labels in the narrowest type; a wider one would reveal longer labels."""
    return np.array(labels.tolist()) if labels.dtype.kind in "US" else labels


def labels_of_one_kind(
    values: NDArray[Any] | list[Any], where: Callable[[int], str], before: str | None
) -> tuple[NDArray[Any], str]:
    """Return labels as an array, and their kind, which must be `before` unless that is None."""
    if isinstance(values, list):
        kinds = (kind for kind in _LABEL_KINDS if _as_kind(values[0], kind) is not None)
        kind = before or next(kinds, "label")
        labels = [_as_kind(label, kind) for label in values]
        if None not in labels:
            return np.asarray(labels), kind
        place = where(labels.index(None))
        if kind == "label":
            raise DataError(
                f"{place}: the label is neither a finite number nor a string nor a bool"
            )
    else:
        kind, place = {"b": "bool", "U": "string"}.get(values.dtype.kind, "number"), where(0)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            at = int(np.argmin(np.isfinite(values)))
            raise DataError(f"{where(at)}: the label is not a finite number")
        if before in (None, kind):
            return values, kind
    raise DataError(f"{place}: the label is not a {before or kind}, as the first label is")


def as_number(value: Any) -> float | None:
    """Return a value or text as a float; None if it is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _as_kind(label: Any, kind: str) -> Any:
    """Return a label converted to a kind, or None if it does not fit."""
    if kind == "number":
        number = None if isinstance(label, bool) else as_number(label)
        return number if number is not None and np.isfinite(number) else None
    return label if isinstance(label, {"bool": bool, "string": str}.get(kind, ())) else None
