"""The linear model that a fit released, how it reads rows, and public priors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.gradient_descent.schedule import CONSTANT
from dplasso.matrix.scaling import SCALES, Scaling, spread
from dplasso.phases.released import Released
from dplasso.phases.releases import (
    NO_COLUMNS,
    Calibrated,
    Descended,
    Drawn,
    Release,
    Started,
)

# A model file's arrays of a prior, and their types: places of the weights in the flat (K, D) array,
# the weights, and the noise of all (empty: none).
ARRAYS = {"prior_place": "<i8", "prior_weight": "<f8", "prior_error": "<f8"}
# Digits of the digest that a text shows.
_SHOWN = 16


@dataclass(frozen=True)
class LinearModel:
    """Weights that a fit released; those of a public start are not in them."""

    # Shape (K, D), sparse where columns were selected, and (K,).
    coefficients: Any
    intercept: NDArray[np.float64]
    # Shape (k,): columns that may have a weight, ascending; empty for all.
    columns: NDArray[np.int64]
    # Shape (k,), or (L, k) for L labels: by the noise alone, if the method has them.
    standard_errors: NDArray[np.float64] | None = None
    # Shape (k,) or (D,): what columns are multiplied by before rows are scaled, if at all.
    scales: NDArray[np.float64] | None = None
    # Of the same shape: what is taken from columns before that, if anything.
    centres: NDArray[np.float64] | None = None
    # What weights and intercepts of a public start are multiplied by before these are added.
    prior_slope: float = 1.0


def linear_model(released: Released, n_features: int) -> LinearModel:
    """Return the model that a complete fit released; ValueError if it is not complete."""
    descended, drawn = released.last(Descended), released.last(Drawn)
    slopes, start = released.last(Calibrated), released.last(Started)
    if slopes is None:
        slopes = Calibrated(1.0, np.zeros(1))
        if start is not None:
            slopes = Calibrated(1.0, start.shift, start.slope)
    if descended is not None:
        return _of_gradients(descended, released, slopes, n_features)
    if drawn is None:
        raise ValueError("a fit that is not complete has no model")
    coefficients, intercept = drawn.coefficients()
    return LinearModel(
        coefficients * slopes.slope,
        (intercept + drawn.offset) * slopes.slope + slopes.shift,
        drawn.columns,
        prior_slope=slopes.prior_slope,
    )


def _of_gradients(
    descended: Descended, released: Released, calibrated: Calibrated, n_features: int
) -> LinearModel:
    slopes = calibrated.slope * (calibrated.label_slopes if calibrated.label_slopes.size else 1.0)
    slopes = np.zeros(descended.offset.size) + slopes
    length, columns = released.length, descended.columns
    exponents = released.kept_exponents
    scales = SCALES[exponents] if exponents.size else np.ones(1)
    centres = released.kept_centres
    errors = calibrated.slope * descended.errors / length * scales
    errors = np.broadcast_to(errors, len(descended.weights))
    if calibrated.label_slopes.size:
        errors = calibrated.label_slopes[:, np.newaxis] * errors
    coefficients: Any = np.ascontiguousarray(descended.weights.T) * (slopes / length).reshape(-1, 1)
    if columns.size:
        n_outputs, count = coefficients.shape
        kind = np.int32 if n_features < 2**31 else np.int64
        places = np.tile(columns.astype(kind), n_outputs)
        pointers = np.arange(n_outputs + 1, dtype=kind) * count
        parts = coefficients.ravel(), places, pointers
        coefficients = csr_array(parts, shape=(n_outputs, n_features))
    return LinearModel(
        coefficients,
        (descended.intercept + descended.offset) * slopes + calibrated.shift,
        columns,
        np.asarray(errors),
        scales if exponents.size else None,
        centres if centres.size else None,
        calibrated.prior_slope,
    )


def reading_for(model: Any) -> tuple[Scaling, float | None]:
    """Return how a model's rows are scaled, or the bound to which their entries are clipped."""
    released, n_features = model.released, model.n_features
    drawn = released.drawn_columns
    if released.last(Descended) is None:
        kept = np.unique(model.linear.coefficients.indices)
        # A matrix needs at least one column, also if no column has a weight.
        kept = kept if kept.size else np.arange(1)
        return Scaling(kept, 0.0, None), model.statement.number("feature_bound")
    row_norm = model.params.get("row_norm", "unit")
    row_norm = None if row_norm == "unit" else float(row_norm)
    constant = CONSTANT if model.params["fit_intercept"] else 0.0
    scaling = released.scaling(constant, row_norm, from_prior=model.prior is not None)
    if model.prior is not None:
        # Rows have their unit length in all columns.
        around = scaling.around
        if drawn is not None:
            around = spread(around, drawn, n_features)
        return Scaling(NO_COLUMNS, constant, scaling.norm_bound, around), None
    return scaling if drawn is None else scaling._replace(kept=drawn), None


def steps_of(released: Released) -> int:
    """Return the number of vertices drawn, or else of gradients taken."""
    drawn = released.last(Drawn)
    if drawn is not None:
        return int(drawn.vertex.size)
    releases: list[Release | None] = [entry.release for entry in released.entries]
    return sum(release.n_steps for release in releases if isinstance(release, Descended))


@dataclass(frozen=True)
class MatchedPrior:
    """A public linear model with a weight for each column of the records.

    Weights, shape (K, D), act on the same rows as the fit's weights. `intercept` has shape (K,);
    in a regression it is for targets in [-1, 1]. The standard errors, shape (K, D), are those by
    noise.
    """

    weights: NDArray[np.float64] = field(repr=False)
    intercept: NDArray[np.float64] = field(repr=False)
    source: str
    standard_error: NDArray[np.float64] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        error = self.standard_error
        if self.weights.ndim != 2 or self.intercept.shape != self.weights.shape[:1]:
            raise ValueError("the weights and intercepts of its prior do not fit together")
        if error is not None and error.shape != self.weights.shape:
            raise ValueError("the standard errors of its prior do not fit its weights")
        if not all(np.isfinite(part).all() for part in self._numbers):
            raise ValueError("its prior has NaN or infinity")

    @property
    def _numbers(self) -> list[NDArray[np.float64]]:
        error = self.standard_error
        return [self.weights, self.intercept, *([] if error is None else [error])]

    @cached_property
    def digest(self) -> str:
        """64 hexadecimal digits that change with any of its numbers."""
        digest = sha256()
        for part in self._numbers:
            plain = np.ascontiguousarray(part, dtype="<f8")
            # Adding zero makes both zeros one.
            digest.update(repr(plain.shape).encode() + (plain + 0.0).tobytes())
        return digest.hexdigest()

    @property
    def description(self) -> str:
        """Source and digest, for the statement."""
        return f"{self.source} (digest {self.digest[:_SHOWN]})"

    def to_json(self) -> dict[str, Any]:
        """Return its entry in the header of a model file."""
        return {
            "source": self.source,
            "digest": self.digest,
            "shape": list(self.weights.shape),
            "intercept": self.intercept.tolist(),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return its arrays in a model file: the non-zero weights, and all noise."""
        flat, error = self.weights.ravel(), self.standard_error
        places = np.flatnonzero(flat)
        arrays = places, flat[places], np.zeros(0) if error is None else error.ravel()
        return {
            name: np.ascontiguousarray(array, dtype=ARRAYS[name])
            for name, array in zip(ARRAYS, arrays, strict=True)
        }


def prior_from(entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> MatchedPrior:
    """Rebuild a prior from a model file; ValueError if its parts do not fit together."""
    outputs, n_features = entry["shape"]
    intercept = np.array(entry["intercept"], dtype=np.float64)
    place, weight, noise = (arrays[name] for name in ARRAYS)
    weights = np.zeros((outputs, n_features))
    weights.flat[place] = weight
    error = noise.reshape(weights.shape) if noise.size else None
    prior = MatchedPrior(weights, intercept, entry["source"], error)
    if prior.digest != entry["digest"]:
        raise ValueError("the digest of its prior does not fit")
    return prior
