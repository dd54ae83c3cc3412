"""Metrics as sums over rows, of which one row can move only so much.

A metric turns every row into a few integers, in units of 2^-32, whose L2 norm is at most
`Metric.share`; the sums of these integers over all rows are what a private score adds noise to. A
mean of losses l in [0, 1] is the two sums of l and 1 - l, of norm at most 1, and a third one of
``c l (1 - l)``, which fits below the same norm for ``c^2 <= 8`` and gives the spread of the losses
for nothing. AUC and the calibration curve are counts of the rows by class and by a public grid of
probabilities: one row, one count.

Estimates and their intervals are functions of the noisy sums alone. An interval covers both what
the rows are a sample of and the noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from dplasso.privacy.share import shares

UNIT = 2.0**32
# Of what a row gives to one sum: no metric has entries beyond 1 in size.
_LARGEST = UNIT
# A probability is taken no nearer to 0, so a row loses at most ln 100.
SMALLEST_PROBABILITY = 0.01
LARGEST_LOSS = -math.log(SMALLEST_PROBABILITY)
# Weight of l (1 - l), below sqrt(8) by more than any rounding.
_SPREAD = 2.8
# Inner edges of the grid of AUC, in log-odds; one of them is 0.
_LOG_ODDS = np.linspace(-3.85, 3.85, 23)
CALIBRATION_BINS = 10
_ROOT_TWO = math.nextafter(math.sqrt(2.0), 2.0)

Bounds = tuple[float, float]


class Estimate(NamedTuple):
    """A score as read off noisy sums, and the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class CurvePoint:
    """A part of a calibration curve.

    `predicted_low`, `predicted_high`: rows whose predicted probability lies between.
    `rows`: their number, noisy.
    `observed`: share of them that are of the second class, with its interval `low` to `high`.
    """

    predicted_low: float
    predicted_high: float
    rows: float
    observed: float
    low: float
    high: float


@dataclass(frozen=True)
class Metric:
    """How a metric is computed from sums.

    `sums`: ``sums(model, X, y, bounds)``: int64 sums in units of 2^-32.
    `estimate`: ``estimate(noisy, sigma, z, bounds)``: the `Estimate`, with noise of standard
    deviation sigma, at z standard errors.
    `share`, `exchange`: how far, in L2, one row added and one row exchanged for another can move
    the sums, in units of 1.
    `larger_is_better`: of two models, whether the better one has the larger value.
    `classifies`: whether it is for classifiers; others need public bounds of the target.
    `two_classes`: whether it is for two classes only.
    """

    sums: Callable[[Any, Any, NDArray[Any], Bounds], NDArray[np.int64]]
    estimate: Callable[[NDArray[np.float64], float, float, Bounds], Estimate]
    share: float = 1.0
    exchange: float = _ROOT_TWO
    larger_is_better: bool = True
    classifies: bool = True
    two_classes: bool = False


# --- Means of losses ---------------------------------------------------------------------------


def _loss_sums(losses: NDArray[np.float64]) -> NDArray[np.int64]:
    """Sum what each row, of a loss in [0, 1], gives to a mean."""
    # NaN counts as the worst loss.
    loss = np.clip(np.nan_to_num(losses, nan=1.0), 0.0, 1.0)
    whole = shares(np.rint(loss * UNIT), _LARGEST)
    # Of the rounded loss: what rounds to 0 or 1 leaves no room for it.
    loss = whole / UNIT
    spread = shares(_SPREAD * loss * (1.0 - loss) * UNIT, _LARGEST)
    total = whole.sum()
    return np.array([total, (losses.size << 32) - total, spread.sum()], dtype=np.int64)


def mean_estimate(noisy: NDArray[np.float64], sigma: float, z: float) -> Estimate:
    """Estimate a mean in [0, 1] from noisy sums of l, 1 - l and 2.8 l (1 - l).

    The interval is Wilson's with the noise added, all m whose distance from the estimate is at most
    z standard errors of an estimate of m; the spread of the losses is taken to be the same part of
    the m (1 - m) of losses 0 and 1 for all m.
    """
    count = float(noisy[0] + noisy[1])
    if count < 1.0:
        return Estimate(0.5, 0.0, 1.0)
    mean = min(max(float(noisy[0]) / count, 0.0), 1.0)
    spread = min(max(float(noisy[2]) / _SPREAD / count, 0.0), mean * (1.0 - mean))
    noise = sigma * sigma * (mean * mean + (1.0 - mean) ** 2) / (count * count)
    # (m - mean)^2 <= z^2 (part m (1 - m) / count + noise)
    largest = mean * (1.0 - mean)
    part = 1.0 - spread / largest if largest > 0.0 else 1.0
    zz = z * z
    a, b = 1.0 + zz * part / count, 2.0 * mean + zz * part / count
    c = mean * mean - zz * noise
    root = math.sqrt(max(b * b - 4.0 * a * c, 0.0))
    return Estimate(mean, max((b - root) / (2.0 * a), 0.0), min((b + root) / (2.0 * a), 1.0))


def _probabilities(model: Any, X: Any) -> NDArray[np.float64]:
    found = np.asarray(model.predict_proba(X), dtype=np.float64)
    return np.clip(np.nan_to_num(found, nan=0.0), 0.0, 1.0)


def _wrong(model: Any, X: Any, y: NDArray[Any], _: Bounds) -> NDArray[np.int64]:
    return _loss_sums((np.asarray(model.predict(X)) != y).astype(np.float64))


def _clipped_losses(model: Any, X: Any, y: NDArray[Any], _: Bounds) -> NDArray[np.int64]:
    given = _probabilities(model, X)[np.arange(y.size), _class_numbers(model, y)]
    return _loss_sums(-np.log(np.maximum(given, SMALLEST_PROBABILITY)) / LARGEST_LOSS)


def _accuracy(noisy: NDArray[np.float64], sigma: float, z: float, _: Bounds) -> Estimate:
    wrong = mean_estimate(noisy, sigma, z)
    return Estimate(1.0 - wrong.value, 1.0 - wrong.high, 1.0 - wrong.low)


def _scaled(estimate: Estimate, scale: float) -> Estimate:
    return Estimate(*(scale * number for number in estimate))


def _log_loss(noisy: NDArray[np.float64], sigma: float, z: float, _: Bounds) -> Estimate:
    return _scaled(mean_estimate(noisy, sigma, z), LARGEST_LOSS)


# --- Targets in a public interval ---------------------------------------------------------------


def _in_unit(values: Any, bounds: Bounds) -> NDArray[np.float64]:
    """Scale an interval to [0, 1]; what lies beyond is clipped."""
    low, high = bounds
    scaled = np.nan_to_num((np.asarray(values, dtype=np.float64) - low) / (high - low), nan=0.0)
    return np.clip(scaled, 0.0, 1.0)


def _absolute_errors(model: Any, X: Any, y: NDArray[Any], bounds: Bounds) -> NDArray[np.int64]:
    return _loss_sums(np.abs(_in_unit(y, bounds) - _in_unit(model.predict(X), bounds)))


def _mae(noisy: NDArray[np.float64], sigma: float, z: float, bounds: Bounds) -> Estimate:
    return _scaled(mean_estimate(noisy, sigma, z), bounds[1] - bounds[0])


def _square_sums(model: Any, X: Any, y: NDArray[Any], bounds: Bounds) -> NDArray[np.int64]:
    """Sum e - 1/2, u, u^2 - 1/2 and 1: u the target in [-1, 1], e a quarter of the squared error.

    A row has at most norm sqrt(5/2); of two rows, e and u^2 differ by at most 1 and u by at most 2,
    but u and u^2 together by no more than 2: sqrt(5).
    """
    target = 2.0 * _in_unit(y, bounds) - 1.0
    error = (_in_unit(y, bounds) - _in_unit(model.predict(X), bounds)) ** 2
    parts = error - 0.5, target, target * target - 0.5, np.ones(y.size)
    return np.array([shares(np.rint(part * UNIT), _LARGEST).sum() for part in parts])


def _r2(noisy: NDArray[np.float64], sigma: float, z: float, _: Bounds) -> Estimate:
    """Estimate R^2. The sampling error is bounded from above, so the interval is a wide one."""
    error, total, squares, count = (float(number) for number in noisy)
    if count < 1.0:
        return Estimate(0.0, -math.inf, 1.0)
    lost = max(4.0 * (error + count / 2.0), 0.0)
    around = squares + count / 2.0 - total * total / count
    if around <= 0.0:
        return Estimate(0.0, -math.inf, 1.0)
    part = lost / around
    slope = part / around
    mean = total / count
    gradient = (
        -4.0 / around,
        -2.0 * slope * mean,
        slope,
        -2.0 / around + slope * (0.5 + mean * mean),
    )
    noise = sigma * sigma * sum(entry * entry for entry in gradient)
    # Squared errors and deviations are at most 4: their squares at most 4 times themselves.
    sampling = 4.0 * part * (1.0 + part) / around
    reach = z * math.sqrt(noise + sampling)
    return Estimate(1.0 - part, 1.0 - part - reach, min(1.0 - part + reach, 1.0))


# --- Counts over a grid of probabilities --------------------------------------------------------


def _class_numbers(model: Any, y: NDArray[Any]) -> NDArray[np.intp]:
    classes = np.asarray(model.classes_)
    found = (np.asarray(y)[:, None] == classes[None, :]).argmax(axis=1)
    return np.asarray(found, dtype=np.intp)


def _counts(
    inner_edges: NDArray[np.float64], model: Any, X: Any, y: NDArray[Any], _: Bounds
) -> NDArray[np.int64]:
    """Count rows by class (negative first) and by where the predicted probability lies."""
    place = np.searchsorted(inner_edges, _probabilities(model, X)[:, 1], side="right")
    cells = place + _class_numbers(model, y) * (inner_edges.size + 1)
    return np.bincount(cells, minlength=2 * (inner_edges.size + 1)) << 32


_AUC_EDGES: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-_LOG_ODDS))
_CALIBRATION_EDGES = np.arange(1, CALIBRATION_BINS) / CALIBRATION_BINS


def _auc(noisy: NDArray[np.float64], sigma: float, z: float, _: Bounds) -> Estimate:
    """Estimate the AUC of probabilities rounded to the grid; rows in the same place are ties."""
    negative, positive = noisy.reshape(2, -1)
    n_negative, n_positive = float(negative.sum()), float(positive.sum())
    if min(n_negative, n_positive) < 1.0:
        return Estimate(0.5, 0.0, 1.0)
    # How a positive row in a place fares against all negative ones, and the other way round.
    below = (np.cumsum(negative) - negative / 2.0) / n_negative
    above = 1.0 - (np.cumsum(positive) - positive / 2.0) / n_positive
    auc = float(positive @ below) / n_positive
    one, other = (below - auc) ** 2, (above - auc) ** 2
    # DeLong's variance; noisy counts may make it negative.
    sampling = max(float(positive @ one), 0.0) / n_positive**2
    sampling += max(float(negative @ other), 0.0) / n_negative**2
    bins = negative.size
    ties = np.tri(bins, k=-1) + 0.5 * np.eye(bins) - auc
    product = float((ties * ties).sum()) * sigma * sigma / (n_positive * n_negative) ** 2
    noise = float(one.sum()) / n_positive**2 + float(other.sum()) / n_negative**2 - product
    # `below` and `above` have noise of their own, which the squares count once more.
    reach = z * math.sqrt(sampling + sigma * sigma * max(noise, product))
    return Estimate(
        min(max(auc, 0.0), 1.0), min(max(auc - reach, 0.0), 1.0), max(min(auc + reach, 1.0), 0.0)
    )


def calibration_curve(noisy: NDArray[np.float64], sigma: float, z: float) -> tuple[CurvePoint, ...]:
    """Read a calibration curve off noisy counts."""
    points = []
    for number, (negative, positive) in enumerate(noisy.reshape(2, -1).T):
        estimate = mean_estimate(np.array([positive, negative, 0.0]), sigma, z)
        edges = number / CALIBRATION_BINS, (number + 1) / CALIBRATION_BINS
        points.append(CurvePoint(*edges, max(float(negative + positive), 0.0), *estimate))
    return tuple(points)


def _positive_share(noisy: NDArray[np.float64], sigma: float, z: float, _: Bounds) -> Estimate:
    """Estimate the share of the second class."""
    negative, positive = noisy.reshape(2, -1)
    sums = np.array([positive.sum(), negative.sum(), 0.0])
    return mean_estimate(sums, sigma * math.sqrt(negative.size), z)


# The rounding of a row's four entries to units, at most half of one each, is far below this.
_ROUNDING = 1.0 + 2.0**-28

METRICS = {
    "accuracy": Metric(_wrong, _accuracy),
    "auc": Metric(partial(_counts, _AUC_EDGES), _auc, two_classes=True),
    "log_loss": Metric(_clipped_losses, _log_loss, larger_is_better=False),
    "calibration": Metric(partial(_counts, _CALIBRATION_EDGES), _positive_share, two_classes=True),
    "mae": Metric(_absolute_errors, _mae, larger_is_better=False, classifies=False),
    "r2": Metric(
        _square_sums,
        _r2,
        share=math.sqrt(2.5) * _ROUNDING,
        exchange=math.sqrt(5.0) * _ROUNDING,
        classifies=False,
    ),
}


def standard_errors(confidence: float) -> float:
    """Return how many standard errors an interval reaches to each side."""
    return float(norm.ppf(0.5 + confidence / 2.0))
