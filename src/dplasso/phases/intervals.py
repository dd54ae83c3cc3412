"""Phases after the gradients, for intervals with sampling error (docs/howto-inference.md).

The first takes a Newton step away from the weights of the fit, which are biased. The estimate and
its covariance come from the second.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.noisy_descent import gradient_unit
from dplasso.gradient_descent.row_sums import Units
from dplasso.matrix.scaling import Scaling, constant_entry
from dplasso.phases.course import Course, Descent
from dplasso.phases.moments import Moments, NamedSums, OneHot, triangle_size, with_references
from dplasso.phases.phase import Fit, Phase, at_once, deviation_of
from dplasso.phases.released import Released
from dplasso.phases.releases import NO_COLUMNS, Calibrated, Descended
from dplasso.privacy.budget import Budget, Draws
from dplasso.privacy.parameters import share_bits

# Parts of the share for gradient, curvature and squared residuals of both phases. Simulations chose
# them, and the rules of `dplasso.phases.moments`.
_STEP, _MOMENTS = (0.1, 0.1, 0.0), (0.4, 0.3, 0.1)
# The most columns: the sums have a number for each pair of them.
MOST_COLUMNS = 300
# The constant entry of a row, as a part of its length.
_CONSTANT = 0.5
# Half the width of the margins over which a clipped loss is compared with the logistic one.
_AROUND = 2.0

# A plan expects coefficients to be identified from this curvature on, over the edge of the noise.
_IDENTIFIED = 2.2
# Directions with less curvature are lost, or almost.
_LARGEST_RATIO = 0.9


class Precision(NamedTuple):
    """The noise of the sums for intervals, from public numbers."""

    budget: Budget
    share: float
    loss: Any
    n_columns: int
    norm_bound: float
    fit_intercept: bool

    def of(
        self, curvature: float, squares: float, spread: float, *, noise: bool = True
    ) -> tuple[float, bool]:
        """Return the standard error of a coefficient, and whether it will be identified.

        `curvature`, `squares`: sums over the records of the residuals' derivatives and squares.
        `spread`: standard deviation of each column.
        """
        scale = math.sqrt(1.0 - (_CONSTANT if self.fit_intercept else 0.0) ** 2) / self.norm_bound
        energy = (scale * spread) ** 2
        value, size = curvature * energy, self.n_columns + self.fit_intercept
        bounds = _private_bounds(self.loss, self.budget)
        own, later = spent(bounds, _STEP), spent(bounds, _MOMENTS)
        parts = own[0], later[0], own[1] + later[1]
        first, gradient, bend = (
            self.budget.moved(bound) / self.budget.mu_of(self.share * part)
            if bound * noise
            else 0.0
            for bound, part in zip((bounds[0], *bounds[:2]), parts, strict=True)
        )
        # Noise spreads equal eigenvalues by this much to both sides.
        edge = bend * math.sqrt(2.0 * size)
        wider = _of_inverse(edge / value)
        # The last step removes the noise of the first, whose curvature is at most half as precise.
        step = first**2 * _of_inverse(2.0 * edge / value)
        step += (gradient**2 + squares * energy) * wider
        of_curvature = bend**2 / 2.0 * (size + 1.0) * step / value**2
        variance = (squares * energy + gradient**2 + of_curvature) * wider / value**2
        return scale * math.sqrt(variance), value > _IDENTIFIED * edge


def _of_inverse(ratio: float) -> float:
    """Return by how much noise with the semicircle law raises an eigenvalue's mean inverse square.

    `ratio`: the noise's largest eigenvalue, over the eigenvalue.
    """
    ratio = min(ratio, _LARGEST_RATIO)
    if ratio < 1e-4:
        return 1.0
    return 2.0 / ratio**2 * (1.0 / math.sqrt(1.0 - ratio**2) - 1.0)


def inference(descent: Descent, loss: Any, whole: float, one_hot: OneHot = ()) -> tuple[Phase, ...]:
    """Return the two phases with a share `whole`; `loss` clips no residual of the model."""
    size = min(descent.n_columns, MOST_COLUMNS) + descent.fit_intercept
    pairs = triangle_size(size)

    def stated(budget: Budget) -> dict[str, float]:
        names = ("gradient", "curvature", "squares")
        bounds = _private_bounds(loss, budget)
        both = spent(bounds, _STEP), spent(bounds, _MOMENTS)
        parts = [whole * math.fsum(pair) for pair in zip(*both, strict=True)]
        costs = {f"share_{name}": part for name, part in zip(names, parts, strict=True)}
        moved = {
            f"sensitivity_{name}": budget.moved(bound)
            for name, bound in zip(names, bounds, strict=True)
        }
        return {"share": whole, "sensitivity": budget.moved(1.0)} | costs | moved

    def phase(parts: tuple[float, float, float]) -> Phase:
        def make(fit: Fit, released: Released, mu: float) -> Moments:
            course, before = descent.course(released, fit.budget), released.last(Moments)
            if before is None:
                weights = _fitted(descent, fit, course, released)
            else:
                weights = before.estimate().coefficients
            moments = _moments(descent, loss, fit, course, released, weights, mu, parts)
            if before is None:
                return with_references(moments, one_hot)
            moments = moments.with_curvature_of(before)
            return replace(moments, references=before.references)

        def share(budget: Budget, released: Released) -> float:  # noqa: ARG001
            return whole * math.fsum(parts)

        draws = Draws(gaussian=float(size + pairs * sum(part > 0.0 for part in parts[1:])))
        words = (
            f"noisy sums for intervals, with {100.0 * whole:g} % of mu^2: of residuals "
            "times rows, of the curvature and of squared residuals over all pairs of columns"
        )
        return Phase("inference", draws, share, at_once(make), words, stated)

    return phase(_STEP), phase(_MOMENTS)


def _bounds(loss: Any) -> tuple[float, float, float]:
    """Return how far a record moves each sum: gradient, curvature and squared residuals."""
    return loss.residual_bound, loss.curvature, loss.residual_bound**2


def _private_bounds(loss: Any, budget: Budget) -> tuple[float, float, float]:
    """Return the bounds that the noise is made for.

    If labels alone are private, another label changes an unclipped residual and its square by at
    most 1: twice half of their bounds. It does not change the curvature.
    """
    if budget.moved_by_features(1.0) or not loss.bends_alike:
        return _bounds(loss)
    return 0.5, 0.0, 0.5


def spent(bounds: Sequence[float], parts: tuple[float, ...]) -> list[float]:
    """Return the parts of a phase once a sum that needs no noise leaves its own to the others."""
    paid = [part if bound else 0.0 for bound, part in zip(bounds, parts, strict=True)]
    more = math.fsum(parts) / math.fsum(paid)
    return [more * part for part in paid]


def noises(
    bounds: tuple[float, ...],
    moved: list[float],
    parts: tuple[float, ...],
    mu: float,
    n_records: float,
) -> tuple[list[float], list[float], Units]:
    """Divide a phase's mu among its sums; return the mu, deviation and unit of each, 0 for none.

    `bounds`: the most that a record adds to each. `moved`: how far neighbours differ in each.
    """
    whole, bits = math.fsum(parts), share_bits(n_records)
    mus = [mu * math.sqrt(part / whole) if part else 0.0 for part in spent(moved, parts)]
    deviations = [
        deviation_of(far, own) if own else 0.0 for far, own in zip(moved, mus, strict=True)
    ]
    units = (
        gradient_unit(bound, deviation, bits) if part else 0.0
        for bound, deviation, part in zip(bounds, deviations, parts, strict=True)
    )
    return mus, deviations, Units(*units)


def _scaling(descent: Descent) -> tuple[Scaling, float]:
    """Return how rows are scaled, and what the entries of those that are not too long become."""
    constant, norm_bound = _CONSTANT if descent.fit_intercept else 0.0, descent.norm_bound
    assert norm_bound is not None, "coefficients of unit rows are not those of the columns"
    scaling = Scaling(NO_COLUMNS, constant, norm_bound)
    return scaling, math.sqrt(1.0 - constant * constant) / norm_bound


def _moments(
    descent: Descent,
    loss: Any,
    fit: Fit,
    course: Course,
    released: Released,
    weights: NDArray[np.float64],
    mu: float,
    parts: tuple[float, float, float],
) -> Moments:
    """Release the sums at some weights, each with its part of a phase's budget."""
    size, moved = weights.size, [fit.budget.moved(far) for far in _private_bounds(loss, fit.budget)]
    mus, deviations, units = noises(_bounds(loss), moved, parts, mu, course.n_records)
    scaling, entry_scale = _scaling(descent)
    totals = descent.rows(fit, course, released).moments(loss, scaling, weights, units)
    pairs = triangle_size(size)
    sums = np.split(totals, [size, size + pairs])
    noisy = [
        fit.release(total, far, own, unit) / unit if unit else np.zeros(0)
        for total, far, own, unit in zip(sums, moved, mus, units, strict=True)
    ]
    gradient, curvature, squares = noisy
    return Moments(
        weights,
        gradient,
        curvature,
        squares,
        gradient_deviation=deviations[0],
        curvature_deviation=deviations[1],
        squares_deviation=deviations[2],
        n_records=course.n_records,
        entry_scale=entry_scale,
        constant=constant_entry(scaling.constant),
    )


def _fitted(descent: Descent, fit: Fit, course: Course, released: Released) -> NDArray[np.float64]:
    """Return the weights of the fit for rows as the sums take them.

    Of classes they are those of the logistic loss with about the same probabilities.
    """
    descended, (scaling, entry_scale) = released.last(Descended), _scaling(descent)
    before = descent.scaling(fit, released)
    assert descended is not None, "gradients come first"
    assert before.norm_bound is not None, "rows keep their lengths"
    slopes = released.last(Calibrated) or Calibrated(1.0, np.zeros(1))
    factor = math.sqrt(1.0 - before.constant**2) / before.norm_bound / entry_scale
    weights = descended.weights[:, 0] * slopes.slope * factor
    margin = float(((descended.intercept + descended.offset) * slopes.slope + slopes.shift)[0])
    if course.loss.two_targets:
        ends = np.array([margin - _AROUND, margin + _AROUND]) - course.loss.offset
        chances = np.clip(course.loss.link(ends)[:, 1], 1e-6, 1.0 - 1e-6)
        low, high = np.log(chances / (1.0 - chances))
        weights, margin = weights * (high - low) / (2.0 * _AROUND), 0.5 * (low + high)
    if not descent.fit_intercept:
        return weights
    return np.append(weights, margin / constant_entry(scaling.constant))


# Named columns among many, with public rows that predict these columns. The sums multiply a
# record's residual by z, the part of the named column that a linear function of the other columns
# leaves in public rows. So errors of the private fit are not correlated with z (double machine
# learning, arXiv 1608.00060).
# Parts of the share for the sums of r z, z x and (r z)^2.
_NAMED_PARTS = (0.6, 0.1, 0.3)


@dataclass(frozen=True)
class PublicPredictions:
    """Linear predictions of the named columns from all others, learnt from public rows.

    `weights`, shape (k, D), and `intercepts` predict the k columns `places`. `remainders` bounds
    z, which is a column less its prediction, and `entries` the column; 0 for a column of which
    public rows say too little. `baselines`: their reference categories, -1 for none. `n_adjusted`:
    columns that predict. `description`: what it is, for the statement.
    """

    description: str
    n_rows: int
    n_adjusted: int
    places: NDArray[np.int64]
    weights: Any
    intercepts: NDArray[np.float64]
    remainders: NDArray[np.float64]
    entries: NDArray[np.float64]
    baselines: NDArray[np.int64]


def named_columns(
    descent: Descent, loss: Any, whole: float, predictions: PublicPredictions | None
) -> Phase:
    """Return the phase with a share `whole`; `predictions` are None before there are data."""

    def make(fit: Fit, released: Released, mu: float) -> NamedSums:
        course = descent.course(released, fit.budget)
        assert predictions is not None, "public rows come before records"
        scaling, entry_scale = _scaling(descent)
        # In the units of the columns.
        fitted = _fitted(descent, fit, course, released)
        coefficients = entry_scale * fitted[: descent.n_columns]
        intercept = constant_entry(scaling.constant) * float(fitted[descent.n_columns :].sum())
        rows = descent.rows(fit, course, released)
        bounds = loss.residual_bound, 1.0, loss.residual_bound**2
        # Over the bounds of z and x. No label enters the second sum.
        moved = [fit.budget.moved(bound) for bound in bounds]
        moved[1] = fit.budget.moved_by_features(bounds[1])
        # All columns share the budget alike.
        (estimated,) = np.nonzero(predictions.remainders)
        own = mu / math.sqrt(max(1, estimated.size))
        mus, deviations, units = noises(bounds, moved, _NAMED_PARTS, own, course.n_records)
        sums = np.zeros((3, predictions.places.size))
        for k in estimated:
            place = predictions.places[k]
            remainder, entry = float(predictions.remainders[k]), float(predictions.entries[k])
            weights = np.zeros((descent.n_columns, 3))
            weights[:, 0] = coefficients
            weights[:, 1] = -predictions.weights[[k]].toarray()[0] / remainder
            weights[place, 1] += 1.0 / remainder
            weights[place, 2] = 1.0 / entry
            offsets = np.array([intercept, -predictions.intercepts[k] / remainder, 0.0])
            totals = rows.named_sums(loss, weights, offsets, units)
            for kind, unit in enumerate(units):
                noisy = fit.release(totals[kind : kind + 1], moved[kind], mus[kind], unit)
                sums[kind, k] = noisy[0] / unit
        z, x, places = predictions.remainders, predictions.entries, predictions.places
        scales, baselines = np.array([z, z * x, z * z]), predictions.baselines
        noise = scales * np.array(deviations)[:, np.newaxis]
        # What a category adds to the margin, over what its reference category adds.
        start = coefficients[places]
        start -= np.where(baselines >= 0, coefficients[baselines], 0.0)
        public = predictions.n_rows, predictions.n_adjusted, np.unique(baselines[baselines >= 0])
        return NamedSums(places, start, scales * sums, noise, course.n_records, *public)

    def stated(budget: Budget) -> dict[str, float]:
        return {"share": whole, "sensitivity": budget.moved(1.0)}

    words = (
        f"three noisy sums for the interval of each named column, with {100.0 * whole:g} % of "
        "mu^2: of what public rows leave of it times residuals, times itself, and both squared"
    )
    return Phase(
        "inference", Draws(3.0 * MOST_COLUMNS), lambda *_: whole, at_once(make), words, stated
    )
