"""What noisy gradient descent releases: weights with a known standard error."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.gradient_descent.energies import halvings_of
from dplasso.matrix.unit_rows import SCALES


class Calibration(NamedTuple):
    """A slope for margins, and what is added to each of K.

    `prior_slope`: that of the margins of a public start, where a fit has one.
    `label_slopes`: where each of many labels has a slope, what part of the largest, `slope`, it is.
    """

    slope: float
    shift: tuple[float, ...]
    prior_slope: float = 1.0
    label_slopes: tuple[float, ...] = ()


UNCHANGED = Calibration(1.0, (0.0,))
NO_ENERGIES = np.zeros(0, dtype=np.float32)


@dataclass(frozen=True)
class NoisyWeights:
    """Weights of unit rows; a `dplasso.model.release.Release`.

    `n_steps`: gradients they were made from.
    `columns`, shape (k,): those with a weight, ascending; empty if every column has one.
    `weights`, shape (K, k) or (K, D); `intercept`, shape (K,): of each margin.
    `standard_error`: standard deviation of each weight by the noise alone, but for the scale of its
    column; `intercept_error`: of each intercept.
    `energies`: of the columns, over the energy beyond which one is scaled: of all D, or in a short
    list of those kept; empty where no column is scaled.
    `prior_slope`: what the weights of a public start are multiplied by, before these are added.
    `n_records`: the number of records as counted privately, or public by the neighbour relation;
    None where it was given, and without privacy.
    `label_slopes`, shape (K,): what part of `standard_error` is that of each of many labels; empty
    where it is the same.
    """

    kind: ClassVar[str] = "weights"
    method: ClassVar[tuple[str, str]] = ("logistic regression", "linear regression")
    types: ClassVar[dict[str, str]] = {
        "weights": "<f8",
        "columns": "<i8",
        "numbers": "<f8",
        "energies": "<f4",
        "prior_slope": "<f8",
        "n_records": "<f8",
        "label_slopes": "<f8",
    }
    optional: ClassVar[frozenset[str]] = frozenset(
        {"energies", "prior_slope", "n_records", "label_slopes"}
    )

    n_steps: int
    n_features: int
    columns: NDArray[np.int64]
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    standard_error: float
    intercept_error: float
    energies: NDArray[np.float32] = field(default_factory=lambda: NO_ENERGIES)
    prior_slope: float = 1.0
    n_records: float | None = None
    label_slopes: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    vertices = None

    def __post_init__(self) -> None:
        check_ascending(self.columns, self.n_features)
        count, n_outputs = self.columns.size, self.intercept.size
        # Without columns every one has a weight, or, in a short list, none.
        fitting = {count} if count else {self.n_features, 0}
        if self.weights.shape not in {(n_outputs, size) for size in fitting}:
            raise ValueError(f"weights {self.weights.shape} do not fit {count or self.n_features}")
        errors = self.standard_error, self.intercept_error
        numbers = (*self.intercept, *errors, self.prior_slope, self.n_records or 0.0)
        numbers += tuple(self.label_slopes)
        if self.label_slopes.size not in (0, n_outputs):
            raise ValueError(f"{self.label_slopes.size} slopes are not those of {n_outputs} labels")
        if not (np.isfinite(self.weights).all() and np.isfinite(numbers).all()):
            raise ValueError("a weight is not a finite number")
        check_energies(self.energies, {count, self.n_features})

    def __len__(self) -> int:
        return self.n_steps

    @property
    def n_outputs(self) -> int:
        """Margins of a record."""
        return self.intercept.size

    def complete(self, n_steps: int) -> bool:
        """Return whether nothing is missing of a fit of at most so many steps."""
        return len(self) <= n_steps

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """Standard deviation of each weight by the noise alone, of each column that has one.

        Of many labels, a row for each.
        """
        scales, count = scales_of(self.energies), self.weights.shape[1]
        if scales.size > max(1, count):
            scales = scales[self.columns]
        errors = np.broadcast_to(self.standard_error * scales, (count,))
        return self.label_slopes[:, np.newaxis] * errors if self.label_slopes.size else errors

    @property
    def scales(self) -> NDArray[np.float64] | None:
        """What each column is multiplied by before rows are scaled; None for no change."""
        return scales_of(self.energies) if self.energies.size else None

    @property
    def refitted(self) -> "NoisyWeights":
        """The weights that gradients were released for: all of the release."""
        return self

    def coefficients(self) -> tuple[Any, NDArray[np.float64]]:
        """Return the coefficients, shape (K, D), sparse where columns were selected; intercepts."""
        n_outputs, count = self.weights.shape
        if count == self.n_features and not self.columns.size:
            return self.weights, self.intercept
        kind = np.int32 if self.n_features < 2**31 else np.int64
        pointers = np.arange(n_outputs + 1, dtype=kind) * count
        columns = np.tile(self.columns.astype(kind), n_outputs)
        coefficients = csr_array(
            (self.weights.flatten(), columns, pointers), shape=(n_outputs, self.n_features)
        )
        if n_outputs > 1:
            # Of a column, only the weights that are significant.
            coefficients.eliminate_zeros()
        return coefficients, self.intercept

    def agrees_with(self, other: Any) -> bool:
        """Return whether two runs can be one: the same weights, where both are complete."""
        return not isinstance(other, NoisyWeights) or same_arrays(self.arrays(), other.arrays())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file has to hold of it."""
        (first, *others), errors = self.intercept, (self.standard_error, self.intercept_error)
        arrays = {
            "weights": self.weights.astype("<f8", copy=False).ravel(),
            "columns": self.columns.astype("<i8", copy=False),
            # The first intercept stands where that of one output always stood.
            "numbers": np.array([self.n_steps, first, *errors, *others], dtype="<f8"),
            **slope_array(self.prior_slope),
        }
        if self.n_records is not None:
            arrays["n_records"] = np.array([self.n_records], dtype="<f8")
        if self.label_slopes.size:
            arrays["label_slopes"] = self.label_slopes
        return arrays | with_energies(self.energies)

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], public: Mapping[str, Any]
    ) -> "NoisyWeights":
        """Rebuild a release from what a file holds, and the fit's parameters and sizes."""
        n_steps, first, standard_error, intercept_error, *others = arrays["numbers"].tolist()
        weights = arrays["weights"].astype(np.float64, copy=False)
        n_records = [float(number) for number in arrays.get("n_records", ())]
        if weights.size % (1 + len(others)):
            raise ValueError(f"{weights.size} weights are not those of {1 + len(others)} outputs")
        return cls(
            n_steps=int(n_steps),
            n_features=public["n_features"],
            columns=arrays["columns"].astype(np.int64, copy=False),
            weights=weights.reshape(1 + len(others), -1),
            intercept=np.array([first, *others]),
            standard_error=standard_error,
            intercept_error=intercept_error,
            energies=arrays.get("energies", NO_ENERGIES).astype(np.float32, copy=False),
            prior_slope=slope_of(arrays),
            n_records=n_records[0] if n_records else None,
            label_slopes=arrays.get("label_slopes", np.zeros(0)),
        )


def scales_of(energies: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return what the entries of each column are multiplied by, shape (D,); [1.] for all alike."""
    return SCALES[halvings_of(energies)] if energies.size else np.ones(1)


def with_energies(energies: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Return the array of a file that holds energies, if there are any."""
    return {"energies": energies.astype("<f4", copy=False)} if energies.size else {}


def check_energies(energies: NDArray[np.float32], sizes: set[int]) -> None:
    """Raise ValueError for energies that are no numbers or not those of so many columns."""
    if energies.size and (energies.size not in sizes or not np.isfinite(energies).all()):
        raise ValueError("the energies of its columns do not fit them")


def slope_array(prior_slope: float) -> dict[str, NDArray[Any]]:
    """Return what a file holds of the slope of a public start: nothing where it is 1."""
    return {} if prior_slope == 1.0 else {"prior_slope": np.array([prior_slope], dtype="<f8")}


def slope_of(arrays: Mapping[str, NDArray[Any]]) -> float:
    """Return the slope of a public start from what a file holds."""
    (prior_slope,) = arrays.get("prior_slope", np.ones(1)).tolist()
    return float(prior_slope)


def same_arrays(mine: dict[str, NDArray[Any]], others: dict[str, NDArray[Any]]) -> bool:
    """Return whether two releases of a kind hold the same numbers."""
    return mine.keys() == others.keys() and all(
        np.array_equal(mine[name], others[name]) for name in mine
    )


def check_ascending(columns: NDArray[np.int64], n_features: int) -> None:
    """Raise ValueError for column numbers that do not ascend or lie outside the matrix."""
    if not columns.size:
        return
    if columns[0] < 0 or columns[-1] >= n_features or (np.diff(columns) <= 0).any():
        raise ValueError(f"its columns are not ascending numbers below {n_features}")
