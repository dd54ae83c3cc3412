"""Phases that find units and centres of columns that no schema made."""

from functools import partial

import numpy as np

from dplasso.gradient_descent import magnitudes as by_magnitude
from dplasso.phases.course import (
    Course,
    Descent,
    course_phase,
    noise_of_share,
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


def _magnitudes(descent: Descent) -> Phase:
    """Count the magnitudes of each column's entries, and again whenever columns were centred."""

    def part(course: Course, released: Released, budget: Budget) -> float | None:
        share, centred = _share(descent, course, budget), released.every(Centred)
        is_due = released.drawn_columns is None
        if released.last(Magnitudes) is not None:
            before = centred[-2].centres if len(centred) > 1 else 0.0
            has_moved = isinstance(released.entries[-1].release, Centred)
            is_due = has_moved and bool(np.any(centred[-1].centres != before))
        return None if share is None or not is_due else budget.share_of_features(share)

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        rows, scaling = descent.rows(fit, course, released), descent.scaling(fit, released)
        moved = fit.budget.moved_by_features(1.0)
        deviation = deviation_of(moved, mu)
        counts = fit.noisy(partial(rows.magnitudes, scaling), moved, mu, course.n_records)
        counts = counts.reshape(-1, by_magnitude.N_MAGNITUDES)
        clear = by_magnitude.clear_counts(counts, deviation)
        sizes, before = by_magnitude.sizes_of(clear), released.last(Magnitudes)
        if before is not None:
            # Centred entries are mostly smaller, but a column that seems too large hides no other.
            sizes = np.where(sizes == by_magnitude.HIDDEN, before.sizes, sizes)
        bounds = by_magnitude.bounds_of(clear, deviation, course.n_records)
        squares = np.zeros(0)
        if clear.any() and (bounds.any() or released.last(Centred) is not None):
            exponents = by_magnitude.scale_exponents_of(sizes)
            squares = by_magnitude.squares_of(clear, exponents, deviation, course.n_records)
            if not descent.keeps_lengths:
                squares = by_magnitude.squares_of_many(squares, exponents, bounds)
        return Magnitudes(sizes, bounds, squares)

    return course_phase(
        descent,
        "magnitudes",
        float(descent.n_columns * by_magnitude.N_MAGNITUDES),
        part,
        make,
        words="up to three noisy counts of the magnitudes of every column's entries",
        numbers=sensitivity,
    )


def _centres(descent: Descent) -> Phase:
    """Release the means of columns without zeros, after their magnitudes."""

    def part(course: Course, released: Released, budget: Budget) -> float | None:
        share, measured = _share(descent, course, budget), released.entries[-1].release
        if share is None or not (isinstance(measured, Magnitudes) and measured.bounds.any()):
            return None
        return budget.share_of_features(by_magnitude.SUMS_PART * share)

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        rows, scaling = descent.rows(fit, course, released), descent.scaling(fit, released)
        moved = fit.budget.moved_by_features(1.0)
        measured, before = released.last(Magnitudes), released.last(Centred)
        assert measured is not None, "columns without zeros are found by magnitude"
        noise = deviation_of(moved, mu), course.n_records
        scales = by_magnitude.scales_of_sums(measured.bounds, measured.sizes, *noise)
        sums = partial(rows.column_sums, scaling, *scales)
        totals = fit.noisy(sums, moved, mu, course.n_records)
        means = by_magnitude.centres_of(totals, *scales, *noise)
        return Centred(means if before is None else means + before.centres)

    return course_phase(
        descent,
        "centres",
        float(descent.n_columns),
        part,
        make,
        words="up to two noisy sums of the entries of every column without zeros",
        numbers=sensitivity,
    )
