"""The phases of a LASSO that draws columns by the exponential mechanism."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.round_part import RoundSteps
from dplasso.frank_wolfe.rounds import SPREAD, RoundsFrankWolfe
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.gradient_descent.energies import SIZE_SHARE, mean_square, total_energy
from dplasso.gradient_descent.schedule import CALIBRATION_STEPS
from dplasso.matrix.scaling import Scaling
from dplasso.phases.count import counted_of
from dplasso.phases.course import (
    START_WORDS,
    Descent,
    bounds,
    sensitivity,
    started,
    starting_model,
)
from dplasso.phases.phase import NOTHING, Fit, Phase, Snapshot, Steps, at_once
from dplasso.phases.released import Released
from dplasso.phases.releases import NO_COLUMNS, Drawn, Release, RowSize
from dplasso.privacy.budget import Budget, Draws
from dplasso.privacy.exponential_mechanism import SelectionRule, vertex_mechanism
from dplasso.privacy.parameters import share_bits
from dplasso.privacy.release import drawing_from
from dplasso.selection.registry import make_selector

# Step sizes as after this many steps, which makes them almost constant.
LATE_START = 2**20


@dataclass(frozen=True)
class Selection:
    """The public parameters of the phases that draw columns.

    `descent`: those of the refit. `loss`: that of the draws, but for the offset.
    """

    descent: Descent
    feature_bound: float
    most_vertices: int
    loss: Any

    def laid_out(self, fit: Fit) -> Any:
        """Return the records laid out for draws; a layout for gradients is dropped."""
        fit.layouts.pop("gradients", None)
        if "vertices" not in fit.layouts:
            laid_out = fit.records.laid_out(self.feature_bound, False, fit.threads)
            fit.layouts["vertices"] = laid_out
        return fit.layouts["vertices"]


def row_size(limit: Callable[[Released, Budget], float]) -> Phase:
    """Measure whether rows are too long for gradients, so that draws find more columns."""

    def share(budget: Budget, released: Released) -> float:
        return budget.share_of_features(SIZE_SHARE) if math.isfinite(limit(released, budget)) else 0

    def make(fit: Fit, released: Released, mu: float) -> Release | None:
        longest = limit(released, fit.budget)
        if math.isinf(longest):
            return None
        n_records = counted_of(released).total
        rows = fit.layouts["gradients"]
        # Rows exactly as long as the limit release one half.
        counted = Scaling(NO_COLUMNS, 0.0, math.sqrt(2.0) * longest)
        total = fit.noisy(
            lambda unit: total_energy(rows.energies(counted, unit)),
            fit.budget.moved_by_features(1.0),
            mu,
            n_records,
        )
        return RowSize(mean_square(total, n_records))

    return Phase(
        "rows",
        Draws(gaussian=1.0),
        share,
        at_once(make),
        "a noisy sum of the squared lengths of rows, each up to a limit",
        sensitivity,
    )


def start_of_vertices(selection: Selection) -> Phase:
    """Find how much of the public model the vertices start from."""
    descent = selection.descent

    def make(fit: Fit, released: Released, mu: float) -> Release | None:
        course = descent.course(released, fit.budget)
        if not course.drawn.n_vertices:
            return None
        scaling, layout = Scaling(NO_COLUMNS, descent.constant, None), selection.laid_out(fit)
        # The slope and the constants need no columns.
        rows = layout.gradients(course.drawn.loss, fit.threads, NO_COLUMNS, fit.prior)
        return started(descent, fit, course, rows, scaling, mu)

    return Phase(
        "start",
        Draws(gaussian=CALIBRATION_STEPS * (selection.loss.n_outputs + 1.0)),
        lambda budget, released: descent.course(released, budget).drawn.start,
        at_once(make),
        START_WORDS,
        bounds(descent.loss),
    )


def select(selection: Selection) -> Phase:
    """Draw columns in rounds, each column at most once."""

    def begin(fit: Fit, released: Released, mu: float, snapshot: Snapshot) -> Steps:
        course = selection.descent.course(released, fit.budget)
        columns, prior = course.drawn, starting_model(fit, released)
        if not columns.n_vertices:
            return NOTHING
        steps = RoundSteps(
            loss=columns.loss,
            bound=selection.feature_bound,
            n_columns=selection.descent.n_columns,
            n_steps=columns.n_vertices,
            # The weight of each vertex, up to one part in t0 / T.
            vertex_weight=2.0 * columns.radius / (columns.n_vertices + LATE_START),
            share_bits=share_bits(course.n_records),
            start=prior and replace(prior, constant=selection.descent.constant),
        )
        eps0 = 2.0 * mu / math.sqrt(columns.n_vertices)
        moved = fit.budget.moved(selection.feature_bound * columns.loss.residual_bound)
        rows = selection.laid_out(fit).rows(steps, fit.threads)
        selector = vertex_selector("bucket", vertex_mechanism(eps0, moved), steps, SPREAD)
        run = RoundsFrankWolfe(steps, rows, selector, fit.stream, prefix_of(snapshot))
        return Vertices(run, columns.loss, steps.n_columns, columns.radius, LATE_START)

    return Phase(
        "vertices",
        Draws(vertices=selection.most_vertices),
        lambda budget, released: selection.descent.course(released, budget).drawn.share,
        begin,
        "at most {n_steps} columns drawn by the exponential mechanism",
        vertex_numbers(selection.feature_bound, selection.loss.residual_bound),
        selection.most_vertices,
    )


class Vertices:
    """A run of Frank-Wolfe as the steps of a phase; radius, late start and constant as `Drawn`."""

    def __init__(
        self,
        run: Any,
        loss: Any,
        n_features: int,
        radius: float,
        late_start: int = 0,
        constant: float = 0.0,
    ) -> None:
        self.run, self.n_steps, self.done, self.advance = run, run.n_steps, run.done, run.advance
        offset = np.zeros(loss.n_outputs) + loss.offset
        self._public = radius, late_start, constant, offset, n_features

    def snapshot(self, done: int) -> Snapshot:
        """Return the vertices drawn so far."""
        drawn = self.run.transcript(done)
        return {"done": np.array(done), "vertex": drawn.vertex.copy(), "sign": drawn.sign.copy()}

    def release(self) -> Release:
        """Return all vertices."""
        drawn = self.run.transcript()
        return Drawn(drawn.vertex, drawn.sign, *self._public)


def prefix_of(snapshot: Snapshot) -> Transcript | None:
    """Return the vertices that an interrupted run had drawn."""
    return Transcript(snapshot["vertex"], snapshot["sign"]) if snapshot else None


def vertex_selector(
    kind: str, rule: SelectionRule, problem: Problem | RoundSteps, spread: float = 2.0
) -> Any:
    """Return an empty selection structure for this rule and problem."""
    rule = rule.in_units(problem.unit, spread)
    selector = make_selector(kind, problem.n_coordinates, rule)
    return drawing_from(selector, rule.sensitivity)


def vertex_numbers(
    feature_bound: float, residual_bound: float
) -> Callable[[Budget], dict[str, float]]:
    """Return the `numbers` of vertices: B, C, and how far an entry of the gradient can move."""
    return lambda budget: {
        "feature_bound": feature_bound,
        "residual_bound": residual_bound,
        "sensitivity": budget.moved(feature_bound * residual_bound),
    }
