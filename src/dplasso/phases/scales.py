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
from dplasso.phases.course import Course, Descent, course_phase, length_share
from dplasso.phases.releases import Curvature, Release, Released, RowLength, Scaled
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
    unit = gradient_unit(1.0, fit.deviation(1.0, mu), share_bits(course.n_records))
    rows, scaling = descent.rows(fit, course, released), descent.scaling(fit, released)
    totals = statistic(rows.energies(scaling._replace(length=1.0), unit, loads))
    return fit.release(totals, 1.0, mu, unit), unit


def _of_energies(descent: Descent) -> tuple[float, dict[str, Any]]:
    """Return the draws of energies, one for each column and fewer than 64 for the rows; words."""
    said = "noisy sums of the squared entries of every column"
    stated = {"said": said, "stated": lambda budget: {"sensitivity": budget.moved(1.0)}}
    return descent.n_columns + 64.0, stated


def scales(descent: Descent) -> OneRelease:
    """Release the energies of the columns, where there are records enough for column scales."""

    def applies(course: Course, released: Released, budget: Budget) -> bool:
        deviation = budget.moved(1.0) / budget.mu_of(course.share * SCALES_SHARE)
        # Latent directions do what scales do.
        return released.mix is None and pays(course.n_records, deviation)

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        totals, unit = _energies(descent, fit, course, released, mu)
        least = threshold(course.n_records, fit.deviation(1.0, mu))
        return Scaled(relative_energies(totals, unit, least))

    draws, stated = _of_energies(descent)
    return course_phase(descent, "scales", draws, lambda *_: SCALES_SHARE, make, applies, **stated)


def row_length(descent: Descent, stage: int) -> OneRelease:
    """Release how long rows are in the columns of a stage, where they have the length of all."""

    def some(course: Course, released: Released, budget: Budget) -> bool:  # noqa: ARG001
        own = course.stages[stage]
        return own is not None and own.n_columns < descent.n_columns

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        totals, unit = _energies(descent, fit, course, released, mu, total_energy)
        return RowLength(reach_of(totals, unit, course.n_records))

    draws, stated = _of_energies(descent)
    return course_phase(
        descent,
        "scales",
        draws,
        lambda course, _: length_share(course, descent) / len(course.runs),
        make,
        some,
        **stated,
    )


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

    draws, stated = _of_energies(descent)
    return course_phase(
        descent,
        "scales",
        draws,
        lambda course, _: CURVATURE_SHARE / len(course.runs),
        make,
        applies,
        **stated,
    )
