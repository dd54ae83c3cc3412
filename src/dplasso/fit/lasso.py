"""The LASSO as a method: columns drawn or kept one by one, then a refit of their weights.

Of t columns drawn, the weakest one's gradient is about ``theta N / (2 sqrt(t))``. A draw at ``eps0
= sqrt(8 rho / T)`` finds it if ``eps0`` times that exceeds ``ln 2D``, so T grows with ``sqrt(rho) N
/ ln 2D``. The noise of a gradient of all columns does not depend on T but grows with the length of
a row. It is the smaller one for rows whose squared length is below ``T ln(2D) / 2``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from dplasso.fit.method import Method, checked_count, common_parameters
from dplasso.fit.task import Task
from dplasso.gradient_descent.calibration import LEARNT, LEARNT_OF_FEW, LEARNT_WITH_DIRECTIONS
from dplasso.gradient_descent.schedule import (
    CALIBRATION_SHARE,
    MOST_STEPS,
    TABLE_COLUMNS,
    Stage,
    plan_stages,
    steps_that_pay,
    with_directions,
)
from dplasso.phases.count import count, counted_of
from dplasso.phases.course import NO_DRAWS, Columns, Course, Descent
from dplasso.phases.descend import gradient_phases
from dplasso.phases.phase import Fit, Plan
from dplasso.phases.released import Released
from dplasso.phases.releases import RowSize
from dplasso.phases.select import (
    LATE_START,
    Selection,
    row_size,
    select,
    start_of_vertices,
)
from dplasso.privacy.budget import Budget
from dplasso.privacy.parameters import check_feature_bound

# The most columns of a model unless more are asked for or can be found.
MOST_COLUMNS = 200
# The most columns that gradients keep, and the most coordinates that gradients may have.
MOST_KEPT, _MOST_COORDINATES = 2**16, 2**24
# The most and the fewest gradients of the refit of columns drawn.
_MOST_REFIT_STEPS, _FEWEST_REFIT_STEPS = 100, 40
# theta: the strength of the best column.
_STRENGTH = 0.35
# Squared length of rows up to which gradients find more than T draws, over T ln(2D) / 2. Chosen
# on splits of the training rows of Reuters and Farm Ads, and on made-up rows (docs/lasso.md).
_LONGER_ROWS = 8.0
# Share of the budget for the refit of columns drawn.
_REFIT_SHARE = 0.3


@dataclass(frozen=True)
class Shape:
    """The public facts that a plan follows from besides the budget and the number of records.

    `asked`: the most columns of the model, None for the default. `mixes`: whether gradients use
    directions of public rows.
    """

    task: Task
    n_features: int
    asked: int | None
    from_prior: bool
    mixes: bool

    @property
    def n_coordinates(self) -> int:
        """Columns of all outputs."""
        return self.task.n_outputs * self.n_features

    @property
    def length(self) -> int:
        """Columns of the list, if no more can be found; 0 where all columns are taken."""
        length = self.asked or MOST_COLUMNS
        return 0 if self.n_features <= length else length

    @property
    def most_vertices(self) -> int:
        """The most vertices that a fit draws: each column at most once, and at most half."""
        # Draws repeat what columns of tables have in common, and forward selection does not.
        selects = self.n_features <= TABLE_COLUMNS and self.most_kept > 0
        return 0 if self.mixes or selects else min(self.length, max(1, self.n_features // 2))

    @property
    def most_kept(self) -> int:
        """The most columns that gradients keep; 0 where none do."""
        if self.n_coordinates > _MOST_COORDINATES and not self.mixes:
            return 0
        if self.asked or not self.length:
            return self.length
        return max(self.length, min(MOST_KEPT, self.n_features // 2))

    @property
    def measures_rows(self) -> bool:
        """Whether the length of rows decides between draws and gradients."""
        return self.most_vertices > 0 and self.most_kept > 0

    @property
    def stages(self) -> list[tuple[int, int]]:
        """The most gradients of each stage, and the most columns that they are of."""
        if not self.length:
            return [(MOST_STEPS, self.n_features)]
        if not self.most_kept:
            return [(_MOST_REFIT_STEPS, self.most_vertices)]
        first, *others, last = plan_stages(self.length, self.n_features)
        more = [
            (stage.n_steps, min(self.n_features, stage.n_columns * self.most_kept // self.length))
            for stage in others
        ]
        return [
            (MOST_STEPS if self.mixes else first.n_steps, self.n_features),
            *more,
            (max(last.n_steps, _MOST_REFIT_STEPS), self.most_kept),
        ]


@dataclass(frozen=True)
class LassoPlan:
    """What a fit does once the classes are counted; shares are of what is left of the budget.

    `n_vertices`: vertices to draw; 0 where gradients keep columns, or all columns are taken.
    `n_kept`: columns that gradients of all columns keep; 0 where they keep none.
    `start_share`: for the slope of a public start.
    """

    n_vertices: int
    n_kept: int
    start_share: float

    @property
    def refit_share(self) -> float:
        """Share of the gradients."""
        return _REFIT_SHARE if self.n_vertices else 1.0

    @property
    def vertex_share(self) -> float:
        """Share of the vertices, if there are any."""
        return 1.0 - self.refit_share - self.start_share

    def stages(
        self, shape: Shape, n_columns: int, bent: float, *, mixed: bool
    ) -> tuple[Stage | None, ...]:
        """Return the runs of gradient descent, as many as `Shape.stages`; None for one left out.

        `n_columns`: of the first run. `bent`: bound on the curvature of the loss, over the noise.
        """
        n_stages = len(shape.stages)
        if self.n_vertices:
            kappa = shape.task.refit_kappa
            most = steps_that_pay(kappa * bent, _FEWEST_REFIT_STEPS, _MOST_REFIT_STEPS)
            return *[None] * (n_stages - 1), Stage(most, 1.0, kappa, n_columns)
        own = plan_stages(self.n_kept or None, n_columns, shape.task.kappa)
        if len(own) == 1:
            return own
        first, *others, last = own
        stages = first, *others, *[None] * (n_stages - len(own)), last
        return tuple(with_directions(stages)) if mixed else stages


def row_limit(shape: Shape, n_vertices: int) -> float:
    """Return the squared length of rows, over B^2, up to which gradients find more than draws."""
    draws = n_vertices * math.log(2.0 * shape.n_coordinates) / 2.0
    # How much longer a record's gradient may be than that of a draw.
    longer = shape.task.gradient_bound / shape.task.bound
    return _LONGER_ROWS * draws / (longer * longer)


def plan_lasso(shape: Shape, rho: float, n_records: float, *, long_rows: bool) -> LassoPlan:
    """Choose how columns are found and refitted, with `rho` of zCDP left."""
    most, start = shape.most_vertices, CALIBRATION_SHARE if shape.from_prior else 0.0
    findable, finding = MOST_COLUMNS, rho * (1.0 - _REFIT_SHARE - start)
    if not math.isinf(rho):
        # How many columns draws can distinguish from noise in typical data.
        signal = _STRENGTH * math.sqrt(2.0 * finding) * n_records
        findable = int(min(signal / math.log(2.0 * shape.n_coordinates), 2.0**31))
    if most and (long_rows or math.isinf(rho) or not shape.most_kept):
        n_vertices = most if shape.asked else max(1, min(most, findable))
        return LassoPlan(n_vertices, 0, start)
    return LassoPlan(0, min(shape.most_kept, max(shape.length, findable)), start)


@dataclass(frozen=True, kw_only=True)
class Lasso(Method):
    """Parameters of a LASSO; `max_weights=None` leaves the number of columns to the plan."""

    max_weights: int | None
    feature_bound: float

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        return cls(
            **common_parameters(params),
            max_weights=checked_count(params, "max_weights"),
            feature_bound=check_feature_bound(params["feature_bound"]),
        )

    def shape(self, task: Task, n_features: int) -> Shape:
        """Return the public facts that settings follow from."""
        mixes = self.learn_geometry is not None and self.is_private
        return Shape(task, n_features, self.max_weights, self.from_prior, mixes)

    def plan(self, task: Task, n_features: int) -> Plan:
        """Count, draw columns or keep them by gradients, refit and calibrate."""
        # A statement before the fit is that of the widest spread.
        task = task.spread(1.0, math.inf)
        shape = self.shape(task, n_features)
        loss = task.vertex_loss(task.bound)
        descent = Descent(
            course=partial(self._course, shape),
            fit_intercept=self.fit_intercept,
            norm_bound=self.norm_bound,
            from_prior=self.from_prior,
            n_columns=n_features,
            loss=task.refit_loss(loss),
            geometry=self.geometry if shape.mixes else None,
            keeps_lengths=task.keeps_lengths(shape.length),
        )
        selection = Selection(descent, self.feature_bound, shape.most_vertices, loss)
        phases = self.counting(task, count(task, loss, share=self.count_share(task)))
        calibrates = task.calibration > 0.0 or self.from_prior
        draws = shape.most_vertices > 0
        if shape.measures_rows:
            phases.append(row_size(partial(self._longest_rows, shape)))
        if draws:
            phases += [start_of_vertices(selection)] if self.from_prior else []
            phases.append(select(selection))
        phases += gradient_phases(
            descent,
            shape.stages,
            calibrates=calibrates,
            mixes=shape.mixes,
            measures=self.measures_columns,
        )

        def lay_out(fit: Fit) -> None:
            if draws and not (shape.measures_rows and self.is_private):
                selection.laid_out(fit)
            else:
                descent.lay_out(fit)

        return Plan(tuple(phases), lay_out)

    def _course(self, shape: Shape, released: Released, budget: Budget) -> Course:
        """Choose what the parameters leave open, once records and long rows are counted."""
        shape = self.shape(self.spread(shape.task, released, budget), shape.n_features)
        task, counted, measured = shape.task, counted_of(released), released.last(RowSize)
        counting = released.entries[: 1 + task.spreads + shape.measures_rows]
        left = 1.0 - math.fsum(entry.share for entry in counting)
        rho, total = left * budget.mu * budget.mu / 2.0, counted.total
        long_rows = measured is not None and measured.part > 0.5
        plan = plan_lasso(shape, rho, total, long_rows=long_rows)
        loss = task.vertex_loss(task.bound)
        # A prior has intercepts of its own.
        if self.fit_intercept and not self.from_prior:
            offset = loss.starting_offset(counted.counts, counted.deviation)
            loss = task.vertex_loss(task.bound, offset)
        drawn, start, size = NO_DRAWS, plan.start_share, shape.n_features
        if plan.n_vertices:
            # A vertex weighs radius * 2 / (t0 + ...) each.
            weight = task.column_step / math.sqrt(plan.n_vertices)
            radius = weight * (plan.n_vertices + LATE_START) / 2.0
            shares = left * plan.vertex_share, left * start
            drawn, start = Columns(loss, plan.n_vertices, radius, *shares), 0.0
        if (columns := released.drawn_columns) is not None:
            size = int(columns.size)
        refit_loss, share = task.refit_loss(loss), left * plan.refit_share
        bent = refit_loss.curvature * total * budget.mu_of(share) / budget.moved_by(refit_loss)
        learnt = LEARNT_OF_FEW if plan.n_vertices or plan.n_kept else LEARNT
        return Course(
            refit_loss,
            weight=max(1.0, total),
            n_records=max(1.0, total),
            share=share,
            stages=plan.stages(shape, size, bent, mixed=released.mix is not None),
            calibration=(plan.start_share or task.calibration) / plan.refit_share,
            start=start,
            learnt=LEARNT_WITH_DIRECTIONS if shape.mixes else learnt,
            drawn=drawn,
        )

    def _longest_rows(self, shape: Shape, released: Released, budget: Budget) -> float:
        """Return the length of rows from which on columns are drawn."""
        # The budget before the row length is paid for.
        rho = (1.0 - released.spent) * budget.mu * budget.mu / 2.0
        if math.isinf(rho):
            return math.inf
        drawn = plan_lasso(shape, rho, counted_of(released).total, long_rows=True).n_vertices
        square = row_limit(shape, drawn)
        # No row of entries within the bound is longer than one of all columns.
        return self.feature_bound * math.sqrt(square) if square < shape.n_features else math.inf
