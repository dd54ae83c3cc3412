"""Noisy gradient descent as phases: column scales, curvature, gradients, cuts, calibration.

What these phases share follows from public numbers and the count (`Course`): a dense model is one
run of gradients on all columns, a short list several, each on the columns that a cut left.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.blend import find_start, part_taken, weigh
from dplasso.gradient_descent.calibration import calibrate_margins
from dplasso.gradient_descent.energies import (
    CURVATURE_SHARE,
    NO_LOADS,
    REACH_SHARE,
    SCALES_SHARE,
    halvings_of,
    largest_eigenvalue,
    loads_of,
    pays,
    reach_of,
    relative_energies,
    scales_of,
    shrinking,
    threshold,
    total_energy,
)
from dplasso.gradient_descent.schedule import (
    CALIBRATION_STEPS,
    CONSTANT,
    SIGNIFICANT,
    Schedule,
    Stage,
    further,
    schedule_for,
)
from dplasso.gradient_descent.slopes import LinearModel
from dplasso.gradient_descent.solve import NoisyGradientDescent, gradient_unit
from dplasso.matrix.starting import StartingModel
from dplasso.matrix.unit_rows import NO_HALVINGS, Scaling, constant_entry
from dplasso.phases.contract import AtOnce, Fit, Phase, Snapshot, Steps
from dplasso.phases.releases import (
    NO_COLUMNS,
    Bounded,
    Calibrated,
    Descended,
    Drawn,
    Kept,
    Reached,
    Release,
    Released,
    Scaled,
    Started,
    Telling,
)
from dplasso.privacy.budget import Budget, Draws
from dplasso.privacy.parameters import check_records, share_bits
from dplasso.privacy.randomness import word_buffers
from dplasso.privacy.release import Gaussian, release

# Rows grow when they are made unit rows of fewer columns, so a stage starts from this part of the
# weights before.
_START = 0.5
START_WORDS = f"{CALIBRATION_STEPS} noisy gradients that find how much of the public model to use"
CALIBRATION_WORDS = f"{CALIBRATION_STEPS} such gradients that correct the probabilities"


@dataclass(frozen=True)
class Course:
    """What the gradient phases of a fit share, once the records are counted.

    `loss`: with class weights and offset.
    `weight`: what bounds the sum of the records' weights: the number of records, or less where
    classes weigh the same.
    `n_records`: the number of records.
    `share`: of the budget, of all these phases together.
    `stages`: the runs, the first on all columns or on those drawn; None for one that is left out.
    `calibration`, `start`: parts of `share` for calibration, and for the slope of a public model.
    `learnt`: records times mu up to which a start is taken whole, see `blend.part_taken`.
    `constant`, shape (K,): the margins that the first run starts from.
    """

    loss: Any
    weight: float
    n_records: float
    share: float
    stages: tuple[Stage | None, ...]
    calibration: float
    start: float = 0.0
    learnt: float = 0.0
    constant: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @property
    def runs(self) -> list[Stage]:
        """The stages that are run."""
        return [stage for stage in self.stages if stage is not None]


# ``choose(released, budget)``: None where no gradients are taken.
ChooseCourse = Callable[[Released, Budget], Course | None]


@dataclass(frozen=True)
class Descent:
    """The public parameters of the gradient phases of a fit, and what they choose by the count.

    `fit_intercept`: whether rows have a constant entry.
    `norm_bound`: what longer rows are scaled down to and all divided by; None makes unit rows.
    `significant`: whether only significant weights are kept in the end.
    `from_prior`: whether the fit starts from a public model.
    `n_columns`, `n_outputs`: D and K.
    `residual_bound`: bound on the length of a record's residuals.
    """

    course: ChooseCourse
    fit_intercept: bool
    norm_bound: float | None
    significant: bool
    from_prior: bool
    n_columns: int
    n_outputs: int
    residual_bound: float

    def bounds(self, budget: Budget) -> dict[str, float]:
        """Return the bound on a record's residuals, and how far a gradient can move, in L2."""
        bound = self.residual_bound
        return {"residual_bound": bound, "sensitivity": budget.moved(bound)}

    @property
    def constant(self) -> float:
        """The constant entry of every row; 0 for none."""
        return CONSTANT if self.fit_intercept else 0.0

    def rows(self, fit: Fit, course: Course, released: Released) -> Any:
        """Return the records in the columns drawn, or in all, with the loss of the course."""
        if "descent" not in fit.layouts:
            rows = fit.layouts.pop("gradients", None)
            if rows is None:
                drawn = released.drawn_columns
                # All columns of a store are in its own order already.
                kept = None if drawn is None or drawn.size == fit.n_features else drawn
                layout = fit.layouts.pop("vertices", fit.records)
                rows = layout.gradients(course.loss, fit.threads, kept, fit.prior)
            fit.layouts["descent"] = rows.with_loss(course.loss)
        return fit.layouts["descent"]

    def scaling(self, fit: Fit, released: Released) -> Scaling:
        """Return how the rows of the next gradients are scaled."""
        kept, energies = released.kept_columns, released.energies
        own = energies[kept] if energies.size and kept.size else energies
        norm_bound = self.norm_bound
        if norm_bound is not None:
            norm_bound *= shrinking(energies if fit.prior is not None else own)
        # From a prior, rows have their length in all columns, and the start its margins.
        around = NO_HALVINGS if fit.prior is None else halvings_of(energies)
        length = released.length
        return Scaling(kept, self.constant, norm_bound, halvings_of(own), around, length)

    def phases(
        self, most: Sequence[tuple[int, int]], calibrates: bool, n_slopes: int = 1
    ) -> tuple[Phase, ...]:
        """Return the gradient phases of a plan.

        `most`: the most gradients of each stage, and the most columns that they are of.
        `calibrates`: whether margins are calibrated in the end, with so many slopes.
        """
        found: list[Phase] = [Scales(self), *([Start(self)] if self.from_prior else [])]
        for stage, (n_steps, n_columns) in enumerate(most):
            if stage:
                found.append(Cut(self, stage))
            if self.from_prior:
                found.append(Length(self, stage))
            found += [Curvature(self, stage), Descend(self, stage, n_steps, n_columns)]
        found += [Significant(self)] if self.significant else []
        found += [Calibrate(self, n_slopes)] if calibrates else []
        return tuple(found)


def _started(fit: Fit, released: Released) -> StartingModel | None:
    """Return the public model that margins start from, once its slope is found."""
    start = released.last(Started)
    if fit.prior is None or start is None:
        return None
    return fit.prior.stretched(start.slope, start.shift)


@dataclass(frozen=True)
class _GradientPhase:
    """What all these phases have in common."""

    descent: Descent

    name: ClassVar[str]
    most_steps: ClassVar[int] = 0

    def course(self, released: Released, budget: Budget) -> Course | None:
        """Return the course; None where this phase has nothing to do."""
        return self.descent.course(released, budget)

    @property
    def draws(self) -> Draws:
        """A number for each column, and fewer than 64 for the rows."""
        return Draws(gaussian=self.descent.n_columns + 64.0)

    def words(self, task: Any, n_steps: int) -> str:  # noqa: ARG002
        """Say what is released of energies."""
        return "noisy sums of the squared entries of every column"

    def numbers(self, budget: Budget) -> dict[str, float]:
        """Return how far the release can move between neighbours, in L2."""
        return {"sensitivity": budget.moved(1.0)}

    def share(self, budget: Budget, released: Released) -> float:
        """Return the share of the budget that it spends; 0 for none."""
        course = self.course(released, budget)
        return 0.0 if course is None else course.share * self.part(course, released)

    def part(self, course: Course, released: Released) -> float:
        """Return its part of the course's share."""
        raise NotImplementedError

    def begin(self, fit: Fit, released: Released, mu: float, snapshot: Snapshot) -> Steps:  # noqa: ARG002
        """Return its one release, as steps."""
        course = self.course(released, fit.budget)
        if course is None:
            return AtOnce(lambda: None)
        return AtOnce(lambda: self.released(fit, course, released, mu))

    def released(self, fit: Fit, course: Course, released: Released, mu: float) -> Release | None:
        """Make the release."""
        raise NotImplementedError

    def _energies(
        self,
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
        moved = fit.budget.moved(1.0)
        deviation = moved / mu
        unit = gradient_unit(1.0, deviation, share_bits(course.n_records))
        rows, scaling = self.descent.rows(fit, course, released), self.descent.scaling(fit, released)
        totals = statistic(rows.energies(scaling._replace(reach=1.0), unit, loads))
        noise = None
        if deviation:
            noise = Gaussian(deviation * unit, word_buffers(fit.stream, 1)[0])
        return release(totals, moved * unit, noise), unit


class Scales(_GradientPhase):
    """Release the energies of the columns, where there are records enough for column scales."""

    name = "scales"

    def course(self, released: Released, budget: Budget) -> Course | None:
        """Return the course if the energies are worth their budget."""
        course = super().course(released, budget)
        if course is None:
            return None
        deviation = budget.moved(1.0) / budget.mu_of(course.share * SCALES_SHARE)
        return course if pays(course.n_records, deviation) else None

    def part(self, course: Course, released: Released) -> float:  # noqa: ARG002
        """Return the part of the energies."""
        return SCALES_SHARE

    def released(self, fit: Fit, course: Course, released: Released, mu: float) -> Release:
        """Release the energies."""
        totals, unit = self._energies(fit, course, released, mu)
        least = threshold(course.n_records, fit.budget.moved(1.0) / mu)
        return Scaled(relative_energies(totals, unit, least))


class Start(_GradientPhase):
    """Find how much of the public model the gradients start from, unless that is known."""

    name = "start"

    def words(self, task: Any, n_steps: int) -> str:  # noqa: ARG002
        """Say what is searched."""
        return START_WORDS

    def numbers(self, budget: Budget) -> dict[str, float]:
        """Return bound and sensitivity."""
        return self.descent.bounds(budget)

    @property
    def draws(self) -> Draws:
        """A slope and a constant for each output, step by step."""
        return Draws(gaussian=CALIBRATION_STEPS * (self.descent.n_outputs + 1.0))

    def course(self, released: Released, budget: Budget) -> Course | None:
        """Return the course, unless vertices were drawn from a start."""
        known = released.last(Started) is not None
        return None if known else super().course(released, budget)

    def part(self, course: Course, released: Released) -> float:  # noqa: ARG002
        """Return the part of finding a start."""
        return course.start

    def released(self, fit: Fit, course: Course, released: Released, mu: float) -> Release:
        """Release slope and constants."""
        rows = self.descent.rows(fit, course, released)
        scaling = self.descent.scaling(fit, released)
        return started(fit, rows, scaling, course, mu, self.descent.fit_intercept)


def started(
    fit: Fit, rows: Any, scaling: Scaling, course: Course, mu: float, fit_intercept: bool
) -> Started:
    """Release the slope and the constants of the fit's public model."""
    part = part_taken(course.weight, mu, course.learnt)
    moved = fit.budget.moved(course.loss.residual_bound)
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


@dataclass(frozen=True)
class _StagePhase(_GradientPhase):
    """A phase of one of the runs; `stage` counts them from 0."""

    stage: int

    def course(self, released: Released, budget: Budget) -> Course | None:
        """Return the course if it has this stage."""
        course = self.descent.course(released, budget)
        return course if course is not None and course.stages[self.stage] is not None else None

    def own(self, course: Course) -> Stage:
        """Return the stage."""
        stage = course.stages[self.stage]
        assert stage is not None, "a stage that is left out takes no gradients"
        return stage


class Cut(_StagePhase):
    """Keep the columns of the largest weights: of what was released, for nothing."""

    name = "cut"

    def course(self, released: Released, budget: Budget) -> Course | None:
        """Return the course if a stage came before."""
        return super().course(released, budget) if released.last(Descended) is not None else None

    def words(self, task: Any, n_steps: int) -> str:  # noqa: ARG002
        """Say nothing: it is a function of what was released."""
        return ""

    @property
    def draws(self) -> Draws:
        """None."""
        return Draws()

    def part(self, course: Course, released: Released) -> float:  # noqa: ARG002
        """Return 0: nothing is read."""
        return 0.0

    def released(self, fit: Fit, course: Course, released: Released, mu: float) -> Release:  # noqa: ARG002
        """Return the columns."""
        before = released.last(Descended)
        assert before is not None, "weights come before a cut"
        weights = before.weights
        sizes = np.linalg.norm(weights, axis=1) if weights.shape[1] > 1 else np.abs(weights[:, 0])
        # The first wins a tie.
        order = np.argsort(-sizes, kind="stable")[: self.own(course).n_columns]
        places = np.sort(order).astype(np.int64)
        return Kept(before.columns[places] if before.columns.size else places)


class Length(_StagePhase):
    """Release how long rows are in the columns of a stage, where they have the length of all."""

    name = "scales"

    def part(self, course: Course, released: Released) -> float:  # noqa: ARG002
        """Return the part of the length, where the columns of the stage are some of all."""
        return _length_share(course, self.descent) / len(course.runs) * self._some(course)

    def _some(self, course: Course) -> bool:
        return self.own(course).n_columns < self.descent.n_columns

    def released(self, fit: Fit, course: Course, released: Released, mu: float) -> Release | None:
        """Release the length."""
        if not self._some(course):
            return None
        totals, unit = self._energies(fit, course, released, mu, total_energy)
        return Reached(reach_of(totals, unit, course.n_records))


def _length_share(course: Course, descent: Descent) -> float:
    """Return the part of the share for lengths: rows have the length of all columns of a prior."""
    some = descent.from_prior and any(one.n_columns < descent.n_columns for one in course.runs)
    return REACH_SHARE if some else 0.0


class Curvature(_StagePhase):
    """Release what bounds the curvature of the loss in a stage, where columns are scaled."""

    name = "scales"

    def course(self, released: Released, budget: Budget) -> Course | None:
        """Return the course if energies were released."""
        return super().course(released, budget) if released.energies.size else None

    def part(self, course: Course, released: Released) -> float:  # noqa: ARG002
        """Return the part of a stage."""
        return CURVATURE_SHARE / len(course.runs)

    def released(self, fit: Fit, course: Course, released: Released, mu: float) -> Release:
        """Release the bound, through loads of the columns."""
        energies, kept = released.energies, released.kept_columns
        loads = loads_of(energies[kept] if kept.size else energies)
        totals, unit = self._energies(fit, course, released, mu, loads=loads)
        found = largest_eigenvalue(totals, unit, course.n_records, self.descent.constant, loads)
        length = released.length
        return Bounded(min(course.weight, found / length**2))


@dataclass(frozen=True)
class Descend(_StagePhase):
    """Take noisy gradients: at most `most_gradients`, of at most `most_columns`."""

    most_gradients: int
    most_columns: int

    name: ClassVar[str] = "gradients"

    def words(self, task: Any, n_steps: int) -> str:
        """Say how many gradients there are at most."""
        labels = f", for all {task.classes.size:,} labels together" if task.many_labels else ""
        return f"at most {n_steps:,} gradients over all records{labels}, each with Gaussian noise"

    def numbers(self, budget: Budget) -> dict[str, float]:
        """Return bound and sensitivity."""
        return self.descent.bounds(budget)

    @property
    def most_steps(self) -> int:  # type: ignore[override]
        """The most gradients."""
        return self.most_gradients

    @property
    def draws(self) -> Draws:
        """A number for each column, the constant entry included, and output."""
        n_coordinates = (self.most_columns + 1.0) * self.descent.n_outputs
        return Draws(gaussian=self.most_gradients * n_coordinates)

    def part(self, course: Course, released: Released) -> float:
        """Return the stage's part of what the other phases leave."""
        left = 1.0 - course.calibration - course.start - _length_share(course, self.descent)
        if released.energies.size:
            left -= SCALES_SHARE + CURVATURE_SHARE
        return self.own(course).share * left

    def begin(self, fit: Fit, released: Released, mu: float, snapshot: Snapshot) -> Steps:
        """Return the run; from a snapshot, as far as it was."""
        course = self.course(released, fit.budget)
        if course is None:
            return AtOnce(lambda: None)
        return _Gradients(self, fit, course, released, mu, snapshot)

    def schedule(self, budget: Budget, course: Course, released: Released, mu: float) -> Schedule:
        """Return the steps of the stage."""
        stage = self.own(course)
        kappa = stage.kappa
        if stage.grows and math.isfinite(mu):
            told = course.weight * mu / budget.moved(1.0)
            kappa *= further(told, course.loss.n_outputs * stage.n_columns)
        bounded = released.last(Bounded)
        return schedule_for(
            course.weight if bounded is None else bounded.eigenvalue,
            mu,
            budget.moved(course.loss.residual_bound),
            None if stage.is_adaptive else stage.n_steps,
            kappa,
            course.loss.curvature,
        )

    def starting_weights(
        self, course: Course, released: Released, n_columns: int
    ) -> tuple[NDArray[np.float64] | None, float]:
        """Return the weights that the run starts from, None for zeros, and their error."""
        constant = course.constant / constant_entry(CONSTANT)
        before = released.last(Descended)
        if before is None:
            if not course.constant.any():
                return None, 0.0
            start = np.zeros((n_columns + 1, course.loss.n_outputs))
            start[-1] = constant
            return start.ravel(), 0.0
        kept, places = released.kept_columns, slice(None)
        if kept.size:
            places = np.searchsorted(before.columns, kept) if before.columns.size else kept
        ends = [] if not before.constant.size else [before.constant[np.newaxis]]
        start = _START * np.concatenate([before.weights[places], *ends])
        if course.constant.any():
            start[-1] += (1.0 - _START) * constant
        return start.ravel(), _START * before.standard_error


class _Gradients:
    """The gradients of one stage."""

    def __init__(
        self,
        phase: Descend,
        fit: Fit,
        course: Course,
        released: Released,
        mu: float,
        snapshot: Snapshot,
    ) -> None:
        check_records(fit.records.shape[0], share_bits(course.n_records))
        self._course = course
        schedule = phase.schedule(fit.budget, course, released, mu)
        scaling = phase.descent.scaling(fit, released)
        rows = phase.descent.rows(fit, course, released)
        drawn = released.drawn_columns
        self._columns = scaling.kept if drawn is None else drawn
        n_columns = scaling.kept.size or rows.n_columns
        start, self._started_error = phase.starting_weights(course, released, n_columns)
        bits = share_bits(course.n_records)
        unit = gradient_unit(
            course.loss.residual_bound, float(schedule.noise_scales.max()), bits
        )
        self._run = NoisyGradientDescent(
            rows.part(scaling, unit, _started(fit, released)),
            n_columns,
            course.loss.n_outputs,
            unit,
            schedule,
            fit.stream,
            threads=fit.threads,
            start=start,
            intercept=phase.descent.fit_intercept,
            halvings=scaling.halvings,
        )
        self.n_steps, self.done = self._run.n_steps, int(snapshot["done"]) if snapshot else 0
        for name in GRADIENT_STATE if snapshot else ():
            own, array = getattr(self._run, name), snapshot[name]
            if own.shape != array.shape:
                raise ValueError(f"a state of {array.size} weights is not one of {own.size}")
            own[:] = array

    def advance(self, first: int, last: int) -> None:
        """Take gradients `first` to `last`, counted from 1, both included."""
        self._run.advance(first, last)

    def snapshot(self, done: int) -> Snapshot:
        """Return the state of the run, a function of the noisy gradients."""
        state = {name: getattr(self._run, name).copy() for name in GRADIENT_STATE}
        return {"done": np.array(done), **state}

    def release(self) -> Release:
        """Return the average of the last iterates."""
        weights, constant = self._run.average()
        error = math.hypot(self._run.schedule.standard_error, self._started_error)
        return Descended(
            columns=self._columns,
            weights=weights,
            constant=constant[0] if constant.size else np.zeros(0),
            offset=np.zeros(weights.shape[1]) + self._course.loss.offset,
            standard_error=error,
            n_steps=self.n_steps,
        )


GRADIENT_STATE = ("weights", "velocity", "averaged")


class Significant(_GradientPhase):
    """Keep the columns whose weight is beyond three standard errors: of what was released."""

    name = "significant"

    def words(self, task: Any, n_steps: int) -> str:  # noqa: ARG002
        """Say nothing: it is a function of what was released."""
        return ""

    @property
    def draws(self) -> Draws:
        """None."""
        return Draws()

    def part(self, course: Course, released: Released) -> float:  # noqa: ARG002
        """Return 0: nothing is read."""
        return 0.0

    def released(self, fit: Fit, course: Course, released: Released, mu: float) -> Release:  # noqa: ARG002
        """Return the columns."""
        found = released.last(Descended)
        assert found is not None, "weights come before their significance"
        least = SIGNIFICANT * found.standard_error * scales_of(released.energies)
        beyond = np.abs(found.weights) > np.reshape(least, (-1, 1))
        return Telling(beyond.astype(np.int8))


@dataclass(frozen=True)
class Calibrate(_GradientPhase):
    """Set the margins of the complete model right; see `dplasso.gradient_descent.calibration`."""

    n_slopes: int

    name: ClassVar[str] = "calibration"

    def words(self, task: Any, n_steps: int) -> str:  # noqa: ARG002
        """Say what is corrected."""
        if self.descent.from_prior:
            return f"{CALIBRATION_STEPS} such gradients that weigh the public model and the learnt one"
        return CALIBRATION_WORDS

    def numbers(self, budget: Budget) -> dict[str, float]:
        """Return bound and sensitivity."""
        return self.descent.bounds(budget)

    @property
    def draws(self) -> Draws:
        """A variate for each slope and constant, step by step; for two slopes from a prior."""
        each = float(self.descent.n_outputs + self.n_slopes + 1)
        return Draws(gaussian=CALIBRATION_STEPS * each)

    def part(self, course: Course, released: Released) -> float:  # noqa: ARG002
        """Return the part of the calibration."""
        return course.calibration

    def released(self, fit: Fit, course: Course, released: Released, mu: float) -> Release | None:
        """Release slopes and constants; without noise only those of a start."""
        start, found = released.last(Started), released.last(Descended)
        if not course.calibration or found is None or (math.isinf(mu) and start is None):
            return None
        rows, loss = self.descent.rows(fit, course, released), course.loss
        model = LinearModel(
            significant_weights(found, released),
            found.intercept,
            self.descent.scaling(fit, released),
        )
        known = {
            "n_records": course.weight,
            "mu": mu,
            "sensitivity": fit.budget.moved(loss.residual_bound),
            "fit_intercept": self.descent.fit_intercept,
        }
        if start is not None:
            begun = np.append(start.slope, start.shift)
            return calibrated(weigh(rows, model, fit.stream, begun, start.part, **known))
        # Around the margins they started from.
        kappa = course.runs[-1].kappa
        centre = 0.0 * model.intercept + beyond(loss.offset, kappa)
        centre[: course.constant.size] += course.constant
        margins = rows.margins(replace(model, intercept=model.intercept - centre))
        return calibrated(calibrate_margins(margins, loss, fit.stream, centre=centre, **known))


def calibrated(found: Any) -> Calibrated:
    """Return a calibration as a release."""
    return Calibrated(
        found.slope, np.array(found.shift), found.prior_slope, np.array(found.label_slopes)
    )


def significant_weights(found: Descended, released: Released) -> NDArray[np.float64]:
    """Return the weights, 0 where significance was asked for and is not there."""
    telling = released.last(Telling)
    return found.weights if telling is None else np.where(telling.telling, found.weights, 0.0)


def beyond(margins: Any, kappa: float) -> NDArray[np.float64]:
    """Return margins as far as they are beyond twice what noise will move them, shape (K,)."""
    limit = 2.0 * kappa
    return np.atleast_1d(margins - np.clip(margins, -limit, limit))
