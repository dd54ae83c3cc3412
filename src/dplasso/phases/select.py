"""Drawing vertices as phases: in rounds for the default LASSO, or over a given radius.

The exponential mechanism draws signed columns, see `dplasso.privacy.exponential_mechanism`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.problem import Problem, VertexLayout
from dplasso.frank_wolfe.round_part import RoundSteps
from dplasso.frank_wolfe.rounds import SPREAD, RoundsFrankWolfe
from dplasso.frank_wolfe.row_part import VertexSteps
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.gradient_descent.calibration import calibrate_margins
from dplasso.gradient_descent.energies import SIZE_SHARE, mean_square, total_energy
from dplasso.gradient_descent.margins import LinearModel
from dplasso.gradient_descent.noisy_descent import gradient_unit
from dplasso.gradient_descent.schedule import CALIBRATION_STEPS, CONSTANT
from dplasso.matrix.scaling import Scaling
from dplasso.matrix.starting import StartingModel
from dplasso.phases.contract import NOTHING, Fit, OneRelease, Snapshot, Steps, deviation_of
from dplasso.phases.count import counted_of
from dplasso.phases.course import (
    CALIBRATION_WORDS,
    START_WORDS,
    Course,
    bounds,
    calibrated,
    started,
)
from dplasso.phases.released import Released
from dplasso.phases.releases import NO_COLUMNS, Drawn, Release, RowSize, Started
from dplasso.privacy.budget import Budget, Draws
from dplasso.privacy.exponential_mechanism import VertexMechanism, vertex_mechanism
from dplasso.privacy.parameters import share_bits
from dplasso.privacy.release import drawing_from
from dplasso.selection.registry import make_selector


class Columns(NamedTuple):
    """How many columns are drawn, once the records are counted, and with what.

    `loss`: starts at the balance of the classes.
    `n_records`: the number of records.
    `n_vertices`: vertices to draw; `radius`, `late_start`: what they weigh.
    `share`: of the budget, for the vertices. `start`: for the slope of a public model.
    `calibration`: for the calibration of their margins, where nothing is refitted.
    `learnt`: as of `Course`.
    """

    loss: Any
    n_records: float
    n_vertices: int
    radius: float
    late_start: int
    share: float
    start: float
    calibration: float
    learnt: float


@dataclass(frozen=True)
class Selection:
    """The public parameters of the phases that draw columns, and what they choose by the count.

    `columns`: ``columns(released, budget)``; None where none are drawn.
    `feature_bound`, `residual_bound`: B and C.
    `joint_loss`: a loss whose residuals are at least as long together as those within C.
    `most_vertices`: the most that are drawn.
    """

    columns: Callable[[Released, Budget], Columns | None]
    feature_bound: float
    fit_intercept: bool
    most_vertices: int
    n_outputs: int
    residual_bound: float
    joint_loss: Any

    def share(self, of: Callable[[Columns], float]) -> Callable[[Budget, Released], float]:
        """Return the share of a phase; 0 where no columns are drawn."""

        def share(budget: Budget, released: Released) -> float:
            columns = self.columns(released, budget)
            return 0.0 if columns is None else of(columns)

        return share

    def started(self, fit: Fit, released: Released) -> StartingModel | None:
        """Return the public model that margins start from, as unit rows have it."""
        start = released.last(Started)
        if fit.prior is None or start is None:
            return None
        return replace(fit.prior.stretched(start.slope, start.shift), constant=self.constant)

    @property
    def constant(self) -> float:
        """The constant entry of unit rows; 0 for none."""
        return CONSTANT if self.fit_intercept else 0.0

    def laid_out(self, fit: Fit) -> Any:
        """Return the records laid out for draws, in place of gradients of all columns."""
        fit.layouts.pop("gradients", None)
        if "vertices" not in fit.layouts:
            layout = VertexLayout(self.feature_bound, n_steps=self.most_vertices)
            fit.layouts["vertices"] = fit.records.laid_out(layout, fit.threads)
        return fit.layouts["vertices"]

    def gradient_rows(self, fit: Fit, loss: Any, kept: NDArray[np.int64]) -> Any:
        """Return the records for slopes and constants."""
        return self.laid_out(fit).gradients(loss, fit.threads, kept, fit.prior)


def row_size(limit: Callable[[Released, Budget], float]) -> OneRelease:
    """Return the phase that measures whether rows are too long for gradients.

    `limit`: ``limit(released, budget)``: the length of rows from which on draws tell more; infinite
    where this need not be measured.
    """

    def share(budget: Budget, released: Released) -> float:
        return budget.share_of_features(SIZE_SHARE) if math.isfinite(limit(released, budget)) else 0

    def make(fit: Fit, released: Released, mu: float) -> Release | None:
        longest = limit(released, fit.budget)
        if math.isinf(longest):
            return None
        n_records = counted_of(released).total
        moved = fit.budget.moved_by_features(1.0)
        unit = gradient_unit(1.0, deviation_of(moved, mu), share_bits(n_records))
        rows = fit.layouts["gradients"]
        # Where all rows are as long as the limit, they have half of the length that counts.
        counted = Scaling(NO_COLUMNS, 0.0, math.sqrt(2.0) * longest)
        total = total_energy(rows.energies(counted, unit))
        total = fit.release(total, moved, mu, unit)
        return RowSize(mean_square(total, unit, n_records))

    return OneRelease(
        "rows",
        Draws(gaussian=1.0),
        share,
        make,
        "a noisy sum of the squared lengths of rows, each up to a limit",
        lambda budget: {"sensitivity": budget.moved_by_features(1.0)},
    )


def start_of_vertices(selection: Selection) -> OneRelease:
    """Return the phase that finds how much of the public model the vertices start from."""

    def make(fit: Fit, released: Released, mu: float) -> Release | None:
        columns = selection.columns(released, fit.budget)
        if columns is None:
            return None
        weight, scaling = max(1.0, columns.n_records), Scaling(NO_COLUMNS, selection.constant, None)
        course = Course(columns.loss, weight, weight, 0.0, (), 0.0, learnt=columns.learnt)
        rows = selection.gradient_rows(fit, columns.loss, NO_COLUMNS)
        moved = fit.budget.moved_by(selection.joint_loss)
        return started(fit, rows, scaling, course, mu, moved, selection.fit_intercept)

    return OneRelease(
        "start",
        Draws(gaussian=CALIBRATION_STEPS * (selection.n_outputs + 1.0)),
        selection.share(lambda columns: columns.start),
        make,
        START_WORDS,
        lambda budget: bounds(budget, selection.joint_loss),
    )


def calibration_of_vertices(selection: Selection) -> OneRelease:
    """Return the phase that calibrates the margins of vertices that are not refitted."""

    def make(fit: Fit, released: Released, mu: float) -> Release | None:
        columns, drawn = selection.columns(released, fit.budget), released.last(Drawn)
        if columns is None or drawn is None or not columns.calibration or math.isinf(mu):
            return None
        kept = drawn.columns
        coefficients, intercept = drawn.coefficients()
        model = LinearModel(
            coefficients[:, kept].toarray().T,
            intercept,
            Scaling(NO_COLUMNS, 0.0, None),
            selection.feature_bound,
        )
        found = calibrate_margins(
            selection.gradient_rows(fit, columns.loss, kept).margins(model),
            columns.loss,
            fit.stream,
            n_records=max(1.0, columns.n_records),
            mu=mu,
            sensitivity=fit.budget.moved_by(selection.joint_loss),
            fit_intercept=selection.fit_intercept,
        )
        return calibrated(found)

    return OneRelease(
        "calibration",
        Draws(gaussian=CALIBRATION_STEPS * (selection.n_outputs + 1.0)),
        selection.share(lambda columns: columns.calibration),
        make,
        CALIBRATION_WORDS,
        lambda budget: bounds(budget, selection.joint_loss),
    )


@dataclass(frozen=True)
class Select:
    """Draw columns in rounds, each column at most once."""

    selection: Selection

    name: ClassVar[str] = "vertices"

    def words(self, task: Any, n_steps: int) -> str:  # noqa: ARG002
        """Say how many columns are drawn at most."""
        return f"at most {n_steps:,} columns drawn by the exponential mechanism"

    def numbers(self, budget: Budget) -> dict[str, float]:
        """Return bounds and sensitivity."""
        selection = self.selection
        return vertex_numbers(budget, selection.feature_bound, selection.residual_bound)

    @property
    def draws(self) -> Draws:
        """The most vertices."""
        return Draws(vertices=self.selection.most_vertices)

    @property
    def most_steps(self) -> int:
        """The most vertices."""
        return self.selection.most_vertices

    def share(self, budget: Budget, released: Released) -> float:
        """Return the share of the vertices."""
        return self.selection.share(lambda columns: columns.share)(budget, released)

    def begin(self, fit: Fit, released: Released, mu: float, snapshot: Snapshot) -> Steps:
        """Return the run; from a snapshot, its vertices are taken instead of drawn."""
        selection = self.selection
        columns = selection.columns(released, fit.budget)
        if columns is None:
            return NOTHING
        steps = RoundSteps(
            loss=columns.loss,
            bound=selection.feature_bound,
            n_columns=fit.n_features,
            n_steps=columns.n_vertices,
            # What each vertex weighs after a late start, but for one part in t0 / T.
            vertex_weight=2.0 * columns.radius / (columns.n_vertices + columns.late_start),
            share_bits=share_bits(columns.n_records),
            start=selection.started(fit, released),
        )
        eps0 = 2.0 * mu / math.sqrt(columns.n_vertices)
        moved = fit.budget.moved(selection.feature_bound * columns.loss.residual_bound)
        rows = selection.laid_out(fit).rows(steps, fit.threads)
        selector = vertex_selector("bucket", vertex_mechanism(eps0, moved), steps, SPREAD)
        run = RoundsFrankWolfe(steps, rows, selector, fit.stream, prefix_of(snapshot))
        empty = _drawn(columns.radius, columns.late_start, 0.0, columns.loss, fit.n_features)
        return Vertices(run, empty)


class Vertices:
    """A run of Frank-Wolfe as the steps of a phase."""

    def __init__(self, run: Any, empty: Callable[[Transcript], Drawn]) -> None:
        self.run, self.n_steps, self.done, self._empty = run, run.n_steps, run.done, empty

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1, both included."""
        self.run.advance(first, last)

    def snapshot(self, done: int) -> Snapshot:
        """Return the vertices drawn so far."""
        drawn = self.run.transcript(done)
        return {"done": np.array(done), "vertex": drawn.vertex.copy(), "sign": drawn.sign.copy()}

    def release(self) -> Release:
        """Return all vertices."""
        return self._empty(self.run.transcript())


def prefix_of(snapshot: Snapshot) -> Transcript | None:
    """Return the vertices that an interrupted run had drawn."""
    return Transcript(snapshot["vertex"], snapshot["sign"]) if snapshot else None


def _drawn(
    radius: float, late_start: int, constant: float, loss: Any, n_features: int
) -> Callable[[Transcript], Drawn]:
    """Return what makes a release of a transcript."""
    offset = np.zeros(loss.n_outputs) + loss.offset
    return lambda transcript: Drawn(
        transcript.vertex, transcript.sign, radius, late_start, constant, offset, n_features
    )


@dataclass(frozen=True)
class FrankWolfe:
    """The paper's loop: T vertices of the L1 ball of a given radius.

    `steps`: ``steps(released, budget)``: the public numbers of the run.
    `mechanism`: ``mechanism(eps0, fit)``: how a vertex is drawn.
    `selector`, `solver`: as of `dplasso.frank_wolfe.solve.FrankWolfe`.
    `spends`: share of the vertices: what the count leaves.
    `feature_bound`, `residual_bound`: B and C.
    """

    steps: Callable[[Released, Budget], VertexSteps]
    mechanism: Callable[[float, Fit], VertexMechanism]
    selector: str
    solver: str
    n_iter: int
    spends: float
    feature_bound: float
    residual_bound: float

    name: ClassVar[str] = "vertices"

    def words(self, task: Any, n_steps: int) -> str:  # noqa: ARG002
        """Say how vertices are drawn."""
        return f"{n_steps:,} steps, each a random choice by the exponential mechanism"

    def numbers(self, budget: Budget) -> dict[str, float]:
        """Return bounds and sensitivity, and the bounded-range parameter of a step."""
        eps0 = {"eps0": budget.eps0_of(self.spends, self.n_iter)}
        return vertex_numbers(budget, self.feature_bound, self.residual_bound) | eps0

    @property
    def draws(self) -> Draws:
        """The vertices."""
        return Draws(vertices=self.n_iter)

    @property
    def most_steps(self) -> int:
        """The vertices."""
        return self.n_iter

    def share(self, budget: Budget, released: Released) -> float:  # noqa: ARG002
        """Return all that the count leaves."""
        return self.spends

    def begin(self, fit: Fit, released: Released, mu: float, snapshot: Snapshot) -> Steps:
        """Return the run; from a snapshot, its vertices are taken instead of drawn."""
        steps = self.steps(released, fit.budget)
        mechanism = self.mechanism(2.0 * mu / math.sqrt(self.n_iter), fit)
        rows = fit.layouts["vertices"].vertex_rows(steps, fit.threads)
        run = rows.walk(
            vertex_selector(self.selector, mechanism, rows.problem),
            fit.stream,
            solver=self.solver,
            drift_tol=steps.drift_tol,
            threads=fit.threads,
            prefix=prefix_of(snapshot),
            record_history=mechanism.name == "none",
            record_work=mechanism.name != "exponential",
        )
        constant = steps.bound if steps.intercept else 0.0
        return Vertices(run, _drawn(steps.radius, 0, constant, steps.loss, fit.n_features))


def vertex_selector(
    kind: str, mechanism: VertexMechanism, problem: Problem | RoundSteps, spread: float = 2.0
) -> Any:
    """Return an empty selection structure for this mechanism and problem.

    `spread`: as of `SelectionRule`.
    """
    rule = mechanism.rule(problem.unit, spread)
    selector = make_selector(kind, problem.n_coordinates, rule)
    return drawing_from(selector, mechanism.sensitivity * problem.unit)


def vertex_numbers(budget: Budget, feature_bound: float, residual_bound: float) -> dict[str, float]:
    """Return the bounds B and C, and how far one coordinate of the gradient can move."""
    moved = budget.moved(feature_bound * residual_bound)
    return {"feature_bound": feature_bound, "residual_bound": residual_bound, "sensitivity": moved}
