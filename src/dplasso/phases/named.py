"""Intervals of named columns among many, with public rows that predict these columns.

The sums multiply a record's residual by z, the part of the named column that a linear function of
the other columns leaves in public rows. So errors of the private fit are not correlated with z
(double machine learning, arXiv 1608.00060).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.noisy_descent import gradient_unit
from dplasso.gradient_descent.row_sums import Units
from dplasso.phases.contract import Fit, Phase, at_once, deviation_of
from dplasso.phases.course import Descent
from dplasso.phases.inference import MOST_COLUMNS, fitted_weights, spent
from dplasso.phases.released import Released
from dplasso.phases.releases import Release
from dplasso.privacy.budget import Budget, Draws
from dplasso.privacy.parameters import share_bits

# Parts of the share for the sums of r z, z x and (r z)^2.
_PARTS = (0.6, 0.1, 0.3)
# A coefficient is identified if the sum of z x exceeds this many standard deviations of its noise.
_CLEAR = 5.0
_DIGITS = 12


@dataclass(frozen=True)
class PublicPredictions:
    """Linear predictions of the named columns from all others, learnt from public rows.

    `weights`, shape (k, D), and `intercepts` predict the k columns `places`. `remainders` bounds
    z, which is a column less its prediction, and `entries` the column; 0 for a column of which
    public rows say too little. `baselines`: their reference categories, -1 for none. `n_adjusted`:
    columns that predict.
    """

    n_rows: int
    n_adjusted: int
    places: NDArray[np.int64]
    weights: Any
    intercepts: NDArray[np.float64]
    remainders: NDArray[np.float64]
    entries: NDArray[np.float64]
    baselines: NDArray[np.int64]

    @cached_property
    def description(self) -> str:
        """What it is, for the statement."""
        parts = self.places, self.weights.indices, self.weights.data, self.intercepts
        digest = sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
        return f"{self.n_rows:,} public rows without labels (digest {digest[:_DIGITS]})"


@dataclass(frozen=True)
class NamedSums(Release):
    """Noisy sums for the columns `places`, an array entry for each of them.

    `start`: coefficients of the fit. `scores`, `curvatures`, `squares`: sums of r z, z x and
    (r z)^2, each with the standard deviations of its noise. The other fields are public.
    """

    kind: ClassVar[str] = "named"
    dtypes: ClassVar[Mapping[str, str]] = {"places": "<i8", "references": "<i8"}

    places: NDArray[np.int64]
    start: NDArray[np.float64]
    scores: NDArray[np.float64]
    curvatures: NDArray[np.float64]
    squares: NDArray[np.float64]
    score_deviations: NDArray[np.float64]
    curvature_deviations: NDArray[np.float64]
    square_deviations: NDArray[np.float64]
    n_records: float
    n_public: int
    n_adjusted: int
    references: NDArray[np.int64]

    def __post_init__(self) -> None:
        super().__post_init__()
        own = (getattr(self, name) for name in list(self.types())[:8])
        if {part.shape for part in own} != {(self.places.size,)} or self.places.min(initial=0) < 0:
            raise ValueError("its sums are not those of its named columns")

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Whether the noise leaves each coefficient identified."""
        clear: NDArray[np.bool_] = self.curvatures > _CLEAR * self.curvature_deviations
        return clear

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """The coefficients, after a Newton step from those of the fit."""
        return self.start + self._step

    @property
    def _step(self) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            step: NDArray[np.float64] = self.scores / self.curvatures
        return step

    def errors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the standard errors by noise and by sampling, of records and of public rows.

        The prediction errs because the public rows are a sample. What the private fit misses is
        then correlated with z by chance, as if each public row had a residual like a record's.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            noise = np.hypot(self.score_deviations, self._step * self.curvature_deviations)
            squares = np.maximum(self.squares, 0.0) + self.square_deviations
            sampling = np.sqrt(squares * (1.0 + self.n_records / self.n_public))
            return noise / self.curvatures, sampling / self.curvatures


def named_columns(
    descent: Descent, loss: Any, whole: float, predictions: PublicPredictions | None
) -> Phase:
    """Return the phase with a share `whole`; `predictions` are None before there are data."""

    def make(fit: Fit, released: Released, mu: float) -> NamedSums:
        course = descent.course(released, fit.budget)
        assert course is not None, "gradients come first"
        assert predictions is not None, "public rows come before records"
        coefficients, intercept = fitted_weights(descent, fit, course, released)
        rows, bits = descent.rows(fit, course, released), share_bits(course.n_records)
        bounds = loss.residual_bound, 1.0, loss.residual_bound**2
        moved = _moved(fit.budget, loss)
        # All columns share the budget alike.
        (estimated,) = np.nonzero(predictions.remainders)
        own = mu / math.sqrt(max(1, estimated.size))
        mus = [own * math.sqrt(part) for part in spent(moved, _PARTS)]
        deviations = [deviation_of(far, part) for far, part in zip(moved, mus, strict=True)]
        units = Units(*map(gradient_unit, bounds, deviations, 3 * [bits]))
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
        z, x = predictions.remainders, predictions.entries
        scales = np.array([z, z * x, z * z])
        sums, noise = scales * sums, scales * np.array(deviations)[:, np.newaxis]
        baselines = predictions.baselines
        # What a category adds to the margin, over what its reference category adds.
        start = coefficients[predictions.places]
        start -= np.where(baselines >= 0, coefficients[baselines], 0.0)
        return NamedSums(
            predictions.places,
            start,
            sums[0],
            sums[1],
            sums[2],
            noise[0],
            noise[1],
            noise[2],
            course.n_records,
            predictions.n_rows,
            predictions.n_adjusted,
            np.unique(baselines[baselines >= 0]),
        )

    def stated(budget: Budget) -> dict[str, float]:
        names = ("scores", "curvature", "squares")
        moved = _moved(budget, loss)
        costs = {
            f"share_{name}": whole * part
            for name, part in zip(names, spent(moved, _PARTS), strict=True)
        }
        own = {f"sensitivity_{name}": far for name, far in zip(names, moved, strict=True)}
        return {"share": whole, "sensitivity": budget.moved(1.0)} | costs | own

    words = (
        f"three noisy sums for the interval of each named column, with {100.0 * whole:g} % of "
        "mu^2: of what public rows leave of the column, times residuals, times itself, and both "
        "squared"
    )
    draws = Draws(gaussian=3.0 * MOST_COLUMNS)
    return Phase("inference", draws, lambda *_: whole, at_once(make), words, stated)


def _moved(budget: Budget, loss: Any) -> tuple[float, float, float]:
    """Return how far a record moves each sum of a column, over the bounds of z and x."""
    bound = loss.residual_bound
    return budget.moved(bound), budget.moved_by_features(1.0), budget.moved(bound**2)
