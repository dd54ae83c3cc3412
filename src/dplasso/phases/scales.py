"""Phases that release energies of the columns: their scales, and bounds on the curvature."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.energies import (
    CURVATURE_SHARE,
    NO_LOADS,
    SCALES_SHARE,
    largest_eigenvalue,
    loads_of,
    pays,
    reach_of,
    relative_energies,
    threshold,
    total_energy,
)
from dplasso.gradient_descent.noisy_descent import gradient_unit
from dplasso.phases.contract import Fit, OneRelease
from dplasso.phases.course import Applies, Course, Descent, Make, course_phase, length_share
from dplasso.phases.released import Released
from dplasso.phases.releases import Curvature, Release, RowLength, Scaled
from dplasso.privacy.budget import Budget
from dplasso.privacy.parameters import share_bits


def _energies(
    descent: Descent,
    fit: Fit,
    course: Course,
    released: Released,
    mu: float,
    statistic: Callable[[Any], Any] = lambda totals: totals,
    loads: NDArray[np.int64] = NO_LOADS,
) -> tuple[NDArray[np.int64], float]:
    """Release a statistic of the energies, to which no record adds more than a unit, in L2.

    Returns: it, and its unit.
    """
    deviation = fit.deviation(1.0, mu, of_features=True)
    unit = gradient_unit(1.0, deviation, share_bits(course.n_records))
    rows, scaling = descent.rows(fit, course, released), descent.scaling(fit, released)
    totals = statistic(rows.energies(scaling._replace(length=1.0), unit, loads))
    return fit.release(totals, 1.0, mu, unit, of_features=True), unit


def _phase(
    descent: Descent, part: Callable[[Course], float], make: Make, applies: Applies
) -> OneRelease:
    """Return a phase of energies: a part of the share, unless features are public."""
    return course_phase(
        descent,
        "scales",
        # One for each column, and fewer than 64 for the rows.
        descent.n_columns + 64.0,
        lambda course, budget: budget.share_of_features(part(course)),
        make,
        applies,
        said="noisy sums of the squared entries of every column",
        stated=lambda budget: {"sensitivity": budget.moved_by_features(1.0)},
    )


def scales(descent: Descent) -> OneRelease:
    """Release the energies of the columns, where there are records enough for column scales."""

    def noise(course: Course, budget: Budget) -> float:
        # Also where energies need none: the noise of gradients says which columns are large.
        return budget.moved(1.0) / budget.mu_of(course.share * SCALES_SHARE)

    def applies(course: Course, released: Released, budget: Budget) -> bool:
        # Latent directions do what scales do.
        return released.mix is None and pays(course.n_records, noise(course, budget))

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        totals, unit = _energies(descent, fit, course, released, mu)
        least = threshold(course.n_records, noise(course, fit.budget))
        return Scaled(relative_energies(totals, unit, least))

    return _phase(descent, lambda _: SCALES_SHARE, make, applies)


def row_length(descent: Descent, stage: int) -> OneRelease:
    """Release how long rows are in the columns of a stage, where they have the length of all."""

    def some(course: Course, released: Released, budget: Budget) -> bool:  # noqa: ARG001
        own = course.stages[stage]
        return own is not None and own.n_columns < descent.n_columns

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        totals, unit = _energies(descent, fit, course, released, mu, total_energy)
        return RowLength(reach_of(totals, unit, course.n_records))

    def part(course: Course) -> float:
        return length_share(course, descent) / len(course.runs)

    return _phase(descent, part, make, some)


def curvature(descent: Descent, stage: int) -> OneRelease:
    """Release what bounds the curvature of the loss in a stage, where columns are scaled."""

    def applies(course: Course, released: Released, budget: Budget) -> bool:  # noqa: ARG001
        return course.stages[stage] is not None and released.energies.size > 0

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        energies, kept = released.energies, released.kept_columns
        loads = loads_of(energies[kept] if kept.size else energies)
        totals, unit = _energies(descent, fit, course, released, mu, loads=loads)
        found = largest_eigenvalue(totals, unit, course.n_records, descent.constant, loads)
        return Curvature(min(course.weight, found / released.length**2))

    return _phase(descent, lambda course: CURVATURE_SHARE / len(course.runs), make, applies)
