"""Intervals of named columns among many, with public rows that predict these columns.

The sums multiply a record's residual by z, the part of the named column that a linear function of
the other columns leaves in public rows. So errors of the private fit are not correlated with z
(double machine learning, arXiv 1608.00060).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.phases.contract import Fit, Phase, at_once
from dplasso.phases.course import Descent
from dplasso.phases.inference import MOST_COLUMNS, fitted_weights, noises
from dplasso.phases.moments import NamedSums
from dplasso.phases.released import Released
from dplasso.privacy.budget import Budget, Draws

# Parts of the share for the sums of r z, z x and (r z)^2.
_PARTS = (0.6, 0.1, 0.3)


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
        assert course is not None, "gradients come first"
        assert predictions is not None, "public rows come before records"
        coefficients, intercept = fitted_weights(descent, fit, course, released)
        rows = descent.rows(fit, course, released)
        bounds = loss.residual_bound, 1.0, loss.residual_bound**2
        # Over the bounds of z and x. No label enters the second sum.
        moved = [fit.budget.moved(bound) for bound in bounds]
        moved[1] = fit.budget.moved_by_features(bounds[1])
        # All columns share the budget alike.
        (estimated,) = np.nonzero(predictions.remainders)
        own = mu / math.sqrt(max(1, estimated.size))
        mus, deviations, units = noises(bounds, moved, _PARTS, own, course.n_records)
        sums = np.zeros((3, predictions.places.size))
        for k in estimated:
            place = predictions.places[k]
            remainder, entry = float(predictions.remainders[k]), float(predictions.entries[k])
            weights = np.zeros((fit.n_features, 3))
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
