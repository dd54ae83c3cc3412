"""What a private score says: estimates with intervals, read off noisy sums alone.

An interval covers both what the rows are a sample of and the noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

UNIT = 2.0**32
# Weight of l (1 - l), below sqrt(8) by more than any rounding.
SPREAD = 2.8
# Factors of a difference d of two losses, of the row, and of d^2: below norm 1 together.
DIFFERENCE = (0.9, 0.3, 0.31)
ROOT_TWO = math.nextafter(math.sqrt(2.0), 2.0)

Bounds = tuple[float, float]


class Estimate(NamedTuple):
    """A score as read off noisy sums, and the ends of its interval."""

    value: float
    low: float
    high: float


# What is said of a score that the noise drowns.
UNKNOWN = Estimate(0.5, 0.0, 1.0)


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
class ClassScore:
    """The score of one class against all others, or of one label.

    `label`: the class, or the name of the label.
    `rows`: how many rows are of it, noisy.
    `value`: the score, with its interval `low` to `high`.
    """

    label: Any
    rows: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ConfusionCell:
    """A cell of a confusion matrix.

    `actual`, `predicted`: the classes.
    `rows`: how many rows of the one were predicted to be of the other, noisy.
    `share`: what part of the rows of the class `actual` that is, with its interval `low` to `high`.
    """

    actual: Any
    predicted: Any
    rows: float
    share: float
    low: float
    high: float


class Details(NamedTuple):
    """What the noisy sums of a score say besides it, for nothing."""

    curve: tuple[CurvePoint, ...] = ()
    by_class: tuple[ClassScore, ...] = ()
    confusion: tuple[ConfusionCell, ...] = ()


@dataclass(frozen=True)
class Target:
    """What scored rows hold, and models predict; public.

    `classes`: the labels; none for numbers.
    `many_labels`: whether a row has or has not each of them.
    `bounds`: the interval of numbers.
    """

    classes: tuple[Any, ...] = ()
    many_labels: bool = False
    bounds: Bounds = (0.0, 1.0)

    @property
    def kind(self) -> str:
        """What it is, in words."""
        if not self.classes:
            return NUMBERS
        if self.many_labels:
            return MANY_LABELS
        return TWO_CLASSES if len(self.classes) == 2 else SEVERAL_CLASSES

    @property
    def n_outputs(self) -> int:
        """Scores that an average is taken of: one for each of several classes or labels, or 1."""
        return len(self.classes) if self.kind in (SEVERAL_CLASSES, MANY_LABELS) else 1


NUMBERS, TWO_CLASSES = "numbers", "two classes"
SEVERAL_CLASSES, MANY_LABELS = "several classes", "many labels"
ONE_CLASS = (TWO_CLASSES, SEVERAL_CLASSES)
CLASSES = (*ONE_CLASS, MANY_LABELS)


def _nothing(_: NDArray[np.float64], __: float, ___: float, ____: Target) -> Details:
    return Details()


Losses = Callable[[Any, Any, NDArray[Any], Target], NDArray[np.float64]]


@dataclass(frozen=True)
class Metric:
    """How a metric is computed from sums.

    `sums`: ``sums(model, X, y, target)``: int64 sums in units of 2^-32.
    `estimate`: ``estimate(noisy, sigma, z, target)``: the `Estimate`, with noise of standard
    deviation sigma, at z standard errors. `details`: likewise, what else they say.
    `kinds`: of targets that it is for.
    `one_share`, `one_exchange`: how far, in L2, one row added and one row exchanged for another can
    move the sums, in units of 1; `outputs_counted`: of kinds where it is so for each output, all of
    which one row may move.
    `larger_is_better`: of two models, whether the better one has the larger value.
    `losses`: of a mean of losses, ``losses(model, X, y, target)``: each row's, in [0, 1], and
    `span`: what they are multiplied by.
    """

    sums: Callable[[Any, Any, NDArray[Any], Target], NDArray[np.int64]]
    estimate: Callable[[NDArray[np.float64], float, float, Target], Estimate]
    kinds: tuple[str, ...] = CLASSES
    one_share: float = 1.0
    one_exchange: float = ROOT_TWO
    outputs_counted: tuple[str, ...] = ()
    larger_is_better: bool = True
    details: Callable[[NDArray[np.float64], float, float, Target], Details] = _nothing
    losses: Losses | None = None
    span: Callable[[Target], float] | None = None

    def share(self, target: Target) -> float:
        """Return how far one row more can move the sums, in L2."""
        return self.one_share * self._counted(target)

    def exchange(self, target: Target) -> float:
        """Return how far one row in place of another can move the sums, in L2."""
        return self.one_exchange * self._counted(target)

    def _counted(self, target: Target) -> float:
        if target.kind not in self.outputs_counted or target.n_outputs == 1:
            return 1.0
        return math.nextafter(math.sqrt(target.n_outputs), math.inf)


def mean_estimate(
    noisy: NDArray[np.float64], sigma: float, z: float, others: float | None = None
) -> Estimate:
    """Estimate a mean in [0, 1] from noisy sums of l, 1 - l and 2.8 l (1 - l).

    The interval is Wilson's with the noise added, all m whose distance from the estimate is at most
    z standard errors of an estimate of m. The variance of the losses is m (1 - m) less a part that
    the third sum tells. If the mean were m, that variance would differ from the estimated one for
    two reasons. As far as sampling moved the mean, the variance is taken to be the same part of
    m (1 - m). As far as noise moved the mean, it moved m (1 - m) alone. `others`: of the noise of
    the second sum, by default that of the first.
    """
    count = float(noisy[0] + noisy[1])
    if count < 1.0:
        return UNKNOWN
    others = sigma if others is None else others
    mean = min(max(float(noisy[0]) / count, 0.0), 1.0)
    spread = min(max(float(noisy[2]) / SPREAD / count, 0.0), mean * (1.0 - mean))
    noise = ((others * mean) ** 2 + (sigma * (1.0 - mean)) ** 2) / (count * count)
    largest = mean * (1.0 - mean)
    variance = largest - spread
    part = variance / largest if largest > 0.0 else 1.0
    by_noise = noise / (noise + variance / count) if noise > 0.0 else 0.0
    slope = part + by_noise * (1.0 - part)
    # (m - mean)^2 <= z^2 ((variance + slope (m (1 - m) - largest)) / count + noise)
    zz = z * z
    a, b = 1.0 + zz * slope / count, 2.0 * mean + zz * slope / count
    c = mean * mean - zz * (noise + (variance - slope * largest) / count)
    root = math.sqrt(max(b * b - 4.0 * a * c, 0.0))
    return Estimate(mean, max((b - root) / (2.0 * a), 0.0), min((b + root) / (2.0 * a), 1.0))


def difference_estimate(noisy: NDArray[np.float64], sigma: float, z: float) -> Estimate:
    """Estimate a mean in [-1, 1] from noisy sums of d, 1 and d^2, each times its factor.

    The variance of the mean is that of the d with half a row more at each of -1 and 1 (Agresti and
    Min, doi 10.1002/sim.1781), and that of the noise.
    """
    total, rows, squares = (float(one) / c for one, c in zip(noisy, DIFFERENCE, strict=True))
    of_total, of_rows, _ = (sigma / c for c in DIFFERENCE)
    if rows < max(1.0, 2.0 * of_rows):
        return Estimate(0.0, -1.0, 1.0)
    mean = min(max(total / rows, -1.0), 1.0)
    spread = min((max(squares, 0.0) + 1.0) / (rows + 2.0), 1.0)
    variance = max(spread - mean * mean, 0.0) / rows
    variance += (of_total**2 + (mean * of_rows) ** 2) / rows**2
    reach = z * math.sqrt(variance)
    return Estimate(mean, max(mean - reach, -1.0), min(mean + reach, 1.0))


def within_unit(value: float, reach: float) -> Estimate:
    """Return an estimate of a number in [0, 1] and an interval that reaches so far around it."""
    low, high = value - reach, value + reach
    return Estimate(min(max(value, 0.0), 1.0), min(max(low, 0.0), 1.0), max(min(high, 1.0), 0.0))


def standard_errors(confidence: float) -> float:
    """Return how many standard errors an interval reaches to each side."""
    return float(norm.ppf(0.5 + confidence / 2.0))
