"""What the phases of a fit release: frozen dataclasses of numbers and arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.frank_wolfe.transcript import Transcript, weights
from dplasso.gradient_descent import magnitudes as by_magnitude
from dplasso.gradient_descent.schedule import CONSTANT
from dplasso.matrix.scaling import constant_entry

_NOTHING = np.zeros(0)
NO_COLUMNS = np.zeros(0, dtype=np.int64)
# The type in a file of each kind of field.
_TYPES: dict[Any, str] = {
    float: "<f8",
    int: "<i8",
    NDArray[np.float64]: "<f8",
    NDArray[np.float32]: "<f4",
    NDArray[np.int64]: "<i8",
    NDArray[np.int8]: "|i1",
}
# Releases by kind; a phase may define one of its own beside it.
KINDS: dict[str, type["Release"]] = {}


@dataclass(frozen=True)
class Release:
    """What one phase released; `kind` is its name in files."""

    kind: ClassVar[str]

    def __init_subclass__(cls, *, kind: str) -> None:
        cls.kind, KINDS[kind] = kind, cls

    def __post_init__(self) -> None:
        for item in fields(self):
            if not np.isfinite(getattr(self, item.name)).all():
                raise ValueError(f"{item.name} of its {self.kind} release is not finite")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file holds of it; a number has no dimension."""
        return {
            item.name: np.asarray(getattr(self, item.name), dtype=_TYPES[item.type])
            for item in fields(self)
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the release that a file holds; ValueError if it is not one."""
        values = dict[str, Any]()
        if set(arrays) != {item.name for item in fields(cls)}:
            raise ValueError(f"it holds {', '.join(sorted(arrays))} of a {cls.kind} release")
        for item in fields(cls):
            array, is_number = arrays[item.name], item.type in (float, int)
            if array.dtype.str != (dtype := _TYPES[item.type]):
                raise ValueError(f"{item.name} of its {cls.kind} release is not of type {dtype}")
            if is_number and array.ndim:
                raise ValueError(f"{item.name} of its {cls.kind} release is not a number")
            values[item.name] = array.item() if is_number else array
        return cls(**values)


@dataclass(frozen=True)
class Counted(Release, kind="count"):
    """Noisy numbers of records, of all or of each class, with noise of a standard deviation.

    Of a regression they are those of both ends of the interval; a record counts in part for each.
    """

    counts: NDArray[np.float64]
    deviation: float

    @property
    def total(self) -> float:
        """The number of records."""
        return float(self.counts.sum())


@dataclass(frozen=True)
class Spread(Release, kind="spread"):
    """Standard deviation of a regression's targets, scaled to [-1, 1].

    It is that around the mean, or around 0 if the fit has no intercept.
    """

    deviation: float


@dataclass(frozen=True)
class Mixed(Release, kind="mix"):
    """How much of the latent directions of public rows the gradients use; 0 directions for none.

    `overlap`: how often records lie along the leading ones, over how often public rows do.
    `relevance`: their part of the first gradient. `part`: of the squared length of rows.
    """

    overlap: float
    relevance: float
    n_directions: int
    part: float


@dataclass(frozen=True)
class Scaled(Release, kind="scales"):
    """Energies of the columns, over the energy beyond which a column is scaled."""

    energies: NDArray[np.float32]


@dataclass(frozen=True)
class Magnitudes(Release, kind="magnitudes"):
    """How large the entries of the columns are.

    `sizes`, shape (D,): as powers of 2; 127 if noise hides a column. `bounds`, shape (D,): of the
    entries of columns without zeros; 0 for other columns. `squares`, shape (D,): mean squared
    entries, if rows keep their lengths; otherwise empty.
    """

    sizes: NDArray[np.int8]
    bounds: NDArray[np.float64]
    squares: NDArray[np.float64]

    @cached_property
    def exponents(self) -> NDArray[np.int8]:
        """How often the entries of each column are halved, so that all have about one size."""
        return by_magnitude.scale_exponents_of(self.sizes)


@dataclass(frozen=True)
class Centred(Release, kind="centres"):
    """What is taken from the entries of each column, shape (D,): means of those without zeros."""

    centres: NDArray[np.float64]


@dataclass(frozen=True)
class Started(Release, kind="start"):
    """How much of a public model the fit starts from: `part` of the slope and shift found."""

    slope: float
    shift: NDArray[np.float64]
    part: float


@dataclass(frozen=True)
class Drawn(Release, kind="vertices"):
    """Vertices, in the order in which they were drawn.

    Coordinate ``k (D + 1) + j``, without a constant column ``k D + j``, is that of output k and
    column j. A sign of +1 is the vertex ``+radius e_j``. `late_start`: t0 of the step sizes.
    `constant`: value of the constant column, 0 for none. `offset`, shape (K,): where margins start.
    """

    vertex: NDArray[np.int64]
    sign: NDArray[np.int8]
    radius: float
    late_start: int
    constant: float
    offset: NDArray[np.float64]
    n_features: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vertex.shape != self.sign.shape or self.vertex.ndim != 1:
            raise ValueError("a transcript needs as many signs as vertices")
        size = self.n_outputs * self.per_output
        if self.vertex.size and not 0 <= self.vertex.min() <= self.vertex.max() < size:
            raise ValueError(f"a vertex lies outside the {self.n_features} columns")
        if not np.all(np.abs(self.sign) == 1):
            raise ValueError("a sign is neither +1 nor -1")
        if self.late_start < 0 or self.radius < 0:
            raise ValueError("radius and late start of its vertices are not negative")

    @property
    def n_outputs(self) -> int:
        """Margins of a record."""
        return self.offset.size

    @property
    def per_output(self) -> int:
        """Coordinates of one output."""
        return self.n_features + int(self.constant != 0.0)

    @property
    def columns(self) -> NDArray[np.int64]:
        """Columns drawn for any output, ascending, shape (k,)."""
        column = self.vertex % self.per_output
        return np.unique(column[column < self.n_features])

    def coefficients(self) -> tuple[csr_array, NDArray[np.float64]]:
        """Return the weights of the columns, shape (K, D), and the constant terms, shape (K,)."""
        transcript = Transcript(self.vertex, self.sign)
        coordinates, values = weights(transcript, self.radius, self.late_start)
        output, column = np.divmod(coordinates, self.per_output)
        inside = column < self.n_features
        columns = column[inside].astype(np.int32 if self.n_features < 2**31 else np.int64)
        ends = np.searchsorted(output[inside], np.arange(self.n_outputs + 1))
        shape = (self.n_outputs, self.n_features)
        coefficients = csr_array((values[inside], columns, ends.astype(columns.dtype)), shape=shape)
        constant = np.zeros(self.n_outputs)
        np.add.at(constant, output[~inside], values[~inside])
        return coefficients, constant * self.constant


@dataclass(frozen=True)
class Kept(Release, kind="cut"):
    """The columns that a cut leaves, ascending, shape (k,): those of the largest weights."""

    columns: NDArray[np.int64]


@dataclass(frozen=True)
class Entered(Release, kind="levels"):
    """The columns that enter a fit, ascending: bins that are not too fine for it."""

    columns: NDArray[np.int64]


@dataclass(frozen=True)
class Paired(Release, kind="pairs"):
    """The columns after the choice of pairs, ascending, and their energies as in `Scaled`."""

    columns: NDArray[np.int64]
    energies: NDArray[np.float32]


@dataclass(frozen=True)
class RowLength(Release, kind="length"):
    """How long rows are in the columns of the next gradients, in root mean square; at most 1."""

    length: float


@dataclass(frozen=True)
class RowSize(Release, kind="rows"):
    """The mean squared length of rows up to a public limit, as a part of it."""

    part: float


@dataclass(frozen=True)
class Curvature(Release, kind="curvature"):
    """A bound on the largest eigenvalue of the Gram matrix of the unit rows."""

    eigenvalue: float


@dataclass(frozen=True)
class Descended(Release, kind="gradients"):
    """Weights of unit rows, from noisy gradients.

    `columns`, shape (k,), ascending: empty for all of D. `weights`, shape (k, K). `constant`, shape
    (K,) or (0,): weights of the constant entry. `offset`, shape (K,): added to margins.
    `standard_error`: by the noise alone, times `spread`, shape (k,), if there is one.
    """

    columns: NDArray[np.int64]
    weights: NDArray[np.float64]
    constant: NDArray[np.float64]
    offset: NDArray[np.float64]
    standard_error: float
    n_steps: int
    spread: NDArray[np.float64] = field(default_factory=lambda: _NOTHING)

    @property
    def errors(self) -> Any:
        """Standard deviation of the weights by the noise alone, but for the scales of columns."""
        return self.standard_error * (self.spread if self.spread.size else 1.0)

    @property
    def intercept(self) -> NDArray[np.float64]:
        """What the constant entry adds to each margin, shape (K,)."""
        if not self.constant.size:
            return np.zeros(self.weights.shape[1])
        return self.constant * constant_entry(CONSTANT)


@dataclass(frozen=True)
class Calibrated(Release, kind="calibration"):
    """Slopes and shifts, shape (K,), of margins.

    `prior_slope`: of the margins of the public prior.
    `label_slopes`, shape (L,): of many labels, the part of `slope` that each has.
    """

    slope: float
    shift: NDArray[np.float64]
    prior_slope: float = 1.0
    label_slopes: NDArray[np.float64] = field(default_factory=lambda: _NOTHING)
