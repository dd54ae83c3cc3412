"""Phases that find units and centres of columns that no schema made."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent import magnitudes as by_magnitude
from dplasso.phases.course import (
    Course,
    Descent,
    course_phase,
    noise_of_share,
    release_features,
    sensitivity,
)
from dplasso.phases.phase import Fit, Phase, deviation_of
from dplasso.phases.released import Released
from dplasso.phases.releases import Centred, Magnitudes, Release
from dplasso.privacy.budget import Budget


def raw_column_phases(descent: Descent) -> list[Phase]:
    """Return the phases; none for more columns than tables have."""
    if descent.n_columns > by_magnitude.MOST_COLUMNS:
        return []
    # Twice, because the bounds on centred entries are smaller.
    centred = [_centres(descent), _magnitudes(descent)] * 2 if descent.fit_intercept else []
    return [_magnitudes(descent), *centred]


def raw_columns_share(
    descent: Descent, course: Course, released: Released, budget: Budget
) -> float:
    """Return the share that these phases have had together."""
    n_counts, n_sums = len(released.every(Magnitudes)), len(released.every(Centred))
    share = _share(descent, course, budget) or 0.0
    return (n_counts + by_magnitude.SUMS_PART * n_sums) * share


def _share(descent: Descent, course: Course, budget: Budget) -> float | None:
    """Return the share of counts; None for too few records."""
    whole = noise_of_share(course, budget, 1.0)
    return by_magnitude.share_of(course.n_records, descent.n_columns, whole)


# ``sums(rows, scaling, unit, released, deviation, n_records)`` and ``found(sums, released,
# deviation, n_records)``: sums, and a release by them with noise of a deviation.
_Sums = Callable[[Any, Any, float, Released, float, float], NDArray[np.int64]]
_Found = Callable[[NDArray[np.float64], Released, float, float], Release]


def _phase(
    descent: Descent,
    name: str,
    per_column: int,
    of_share: float,
    is_due: Callable[[Released], bool],
    sums: _Sums,
    found: _Found,
    words: str,
) -> Phase:
    """Return a phase of so many sums for each column, with a part of the share."""

    def part(course: Course, released: Released, budget: Budget) -> float | None:
        share = _share(descent, course, budget)
        if share is None or not is_due(released):
            return None
        return budget.share_of_features(of_share * share)

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        rows, scaling = descent.rows(fit, course, released), descent.scaling(fit, released)
        deviation = deviation_of(fit.budget.moved_by_features(1.0), mu)
        own = released, deviation, course.n_records
        totals, unit = release_features(
            fit, course, mu, lambda unit: sums(rows, scaling, unit, *own)
        )
        return found(totals / unit, *own)

    draws = float(descent.n_columns * per_column)
    return course_phase(descent, name, draws, part, make, words=words, numbers=sensitivity)


def _magnitudes(descent: Descent) -> Phase:
    """Count the magnitudes of each column's entries, and again whenever columns were centred."""

    def is_due(released: Released) -> bool:
        if released.last(Magnitudes) is None:
            return released.drawn_columns is None
        centred = released.every(Centred)
        before = centred[-2].centres if len(centred) > 1 else 0.0
        has_moved = isinstance(released.entries[-1].release, Centred)
        return has_moved and bool(np.any(centred[-1].centres != before))

    def found(
        sums: NDArray[np.float64], released: Released, deviation: float, n_records: float
    ) -> Release:
        counts = sums.reshape(-1, by_magnitude.N_MAGNITUDES)
        clear = by_magnitude.clear_counts(counts, deviation)
        sizes = by_magnitude.sizes_of(clear)
        before, centred = released.last(Magnitudes), released.last(Centred)
        if before is not None:
            # Centred entries are mostly smaller, but a column that seems too large hides no other.
            sizes = np.where(sizes == by_magnitude.HIDDEN, before.sizes, sizes)
        bounds = by_magnitude.bounds_of(clear, deviation, n_records)
        squares = np.zeros(0)
        if descent.keeps_lengths and (bounds.any() or centred is not None):
            squares = by_magnitude.squares_of(clear, n_records)
        return Magnitudes(sizes, bounds, squares)

    return _phase(
        descent,
        "magnitudes",
        by_magnitude.N_MAGNITUDES,
        1.0,
        is_due,
        lambda rows, scaling, unit, *_: rows.magnitudes(scaling, unit),
        found,
        "up to three noisy counts of the magnitudes of every column's entries",
    )


def _centres(descent: Descent) -> Phase:
    """Release the means of columns without zeros, after their magnitudes."""

    def is_due(released: Released) -> bool:
        measured = released.entries[-1].release
        return isinstance(measured, Magnitudes) and bool(measured.bounds.any())

    def scales(
        released: Released, deviation: float, n_records: float
    ) -> tuple[NDArray[np.float64], float]:
        measured = released.last(Magnitudes)
        assert measured is not None, "columns without zeros are found by magnitude"
        return by_magnitude.scales_of_sums(measured.bounds, measured.sizes, deviation, n_records)

    def sums(
        rows: Any, scaling: Any, unit: float, released: Released, deviation: float, n_records: float
    ) -> NDArray[np.int64]:
        own: NDArray[np.int64] = rows.column_sums(
            scaling, *scales(released, deviation, n_records), unit
        )
        return own

    def found(
        sums: NDArray[np.float64], released: Released, deviation: float, n_records: float
    ) -> Release:
        own, before = scales(released, deviation, n_records), released.last(Centred)
        means = by_magnitude.centres_of(sums, *own, deviation, n_records)
        return Centred(means if before is None else means + before.centres)

    return _phase(
        descent,
        "centres",
        1,
        by_magnitude.SUMS_PART,
        is_due,
        sums,
        found,
        "up to two noisy sums of the entries of every column without zeros",
    )
