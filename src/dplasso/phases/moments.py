"""The release that intervals with sampling error follow from, and the estimate that it gives.

The columns of a whole one-hot group add up to the constant entry, so only differences between their
coefficients are identified. One of them is left out as the reference category.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.errors import ParameterError, shown
from dplasso.phases.releases import NO_COLUMNS, Release

# A column is identified if no more than this part of it lies in directions that are not.
_LOST = 0.05
# Below this many directions for each column that is not nearly empty, nothing is identified: lost
# directions bias the rest.
_CLEAR = 0.75
# Columns are nearly empty if the sum of their curvatures is within this many standard deviations of
# its noise. Almost no record has an entry in them, so they bias nothing.
_EMPTY = 2.0
# Directions are lost below this part of the largest eigenvalue, also without noise.
_ROUNDING = 1e-7

# Share of the budget for intervals unless `infer` says otherwise, and at most.
_SHARE, _LARGEST = 0.5, 0.9
_RIGHT = "`None`, 'all', names of columns, or {'columns': 'all' or names, 'share': S}"


def triangle_size(size: int) -> int:
    """Return the number of entries of the upper triangle of a symmetric matrix."""
    return size * (size + 1) // 2


def symmetric(triangle: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the matrix, shape (n, n), of a triangle whose outer entries are times sqrt(2)."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    matrix = np.where(np.eye(size, dtype=bool), matrix, matrix / math.sqrt(2.0))
    return matrix + np.triu(matrix, 1).T


class Infer(NamedTuple):
    """The parameter `infer`: columns shown, none for all, and their share of the budget."""

    named: tuple[str, ...]
    share: float


def read_infer(infer: Any) -> Infer:
    """Return the parameter, checked; a column without a name is x0, and None has no share."""
    if infer is None:
        return Infer((), 0.0)
    options = infer if isinstance(infer, Mapping) else {"columns": infer}
    columns, share = options.get("columns"), options.get("share", _SHARE)
    if options.keys() - {"columns", "share"} or not (isinstance(columns, Iterable) and [*columns]):
        raise ParameterError(f"`infer` must be {_RIGHT}, got {shown(infer)}")
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0.0 < share <= _LARGEST:
        raise ParameterError(
            f"the share of `infer` must be a number above 0, up to {_LARGEST:g}, got {shown(share)}"
        )
    names = columns.split(",") if isinstance(columns, str) else columns
    named = [f"x{name}" if isinstance(name, Integral) else str(name) for name in names]
    return Infer(() if columns == "all" else tuple(named), float(share))


class Estimate(NamedTuple):
    """Coefficients of all columns and the constant, with covariances, shape (n, n).

    `identified`: false for a reference category too, which is 0 everywhere.
    """

    coefficients: NDArray[np.float64]
    identified: NDArray[np.bool_]
    noise: NDArray[np.float64]
    sampling: NDArray[np.float64]


@dataclass(frozen=True)
class Moments(Release, kind="moments"):
    """Noisy sums at some weights, of rows that are not longer than 1.

    `curvature`, `squares`: upper triangles with n (n + 1) / 2 entries, or empty. `entry_scale`:
    factor of the columns' entries. `constant`: the constant entry, 0 for none. `references`:
    columns that are reference categories.
    """

    weights: NDArray[np.float64]
    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]
    squares: NDArray[np.float64]
    gradient_deviation: float
    curvature_deviation: float
    squares_deviation: float
    n_records: float
    entry_scale: float
    constant: float
    references: NDArray[np.int64] = field(default_factory=lambda: NO_COLUMNS)

    def __post_init__(self) -> None:
        super().__post_init__()
        size, pairs = self.weights.size, triangle_size(self.weights.size)
        if self.gradient.size != size or self.curvature.size != pairs:
            raise ValueError(f"its sums are not those of {size} coefficients")
        if self.squares.size not in (0, pairs):
            raise ValueError(f"its squares are not those of {size} coefficients")

    def with_curvature_of(self, before: "Moments") -> "Moments":
        """Return the sums with the mean of two noisy curvatures, weighted by their precisions."""
        if not (self.curvature_deviation and before.curvature_deviation):
            return self
        own, other = self.curvature_deviation**-2, before.curvature_deviation**-2
        return replace(
            self,
            curvature=(own * self.curvature + other * before.curvature) / (own + other),
            curvature_deviation=(own + other) ** -0.5,
        )

    @property
    def units(self) -> NDArray[np.float64]:
        """What coefficients of these rows are multiplied by for those of the data's columns."""
        scales = np.full(self.weights.size, self.entry_scale)
        if self.constant:
            scales[-1] = self.constant
        return scales

    def edge(self, size: int) -> float:
        """Return the largest eigenvalue of noise alone, about ``sqrt(2 n)`` standard deviations."""
        return self.curvature_deviation * math.sqrt(2.0 * size)

    def estimate(self) -> Estimate:
        """Return the weights after a Newton step, and which of them the curvature identifies."""
        size, kept = self.weights.size, np.ones(self.weights.size, dtype=np.bool_)
        kept[self.references] = False
        curvature, gradient = symmetric(self.curvature, size)[kept][:, kept], self.gradient[kept]
        count = gradient.size
        values, vectors = np.linalg.eigh(curvature)
        # Without noise there may be no curvature at all.
        least = max(self.edge(count), _ROUNDING * float(values[-1])) or 1.0
        # Shorter steps in lost directions, which would bias the other estimates.
        inverse = (vectors / np.maximum(values, least)) @ vectors.T
        vectors = vectors[:, values > least]
        step = -inverse @ gradient
        # The covariance of E step, where E is a symmetric matrix of noise.
        of_curvature = (step @ step) * np.eye(count) + np.outer(step, step)
        noise = self.gradient_deviation**2 * np.eye(count)
        noise += self.curvature_deviation**2 / 2.0 * of_curvature
        noise_of_step = inverse @ noise @ inverse
        squares = np.zeros((count, count))
        if self.squares.size:
            squares = self._lifted(symmetric(self.squares, size)[kept][:, kept])
        if self.constant and self.gradient_deviation:
            noise_of_step[-1, -1] += self._left_out(curvature, step) ** 2
        estimate = Estimate(
            self.weights.copy(),
            np.zeros(size, dtype=np.bool_),
            np.zeros((size, size)),
            np.zeros((size, size)),
        )
        estimate.coefficients[kept] += step
        estimate.identified[kept] = self._identified(curvature, vectors)
        estimate.noise[np.ix_(kept, kept)] = noise_of_step
        estimate.sampling[np.ix_(kept, kept)] = inverse @ squares @ inverse
        return estimate

    def _identified(
        self, curvature: NDArray[np.float64], vectors: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Return which coefficients are identified by the directions `vectors`.

        The intercept is if all columns are that are not nearly empty.
        """
        identified: NDArray[np.bool_] = 1.0 - np.sum(vectors**2, axis=1) <= _LOST
        filled = self._filled(np.diag(curvature))
        identified &= vectors.shape[1] >= _CLEAR * filled.sum()
        if self.constant:
            identified[-1] &= identified[filled].all()
        return identified

    def _filled(self, curvatures: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which columns are not nearly empty, from the diagonal of the curvature."""
        order = np.argsort(curvatures)
        counts = np.arange(1, curvatures.size + 1)
        most = _EMPTY * self.curvature_deviation * np.sqrt(counts)
        (within,) = np.nonzero(np.cumsum(curvatures[order]) <= most)
        filled = np.ones(curvatures.size, dtype=np.bool_)
        if within.size:
            filled[order[: within[-1] + 1]] = False
        return filled

    def _left_out(self, curvature: NDArray[np.float64], step: NDArray[np.float64]) -> float:
        """Return about how much of the constant entry's coefficient a Newton step leaves out.

        With classes of different sizes, errors raise the rare class's probabilities more than they
        lower them. The step corrects the first order alone.
        """
        total = float(curvature[-1, -1]) / self.constant**2
        if total <= 0.0:
            return 0.0
        # With p (1 - p) as the mean curvature, this is the root of (1 - 2 p)^2; 0 for numbers.
        skewness = math.sqrt(max(0.0, 1.0 - 4.0 * total / max(1.0, self.n_records)))
        moved = max(0.0, float(step @ curvature @ step)) / total
        return 0.5 * skewness * moved / self.constant

    def _lifted(self, squares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return noisy squares without negative eigenvalues.

        This raises their sum, whose noise is small, so all are scaled down to one standard
        deviation above it.
        """
        values, vectors = np.linalg.eigh(squares)
        lifted = np.maximum(values, 0.0)
        most = float(values.sum()) + self.squares_deviation * math.sqrt(values.size)
        if 0.0 < most < lifted.sum():
            lifted *= most / lifted.sum()
        matrix: NDArray[np.float64] = (vectors * lifted) @ vectors.T
        return matrix


# A named column is identified if its sum of z x exceeds this many standard deviations of its noise.
_CLEAR_SUM = 5.0


@dataclass(frozen=True)
class NamedSums(Release, kind="named"):
    """Noisy sums for the columns `places` that public rows predict (`dplasso.phases.intervals`).

    `start`: coefficients of the fit. `sums`, shape (3, k): of r z, z x and (r z)^2, with standard
    deviations of their noise. The other fields are public.
    """

    units: ClassVar[float] = 1.0

    places: NDArray[np.int64]
    start: NDArray[np.float64]
    sums: NDArray[np.float64]
    deviations: NDArray[np.float64]
    n_records: float
    n_public: int
    n_adjusted: int
    references: NDArray[np.int64]

    def __post_init__(self) -> None:
        super().__post_init__()
        size = self.start.size
        if self.places.size != size or {self.sums.shape, self.deviations.shape} != {(3, size)}:
            raise ValueError("its sums are not those of its named columns")

    def estimate(self) -> Estimate:
        """Return the coefficients after a Newton step, and their variances.

        The prediction errs because the public rows are a sample. What the private fit misses is
        then correlated with z by chance, as if each public row had a residual like a record's.
        """
        scores, curvatures, squares = self.sums
        noise, noise_of_curvature, more = self.deviations
        identified = curvatures > _CLEAR_SUM * noise_of_curvature
        curvatures = np.where(identified, curvatures, 1.0)
        step = scores / curvatures
        noise = (noise**2 + (step * noise_of_curvature) ** 2) / curvatures**2
        sampling = (np.maximum(squares, 0.0) + more) / curvatures**2
        sampling *= 1.0 + self.n_records / self.n_public
        return Estimate(self.start + step, identified, np.diag(noise), np.diag(sampling))


OneHot = Sequence[Sequence[int]]
"""The columns of each group of indicators, of which a record has at most one."""

# A group is not whole if the curvature along its direction exceeds the edge of the noise this many
# times. Some records then have none of its columns, and are the reference already.
_BEYOND = 2.0
# For sums without noise, this part of the largest entry of the curvature instead.
_ROUNDING = 1e-6


def with_references(moments: Moments, groups: OneHot) -> Moments:
    """Return the sums with the column of the largest curvature of each whole group as reference.

    The weights become differences from it, which leaves margins as they are.
    """
    if not moments.constant:
        # Without an intercept, a whole group replaces it.
        return moments
    size = moments.weights.size
    curvature, weights = symmetric(moments.curvature, size), moments.weights.copy()
    least = max(moments.edge(size), _ROUNDING * float(np.abs(curvature).max()))
    references = []
    for group in groups:
        columns = np.asarray(group, dtype=np.int64)
        # A direction in which a whole group changes no margin.
        direction = np.zeros(size)
        direction[columns] = 1.0 / moments.entry_scale
        direction[-1] = -1.0 / moments.constant
        direction /= math.sqrt(float(direction @ direction))
        if columns.size < 2 or float(direction @ curvature @ direction) > _BEYOND * least:
            continue
        reference = int(columns[np.argmax(np.diag(curvature)[columns])])
        shift = float(weights[reference])
        weights[columns] -= shift
        weights[-1] += shift * moments.entry_scale / moments.constant
        references.append(reference)
    return replace(moments, weights=weights, references=np.array(sorted(references), np.int64))
