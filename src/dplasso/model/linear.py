"""The linear model that follows from what a fit released, how it reads rows, and public priors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.gradient_descent.energies import scale_exponents_of, scales_of, shrinking
from dplasso.gradient_descent.schedule import CONSTANT
from dplasso.matrix.scaling import NO_SCALE_EXPONENTS, spread
from dplasso.phases.released import Released
from dplasso.phases.releases import (
    Calibrated,
    Counted,
    Descended,
    Drawn,
    Release,
    Significant,
    Started,
)

# A model file's arrays of a prior, and their types: where in the rows of weights, one after the
# other, those that follow stand (empty: all do), and their noise (empty: none; one number: of all).
ARRAYS = {"prior_place": "<i8", "prior_weight": "<f8", "prior_error": "<f8"}
# Digits of the digest that a text shows.
_SHOWN = 16


def n_outputs_of(n_classes: int, *, many_labels: bool = False) -> int:
    """Return how many margins a record has: K for more than two classes, otherwise 1.

    With `many_labels`, of which a record has or has not each, one for each.
    """
    return n_classes if n_classes > 2 or many_labels else 1


@dataclass(frozen=True)
class LinearModel:
    """Weights and what is known of them; those of a public start are not in it.

    `coefficients`, shape (K, D): sparse where columns were selected. `intercept`, shape (K,).
    `columns`, shape (k,): those that may have a weight, ascending; empty for all.
    `standard_errors`, shape (k,), or (L, k) for L labels: of each weight by the noise alone; None
    where the method has none.
    `scales`, shape (k,) or (D,): what columns are multiplied by before rows are scaled, or None.
    `prior_slope`: what weights and intercepts of a public start are multiplied by before these are
    added.
    """

    coefficients: Any
    intercept: NDArray[np.float64]
    columns: NDArray[np.int64]
    standard_errors: NDArray[np.float64] | None = None
    scales: NDArray[np.float64] | None = None
    prior_slope: float = 1.0


class Reading(NamedTuple):
    """How a model reads rows: clipped, or scaled.

    `kept`, shape (k,): columns that rows are looked at in, ascending; None for all.
    `bound`: entries are clipped to [-bound, bound]; None for scaled rows.
    `norm_bound`: what longer rows are scaled down to and all divided by; None for unit rows.
    `constant`: the constant entry of a scaled row, as a part of its unit length.
    `scale_exponents`, shape (k,) or (D,): how often the entries of these columns are halved
    before rows are scaled; empty for never.
    """

    kept: NDArray[np.integer] | None
    bound: float | None
    norm_bound: float | None
    constant: float
    scale_exponents: NDArray[np.int8] = NO_SCALE_EXPONENTS


def linear_model(released: Released, n_features: int) -> LinearModel:
    """Return the model that a complete fit released; ValueError if it is not complete."""
    found, drawn = released.last(Descended), released.last(Drawn)
    slopes = released.last(Calibrated) or _uncalibrated(released)
    if found is not None:
        return _of_gradients(found, released, slopes, n_features)
    if drawn is None:
        raise ValueError("a fit that is not complete has no model")
    coefficients, intercept = drawn.coefficients()
    return LinearModel(
        coefficients * slopes.slope,
        (intercept + drawn.offset) * slopes.slope + slopes.shift,
        drawn.columns,
        prior_slope=slopes.prior_slope,
    )


def _uncalibrated(released: Released) -> Calibrated:
    start = released.last(Started)
    if start is None:
        return Calibrated(1.0, np.zeros(1))
    return Calibrated(1.0, start.shift, start.slope)


def _of_gradients(
    found: Descended, released: Released, calibrated: Calibrated, n_features: int
) -> LinearModel:
    slopes = calibrated.slope * (calibrated.label_slopes if calibrated.label_slopes.size else 1.0)
    slopes = np.zeros(found.offset.size) + slopes
    length, marks = released.length, released.last(Significant)
    columns, weights = found.columns, found.weights
    energies, kept = released.energies, released.kept_columns
    scales = scales_of(energies[kept] if energies.size and kept.size else energies)
    if marks is not None:
        columns = np.flatnonzero(marks.marks.any(axis=1))
        weights = np.where(marks.marks, weights, 0.0)[columns]
    errors = calibrated.slope * found.errors / length * scales
    errors = np.broadcast_to(errors, len(found.weights))
    if marks is not None:
        errors = errors[columns]
    if calibrated.label_slopes.size:
        errors = calibrated.label_slopes[:, np.newaxis] * errors
    coefficients: Any = np.ascontiguousarray(weights.T) * (slopes / length).reshape(-1, 1)
    if columns.size or marks is not None:
        coefficients = _sparse(coefficients, columns, n_features)
    return LinearModel(
        coefficients,
        (found.intercept + found.offset) * slopes + calibrated.shift,
        columns,
        np.asarray(errors),
        scales if energies.size else None,
        calibrated.prior_slope,
    )


def _sparse(weights: NDArray[np.float64], columns: NDArray[np.int64], n_features: int) -> csr_array:
    n_outputs, count = weights.shape
    kind = np.int32 if n_features < 2**31 else np.int64
    pointers = np.arange(n_outputs + 1, dtype=kind) * count
    places = np.tile(columns.astype(kind), n_outputs)
    found = csr_array((weights.flatten(), places, pointers), shape=(n_outputs, n_features))
    if n_outputs > 1:
        # A column keeps only its significant weights.
        found.eliminate_zeros()
    return found


def reading_of(
    released: Released,
    n_features: int,
    *,
    row_norm: float | None,
    fit_intercept: bool,
    feature_bound: float | None,
    from_prior: bool,
) -> Reading:
    """Return how the model reads rows: as the gradients read them, or the vertices did."""
    drawn, kept = released.drawn_columns, released.kept_columns
    if released.last(Descended) is None:
        kept = np.unique(linear_model(released, n_features).coefficients.indices)
        # A matrix needs at least one column, also if no column has a weight.
        return Reading(kept if kept.size else np.arange(1), feature_bound, None, 0.0)
    energies = released.energies
    own = energies[kept] if energies.size and kept.size else energies
    if row_norm is not None and energies.size:
        row_norm *= shrinking(energies if from_prior else own)
    constant, columns = CONSTANT if fit_intercept else 0.0, kept if drawn is None else drawn
    if from_prior:
        # Rows have their unit length in all columns.
        scale_exponents = scale_exponents_of(energies)
        scale_exponents = (
            scale_exponents if drawn is None else spread(scale_exponents, drawn, n_features)
        )
        return Reading(None, None, row_norm, constant, scale_exponents)
    return Reading(
        columns if columns.size else None, None, row_norm, constant, scale_exponents_of(own)
    )


def reading_for(model: Any) -> Reading:
    """Return how a model reads rows."""
    norm = model.params.get("row_norm", "unit")
    return reading_of(
        model.released,
        model.n_features,
        row_norm=None if norm == "unit" else float(norm),
        fit_intercept=model.params["fit_intercept"],
        feature_bound=model.statement.number("feature_bound"),
        from_prior=model.prior is not None,
    )


def counted_records(released: Released, is_private: bool) -> float | None:
    """Return the number of records where it is a release; None where it was given or is exact."""
    counted = released.last(Counted)
    return counted.total if is_private and counted is not None else None


def method_words(released: Released, learns_numbers: bool) -> str:
    """Return what made a model, in words."""
    if released.last(Drawn) is not None:
        return "LASSO by Frank-Wolfe"
    return "linear regression" if learns_numbers else "logistic regression"


def steps_of(released: Released) -> int:
    """Return how many vertices were drawn, or else how many gradients were taken."""
    drawn = released.last(Drawn)
    if drawn is not None:
        return int(drawn.vertex.size)
    found: list[Release | None] = [one.release for one in released.entries]
    return sum(one.n_steps for one in found if isinstance(one, Descended))


@dataclass(frozen=True)
class MatchedPrior:
    """A public linear model, matched to the records: a weight for each of their columns.

    `weights`, shape (K, D): of the margins, finite; K = 1 for two classes and for a regression.
    They act on the same rows as the fit's weights: unit rows, or clipped rows for the LASSO.
    `intercept`, shape (K,): the margins' constants; in a regression for targets in [-1, 1].
    `standard_error`, shape (K, D): standard deviation of each weight by noise, or None.
    `source`: a description.
    `digest`: 64 hexadecimal digits that change with any of its numbers.
    """

    weights: NDArray[np.float64] = field(repr=False)
    intercept: NDArray[np.float64] = field(repr=False)
    standard_error: NDArray[np.float64] | None = field(repr=False)
    source: str
    digest: str

    def __post_init__(self) -> None:
        error = self.standard_error
        if self.weights.ndim != 2 or self.intercept.shape != self.weights.shape[:1]:
            raise ValueError("the weights and intercepts of its prior do not fit together")
        if error is not None and error.shape != self.weights.shape:
            raise ValueError("the standard errors of its prior do not fit its weights")
        numbers = [self.weights, self.intercept] + ([] if error is None else [error])
        if not all(np.isfinite(part).all() for part in numbers):
            raise ValueError("its prior has NaN or infinity")

    @property
    def description(self) -> str:
        """Source and digest, for the statement."""
        return f"{self.source} (digest {self.digest[:_SHOWN]})"

    def to_json(self) -> dict[str, Any]:
        """Return what a model file's header says of it."""
        outputs, n_features = self.weights.shape
        return {
            "source": self.source,
            "digest": self.digest,
            "shape": [outputs, n_features],
            "intercept": self.intercept.tolist(),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return a model file's arrays of it: of mostly zeros, the other weights alone."""
        flat, error = self.weights.ravel(), self.standard_error
        places = np.flatnonzero(flat)
        dense = 2 * places.size > flat.size
        noise = np.zeros(0) if error is None else error.ravel()
        if noise.size and (noise == noise[0]).all():
            noise = noise[:1]
        arrays = (places[: 0 if dense else None], flat if dense else flat[places], noise)
        return {
            name: np.ascontiguousarray(array, dtype=ARRAYS[name])
            for name, array in zip(ARRAYS, arrays, strict=True)
        }


def matched_prior(
    weights: NDArray[np.float64],
    intercept: NDArray[np.float64],
    source: str,
    standard_error: NDArray[np.float64] | None = None,
) -> MatchedPrior:
    """Return a prior with its digest; ValueError if its numbers are not finite or do not fit."""
    numbers = [weights, intercept] + ([] if standard_error is None else [standard_error])
    digest = sha256()
    for part in numbers:
        plain = np.ascontiguousarray(part, dtype="<f8")
        # Adding zero makes both zeros one.
        digest.update(repr(plain.shape).encode() + (plain + 0.0).tobytes())
    return MatchedPrior(weights, intercept, standard_error, source, digest.hexdigest())


def prior_from(entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> MatchedPrior:
    """Rebuild a prior from a model file; ValueError if its parts do not fit together."""
    outputs, n_features = entry["shape"]
    intercept = np.array(entry["intercept"], dtype=np.float64)
    place, weight, noise = (arrays[name] for name in ARRAYS)
    if place.size:
        flat = np.zeros(outputs * n_features)
        flat[place] = weight
    else:
        flat = np.array(weight) if weight.size else np.zeros(outputs * n_features)
    shape = outputs, n_features
    error = None
    if noise.size:
        error = np.full(shape, noise[0]) if noise.size == 1 else noise.reshape(shape)
    prior = matched_prior(flat.reshape(shape), intercept, entry["source"], error)
    if prior.digest != entry["digest"]:
        raise ValueError("the digest of its prior does not fit")
    return prior
