"""Noisy sums over rows, and estimates from them with intervals for sampling and noise."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dplasso.errors import of_a_stranger
from dplasso.fit.records import LocalRecords
from dplasso.privacy.accounting import LARGEST_SCALE, SMALLEST_SCALE
from dplasso.privacy.budget import Budget, Draws, build_budget
from dplasso.privacy.parameters import check_neighbors
from dplasso.privacy.randomness import RandomStream, word_buffers
from dplasso.privacy.release import Gaussian, release
from dplasso.tuning.isolation import SomeRows, isolated

UNIT = 2.0**32
# Weight of l (1 - l); it is below sqrt(8) by more than any rounding error.
SPREAD = 2.8
# Factors of the entries d (a difference of two losses), 1 and d^2 of a row, for norm below 1.
DIFFERENCE = (0.9, 0.3, 0.31)
ROOT_TWO = math.nextafter(math.sqrt(2.0), 2.0)

Bounds = tuple[float, float]


class Estimate(NamedTuple):
    """A score computed from noisy sums, and the ends of its interval."""

    value: float
    low: float
    high: float


# The estimate of a score that the noise hides.
UNKNOWN = Estimate(0.5, 0.0, 1.0)


@dataclass(frozen=True)
class ClassScore:
    """The score of one class against all others, or of one label, and its noisy number of rows."""

    label: Any
    rows: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Target:
    """What models predict: classes or labels, or numbers within bounds; public."""

    classes: tuple[Any, ...] = ()
    many_labels: bool = False
    bounds: Bounds = (0.0, 1.0)

    @property
    def kind(self) -> str:
        """The kind of target in words."""
        if not self.classes:
            return NUMBERS
        if self.many_labels:
            return MANY_LABELS
        return TWO_CLASSES if len(self.classes) == 2 else SEVERAL_CLASSES

    @property
    def n_outputs(self) -> int:
        """Number of scores in an average: the number of several classes or labels, or 1."""
        return len(self.classes) if self.kind in (SEVERAL_CLASSES, MANY_LABELS) else 1


NUMBERS, TWO_CLASSES = "numbers", "two classes"
SEVERAL_CLASSES, MANY_LABELS = "several classes", "many labels"
CLASSES = (TWO_CLASSES, SEVERAL_CLASSES, MANY_LABELS)


Losses = Callable[[Any, Any, NDArray[Any], Target], NDArray[np.float64]]


@dataclass(frozen=True)
class Metric:
    """How to compute a metric from sums over rows.

    `sums`: of one model's predictions, int64 in units of 2^-32.
    `estimate`, `by_class`: the results from noisy sums, the noise's standard deviation, and the
    number of standard errors of an interval.
    `one_exchange`: L2 sensitivity of the sums to replacing a row, in units of 1; to adding a row it
    is 1. For the kinds in `outputs_counted`, of the sums for a single output.
    `losses`: of each row in [0, 1], if the metric is their mean; `span` scales it.
    """

    sums: Any
    estimate: Callable[[NDArray[np.float64], float, float, Target], Estimate]
    kinds: tuple[str, ...] = CLASSES
    one_exchange: float = ROOT_TWO
    outputs_counted: tuple[str, ...] = ()
    larger_is_better: bool = True
    by_class: Callable[[NDArray[np.float64], float, float, Target], tuple[ClassScore, ...]] = (
        lambda *_: ()
    )
    losses: Losses | None = None
    span: Callable[[Target], float] | None = None

    def bound(self, target: Target, neighbors: str) -> float:
        """Return C such that adding a row moves the sums by C in L2, or replacing one by 2 C."""
        added = check_neighbors(neighbors) == "add-remove"
        single = 1.0 if added else self.one_exchange / 2.0
        if target.kind not in self.outputs_counted or target.n_outputs == 1:
            return single
        return single * math.nextafter(math.sqrt(target.n_outputs), math.inf)


def mean_estimate(noisy: NDArray[np.float64], sigma: float, z: float) -> Estimate:
    """Estimate a mean in [0, 1] from noisy sums of l, 1 - l and 2.8 l (1 - l).

    The interval is Wilson's with noise: all m that differ from the estimate by at most z standard
    errors at m. The variance of the losses is m (1 - m) minus a part that the third sum estimates.
    At another mean m the variance differs: where sampling moved the mean, the variance is assumed
    to be the same share of m (1 - m); where noise moved it, only m (1 - m) changes.
    """
    count = float(noisy[0] + noisy[1])
    if count < 1.0:
        return UNKNOWN
    mean = min(max(float(noisy[0]) / count, 0.0), 1.0)
    spread = min(max(float(noisy[2]) / SPREAD / count, 0.0), mean * (1.0 - mean))
    noise = sigma * sigma * (mean**2 + (1.0 - mean) ** 2) / (count * count)
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

    The variance of the mean is that of the d with half a row added at each of -1 and 1 (Agresti and
    Min, doi 10.1002/sim.1781), plus that of the noise.
    """
    total, rows, squares = (float(part) / c for part, c in zip(noisy, DIFFERENCE, strict=True))
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
    """Return an estimate in [0, 1] with an interval of `reach` on both sides."""
    low, high = value - reach, value + reach
    return Estimate(min(max(value, 0.0), 1.0), min(max(low, 0.0), 1.0), max(min(high, 1.0), 0.0))


# Upper bounds on the sums of a metric for each class, and in total; the cost of rounding the noise
# depends on them.
_SUMS, _LARGEST_SUMS = 64, 2**17
# A target with one output, which also stands for two classes.
NUMBERS_ALONE = Target()


@dataclass(frozen=True)
class Scorer:
    """How models are scored; public. `sensitivity`, and `sigma` of the noise, are in rows."""

    metric: Metric
    target: Target
    sensitivity: float
    sigma: float
    confidence: float

    @property
    def z(self) -> float:
        """Number of standard errors on each side of an interval."""
        return float(ndtri(0.5 + self.confidence / 2.0))

    def sums(self, model: Any, rows: LocalRecords, stream: RandomStream) -> NDArray[np.float64]:
        """Return the noisy sums of a model's predictions for rows."""
        exact = of_rows(self.metric.sums, model, rows, self.target)
        return noisy_sums(exact, self.sensitivity, self.sigma, stream)

    def estimate(self, sums: NDArray[np.float64]) -> Estimate:
        """Return the score computed from noisy sums."""
        return self.metric.estimate(sums, self.sigma, self.z, self.target)


def of_rows(
    compute: Callable[[Any, Any, NDArray[Any], Target], NDArray[Any]],
    model: Any,
    rows: LocalRecords,
    target: Target,
) -> NDArray[Any]:
    """Compute a metric's sums or losses from predictions that depend on their own row only."""
    # An overflow in a row is not told of, whoever's model it is.
    with of_a_stranger(model), np.errstate(all="ignore"), warnings.catch_warnings():
        # The names were compared before.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        model, y = isolated(model), rows.y
        if rows.within is not None:
            model, y = SomeRows(model, rows.within), y[rows.within]
        return compute(model, rows.X, y, target)


def score_budget(
    metric: Metric, target: Target = NUMBERS_ALONE, *, neighbors: str = "add-remove", **asked: Any
) -> tuple[Budget, float]:
    """Return the budget of a score, and the L2 sensitivity of its sums, as `sums_budget`."""
    bound = metric.bound(target, neighbors)
    return sums_budget(most_sums(target), bound, neighbors=neighbors, **asked)


def sums_budget(n_sums: int, bound: float, **asked: Any) -> tuple[Budget, float]:
    """Return the budget of one noisy release of sums, and their L2 sensitivity.

    `bound`: as `Metric.bound`. `asked`: parameters of `build_budget`.
    """
    # Sums are drawn in blocks.
    budget = build_budget(Draws(gaussian=9.0 * (n_sums + 64.0)), n_iter=1, **asked)
    moved = budget.moved(bound)
    check_noise(moved / budget.mu)
    return budget, moved


def most_sums(target: Target) -> int:
    """Return an upper bound on the number of sums; ValueError if there are too many to release."""
    size = max(1, len(target.classes) if target.n_outputs > 1 else 1)
    if (most := max(_SUMS * size, size * size)) > _LARGEST_SUMS:
        raise ValueError(f"{size:,} classes or labels are too many for a private score")
    return most


def check_noise(sigma: float) -> None:
    """Raise ValueError for noise, in rows, that is too large for 64 bits or too small to draw."""
    if not SMALLEST_SCALE <= sigma * UNIT <= LARGEST_SCALE:
        raise ValueError(
            f"at this epsilon the noise of a score has a standard deviation of {sigma:.3g} rows; "
            f"choose an epsilon for which it is between {SMALLEST_SCALE / UNIT:.3g} and "
            f"{LARGEST_SCALE / UNIT:,.0f}"
        )


def noisy_sums(
    sums: NDArray[np.int64], sensitivity: float, sigma: float, stream: RandomStream
) -> NDArray[np.float64]:
    """Add integer Gaussian noise to sums in units of 2^-32; all else is in units of 1."""
    noise = Gaussian(sigma * UNIT, word_buffers(stream, 1)[0])
    noisy: NDArray[np.float64] = release(sums.copy(), sensitivity * UNIT, noise) / UNIT
    return noisy
