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
    n_releases = len([*released.every(Magnitudes), *released.every(Centred)])
    return n_releases * (_share(descent, course, budget) or 0.0)


def _share(descent: Descent, course: Course, budget: Budget) -> float | None:
    """Return the share of each release; None for too few records."""
    whole = noise_of_share(course, budget, 1.0)
    return by_magnitude.share_of(course.n_records, descent.n_columns, whole)


# ``found(sums, deviation, n_records, released)``: a release by sums with noise of a deviation.
_Found = Callable[[NDArray[np.float64], float, float, Released], Release]


def _phase(
    descent: Descent,
    name: str,
    per_column: int,
    is_due: Callable[[Released], bool],
    sums: Callable[[Any, Any, Released, float], NDArray[np.int64]],
    found: _Found,
    words: str,
) -> Phase:
    """Return a phase of ``sums(rows, scaling, released, unit)``, so many for each column."""

    def part(course: Course, released: Released, budget: Budget) -> float | None:
        share = _share(descent, course, budget)
        return None if share is None or not is_due(released) else budget.share_of_features(share)

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        rows, scaling = descent.rows(fit, course, released), descent.scaling(fit, released)
        own = release_features(fit, course, mu, lambda unit: sums(rows, scaling, released, unit))
        deviation = deviation_of(fit.budget.moved_by_features(1.0), mu)
        return found(own[0] / own[1], deviation, course.n_records, released)

    draws = float(descent.n_columns * per_column)
    return course_phase(descent, name, draws, part, make, words=words, numbers=sensitivity)


def _magnitudes(descent: Descent) -> Phase:
    """Count the magnitudes of each column's entries, and again whenever columns were centred."""

    def is_due(released: Released) -> bool:
        known = released.last(Magnitudes) is not None
        known &= not isinstance(released.entries[-1].release, Centred)
        return not known and released.drawn_columns is None

    def found(
        sums: NDArray[np.float64], deviation: float, n_records: float, released: Released
    ) -> Release:
        counts = sums.reshape(-1, by_magnitude.N_MAGNITUDES)
        clear = by_magnitude.clear_counts(counts, deviation)
        sizes = by_magnitude.sizes_of(clear)
        before, centred = released.last(Magnitudes), released.last(Centred)
        if before is not None and centred is not None:
            # Other columns have the entries that they had.
            same = (sizes == by_magnitude.HIDDEN) & (centred.centres == 0.0)
            sizes[same] = before.sizes[same]
        bounds = by_magnitude.bounds_of(clear, deviation, n_records)
        squares = np.zeros(0)
        if descent.keeps_lengths and (bounds.any() or centred is not None):
            squares = by_magnitude.squares_of(clear, n_records)
        return Magnitudes(sizes, bounds, squares)

    return _phase(
        descent,
        "magnitudes",
        by_magnitude.N_MAGNITUDES,
        is_due,
        lambda rows, scaling, _, unit: rows.magnitudes(scaling, unit),
        found,
        "up to three noisy counts of the magnitudes of every column's entries",
    )


def _centres(descent: Descent) -> Phase:
    """Release the means of columns without zeros, after their magnitudes."""

    def is_due(released: Released) -> bool:
        measured = released.entries[-1].release
        return isinstance(measured, Magnitudes) and bool(measured.bounds.any())

    def measured_in(released: Released) -> Magnitudes:
        measured = released.last(Magnitudes)
        assert measured is not None, "columns without zeros are found by magnitude"
        return measured

    def found(
        sums: NDArray[np.float64], deviation: float, n_records: float, released: Released
    ) -> Release:
        measured, before = measured_in(released), released.last(Centred)
        own = measured.bounds, measured.sizes
        means = by_magnitude.centres_of(sums, *own, deviation, n_records)
        return Centred(means if before is None else means + before.centres)

    return _phase(
        descent,
        "centres",
        1,
        is_due,
        lambda rows, scaling, released, unit: rows.column_sums(
            scaling, measured_in(released).bounds, unit
        ),
        found,
        "up to two noisy sums of the entries of every column without zeros",
    )
