"""The phases of a LASSO that draws columns by the exponential mechanism."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.round_part import RoundSteps
from dplasso.frank_wolfe.rounds import SPREAD, RoundsFrankWolfe
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.gradient_descent.calibration import LEARNT_OF_FEW, part_taken
from dplasso.gradient_descent.energies import SIZE_SHARE, mean_square, total_energy
from dplasso.gradient_descent.noisy_descent import gradient_unit
from dplasso.gradient_descent.schedule import CALIBRATION_STEPS, CONSTANT
from dplasso.matrix.scaling import Scaling
from dplasso.matrix.starting import StartingModel
from dplasso.phases.contract import NOTHING, Fit, Phase, Snapshot, Steps, at_once, deviation_of
from dplasso.phases.count import counted_of
from dplasso.phases.course import (
    START_WORDS,
    bounds,
    started,
    starting_model,
)
from dplasso.phases.released import Released
from dplasso.phases.releases import NO_COLUMNS, Drawn, Release, RowSize
from dplasso.privacy.budget import Budget, Draws
from dplasso.privacy.exponential_mechanism import VertexMechanism, vertex_mechanism
from dplasso.privacy.parameters import share_bits
from dplasso.privacy.release import drawing_from
from dplasso.selection.registry import make_selector

# Step sizes as after this many steps, which makes them almost constant.
LATE_START = 2**20


class Columns(NamedTuple):
    """How many columns are drawn, once the records are counted; `loss` starts at their balance."""

    loss: Any
    n_records: float
    n_vertices: int
    radius: float
    share: float
    start: float


@dataclass(frozen=True)
class Selection:
    """The public parameters of the phases that draw columns.

    `columns`: ``columns(released, budget)``, None where none are drawn. `loss`: that of `Columns`,
    but for the offset. `joint_loss`: bounds the length of all residuals of a record together.
    """

    columns: Callable[[Released, Budget], Columns | None]
    feature_bound: float
    fit_intercept: bool
    most_vertices: int
    loss: Any
    joint_loss: Any

    def share(self, of: Callable[[Columns], float]) -> Callable[[Budget, Released], float]:
        """Return the share of a phase; 0 where no columns are drawn."""

        def share(budget: Budget, released: Released) -> float:
            columns = self.columns(released, budget)
            return 0.0 if columns is None else of(columns)

        return share

    def started(self, fit: Fit, released: Released) -> StartingModel | None:
        """Return the public model that margins start from, as unit rows have it."""
        prior = starting_model(fit, released)
        return None if prior is None else replace(prior, constant=self.constant)

    @property
    def constant(self) -> float:
        """The constant entry of unit rows; 0 for none."""
        return CONSTANT if self.fit_intercept else 0.0

    def laid_out(self, fit: Fit) -> Any:
        """Return the records laid out for draws; a layout for gradients is dropped."""
        fit.layouts.pop("gradients", None)
        if "vertices" not in fit.layouts:
            laid_out = fit.records.laid_out(self.feature_bound, False, fit.threads)
            fit.layouts["vertices"] = laid_out
        return fit.layouts["vertices"]

    def gradient_rows(self, fit: Fit, loss: Any, kept: NDArray[np.int64]) -> Any:
        """Return the records for slopes and constants."""
        return self.laid_out(fit).gradients(loss, fit.threads, kept, fit.prior)


def row_size(limit: Callable[[Released, Budget], float]) -> Phase:
    """Measure whether rows are too long for gradients, so that draws find more columns."""

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
        # Rows exactly as long as the limit release one half.
        counted = Scaling(NO_COLUMNS, 0.0, math.sqrt(2.0) * longest)
        total = total_energy(rows.energies(counted, unit))
        total = fit.release(total, moved, mu, unit)
        return RowSize(mean_square(total, unit, n_records))

    return Phase(
        "rows",
        Draws(gaussian=1.0),
        share,
        at_once(make),
        "a noisy sum of the squared lengths of rows, each up to a limit",
        lambda budget: {"sensitivity": budget.moved_by_features(1.0)},
    )


def start_of_vertices(selection: Selection) -> Phase:
    """Find how much of the public model the vertices start from."""

    def make(fit: Fit, released: Released, mu: float) -> Release | None:
        columns = selection.columns(released, fit.budget)
        if columns is None:
            return None
        weight, scaling = max(1.0, columns.n_records), Scaling(NO_COLUMNS, selection.constant, None)
        rows = selection.gradient_rows(fit, columns.loss, NO_COLUMNS)
        moved = fit.budget.moved_by(selection.joint_loss)
        part = part_taken(weight, mu, LEARNT_OF_FEW)
        return started(fit, rows, scaling, weight, part, mu, moved, selection.fit_intercept)

    return Phase(
        "start",
        Draws(gaussian=CALIBRATION_STEPS * (selection.loss.n_outputs + 1.0)),
        selection.share(lambda columns: columns.start),
        at_once(make),
        START_WORDS,
        bounds(selection.joint_loss),
    )


def select(selection: Selection) -> Phase:
    """Draw columns in rounds, each column at most once."""

    def begin(fit: Fit, released: Released, mu: float, snapshot: Snapshot) -> Steps:
        columns = selection.columns(released, fit.budget)
        if columns is None:
            return NOTHING
        steps = RoundSteps(
            loss=columns.loss,
            bound=selection.feature_bound,
            n_columns=fit.n_features,
            n_steps=columns.n_vertices,
            # The weight of each vertex, up to one part in t0 / T.
            vertex_weight=2.0 * columns.radius / (columns.n_vertices + LATE_START),
            share_bits=share_bits(columns.n_records),
            start=selection.started(fit, released),
        )
        eps0 = 2.0 * mu / math.sqrt(columns.n_vertices)
        moved = fit.budget.moved(selection.feature_bound * columns.loss.residual_bound)
        rows = selection.laid_out(fit).rows(steps, fit.threads)
        selector = vertex_selector("bucket", vertex_mechanism(eps0, moved), steps, SPREAD)
        run = RoundsFrankWolfe(steps, rows, selector, fit.stream, prefix_of(snapshot))
        empty = drawn_by(columns.radius, LATE_START, 0.0, columns.loss, fit.n_features)
        return Vertices(run, empty)

    return Phase(
        "vertices",
        Draws(vertices=selection.most_vertices),
        selection.share(lambda columns: columns.share),
        begin,
        "at most {n_steps} columns drawn by the exponential mechanism",
        vertex_numbers(selection.feature_bound, selection.loss.residual_bound),
        selection.most_vertices,
    )


class Vertices:
    """A run of Frank-Wolfe as the steps of a phase."""

    def __init__(self, run: Any, empty: Callable[[Transcript], Drawn]) -> None:
        self.run, self.n_steps, self.done, self._empty = run, run.n_steps, run.done, empty
        self.advance = run.advance

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


def drawn_by(
    radius: float, late_start: int, constant: float, loss: Any, n_features: int
) -> Callable[[Transcript], Drawn]:
    """Return what makes a release of a transcript."""
    offset = np.zeros(loss.n_outputs) + loss.offset
    return lambda transcript: Drawn(
        transcript.vertex, transcript.sign, radius, late_start, constant, offset, n_features
    )


def vertex_selector(
    kind: str, mechanism: VertexMechanism, problem: Problem | RoundSteps, spread: float = 2.0
) -> Any:
    """Return an empty selection structure for this mechanism and problem."""
    rule = mechanism.rule(problem.unit, spread)
    selector = make_selector(kind, problem.n_coordinates, rule)
    return drawing_from(selector, mechanism.sensitivity * problem.unit)


def vertex_numbers(
    feature_bound: float, residual_bound: float
) -> Callable[[Budget], dict[str, float]]:
    """Return the `numbers` of vertices: B, C, and how far an entry of the gradient can move."""
    return lambda budget: {
        "feature_bound": feature_bound,
        "residual_bound": residual_bound,
        "sensitivity": budget.moved(feature_bound * residual_bound),
    }
