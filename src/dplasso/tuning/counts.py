"""Metrics computed from counts of rows: AUC and F1.

Rows are counted by class and by a public grid of probabilities, or by class and predicted class. A
row adds 1 to one count. If each of K classes or labels has its own counts, a row adds 1 for each,
so the counts move by at most sqrt(K) in L2.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dplasso.errors import DataError
from dplasso.tuning.estimates import UNKNOWN, ClassScore, Estimate, Target, within_unit

# Inner edges of the grid of AUC in log-odds. One edge is 0, or the log-odds of 1/K for K classes.
_LOG_ODDS = np.linspace(-3.85, 3.85, 23)
_PLACES = _LOG_ODDS.size + 1
# The score of a class is unknown if its rows are fewer than this many standard deviations of noise.
_DROWNED = 2.0


class _Part(NamedTuple):
    """The score of one class or label.

    `own`, `shared`, `noise`: its variances from sampling the rows of the class, from sampling rows
    that all classes share, and from the noise. `hidden`: how far from `value` it may be besides; a
    score that noise hides may have any value from 0 to 1.
    """

    value: float
    own: float
    shared: float
    noise: float
    rows: float
    hidden: float = 0.0

    def estimate(self, z: float) -> Estimate:
        """Return the score with its interval."""
        variance = self.own + self.shared + self.noise
        return within_unit(self.value, z * math.sqrt(variance) + self.hidden)


def _average(
    parts: list[_Part], weights: NDArray[np.float64], z: float, *, disjoint: bool
) -> Estimate:
    """Return the weighted mean of parts; `disjoint`: whether each row has one class."""
    values, own, shared, noise, _, hidden = np.array(parts).T
    # Errors from shared rows are added, which bounds them for any correlation.
    if not disjoint:
        own, shared = np.zeros_like(own), own + shared
    squares = weights * weights
    sampling = math.sqrt(float(squares @ own)) + float(weights @ np.sqrt(shared))
    reach = z * math.sqrt(sampling**2 + float(squares @ noise))
    return within_unit(float(weights @ values), reach + float(weights @ hidden))


def by_class(
    parts_of: Callable[[NDArray[np.float64], float, Target], list[_Part]],
    noisy: NDArray[np.float64],
    sigma: float,
    z: float,
    target: Target,
) -> tuple[ClassScore, ...]:
    """Return the score of each class or label; none if there is a single score."""
    parts = parts_of(noisy, sigma, target)
    if len(parts) == 1:
        return ()
    return tuple(
        ClassScore(label, max(part.rows, 0.0), *part.estimate(z))
        for label, part in zip(target.classes, parts, strict=True)
    )


def _weights_of(parts: list[_Part], *, by_rows: bool) -> NDArray[np.float64] | None:
    """Return the weights of an average, equal or proportional to rows; None without rows."""
    if not by_rows:
        return np.full(len(parts), 1.0 / len(parts))
    rows = np.array([max(part.rows, 0.0) for part in parts])
    return rows / rows.sum() if rows.sum() >= 1.0 else None


# --- Predictions of rows -----------------------------------------------------------------------


def predicted(model: Any, X: Any, y: NDArray[Any]) -> NDArray[Any]:
    """Return a model's predictions; `DataError` unless they have the shape of `y`."""
    return _checked(np.asarray(model.predict(X)), y.shape)


def probabilities(model: Any, X: Any, y: NDArray[Any], target: Target) -> NDArray[np.float64]:
    """Return a model's probabilities of every class or label, 0 for NaN."""
    p = np.asarray(model.predict_proba(X), dtype=np.float64)
    p = _checked(p, (len(y), len(target.classes)))
    return np.clip(np.nan_to_num(p, nan=0.0), 0.0, 1.0)


def _checked(predictions: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Check the shape of predictions, so that each is compared with the label of its own row."""
    if predictions.shape != shape:
        raise DataError(
            f"the model's predictions have the shape {predictions.shape}, but need {shape}"
        )
    return predictions


def class_numbers(target: Target, y: NDArray[Any]) -> NDArray[np.intp]:
    """Return the index of each label in the classes."""
    classes = np.asarray(target.classes)
    numbers = (np.asarray(y)[:, None] == classes[None, :]).argmax(axis=1)
    return np.asarray(numbers, dtype=np.intp)


# --- Counts over a grid of probabilities --------------------------------------------------------


def _by_place(
    edges: NDArray[np.float64], p: NDArray[np.float64], of_class: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Count rows by class (negative first) and by bin of the predicted probability."""
    size = edges.size + 1
    cells = np.searchsorted(edges, p, side="right") + of_class * size
    return np.bincount(cells, minlength=2 * size) << 32


def auc_sums(model: Any, X: Any, y: NDArray[Any], target: Target) -> NDArray[np.int64]:
    """Count rows by a grid of probabilities, for each class or label against the others."""
    p, there = probabilities(model, X, y, target), y == 1
    if not target.many_labels:
        there = class_numbers(target, y)[:, None] == np.arange(len(target.classes))
    if target.n_outputs == 1:
        return _by_place(expit(_LOG_ODDS), p[:, 1], there[:, 1])
    shift = 0.0 if target.many_labels else math.log(target.n_outputs - 1)
    edges = expit(_LOG_ODDS - shift)
    each = (_by_place(edges, p[:, k], there[:, k]) for k in range(target.n_outputs))
    return np.concatenate(list(each))


def _auc_part(noisy: NDArray[np.float64], sigma: float, least: float) -> _Part:
    """Compute the AUC over the grid, if both classes have `least` rows; equal bins are ties."""
    negative, positive = noisy.reshape(2, -1)
    n_negative, n_positive = float(negative.sum()), float(positive.sum())
    if min(n_negative, n_positive) < least:
        return _Part(0.5, 0.0, 0.0, 0.0, n_positive, hidden=0.5)
    # AUC of a positive row in each bin against all negative rows, and the reverse.
    below = (np.cumsum(negative) - negative / 2.0) / n_negative
    above = 1.0 - (np.cumsum(positive) - positive / 2.0) / n_positive
    auc = float(positive @ below) / n_positive
    of_positive, of_negative = (below - auc) ** 2, (above - auc) ** 2
    # DeLong's variance; noisy counts may make it negative.
    own = max(float(positive @ of_positive), 0.0) / n_positive**2
    shared = max(float(negative @ of_negative), 0.0) / n_negative**2
    bins = negative.size
    ties = np.tri(bins, k=-1) + 0.5 * np.eye(bins) - auc
    product = float((ties * ties).sum()) * sigma * sigma / (n_positive * n_negative) ** 2
    by_positive, by_negative = float(of_positive.sum()), float(of_negative.sum())
    noise = by_positive / n_positive**2 + by_negative / n_negative**2 - product
    # Subtract `product`, because the noise in `below` and `above` enters their squares too.
    return _Part(auc, own, shared, sigma * sigma * max(noise, product), n_positive)


def auc_parts(noisy: NDArray[np.float64], sigma: float, target: Target) -> list[_Part]:
    """Compute the AUC of each of several classes or labels, or the only one."""
    least = max(1.0, _DROWNED * sigma * math.sqrt(_PLACES)) if target.n_outputs > 1 else 1.0
    each = noisy.reshape(target.n_outputs, -1)
    return [_auc_part(some, sigma, least) for some in each]


def auc(
    noisy: NDArray[np.float64], sigma: float, z: float, target: Target, *, by_rows: bool = False
) -> Estimate:
    """Estimate the AUC, or its mean over several classes or labels, weighted if `by_rows`."""
    parts = auc_parts(noisy, sigma, target)
    if target.n_outputs == 1:
        return parts[0].estimate(z)
    weights = _weights_of(parts, by_rows=by_rows)
    if weights is None:
        return UNKNOWN
    return _average(parts, weights, z, disjoint=not target.many_labels)


# --- Counts by predicted class -------------------------------------------------------------------


def confusion_sums(model: Any, X: Any, y: NDArray[Any], target: Target) -> NDArray[np.int64]:
    """Count rows by class and predicted class; for many labels see `_label_sums`."""
    predictions = predicted(model, X, y)
    if target.many_labels:
        return _label_sums(predictions == 1, y == 1)
    size = len(target.classes)
    cells = class_numbers(target, y) * size + class_numbers(target, predictions)
    return np.bincount(cells, minlength=size * size) << 32


def _label_sums(positive: NDArray[np.bool_], actual: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count the true positives, false positives and false negatives of each label."""
    kinds = positive & actual, positive & ~actual, ~positive & actual
    counts = np.stack([np.count_nonzero(kind, axis=0) for kind in kinds], axis=1)
    return counts.ravel() << 32


def _f1_part(hits: float, false: float, missed: float, sigma: float, extra: float) -> _Part:
    """Compute an F1; `extra` is the variance of false positives plus misses over sigma^2."""
    size, rows = 2.0 * hits + false + missed, hits + missed
    if size < max(1.0, _DROWNED * sigma * math.sqrt(4.0 + extra)):
        return _Part(0.5, 0.0, 0.0, 0.0, rows, hidden=0.5)
    value = min(max(2.0 * hits / size, 0.0), 1.0)
    slope, other = (2.0 - 2.0 * value) / size, value / size
    others = max(false, 0.0) + max(missed, 0.0)
    sampling = max(hits, 0.0) * slope**2 + others * other**2
    return _Part(value, sampling, 0.0, sigma**2 * (slope**2 + extra * other**2), rows)


def f1_parts(noisy: NDArray[np.float64], sigma: float, target: Target) -> list[_Part]:
    """Compute the F1 of each class or label."""
    if target.many_labels:
        hits, false, missed = noisy.reshape(-1, 3).T
        extra = 2.0
    else:
        size = len(target.classes)
        counts = noisy.reshape(size, size)
        hits, extra = np.diag(counts), 2.0 * (size - 1)
        false, missed = counts.sum(axis=0) - hits, counts.sum(axis=1) - hits
    each = zip(hits.tolist(), false.tolist(), missed.tolist(), strict=True)
    return [_f1_part(*some, sigma, extra) for some in each]


def f1(
    noisy: NDArray[np.float64],
    sigma: float,
    z: float,
    target: Target,
    *,
    by_rows: bool = False,
    of_all: bool = False,
) -> Estimate:
    """Estimate the F1 of the second of two classes, or else (or `of_all`) the mean F1."""
    parts = f1_parts(noisy, sigma, target)
    weights = _weights_of(parts, by_rows=by_rows)
    if weights is None:
        return UNKNOWN
    if len(parts) == 2 and not target.many_labels and not (by_rows or of_all):
        return parts[1].estimate(z)
    if target.many_labels:
        return _average(parts, weights, z, disjoint=False)
    return _joint_f1(noisy.reshape(len(parts), -1), parts, weights, sigma, z, by_rows=by_rows)


def _joint_f1(
    counts: NDArray[np.float64],
    parts: list[_Part],
    weights: NDArray[np.float64],
    sigma: float,
    z: float,
    *,
    by_rows: bool,
) -> Estimate:
    """Estimate the mean F1 of classes; its error follows from its slope in each cell."""
    values, *_, hidden = np.array(parts).T
    value = float(weights @ values)
    # The size of a class: rows of the class plus rows predicted to be of it.
    size = counts.sum(axis=0) + counts.sum(axis=1)
    each = np.divide(weights, size, out=np.zeros_like(weights), where=hidden == 0.0)
    slope = -(each * values)[:, None] - (each * values)[None, :] + np.diag(2.0 * each)
    if by_rows:
        slope += ((values - value) / max(1.0, float(counts.sum())))[:, None]
    squares = slope * slope
    variance = float((np.maximum(counts, 0.0) * squares).sum()) + sigma**2 * float(squares.sum())
    return within_unit(value, z * math.sqrt(variance) + float(weights @ hidden))
