"""The linear model that follows from what a fit released, and how it reads rows."""

from dataclasses import dataclass
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
        # Of a column, only the weights that are significant.
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
