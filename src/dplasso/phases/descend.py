"""Noisy gradient descent as phases: runs of gradients, scales before them, and cuts between.

A dense model is one run on all columns, a short list several, each on the columns that a cut left.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

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
from dplasso.gradient_descent.noisy_descent import NoisyGradientDescent, gradient_unit
from dplasso.gradient_descent.schedule import CONSTANT, Schedule, Stage, further, schedule_for
from dplasso.matrix.geometry import MOST_DIRECTIONS, Geometry, unmixed
from dplasso.matrix.scaling import Mix, constant_entry
from dplasso.matrix.starting import StartingModel
from dplasso.phases.contract import NOTHING, Fit, OneRelease, Phase, Snapshot, Steps, deviation_of
from dplasso.phases.course import (
    Course,
    Descent,
    Make,
    Part,
    calibration,
    course_phase,
    length_share,
    significance,
    start,
)
from dplasso.phases.mix import mix, mix_share
from dplasso.phases.released import Released
from dplasso.phases.releases import (
    Curvature,
    Descended,
    Kept,
    Mixed,
    Release,
    RowLength,
    Scaled,
    Started,
)
from dplasso.privacy.budget import Budget, Draws
from dplasso.privacy.parameters import check_records, share_bits

# Rows grow when they are made unit rows of fewer columns, so a stage starts from this part of the
# weights before.
_START = 0.5
# What a run of gradients goes on from.
_STATE = ("weights", "velocity", "averaged")


def gradient_phases(
    descent: Descent,
    most: Sequence[tuple[int, int]],
    *,
    calibrates: bool,
    n_slopes: int = 1,
    mixes: bool = False,
) -> tuple[Phase, ...]:
    """Return the gradient phases of a plan.

    `most`: the most gradients of each stage, and the most columns that they are of.
    `mixes`: whether the first stage uses latent directions of public rows, known or not yet.
    `calibrates`: whether margins are calibrated in the end, with so many slopes.
    """
    found: list[Phase] = [mix(descent)] if mixes else []
    found += [scales(descent)]
    found += [start(descent)] if descent.from_prior else []
    for stage, (n_steps, n_columns) in enumerate(most):
        found += [cut(descent, stage)] if stage else []
        found += [row_length(descent, stage)] if descent.from_prior else []
        n_latent = MOST_DIRECTIONS if mixes and not stage else 0
        own = Descend(descent, stage, n_steps, n_columns + n_latent)
        found += [curvature(descent, stage), own]
    found += [significance(descent)] if descent.significant else []
    found += [calibration(descent, n_slopes)] if calibrates else []
    return tuple(found)


def cut(descent: Descent, stage: int) -> OneRelease:
    """Keep the columns of the largest weights: of what was released, for nothing."""

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release | None:  # noqa: ARG001
        before, own = released.last(Descended), course.stages[stage]
        if before is None or own is None:
            return None
        weights = before.weights
        sizes = np.linalg.norm(weights, axis=1) if weights.shape[1] > 1 else np.abs(weights[:, 0])
        if descent.geometry is not None and released.mix is not None and not before.columns.size:
            # How far a column moves margins, by public rows: noise is large in rare columns.
            sizes = sizes * descent.geometry.lengths
        # The first wins a tie.
        places = np.sort(np.argsort(-sizes, kind="stable")[: own.n_columns]).astype(np.int64)
        return Kept(before.columns[places] if before.columns.size else places)

    return course_phase(descent, "cut", 0.0, lambda *_: 0.0, make)


def starting_model(fit: Fit, released: Released) -> StartingModel | None:
    """Return the public model that margins start from, once its slope is found."""
    start = released.last(Started)
    if fit.prior is None or start is None:
        return None
    return fit.prior.stretched(start.slope, start.shift)


@dataclass(frozen=True)
class Descend:
    """Take noisy gradients: at most `most_gradients`, of at most `most_columns`."""

    descent: Descent
    stage: int
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
    def most_steps(self) -> int:
        """The most gradients."""
        return self.most_gradients

    @property
    def draws(self) -> Draws:
        """A number for each column, the constant entry included, and output."""
        n_coordinates = (self.most_columns + 1.0) * self.descent.n_outputs
        return Draws(gaussian=self.most_gradients * n_coordinates)

    def course(self, released: Released, budget: Budget) -> Course | None:
        """Return the course if it has this stage."""
        course = self.descent.course(released, budget)
        return course if course is not None and course.stages[self.stage] is not None else None

    def share(self, budget: Budget, released: Released) -> float:
        """Return the stage's part of what the other phases leave."""
        course = self.course(released, budget)
        if course is None:
            return 0.0
        of_features = length_share(course, self.descent)
        if released.energies.size:
            of_features += SCALES_SHARE + CURVATURE_SHARE
        left = 1.0 - course.calibration - course.start - budget.share_of_features(of_features)
        if released.last(Mixed) is not None:
            left -= mix_share(self.descent, course, budget)
        return course.share * self.own(course).share * left

    def own(self, course: Course) -> Stage:
        """Return the stage."""
        stage = course.stages[self.stage]
        assert stage is not None, "a stage that is left out takes no gradients"
        return stage

    def begin(self, fit: Fit, released: Released, mu: float, snapshot: Snapshot) -> Steps:
        """Return the run; from a snapshot, as far as it was."""
        course = self.course(released, fit.budget)
        if course is None:
            return NOTHING
        return _Gradients(self, fit, course, released, mu, snapshot)

    def schedule(self, budget: Budget, course: Course, released: Released, mu: float) -> Schedule:
        """Return the steps of the stage."""
        stage, moved = self.own(course), budget.moved_by(course.loss)
        kappa = stage.kappa
        if stage.grows and math.isfinite(mu):
            signal = course.weight * mu * course.loss.residual_bound / moved
            kappa *= further(signal, course.loss.n_outputs * stage.n_columns)
        bounded = released.last(Curvature)
        return schedule_for(
            course.weight if bounded is None else bounded.eigenvalue,
            mu,
            moved,
            None if stage.is_adaptive else stage.n_steps,
            kappa,
            course.loss.curvature,
        )

    def starting_weights(
        self, course: Course, released: Released, n_columns: int
    ) -> tuple[NDArray[np.float64] | None, Any]:
        """Return the weights that the run starts from, None for zeros, and their errors."""
        constant = course.constant / constant_entry(CONSTANT)
        before = released.last(Descended)
        if before is None:
            if not course.constant.any():
                return None, 0.0
            start = np.zeros((n_columns + 1, course.loss.n_outputs))
            start[-1] = constant
            return start.ravel(), 0.0
        kept, places = released.kept_columns, np.arange(len(before.weights))
        if kept.size:
            places = np.searchsorted(before.columns, kept) if before.columns.size else kept
        ends = [] if not before.constant.size else [before.constant[np.newaxis]]
        start = _START * np.concatenate([before.weights[places], *ends])
        if course.constant.any():
            start[-1] += (1.0 - _START) * constant
        return start.ravel(), _START * (
            before.errors[places] if before.spread.size else before.errors
        )


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
        scaling, drawn = phase.descent.scaling(fit, released), released.drawn_columns
        prior, rows = starting_model(fit, released), phase.descent.rows(fit, course, released)
        geometry, mixing = phase.descent.geometry, None if phase.stage else released.mix
        self._mixed: tuple[Geometry, Mix] | None = None
        if geometry is not None and mixing is not None:
            self._mixed = geometry, mixing
            rows, prior = rows.mixed(scaling, *self._mixed, prior), None
        self._columns = scaling.kept if drawn is None else drawn
        n_columns = scaling.kept.size or rows.n_columns
        start, self._started_error = phase.starting_weights(course, released, n_columns)
        bits = share_bits(course.n_records)
        unit = gradient_unit(course.loss.residual_bound, float(schedule.noise_scales.max()), bits)
        self._run = NoisyGradientDescent(
            rows.part(scaling, unit, prior),
            n_columns,
            course.loss.n_outputs,
            unit,
            schedule,
            fit.stream,
            threads=fit.threads,
            start=start,
            intercept=phase.descent.fit_intercept,
            scale_exponents=scaling.scale_exponents,
        )
        self.n_steps, self.done = self._run.n_steps, int(snapshot["done"]) if snapshot else 0
        for name in _STATE if snapshot else ():
            own, array = getattr(self._run, name), snapshot[name]
            if own.shape != array.shape:
                raise ValueError(f"a state of {array.size} weights is not one of {own.size}")
            own[:] = array

    def advance(self, first: int, last: int) -> None:
        """Take gradients `first` to `last`, counted from 1, both included."""
        self._run.advance(first, last)

    def snapshot(self, done: int) -> Snapshot:
        """Return the state of the run, a function of the noisy gradients."""
        state = {name: getattr(self._run, name).copy() for name in _STATE}
        return {"done": np.array(done), **state}

    def release(self) -> Release:
        """Return the average of the last iterates."""
        weights, constant = self._run.average()
        error, spread = self._run.schedule.standard_error, np.zeros(0)
        if self._mixed is not None:
            weights, spread = unmixed(weights, *self._mixed)
        elif np.ndim(self._started_error):
            spread = np.hypot(1.0, self._started_error / error) if error else spread
        else:
            error = math.hypot(error, self._started_error)
        return Descended(
            columns=self._columns,
            weights=weights,
            constant=constant[0] if constant.size else np.zeros(0),
            offset=np.zeros(weights.shape[1]) + self._course.loss.offset,
            standard_error=error,
            n_steps=self.n_steps,
            spread=spread,
        )


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
    moved = fit.budget.moved_by_features(1.0)
    unit = gradient_unit(1.0, deviation_of(moved, mu), share_bits(course.n_records))
    rows, scaling = descent.rows(fit, course, released), descent.scaling(fit, released)
    totals = statistic(rows.energies(scaling._replace(length=1.0), unit, loads))
    return fit.release(totals, moved, mu, unit), unit


def _phase(descent: Descent, part: Part, make: Make) -> OneRelease:
    """Return a phase of energies."""
    return course_phase(
        descent,
        "scales",
        # One for each column, and fewer than 64 for the rows.
        descent.n_columns + 64.0,
        part,
        make,
        said="noisy sums of the squared entries of every column",
        numbers=lambda budget: {"sensitivity": budget.moved_by_features(1.0)},
    )


def scales(descent: Descent) -> OneRelease:
    """Release the energies of the columns, where there are records enough for column scales."""

    def noise(course: Course, budget: Budget) -> float:
        # Also where energies need none: the noise of gradients says which columns are large.
        return budget.moved(1.0) / budget.mu_of(course.share * SCALES_SHARE)

    def part(course: Course, released: Released, budget: Budget) -> float | None:
        # Latent directions do what scales do.
        if released.mix is not None or not pays(course.n_records, noise(course, budget)):
            return None
        return budget.share_of_features(SCALES_SHARE)

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        totals, unit = _energies(descent, fit, course, released, mu)
        least = threshold(course.n_records, noise(course, fit.budget))
        return Scaled(relative_energies(totals, unit, least))

    return _phase(descent, part, make)


def row_length(descent: Descent, stage: int) -> OneRelease:
    """Release how long rows are in the columns of a stage, where they have the length of all."""

    def part(course: Course, released: Released, budget: Budget) -> float | None:  # noqa: ARG001
        own = course.stages[stage]
        if own is None or own.n_columns >= descent.n_columns:
            return None
        return budget.share_of_features(length_share(course, descent) / len(course.runs))

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        totals, unit = _energies(descent, fit, course, released, mu, total_energy)
        deviation = deviation_of(fit.budget.moved_by_features(1.0), mu)
        return RowLength(reach_of(totals, unit, course.n_records, deviation))

    return _phase(descent, part, make)


def curvature(descent: Descent, stage: int) -> OneRelease:
    """Release what bounds the curvature of the loss in a stage, where columns are scaled."""

    def part(course: Course, released: Released, budget: Budget) -> float | None:
        if course.stages[stage] is None or not released.energies.size:
            return None
        return budget.share_of_features(CURVATURE_SHARE / len(course.runs))

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        energies, kept = released.energies, released.kept_columns
        loads = loads_of(energies[kept] if kept.size else energies)
        totals, unit = _energies(descent, fit, course, released, mu, loads=loads)
        found = largest_eigenvalue(totals, unit, course.n_records, descent.constant, loads)
        return Curvature(min(course.weight, found / released.length**2))

    return _phase(descent, part, make)
