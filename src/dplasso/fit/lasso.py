"""The LASSO as a method: columns drawn or kept one by one, then a refit of their weights."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Self

from scipy.sparse import csr_array

from dplasso.fit.column_plan import (
    LassoPlan,
    Shape,
    columns_warning,
    findable_columns,
    gradients_warning,
    plan_lasso,
)
from dplasso.fit.descent import GradientDescent
from dplasso.fit.method import Method, common_parameters, word_or_number
from dplasso.fit.public_knowledge import scaled_rows
from dplasso.fit.task import Task
from dplasso.frank_wolfe.problem import VertexLayout
from dplasso.gradient_descent.calibration import LEARNT, LEARNT_OF_FEW
from dplasso.phases.contract import Fit, Phase, Plan
from dplasso.phases.count import COUNT_SHARE, count, counted_of
from dplasso.phases.course import Course, Descent
from dplasso.phases.descend import gradient_phases
from dplasso.phases.released import Released
from dplasso.phases.select import (
    Columns,
    Select,
    Selection,
    calibration_of_vertices,
    start_of_vertices,
)
from dplasso.privacy.budget import Budget
from dplasso.privacy.parameters import check_feature_bound

# The share that the counts leave.
_LEFT = 1.0 - COUNT_SHARE


@dataclass(frozen=True, kw_only=True)
class Lasso(Method):
    """Parameters of a LASSO fit that chooses its own settings.

    `max_weights`: the most columns of the model; None leaves it to the plan.
    """

    max_weights: int | None
    feature_bound: float

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """Check the parameters of an estimator; TypeError, ValueError as `common_parameters`."""
        return cls(
            **common_parameters(params),
            max_weights=word_or_number(
                params,
                "max_weights",
                {None: None},
                lambda count: count > 0,
                "`None` or a whole number >= 1",
                Integral,
            ),
            feature_bound=check_feature_bound(params["feature_bound"]),
        )

    def as_read(self, rows: csr_array) -> csr_array:
        """Return rows of unit length, as the refit takes them."""
        return scaled_rows(rows, None, self.fit_intercept, self.n_threads)

    def shape(self, task: Task, n_features: int) -> Shape:
        """Return the public facts that settings follow from."""
        bound = task.residual_bound(private=self.is_private)
        longer = task.norm_bound(bound) / bound
        return Shape(task, n_features, self.max_weights, longer, self.from_prior)

    def settings(self, shape: Shape, budget: Budget, n_records: float) -> LassoPlan:
        """Choose what the parameters leave open, once N is known."""
        return plan_lasso(shape, _LEFT * budget.mu * budget.mu / 2.0, n_records)

    def plan(self, task: Task, n_features: int, weighted: bool = False) -> Plan:
        """Count, draw columns or keep them by gradients, refit and calibrate."""
        shape = self.shape(task, n_features)
        if self.learn_geometry is not None and self.is_private:
            task.vertex_loss(task.residual_bound(private=True))  # Refuses what a LASSO refuses.
            return self._short_list(shape).plan(task, n_features, weighted)
        selection, descent = self._selection(shape), self._descent(shape)
        start: list[Phase] = [start_of_vertices(selection)] if self.from_prior else []
        drawn = [*start, Select(selection)] if shape.most_vertices else []
        calibrates = task.calibration > 0.0 or self.from_prior
        refit = gradient_phases(descent, shape.stages, calibrates=calibrates)
        alone = [calibration_of_vertices(selection)] if drawn and task.calibration else []
        first_loss = task.vertex_loss(selection.residual_bound)

        def lay_out(fit: Fit) -> None:
            layout = VertexLayout(self.feature_bound, n_steps=shape.most_vertices)
            fit.layouts["vertices"] = fit.records.laid_out(layout, fit.threads)

        return Plan((count(task, first_loss), *drawn, *refit, *alone), lay_out)

    def _short_list(self, shape: Shape) -> GradientDescent:
        """Return the descent that takes the place of draws where there are public rows."""
        own = {one.name: getattr(self, one.name) for one in fields(Method)}
        kept = shape.asked or shape.most_vertices or None
        return _ShortList(**own, lasso=self, max_weights=kept, norm_bound=None, inference_share=0.0)

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

    def _joint_loss(self, task: Task, vertex_loss: Any) -> Any:
        """Return the loss that bounds the length of a record's residuals."""
        return task.refit_loss(task.norm_bound(vertex_loss.residual_bound), vertex_loss)

    def _selection(self, shape: Shape) -> Selection:
        """Return the public parameters of drawing columns."""
        task = shape.task
        bound = task.residual_bound(private=self.is_private)

        def columns(released: Released, budget: Budget) -> Columns | None:
            total = counted_of(released).total
            plan = self.settings(shape, budget, total)
            if not plan.n_vertices:
                return None
            return Columns(
                loss=self._loss(task, released),
                n_records=total,
                n_vertices=plan.n_vertices,
                radius=plan.l1_radius,
                late_start=plan.late_start,
                share=_LEFT * plan.vertex_share,
                start=_LEFT * plan.start_share,
                calibration=_LEFT * plan.calibration_share,
                learnt=LEARNT_OF_FEW,
            )

        return Selection(
            columns=columns,
            feature_bound=self.feature_bound,
            fit_intercept=self.fit_intercept,
            most_vertices=shape.most_vertices,
            n_outputs=task.n_outputs,
            residual_bound=bound,
            joint_loss=self._joint_loss(task, task.vertex_loss(bound)),
        )

    def _descent(self, shape: Shape) -> Descent:
        """Return the public parameters of the gradients on the columns that are kept."""
        task, n_features = shape.task, shape.n_features
        first_loss = task.vertex_loss(task.residual_bound(private=self.is_private))

        def course(released: Released, budget: Budget) -> Course | None:
            total, drawn = counted_of(released).total, released.drawn_columns
            plan = self.settings(shape, budget, total)
            if not plan.refit_share:
                return None
            loss = self._joint_loss(task, self._loss(task, released))
            share = _LEFT * plan.refit_share
            size = n_features if drawn is None else int(drawn.size)
            told = loss.curvature * total * budget.mu_of(share) / budget.moved_by(loss)
            some = size < n_features or plan.n_kept
            return Course(
                loss,
                weight=max(1.0, total),
                n_records=max(1.0, total),
                share=share,
                stages=plan.stages(task.refit_kappa, size, told),
                calibration=plan.refit_calibration,
                start=plan.refit_start,
                learnt=LEARNT_OF_FEW if some else LEARNT,
            )

        return Descent(
            course=course,
            fit_intercept=self.fit_intercept,
            norm_bound=None,
            significant=False,
            from_prior=self.from_prior,
            n_columns=n_features,
            n_outputs=task.n_outputs,
            loss=self._joint_loss(task, first_loss),
        )

    def noise_warning(self, task: Task, budget: Budget, n_records: float, n_features: int) -> str:
        """Warn if almost no column can be distinguished from noise."""
        if budget.leak:
            return ""
        shape = self.shape(task, n_features)
        plan = self.settings(shape, budget, n_records)
        if plan.n_kept:
            return ""
        if not plan.n_vertices:
            mu = budget.mu_of(_LEFT * plan.refit_share)
            return gradients_warning(budget, mu, n_records, task.n_outputs)
        findable = float(n_features)
        # Where half of all columns are drawn, none is lost.
        if plan.n_vertices != n_features // 2:
            share = _LEFT * (1.0 - plan.refit_share - plan.calibration_share)
            rho = share * budget.mu * budget.mu / 2.0
            drawn = plan.n_vertices, n_records, task.n_outputs, n_features
            findable = findable_columns(rho, *drawn)
        known = self.max_weights, n_records, n_features, self.epsilon
        return columns_warning(findable, *known)

    def released_numbers(self, n_features: int, n_outputs: int) -> tuple[int, int]:
        """Return how many vertices and how many numbers a fit releases at most."""
        shape = self.shape(self.targets.of_size(max(2, n_outputs)), n_features)
        if self.learn_geometry is not None and self.is_private:
            numbers = self._short_list(shape).released_numbers(n_features, n_outputs)[1]
            return 0, numbers + (n_outputs + 2) * shape.most_kept
        # Of some columns their numbers too, as they were kept and with their weights; energies are
        # numbers of half the size.
        numbers = sum(
            (n_outputs + 2 * (columns < n_features)) * columns
            for steps, columns in shape.stages
            if steps
        )
        return shape.most_vertices, numbers + n_features // 2 + 1


@dataclass(frozen=True, kw_only=True)
class _ShortList(GradientDescent):
    """A short list of weights by latent directions: of as many columns as the LASSO would keep."""

    lasso: Lasso

    def longest_list(self, task: Task, n_features: int) -> int:
        """Return the most weights of the list."""
        most = self.lasso.shape(task, n_features).most_kept
        return max(most, super().longest_list(task, n_features))

    def list_length(self, task: Task, n_features: int, n_records: float, budget: Budget) -> int:
        """Return how many columns gradients can keep, if these are more than would be drawn."""
        plan = self.lasso.settings(self.lasso.shape(task, n_features), budget, n_records)
        return max(plan.n_kept, super().longest_list(task, n_features))
