"""The LASSO as a method: columns drawn or kept one by one, then a refit of their weights."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from scipy.sparse import csr_array

from dplasso.fit.column_plan import (
    LassoPlan,
    Shape,
    plan_lasso,
    row_limit,
)
from dplasso.fit.method import Method, checked_count, common_parameters
from dplasso.fit.public_knowledge import scaled_rows
from dplasso.fit.task import Task
from dplasso.gradient_descent.calibration import LEARNT, LEARNT_OF_FEW, LEARNT_WITH_DIRECTIONS
from dplasso.phases.contract import Fit, Plan
from dplasso.phases.count import count, counted_of
from dplasso.phases.course import Course, Descent
from dplasso.phases.descend import gradient_phases
from dplasso.phases.released import Released
from dplasso.phases.releases import RowSize
from dplasso.phases.select import (
    Columns,
    Selection,
    calibration_of_vertices,
    row_size,
    select,
    start_of_vertices,
)
from dplasso.privacy.budget import Budget
from dplasso.privacy.parameters import check_feature_bound


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

    def as_read(self, rows: csr_array) -> csr_array:
        return scaled_rows(rows, None, self.fit_intercept, self.n_threads)

    def shape(self, task: Task, n_features: int) -> Shape:
        """Return the public facts that settings follow from."""
        bound = task.residual_bound(private=self.is_private)
        return Shape(
            task,
            n_features,
            self.max_weights,
            longer=task.norm_bound(bound) / bound,
            from_prior=self.from_prior,
            mixes=self.learn_geometry is not None and self.is_private,
        )

    def settings(self, shape: Shape, budget: Budget, released: Released) -> LassoPlan:
        """Choose what the parameters leave open, once records and long rows are counted."""
        rho = self._left(shape, released) * budget.mu * budget.mu / 2.0
        measured = released.last(RowSize)
        long_rows = measured is not None and measured.part > 0.5
        return plan_lasso(shape, rho, counted_of(released).total, long_rows=long_rows)

    def _left(self, shape: Shape, released: Released) -> float:
        """Return the share of the budget that counting records and long rows leaves."""
        counting = released.entries[: 1 + shape.measures_rows]
        return 1.0 - math.fsum(entry.share for entry in counting)

    def plan(self, task: Task, n_features: int, weighted: bool = False) -> Plan:  # noqa: ARG002
        """Count, draw columns or keep them by gradients, refit and calibrate."""
        shape = self.shape(task, n_features)
        selection, descent = self._selection(shape), self._descent(shape)
        phases = [count(task, selection.loss)]
        calibrates = task.calibration > 0.0 or self.from_prior
        draws = shape.most_vertices > 0
        if shape.measures_rows:
            phases.append(row_size(partial(self._longest_rows, shape)))
        if draws:
            phases += [start_of_vertices(selection)] if self.from_prior else []
            phases.append(select(selection))
        phases += gradient_phases(descent, shape.stages, calibrates=calibrates, mixes=shape.mixes)
        if draws and task.calibration:
            phases.append(calibration_of_vertices(selection))

        def lay_out(fit: Fit) -> None:
            if draws and not (shape.measures_rows and self.is_private):
                selection.laid_out(fit)
            else:
                descent.lay_out(fit)

        return Plan(tuple(phases), lay_out)

    def _loss(self, task: Task, released: Released) -> Any:
        """Return the loss, whose margins start at the balance of the classes."""
        bound = task.residual_bound(private=self.is_private)
        first_loss = task.vertex_loss(bound)
        # A prior has intercepts of its own.
        if not self.fit_intercept or self.from_prior:
            return first_loss
        counted = counted_of(released)
        offset = first_loss.starting_offset(counted.counts, counted.deviation)
        return task.vertex_loss(bound, offset)

    def _longest_rows(self, shape: Shape, released: Released, budget: Budget) -> float:
        """Return the length of rows from which on columns are drawn."""
        # The budget before the row length is paid for.
        rho = (1.0 - released.entries[0].share) * budget.mu * budget.mu / 2.0
        if math.isinf(rho):
            return math.inf
        drawn = plan_lasso(shape, rho, counted_of(released).total, long_rows=True).n_vertices
        square = row_limit(shape, drawn)
        # No row of entries within the bound is longer than one of all columns.
        return self.feature_bound * math.sqrt(square) if square < shape.n_features else math.inf

    def _selection(self, shape: Shape) -> Selection:
        """Return the public parameters of drawing columns."""
        task = shape.task
        loss = task.vertex_loss(task.residual_bound(private=self.is_private))

        def columns(released: Released, budget: Budget) -> Columns | None:
            plan, left = self.settings(shape, budget, released), self._left(shape, released)
            if not plan.n_vertices:
                return None
            return Columns(
                loss=self._loss(task, released),
                n_records=counted_of(released).total,
                n_vertices=plan.n_vertices,
                radius=plan.l1_radius,
                share=left * plan.vertex_share,
                start=left * plan.start_share,
                calibration=left * plan.calibration_share,
            )

        return Selection(
            columns=columns,
            feature_bound=self.feature_bound,
            fit_intercept=self.fit_intercept,
            most_vertices=shape.most_vertices,
            loss=loss,
            joint_loss=task.refit_loss(loss),
        )

    def _descent(self, shape: Shape) -> Descent:
        """Return the public parameters of the gradients on the columns that are kept."""
        task, n_features = shape.task, shape.n_features
        first_loss = task.vertex_loss(task.residual_bound(private=self.is_private))

        def course(released: Released, budget: Budget) -> Course | None:
            total, drawn = counted_of(released).total, released.drawn_columns
            plan = self.settings(shape, budget, released)
            if not plan.refit_share:
                return None
            loss = task.refit_loss(self._loss(task, released))
            share = self._left(shape, released) * plan.refit_share
            size = n_features if drawn is None else int(drawn.size)
            bent = loss.curvature * total * budget.mu_of(share) / budget.moved_by(loss)
            learnt = LEARNT_OF_FEW if size < n_features or plan.n_kept else LEARNT
            return Course(
                loss,
                weight=max(1.0, total),
                n_records=max(1.0, total),
                share=share,
                stages=plan.stages(shape, size, bent, mixed=released.mix is not None),
                calibration=plan.refit_calibration,
                start=plan.refit_start,
                learnt=LEARNT_WITH_DIRECTIONS if shape.mixes else learnt,
            )

        return Descent(
            course=course,
            fit_intercept=self.fit_intercept,
            norm_bound=None,
            from_prior=self.from_prior,
            n_columns=n_features,
            loss=task.refit_loss(first_loss),
            geometry=self.geometry if shape.mixes else None,
        )
