"""Two class labels, from the data or declared in advance."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from dplasso.errors import DataError


def encode_labels(
    y: NDArray[Any], declared: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Turn labels into zeros and ones.

    `y`, shape (N,): the labels.
    `declared`: the label set, negative first; None takes it from `y`, in sorted order.

    Returns `classes`, shape (2,): the labels, negative first, in the shortest type that holds
    them.
    `labels`, shape (N,): their numbers.

    Raises ValueError if there are not exactly two labels, or `y` has one that was not declared.
    """
    check_classification_targets(y)
    if declared is None:
        present = np.unique(y)
        if present.size == 1:
            raise DataError(
                f"y holds only one class, {_plain(present[0])!r}; "
                "name both with the parameter classes"
            )
        if present.size != 2:
            raise DataError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}: y holds {present.size} classes, two are needed"
            )
        return shortest(present), (y == present[1]).astype(np.int8)
    classes = shortest(np.asarray(declared))
    if classes.shape != (2,) or classes[0] == classes[1]:
        raise ValueError(f"classes must be two different labels, got {declared!r}")
    labels = (y == classes[1]).astype(np.int8)
    outside = ~((y == classes[0]) | (y == classes[1]))
    if np.any(outside):
        raise DataError(
            f"y holds the label {_plain(y[outside][0])!r}, "
            "which is not one of the declared classes "
            f"{_plain(classes[0])!r} and {_plain(classes[1])!r}"
        )
    return classes, labels


def shortest(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as the shortest type that holds them: a longer one tells of other labels."""
    return np.array(labels.tolist()) if labels.dtype.kind in "US" else labels


def _plain(label: Any) -> Any:
    """Return a label as Python would print it, without numpy's type around it."""
    return label.item() if isinstance(label, np.generic) else label
