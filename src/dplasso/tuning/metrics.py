"""Metrics as sums over rows with bounded sensitivity.

A metric converts every row to a few integers in units of 2^-32, of bounded L2 norm. A mean of
losses l in [0, 1] uses the sums of l and 1 - l, of norm at most 1. A third sum, of ``c l (1 - l)``,
gives the spread of the losses at no cost, because the norm stays at most 1 for ``c^2 <= 8``. Other
metrics are counts of rows (`dplasso.tuning.counts`).
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.errors import ParameterError, shown
from dplasso.privacy.share import shares
from dplasso.tuning import counts
from dplasso.tuning.counts import class_numbers, predicted, probabilities
from dplasso.tuning.estimates import (
    DIFFERENCE,
    MANY_LABELS,
    NUMBERS,
    SEVERAL_CLASSES,
    SPREAD,
    UNIT,
    Estimate,
    Losses,
    Metric,
    Target,
    mean_estimate,
)

# The largest contribution of a row to one sum: no metric has entries above 1 in magnitude.
_LARGEST = UNIT
# Probabilities below this are raised to it, so the log loss of a row is at most ln 100.
SMALLEST_PROBABILITY = 0.01
LARGEST_LOSS = -math.log(SMALLEST_PROBABILITY)


# --- Means of losses ---------------------------------------------------------------------------


def _loss_sums(losses: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the three sums of a mean of losses in [0, 1]."""
    # NaN counts as the worst loss.
    loss = np.clip(np.nan_to_num(losses, nan=1.0), 0.0, 1.0)
    whole = shares(np.rint(loss * UNIT), _LARGEST)
    # The spread of the rounded loss, because at a loss of 0 or 1 the norm leaves no room for it.
    loss = whole / UNIT
    spread = shares(SPREAD * loss * (1.0 - loss) * UNIT, _LARGEST)
    total = whole.sum()
    return np.array([total, (losses.size << 32) - total, spread.sum()], dtype=np.int64)


def difference_sums(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the sums of d, 1 and d^2 for the differences d = b - a of losses in [0, 1].

    Each entry has a factor, so that the three entries of a row have norm at most 1. Two rows are
    furthest apart if their differences are 1 and -1.
    """
    worst = (np.clip(np.nan_to_num(losses, nan=1.0), 0.0, 1.0) for losses in (b, a))
    d = np.subtract(*worst)
    parts = zip(DIFFERENCE, (d, np.ones(d.size), d * d), strict=True)
    return np.array([shares(np.rint(c * part * UNIT), _LARGEST).sum() for c, part in parts])


def _wrong(model: Any, X: Any, y: NDArray[Any], _: Target) -> NDArray[np.float64]:
    """Return the share of wrong labels in each row, which is 0 or 1 for a single label."""
    wrong = (predicted(model, X, y) != y).astype(np.float64)
    return np.asarray(wrong.reshape(len(y), -1).mean(axis=1))


def _clipped_losses(model: Any, X: Any, y: NDArray[Any], target: Target) -> NDArray[np.float64]:
    """Return each row's log loss, which is the mean over its labels for many labels."""
    p = probabilities(model, X, y, target)
    if target.many_labels:
        p = np.where(y == 1, p, 1.0 - p)
    else:
        p = p[np.arange(len(y)), class_numbers(target, y)][:, np.newaxis]
    losses = -np.log(np.maximum(p, SMALLEST_PROBABILITY)) / LARGEST_LOSS
    return np.asarray(losses.mean(axis=1))


def _accuracy(noisy: NDArray[np.float64], sigma: float, z: float, _: Target) -> Estimate:
    wrong = mean_estimate(noisy, sigma, z)
    return Estimate(1.0 - wrong.value, 1.0 - wrong.high, 1.0 - wrong.low)


def _mean(losses: Losses, span: Callable[[Target], float], **options: Any) -> Metric:
    """Return a metric that is the mean of losses in [0, 1] times a span."""

    def sums(model: Any, X: Any, y: NDArray[Any], target: Target) -> NDArray[np.int64]:
        return _loss_sums(losses(model, X, y, target))

    def scaled(noisy: NDArray[np.float64], sigma: float, z: float, target: Target) -> Estimate:
        return Estimate(*(span(target) * number for number in mean_estimate(noisy, sigma, z)))

    own: dict[str, Any] = {"estimate": scaled, "larger_is_better": False}
    return Metric(sums=sums, losses=losses, span=span, **(own | options))


# --- Targets in a public interval ---------------------------------------------------------------


def _absolute_errors(model: Any, X: Any, y: NDArray[Any], target: Target) -> NDArray[np.float64]:
    low, high = target.bounds
    values = np.stack([y, predicted(model, X, y)]).astype(np.float64)
    # NaN counts as the lower end. Clipped and halved, no number overflows: that warns.
    within = np.clip(np.nan_to_num(values, nan=low, posinf=high, neginf=low), low, high)
    scaled = np.clip((0.5 * within - 0.5 * low) / (0.5 * high - 0.5 * low), 0.0, 1.0)
    return np.asarray(np.abs(scaled[0] - scaled[1]))


_AUC = Metric(
    counts.auc_sums,
    counts.auc,
    outputs_counted=(SEVERAL_CLASSES, MANY_LABELS),
    by_class=partial(counts.by_class, counts.auc_parts),
)
_F1 = Metric(
    counts.confusion_sums,
    counts.f1,
    outputs_counted=(MANY_LABELS,),
    by_class=partial(counts.by_class, counts.f1_parts),
)
METRICS = {
    "accuracy": _mean(_wrong, lambda _: 1.0, estimate=_accuracy, larger_is_better=True),
    "auc": _AUC,
    "auc_weighted": replace(
        _AUC, estimate=partial(counts.auc, by_rows=True), kinds=(SEVERAL_CLASSES, MANY_LABELS)
    ),
    "f1": _F1,
    "f1_macro": replace(_F1, estimate=partial(counts.f1, of_all=True)),
    "f1_weighted": replace(_F1, estimate=partial(counts.f1, by_rows=True)),
    "log_loss": _mean(_clipped_losses, lambda _: LARGEST_LOSS),
    "mae": _mean(_absolute_errors, lambda t: t.bounds[1] - t.bounds[0], kinds=(NUMBERS,)),
}
# Metrics that can compare two models row by row.
COMPARING = tuple(name for name, metric in METRICS.items() if metric.losses is not None)
# scikit-learn's names of our metrics; a mean over classes is one-versus-rest.
SCIKIT_LEARN = {
    "roc_auc": "auc",
    "roc_auc_ovr": "auc",
    "roc_auc_ovr_weighted": "auc_weighted",
    "neg_log_loss": "log_loss",
    "neg_mean_absolute_error": "mae",
}


def chosen_metric(
    name: str | None, target: Target, allowed: tuple[str, ...] = tuple(METRICS)
) -> str:
    """Return our name of a metric, or the default one; `ParameterError` for another target."""
    if name is None:
        usual = {NUMBERS: "mae", SEVERAL_CLASSES: "accuracy"}.get(target.kind, "auc")
        return usual if usual in allowed else "accuracy"
    ours = SCIKIT_LEARN.get(name, name)
    if ours not in allowed:
        others = [theirs for theirs, own in SCIKIT_LEARN.items() if own in allowed]
        raise ParameterError(
            f"`metric` must be one of {', '.join(allowed)} (or scikit-learn's "
            f"{', '.join(others)}), got {shown(name)}"
        )
    if target.kind not in METRICS[ours].kinds:
        fitting = [other for other, metric in METRICS.items() if target.kind in metric.kinds]
        raise ParameterError(
            f"`metric={ours!r}` is for {' or '.join(METRICS[ours].kinds)}, but this model predicts "
            f"{target.kind}: use {', '.join(fitting)}"
        )
    return ours
