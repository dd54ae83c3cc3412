"""Targets: class labels, from the data or declared in advance, and numbers of an interval."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.data.refusals import in_our_words
from dplasso.errors import DataError


def encode_labels(
    y: NDArray[Any], declared: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Turn labels into the numbers of their classes, zeros and ones where there are two.

    `y`, shape (N,): the labels.
    `declared`: the label set, of two the negative first; None takes it from `y`, in sorted order.

    Returns `classes`, shape (K,): the labels, in the shortest type that holds them.
    `labels`, shape (N,): their numbers.

    Raises ValueError if there are fewer than two labels, or `y` has one that was not declared.
    """
    # Workers start afresh for every fit and do without scikit-learn.
    from sklearn.utils.multiclass import check_classification_targets

    with in_our_words():
        check_classification_targets(y)
    if declared is None:
        present = np.unique(y)
        if present.size == 1:
            raise DataError("y holds only one class; name all with the parameter classes")
        return shortest(present), _numbers(y, present)
    classes = shortest(np.asarray(declared))
    if classes.ndim != 1 or not 2 <= len(set(classes.tolist())) == classes.size:
        raise ValueError(f"classes must be two or more different labels, got {declared!r}")
    return classes, numbers_of(y, classes)


def numbers_of(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return the place of each label among the classes.

    `y`, shape (N,): the labels.
    `classes`, shape (K,): two or more different labels.

    Raises DataError for a label that is not among them.
    """
    labels = _numbers(y, classes)
    refuse_strange(labels < 0, "the declared classes", classes)
    return labels


def refuse_strange(strange: NDArray[np.bool_], whose: str, classes: NDArray[Any]) -> None:
    """Refuse labels that are none of the classes.

    The message names the first of their rows, but no label: what nobody declared is private.

    `strange`, shape (N,): which.
    `whose`, `classes`: the classes, and what to call them.

    Raises DataError if there is one.
    """
    if np.any(strange):
        known = [repr(_plain(label)) for label in classes]
        raise DataError(
            f"y holds a label that is not one of {whose} {', '.join(known[:-1])} and {known[-1]}: "
            f"row {int(np.argmax(strange)) + 1:,} of those that enter"
        )


def _numbers(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return the place of each label among the classes; -1 for any other."""
    numbers = np.full(y.shape, -1.0)
    for number, label in enumerate(classes):
        numbers[y == label] = number
    return numbers


def encode_targets(y: NDArray[Any], bounds: tuple[float, float]) -> NDArray[np.float64]:
    """Clip numbers to a public interval and scale it to [-1, 1].

    Parameters
    ----------
    y : ndarray, shape (N,)
        The targets.
    bounds : tuple of float
        The interval, finite, the lower end first.

    Returns
    -------
    ndarray of float64, shape (N,)

    Raises
    ------
    DataError
        If a target is no finite number.
    """
    try:
        targets = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            "y holds something that is not a number; a regression needs numbers"
        ) from None
    if not np.isfinite(targets).all():
        raise DataError("y holds NaN or infinity; a regression needs finite numbers")
    low, high = bounds
    # Halves, so that no finite interval overflows.
    middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    return np.clip((np.clip(targets, low, high) - middle) / half, -1.0, 1.0)


def shortest(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels in the shortest type that holds them: a longer one tells of other labels."""
    return np.array(labels.tolist()) if labels.dtype.kind in "US" else labels


def _plain(label: Any) -> Any:
    """Return a label as Python would print it, without numpy's type around it."""
    return label.item() if isinstance(label, np.generic) else label
