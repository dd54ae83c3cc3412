"""Phases that find slopes and constants: of a public model at the start, of all in the end."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.calibration import calibrate_margins
from dplasso.gradient_descent.energies import scales_of
from dplasso.gradient_descent.prior_slopes import find_start, part_taken, weigh
from dplasso.gradient_descent.schedule import CALIBRATION_STEPS, SIGNIFICANT
from dplasso.gradient_descent.slopes import LinearModel
from dplasso.matrix.scaling import Scaling
from dplasso.phases.contract import Fit, OneRelease
from dplasso.phases.course import Course, Descent, course_phase
from dplasso.phases.released import Released
from dplasso.phases.releases import Calibrated, Descended, Release, Significant, Started

START_WORDS = f"{CALIBRATION_STEPS} noisy gradients that find how much of the public model to use"
CALIBRATION_WORDS = f"{CALIBRATION_STEPS} such gradients that correct the probabilities"


def start(descent: Descent) -> OneRelease:
    """Find how much of the public model the gradients start from, unless vertices did so."""

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        rows, scaling = descent.rows(fit, course, released), descent.scaling(fit, released)
        bound = course.loss.residual_bound
        return started(fit, rows, scaling, course, mu, bound, descent.fit_intercept)

    return course_phase(
        descent,
        "start",
        CALIBRATION_STEPS * (descent.n_outputs + 1.0),
        lambda course, _: course.start,
        make,
        lambda course, released, budget: released.last(Started) is None,  # noqa: ARG005
        said=START_WORDS,
        stated=descent.bounds,
    )


def started(
    fit: Fit,
    rows: Any,
    scaling: Scaling,
    course: Course,
    mu: float,
    norm_bound: float,
    fit_intercept: bool,
) -> Started:
    """Release the slope and the constants of the fit's public model.

    `norm_bound`: on the length of a record's residuals; a loss of vertices bounds each of them.
    """
    part = part_taken(course.weight, mu, course.learnt)
    moved = fit.budget.moved(norm_bound)
    slope, *shift = part * find_start(
        rows,
        scaling,
        fit.stream,
        n_records=course.weight,
        mu=mu,
        sensitivity=moved,
        fit_intercept=fit_intercept,
    )
    return Started(float(slope), np.array(shift), part)


def significance(descent: Descent) -> OneRelease:
    """Mark the weights beyond three standard errors: of what was released, for nothing."""

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:  # noqa: ARG001
        found = released.last(Descended)
        assert found is not None, "weights come before their significance"
        least = SIGNIFICANT * found.errors * scales_of(released.energies)
        beyond_noise = np.abs(found.weights) > np.reshape(least, (-1, 1))
        return Significant(beyond_noise.astype(np.int8))

    return course_phase(descent, "significant", 0.0, lambda *_: 0.0, make)


def calibration(descent: Descent, n_slopes: int) -> OneRelease:
    """Set the margins of the complete model right; see `dplasso.gradient_descent.calibration`."""

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release | None:
        start, found = released.last(Started), released.last(Descended)
        # Without noise only those from a start.
        if found is None or (math.isinf(mu) and start is None):
            return None
        rows, loss = descent.rows(fit, course, released), course.loss
        scaling = descent.scaling(fit, released)
        model = LinearModel(significant_weights(found, released), found.intercept, scaling)
        known: dict[str, Any] = {
            "n_records": course.weight,
            "mu": mu,
            "sensitivity": fit.budget.moved(loss.residual_bound),
            "fit_intercept": descent.fit_intercept,
        }
        if start is not None:
            begun = np.append(start.slope, start.shift)
            return calibrated(weigh(rows, model, fit.stream, begun, start.part, **known))
        # Around the margins they started from.
        centre = 0.0 * model.intercept + beyond(loss.offset, course.runs[-1].kappa)
        centre[: course.constant.size] += course.constant
        margins = rows.margins(replace(model, intercept=model.intercept - centre))
        return calibrated(calibrate_margins(margins, loss, fit.stream, centre=centre, **known))

    weighed = f"{CALIBRATION_STEPS} such gradients that weigh the public model and the learnt one"
    return course_phase(
        descent,
        "calibration",
        # A variate for each slope and constant, step by step; for two slopes from a prior.
        CALIBRATION_STEPS * (descent.n_outputs + n_slopes + 1.0),
        lambda course, _: course.calibration,
        make,
        lambda course, released, budget: course.calibration > 0.0,  # noqa: ARG005
        said=weighed if descent.from_prior else CALIBRATION_WORDS,
        stated=descent.bounds,
    )


def calibrated(found: Any) -> Calibrated:
    """Return a calibration as a release."""
    return Calibrated(
        found.slope, np.array(found.shift), found.prior_slope, np.array(found.label_slopes)
    )


def significant_weights(found: Descended, released: Released) -> NDArray[np.float64]:
    """Return the weights, 0 where significance was asked for and is not there."""
    marks = released.last(Significant)
    return found.weights if marks is None else np.where(marks.marks, found.weights, 0.0)


def beyond(margins: Any, kappa: float) -> NDArray[np.float64]:
    """Return margins as far as they are beyond twice what noise will move them, shape (K,)."""
    limit = 2.0 * kappa
    return np.atleast_1d(margins - np.clip(margins, -limit, limit))
