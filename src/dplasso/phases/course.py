"""What the gradient phases of a fit share, and the phases for slopes and constants."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.calibration import calibrate_margins, find_start, part_taken, weigh
from dplasso.gradient_descent.energies import REACH_SHARE
from dplasso.gradient_descent.margins import LinearModel
from dplasso.gradient_descent.schedule import CALIBRATION_STEPS, CONSTANT, Stage
from dplasso.matrix.geometry import Geometry
from dplasso.matrix.orientations import check_row_count
from dplasso.matrix.scaling import Scaling
from dplasso.matrix.starting import StartingModel
from dplasso.phases.phase import Fit, Phase, at_once
from dplasso.phases.released import Released
from dplasso.phases.releases import Calibrated, Descended, Release, Started
from dplasso.privacy.budget import Budget, Draws


class Columns(NamedTuple):
    """How many columns are drawn, with which shares; `loss` starts at the balance of the classes.

    `start`: share of the slope of a public model.
    """

    loss: Any = None
    n_vertices: int = 0
    radius: float = 0.0
    share: float = 0.0
    start: float = 0.0


NO_DRAWS = Columns()


@dataclass(frozen=True)
class Course:
    """What the gradient phases of a fit share, once the records are counted.

    `weight`: bound on the sum of the records' weights. `share`: of the budget for all of them;
    `calibration`, `start` and `pairs` are parts of it. `stages`: None for a run that is left out.
    `learnt`: see `part_taken`. `constant`, shape (K,): the margins that the first run starts from.
    `drawn`: columns that are drawn before the gradients.
    """

    loss: Any
    weight: float
    n_records: float
    share: float
    stages: tuple[Stage | None, ...]
    calibration: float
    start: float = 0.0
    pairs: float = 0.0
    learnt: float = 0.0
    constant: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    drawn: Columns = NO_DRAWS

    @property
    def runs(self) -> list[Stage]:
        """The stages that are run."""
        return [stage for stage in self.stages if stage is not None]


@dataclass(frozen=True)
class Descent:
    """The public parameters of the gradient phases of a fit.

    `course`: ``course(released, budget)``. `norm_bound`: None for unit rows. `loss`: that of the
    course, but for class weights and offset. `geometry`: latent directions of public rows.
    `keeps_lengths`: whether rows of centred columns have no unit length.
    """

    course: Callable[[Released, Budget], Course]
    fit_intercept: bool
    norm_bound: float | None
    from_prior: bool
    n_columns: int
    loss: Any
    geometry: Geometry | None = None
    keeps_lengths: bool = False

    @property
    def constant(self) -> float:
        """The constant entry of every row; 0 for none."""
        return CONSTANT if self.fit_intercept else 0.0

    def lay_out(self, fit: Fit) -> None:
        """Lay the records out in all columns."""
        check_row_count(fit.records.shape[0])
        rows = fit.records.gradients(self.loss, fit.threads, prior=fit.prior)
        if self.geometry is None:
            rows.lay_out()
        fit.layouts["gradients"] = rows

    def rows(self, fit: Fit, course: Course, released: Released) -> Any:
        """Return the records in the columns drawn, or in all, with the loss of the course."""
        if "descent" not in fit.layouts:
            rows, drawn = fit.layouts.pop("gradients", None), released.drawn_columns
            # If all columns are drawn, the rows need no new layout.
            kept = None if drawn is None or drawn.size == self.n_columns else drawn
            if rows is None or kept is not None:
                layout = fit.layouts.pop("vertices", fit.records)
                rows = layout.gradients(course.loss, fit.threads, kept, fit.prior)
            fit.layouts["descent"] = replace(rows, loss=course.loss)
        return fit.layouts["descent"]

    def scaling(self, fit: Fit, released: Released) -> Scaling:
        """Return how the rows of the next gradients are scaled."""
        from_prior = fit.prior is not None
        return released.scaling(self.constant, self.norm_bound, from_prior=from_prior)


def bounds(loss: Any) -> Callable[[Budget], dict[str, float]]:
    """Return the `numbers` of a phase whose gradients have residuals within the loss's bound."""
    return lambda budget: {
        "residual_bound": loss.residual_bound,
        "sensitivity": budget.moved_by(loss),
    }


def sensitivity(budget: Budget) -> dict[str, float]:
    """Return the `numbers` of a phase of features, to which a record adds at most 1."""
    return {"sensitivity": budget.moved_by_features(1.0)}


def noise_of_share(course: Course, budget: Budget, share: float) -> float:
    """Return the standard deviation of the noise in sums to which a record adds at most 1.

    It decides what pays even if features need no noise: that of the gradients hides as much.
    """
    return budget.moved(1.0) / budget.mu_of(course.share * share)


def length_share(course: Course, descent: Descent) -> float:
    """Return the part of the share for row lengths; from a prior, rows keep that of all columns."""
    shorter = any(stage.n_columns < descent.n_columns for stage in course.runs)
    return REACH_SHARE if descent.from_prior and shorter else 0.0


# ``part(course, released, budget)``: None leaves the phase out.
Part = Callable[[Course, Released, Budget], float | None]
MakeOfCourse = Callable[[Fit, Course, Released, float], Release | None]


def course_phase(
    descent: Descent,
    name: str,
    draws: float,
    part: Part,
    make: MakeOfCourse,
    **stated: Any,
) -> Phase:
    """Return a phase with a part of the course's share."""

    def share(budget: Budget, released: Released) -> float:
        course = descent.course(released, budget)
        return course.share * (part(course, released, budget) or 0.0)

    def made(fit: Fit, released: Released, mu: float) -> Release | None:
        course = descent.course(released, fit.budget)
        if part(course, released, fit.budget) is None:
            return None
        return make(fit, course, released, mu)

    return Phase(name, Draws(gaussian=draws), share, at_once(made), **stated)


START_WORDS = f"{CALIBRATION_STEPS} noisy gradients that find how much of the public model to use"
CALIBRATION_WORDS = f"{CALIBRATION_STEPS} such gradients that correct the probabilities"


def start(descent: Descent) -> Phase:
    """Find how much of the public model the gradients start from, unless vertices did so."""

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        rows, scaling = descent.rows(fit, course, released), descent.scaling(fit, released)
        return started(descent, fit, course, rows, scaling, mu)

    return course_phase(
        descent,
        "start",
        CALIBRATION_STEPS * (descent.loss.n_outputs + 1.0),
        lambda course, released, _: course.start if released.last(Started) is None else None,
        make,
        words=START_WORDS,
        numbers=bounds(descent.loss),
    )


def starting_model(fit: Fit, released: Released) -> StartingModel | None:
    """Return the public model that margins start from, once its slope is found."""
    start = released.last(Started)
    if fit.prior is None or start is None:
        return None
    return fit.prior.stretched(start.slope, start.shift)


def started(
    descent: Descent, fit: Fit, course: Course, rows: Any, scaling: Scaling, mu: float
) -> Started:
    """Release a part of the slope and the constants of the fit's public model."""
    part = part_taken(course.weight, mu, course.learnt)
    slope, *shift = part * find_start(
        rows,
        scaling,
        fit.stream,
        n_records=course.weight,
        mu=mu,
        sensitivity=fit.budget.moved_by(course.loss),
        fit_intercept=descent.fit_intercept,
    )
    return Started(float(slope), np.array(shift), part)


def calibration(descent: Descent) -> Phase:
    """Calibrate the margins of the complete model."""

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release | None:
        start, descended = released.last(Started), released.last(Descended)
        # Without noise, only margins with a prior are calibrated.
        if descended is None or (math.isinf(mu) and start is None):
            return None
        rows, loss = descent.rows(fit, course, released), course.loss
        scaling = descent.scaling(fit, released)
        model = LinearModel(descended.weights, descended.intercept, scaling)
        public: dict[str, Any] = {
            "n_records": course.weight,
            "mu": mu,
            "sensitivity": fit.budget.moved_by(loss),
            "fit_intercept": descent.fit_intercept,
        }
        if start is not None:
            begun = np.append(start.slope, start.shift)
            return Calibrated(*weigh(rows, model, fit.stream, begun, start.part, **public))
        # Around the margins they started from.
        centre = 0.0 * model.intercept + beyond(loss.offset, course.runs[-1].kappa)
        centre[: course.constant.size] += course.constant
        own = influence(scaling, course, released, fit.budget)
        intercept = model.intercept - centre
        margins = rows.margins(replace(model, intercept=intercept, centre=centre, influence=own))
        return Calibrated(*calibrate_margins(margins, loss, fit.stream, centre=centre, **public))

    weighed = f"{CALIBRATION_STEPS} such gradients that weigh the public model and the learnt one"
    return course_phase(
        descent,
        "calibration",
        # A variate for each slope and constant, step by step; for two slopes from a prior.
        CALIBRATION_STEPS * (descent.loss.n_outputs + descent.loss.n_labels + 1.0),
        lambda course, *_: course.calibration or None,
        make,
        words=weighed if descent.from_prior else CALIBRATION_WORDS,
        numbers=bounds(descent.loss),
    )


def influence(scaling: Scaling, course: Course, released: Released, budget: Budget) -> float:
    """Return how far a residual of 1 moved the margin of its own unit row; 0 where noise hides it.

    A fit is more certain of its own rows than of others, so calibration would find a large slope.
    Where labels alone are private it does: what another label moves is known for equal margins.
    """
    descended: Any = released.last(Descended)
    share = next(entry.share for entry in released.entries if entry.release is descended)
    signal = budget.mu_of(share) / budget.moved_by(course.loss)
    labels_alone = not budget.moved_by_features(1.0)
    is_unit_row = (scaling.norm_bound is None or released.keeps_lengths) and released.mix is None
    if labels_alone or not is_unit_row or signal * course.loss.residual_bound <= 1.0:
        return 0.0
    # Records that share columns shorten the path of all steps, as in ridge regression.
    bend: float = course.loss.curvature * course.weight / (len(descended.weights) + 1)
    path: float = descended.standard_error * signal
    return path / (1.0 + bend * path)


def beyond(margins: Any, kappa: float) -> NDArray[np.float64]:
    """Return the part of each margin, shape (K,), beyond twice what noise will move it."""
    limit = 2.0 * kappa
    return np.atleast_1d(margins - np.clip(margins, -limit, limit))
