"""How models are scored: sums over the rows that a metric asks for, and noise that hides a row."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.refusals import of_a_stranger
from dplasso.errors import DataError
from dplasso.fit.records import LocalRecords
from dplasso.privacy.budget import Budget, Draws, build_budget
from dplasso.privacy.gaussian import LARGEST_SCALE, SMALLEST_SCALE
from dplasso.privacy.neighbouring import check_neighbors
from dplasso.privacy.randomness import RandomStream, word_buffers
from dplasso.privacy.release import Gaussian, release
from dplasso.tuning.estimates import UNIT, Bounds, Estimate, Metric, Target, standard_errors
from dplasso.tuning.isolation import isolated

# More sums than any metric has for each class, for what the rounding of their noise may cost; and
# of all together.
_SUMS, _LARGEST_SUMS = 64, 2**17
# Of one output, as two classes are.
NUMBERS_ALONE = Target()


@dataclass(frozen=True)
class _SomeRows:
    """A model that predicts all rows of a store, but tells only of those that enter a score."""

    model: Any
    within: NDArray[np.bool_]

    def predict(self, X: Any) -> NDArray[Any]:
        return self._entering(self.model.predict(X))

    def predict_proba(self, X: Any) -> NDArray[Any]:
        return self._entering(self.model.predict_proba(X))

    def _entering(self, predicted: Any) -> NDArray[Any]:
        found: NDArray[Any] = np.asarray(predicted)
        if len(found) != self.within.size:
            raise DataError(f"the model predicts {len(found):,} of {self.within.size:,} rows")
        return found[self.within]


@dataclass(frozen=True)
class Scorer:
    """How models are scored; public. `sensitivity` and `sigma`, of the noise, are in rows."""

    metric: Metric
    target: Target
    sensitivity: float
    sigma: float
    confidence: float

    @property
    def bounds(self) -> Bounds:
        """The public interval of the target."""
        return self.target.bounds

    @property
    def z(self) -> float:
        """Return how many standard errors an interval reaches to each side."""
        return standard_errors(self.confidence)

    def sums(self, model: Any, rows: LocalRecords, stream: RandomStream) -> NDArray[np.float64]:
        """Return the noisy sums of a model's predictions for rows."""
        exact = of_rows(self.metric.sums, model, rows, self.target)
        return noisy_sums(exact, self.sensitivity, self.sigma, stream)

    def estimate(self, sums: NDArray[np.float64]) -> Estimate:
        """Return what noisy sums say."""
        return self.metric.estimate(sums, self.sigma, self.z, self.target)


def of_rows(
    compute: Callable[[Any, Any, NDArray[Any], Target], NDArray[Any]],
    model: Any,
    rows: LocalRecords,
    target: Target,
) -> NDArray[Any]:
    """Return what a metric computes of a model's predictions, each by its row alone."""
    with of_a_stranger(model), warnings.catch_warnings():
        # They were compared before.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        model, y = isolated(model), rows.y
        if rows.within is not None:
            model, y = _SomeRows(model, rows.within), y[rows.within]
        return compute(model, rows.X, y, target)


def score_budget(
    metric: Metric,
    epsilon: float,
    delta: float,
    target: Target = NUMBERS_ALONE,
    *,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
) -> tuple[Budget, float]:
    """Return what a score spends, and how far its sums can move between neighbours, in L2."""
    budget = build_budget(
        # Sums are drawn in blocks.
        Draws(gaussian=9.0 * (most_sums(target) + 64.0)),
        epsilon=epsilon,
        delta=delta,
        n_iter=1,
        neighbors=neighbors,
        rows_per_person=rows_per_person,
    )
    moved = budget.moved(share_bound(metric, target, neighbors))
    check_noise(moved / budget.mu)
    return budget, moved


def most_sums(target: Target) -> int:
    """Return how many sums a metric has at most; ValueError for more than can be released."""
    size = max(1, len(target.classes) if target.n_outputs > 1 else 1)
    if (most := max(_SUMS * size, size * size)) > _LARGEST_SUMS:
        raise ValueError(f"{size:,} classes or labels are too many for a private score")
    return most


def share_bound(metric: Metric, target: Target, neighbors: str) -> float:
    """Return C such that one row moves the sums by at most C (2 C if it is replaced) in L2."""
    if check_neighbors(neighbors) == "add-remove":
        return metric.share(target)
    return metric.exchange(target) / 2.0


def check_noise(sigma: float) -> None:
    """Raise ValueError for noise, in rows, too large for 64 bits or finer than its units."""
    if not SMALLEST_SCALE <= sigma * UNIT <= LARGEST_SCALE:
        raise ValueError(
            f"epsilon leaves a score noise of standard deviation {sigma:.3g} rows; between "
            f"{SMALLEST_SCALE / UNIT:.3g} and {LARGEST_SCALE / UNIT:,.0f} can be drawn"
        )


def noisy_sums(
    sums: NDArray[np.int64], sensitivity: float, sigma: float, stream: RandomStream
) -> NDArray[np.float64]:
    """Return sums, given in units of 2^-32, with integer Gaussian noise, in units of 1.

    The sensitivity, in L2, and the noise's standard deviation sigma are in units of 1.
    """
    noise = Gaussian(sigma * UNIT, word_buffers(stream, 1)[0])
    found: NDArray[np.float64] = release(sums.copy(), sensitivity * UNIT, noise) / UNIT
    return found
