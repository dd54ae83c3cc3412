"""Noisy gradient descent as phases: runs of gradients, scales before them, and cuts between."""

import math
from collections.abc import Callable, Sequence
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
from dplasso.gradient_descent.forward_selection import CONSTANT_STEPS, ForwardSelection
from dplasso.gradient_descent.noisy_descent import NoisyGradientDescent, gradient_unit
from dplasso.gradient_descent.schedule import CONSTANT, Schedule, Stage, further, schedule_for
from dplasso.matrix.geometry import MOST_DIRECTIONS, Geometry, unmixed
from dplasso.matrix.scaling import SCALES, Mix, constant_entry
from dplasso.phases.course import (
    Course,
    Descent,
    MakeOfCourse,
    Part,
    bounds,
    calibration,
    course_phase,
    length_share,
    noise_of_share,
    sensitivity,
    start,
    starting_model,
)
from dplasso.phases.mix import mix, mix_share
from dplasso.phases.pairs import Blocks, pairs
from dplasso.phases.phase import NOTHING, Fit, Phase, Snapshot, Steps, deviation_of
from dplasso.phases.raw_columns import raw_column_phases, raw_columns_share
from dplasso.phases.released import Released
from dplasso.phases.releases import (
    Curvature,
    Descended,
    Kept,
    Magnitudes,
    Mixed,
    Release,
    RowLength,
    Scaled,
)
from dplasso.privacy.budget import Budget, Draws
from dplasso.privacy.parameters import check_records, share_bits

# Unit rows of fewer columns have larger entries, so a stage starts from this part of the weights.
_START = 0.5


def gradient_phases(
    descent: Descent,
    most: Sequence[tuple[int, int]],
    *,
    calibrates: bool,
    mixes: bool = False,
    measures: bool = False,
    blocks: Blocks = (),
) -> tuple[Phase, ...]:
    """Return the gradient phases; `most`: gradients and columns of each stage; `blocks`: pairs.

    `measures`: whether columns may have units and centres of their own.
    """
    phases = [mix(descent)] if mixes else []
    phases += raw_column_phases(descent) if measures else []
    phases += [scales(descent)]
    phases += [start(descent)] if descent.from_prior else []
    for stage, (n_steps, n_columns) in enumerate(most):
        if stage:
            phases += [pairs(descent, blocks) if blocks else cut(descent, stage)]
        phases += [row_length(descent, stage)] if descent.from_prior else []
        n_latent = MOST_DIRECTIONS if mixes and not stage else 0
        taken = gradients(descent, stage, n_steps, n_columns + n_latent)
        phases += [curvature(descent, stage), taken]
    phases += [calibration(descent)] if calibrates else []
    return tuple(phases)


def cut(descent: Descent, stage: int) -> Phase:
    """Keep the columns of the largest weights, from releases alone."""

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release | None:  # noqa: ARG001
        before, own = released.last(Descended), course.stages[stage]
        if before is None or own is None:
            return None
        weights = before.weights
        sizes = np.linalg.norm(weights, axis=1) if weights.shape[1] > 1 else np.abs(weights[:, 0])
        measured, columns = released.last(Magnitudes), before.columns
        if measured is not None:
            # Weights in the units of the columns say nothing of what a column moves.
            exponents = measured.exponents[columns] if columns.size else measured.exponents
            sizes = sizes / SCALES[exponents]
        if descent.geometry is not None and released.mix is not None and not columns.size:
            # By public rows, how far a column moves margins: noise is large in rare columns.
            sizes = sizes * descent.geometry.lengths
        places = _largest(sizes, min(own.n_columns, sizes.size))
        return Kept(columns[places] if columns.size else places)

    return course_phase(descent, "cut", 0.0, lambda *_: 0.0, make)


def _largest(sizes: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return the places of the largest, in ascending order; of equal ones, the first stay."""
    least = np.partition(sizes, -count)[-count]
    stay, equal = sizes > least, np.flatnonzero(sizes == least)
    stay[equal[: count - np.count_nonzero(stay)]] = True
    return np.flatnonzero(stay)


def gradients(descent: Descent, stage: int, most_steps: int, most_columns: int) -> Phase:
    """Take at most `most_steps` noisy gradients of at most `most_columns` columns."""

    def share(budget: Budget, released: Released) -> float:
        course = descent.course(released, budget)
        own = course.stages[stage]
        if own is None:
            return 0.0
        of_features = length_share(course, descent)
        if released.last(Scaled) is not None:
            of_features += SCALES_SHARE + CURVATURE_SHARE
        of_features += raw_columns_share(descent, course, released, budget)
        left = 1.0 - course.calibration - course.start - budget.share_of_features(of_features)
        left -= course.pairs
        if released.last(Mixed) is not None:
            left -= mix_share(descent, course, budget)
        return course.share * own.share * left

    def begin(fit: Fit, released: Released, mu: float, snapshot: Snapshot) -> Steps:
        course = descent.course(released, fit.budget)
        own = course.stages[stage]
        if own is None:
            return NOTHING
        mixing = None if stage else released.mix
        return _Gradients(descent, fit, course, own, released, mixing, mu, snapshot)

    n_outputs = descent.loss.n_outputs
    labels = f", for all {n_outputs:,} labels together" if descent.loss.n_labels > 1 else ""
    return Phase(
        "gradients",
        # A number for each column, the constant entry included, and output.
        Draws(gaussian=most_steps * ((most_columns + 1.0) * n_outputs)),
        share,
        begin,
        f"at most {{n_steps}} gradients over all records{labels}, each with Gaussian noise",
        bounds(descent.loss),
        most_steps,
    )


def schedule_of(
    stage: Stage, course: Course, released: Released, budget: Budget, mu: float
) -> Schedule:
    """Return the steps of a stage."""
    moved, kappa = budget.moved_by(course.loss), stage.kappa
    if stage.grows and math.isfinite(mu):
        signal = course.weight * mu * course.loss.residual_bound / moved
        kappa *= further(signal, course.loss.n_outputs * stage.n_columns)
    bounded = released.last(Curvature)
    eigenvalue = course.weight if bounded is None else bounded.eigenvalue
    further_steps = constant_steps(course, stage) - 1.0
    return schedule_for(
        eigenvalue + further_steps * CONSTANT**2 * course.weight,
        mu,
        moved,
        None if stage.is_adaptive else stage.n_steps,
        kappa,
        course.loss.curvature,
    )


def constant_steps(course: Course, stage: Stage) -> float:
    """Return how many times as long the steps of the constant are in a stage."""
    return CONSTANT_STEPS if stage.most and course.calibration else 1.0


def starting_weights(
    course: Course, released: Released, n_columns: int
) -> tuple[NDArray[np.float64] | None, Any]:
    """Return the weights that a run starts from, None for zeros, and their errors."""
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
    weights = before.weights[places]
    errors, part = before.errors[places] if before.spread.size else before.errors, _START
    if course.pairs:
        # Single columns keep their weights, and pairs start from 0.
        entered = released.drawn_columns
        assert entered is not None, "pairs enter after other columns"
        part, own = 1.0, np.searchsorted(entered, before.columns)
        weights, errors = np.zeros((n_columns, weights.shape[1])), np.zeros(n_columns)
        weights[own], errors[own] = before.weights, before.errors
    ends = [] if not before.constant.size else [before.constant[np.newaxis]]
    start = part * np.concatenate([weights, *ends])
    if course.constant.any():
        start[-1] += (1.0 - part) * constant
    return start.ravel(), part * errors


class _Gradients:
    """The gradients of one stage."""

    def __init__(
        self,
        descent: Descent,
        fit: Fit,
        course: Course,
        stage: Stage,
        released: Released,
        mixing: Mix | None,
        mu: float,
        snapshot: Snapshot,
    ) -> None:
        check_records(fit.records.shape[0], share_bits(course.n_records))
        self.course, self.stage = course, stage
        schedule = schedule_of(stage, course, released, fit.budget, mu)
        self.scaling = scaling = descent.scaling(fit, released)
        drawn = released.drawn_columns
        prior, rows = starting_model(fit, released), descent.rows(fit, course, released)
        self._mixed: tuple[Geometry, Mix] | None = None
        if descent.geometry is not None and mixing is not None:
            self._mixed = descent.geometry, mixing
            rows, prior = rows.mixed(scaling, *self._mixed, prior), None
        self._columns = scaling.kept if drawn is None else drawn
        n_columns = scaling.kept.size or rows.n_columns
        start, self._started_error = starting_weights(course, released, n_columns)
        selection = None
        if stage.most and self._mixed is None:
            # Columns that have not entered start from 0.
            self._started_error = 0.0
            shape = n_columns, course.loss.n_outputs
            end, factor = schedule.first_averaged - 1, constant_steps(course, stage)
            selection = ForwardSelection(shape, stage.most, end, released.kept_sizes, factor)
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
            intercept=descent.fit_intercept,
            scale_exponents=scaling.scale_exponents,
            selection=selection,
        )
        self.advance = self._run.advance
        self.n_steps, self.done = self._run.n_steps, int(snapshot["done"]) if snapshot else 0
        for name, own in self._run.state.items() if snapshot else ():
            array = snapshot[name]
            if own.shape != array.shape:
                raise ValueError(f"a state of {array.size} weights is not one of {own.size}")
            own[:] = array

    def snapshot(self, done: int) -> Snapshot:
        """Return the state of the run, a function of the noisy gradients."""
        state = {name: array.copy() for name, array in self._run.state.items()}
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
            offset=np.zeros(weights.shape[1]) + self.course.loss.offset,
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
) -> NDArray[np.float64]:
    """Release a statistic of the energies."""
    rows, scaling = descent.rows(fit, course, released), descent.scaling(fit, released)
    whole = scaling._replace(length=1.0)
    if released.keeps_lengths and scaling.norm_bound is not None:
        # Energies are those of rows of at most unit length.
        whole = whole._replace(norm_bound=scaling.norm_bound * scaling.length)
    return fit.noisy(
        lambda unit: statistic(rows.energies(whole, unit, loads)),
        fit.budget.moved_by_features(1.0),
        mu,
        course.n_records,
    )


def _phase(descent: Descent, part: Part, make: MakeOfCourse) -> Phase:
    """Return a phase of energies."""
    return course_phase(
        descent,
        "scales",
        # One for each column, and fewer than 64 for the rows.
        descent.n_columns + 64.0,
        part,
        make,
        words="noisy sums of the squared entries of every column",
        numbers=sensitivity,
    )


def scales(descent: Descent) -> Phase:
    """Release the energies of the columns, where there are records enough for column scales."""

    def part(course: Course, released: Released, budget: Budget) -> float | None:
        # Latent directions replace scales.
        deviation = noise_of_share(course, budget, SCALES_SHARE)
        if released.mix is not None or not pays(course.n_records, deviation):
            return None
        return budget.share_of_features(SCALES_SHARE)

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        totals = _energies(descent, fit, course, released, mu)
        least = threshold(course.n_records, noise_of_share(course, fit.budget, SCALES_SHARE))
        return Scaled(relative_energies(totals, least))

    return _phase(descent, part, make)


def row_length(descent: Descent, stage: int) -> Phase:
    """Release how long rows are in the columns of a stage, where they have the length of all."""

    def part(course: Course, released: Released, budget: Budget) -> float | None:  # noqa: ARG001
        own = course.stages[stage]
        if own is None or own.n_columns >= descent.n_columns:
            return None
        shorter = sum(stage.n_columns < descent.n_columns for stage in course.runs)
        return budget.share_of_features(length_share(course, descent) / shorter)

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        total = _energies(descent, fit, course, released, mu, total_energy)
        deviation = deviation_of(fit.budget.moved_by_features(1.0), mu)
        return RowLength(reach_of(total, course.n_records, deviation))

    return _phase(descent, part, make)


def curvature(descent: Descent, stage: int) -> Phase:
    """Release what bounds the curvature of the loss in a stage, where columns are scaled."""

    def part(course: Course, released: Released, budget: Budget) -> float | None:
        if course.stages[stage] is None or released.last(Scaled) is None:
            return None
        return budget.share_of_features(CURVATURE_SHARE / len(course.runs))

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Release:
        loads = loads_of(released.kept_energies)
        totals = _energies(descent, fit, course, released, mu, loads=loads)
        largest = largest_eigenvalue(totals, course.n_records, descent.constant, loads)
        return Curvature(min(course.weight, largest / released.row_length**2))

    return _phase(descent, part, make)
