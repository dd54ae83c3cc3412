"""Noisy gradient descent as a method: from parameters to a run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

from scipy.sparse import csr_array

from dplasso.fit import noise
from dplasso.fit.drawing import Drawing
from dplasso.fit.method import Method, common_parameters, word_or_number
from dplasso.fit.public_data import scaled_rows
from dplasso.fit.targets import Labels
from dplasso.fit.task import Task
from dplasso.gradient_descent.completed import CompletedRun
from dplasso.gradient_descent.counts import Classes
from dplasso.gradient_descent.plan import RunPlan, plan_stages
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.gradient_descent.run import GradientRun
from dplasso.privacy.mechanisms.gaussian import CALIBRATION_SHARE, GaussianSteps, build_gaussian
from dplasso.privacy.parameters import check_n_iter


@dataclass(frozen=True, kw_only=True)
class GradientDescent(Method):
    """Parameters of a fit by noisy gradient descent.

    `max_weights`: a number, "significant", or None for all.
    `norm_bound`: what `row_norm` stands for; None scales every row to unit length.
    `n_iter`: gradients; None leaves them to the plan.
    """

    max_weights: int | str | None
    norm_bound: float | None
    n_iter: int | None

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """Check the parameters of an estimator; TypeError, ValueError as `common_parameters`."""
        n_iter, common = params["n_iter"], common_parameters(params)
        if common["targets"].is_balanced and common["n_records"] is not None:
            raise ValueError(
                "class_weight='balanced' needs noisy counts of the classes, and with n_records "
                "nothing is counted; leave n_records out, or give a weight for each class"
            )
        return cls(
            **common,
            max_weights=word_or_number(
                params,
                "max_weights",
                {None: None, "significant": "significant"},
                lambda count: count > 0,
                "None, a whole number >= 1 or 'significant'",
                Integral,
            ),
            norm_bound=word_or_number(
                params,
                "row_norm",
                {"unit": None},
                lambda norm: 0 < norm < math.inf,
                "'unit' or a number > 0",
            ),
            n_iter=None if isinstance(n_iter, str) and n_iter == "auto" else check_n_iter(n_iter),
        )

    def loss(self, task: Task) -> Any:
        """Return the loss, whose bound clips no residual at zero weights unless it was given."""
        bound = task.gradient_bound(private=self.is_private, given=self.given_bound)
        return task.gradient_loss(bound)

    def as_read(self, rows: csr_array) -> csr_array:
        """Return rows scaled as in a fit."""
        return scaled_rows(rows, self.norm_bound, self.fit_intercept, self.n_threads)

    def plan(self, task: Task, n_features: int) -> RunPlan:
        """Return the public parameters of the run."""
        kept = self.max_weights
        most = kept if isinstance(kept, int) else None
        return RunPlan(
            stages=plan_stages(self.n_iter, most, n_features, task.kappa),
            significant=kept == "significant",
            fit_intercept=self.fit_intercept,
            norm_bound=self.norm_bound,
            n_records=self.n_records,
            calibration=CALIBRATION_SHARE if self.from_prior else task.calibration,
            start=CALIBRATION_SHARE if self.from_prior else 0.0,
        )

    def mechanism(self, task: Task, n_rows: int, n_features: int) -> GaussianSteps:  # noqa: ARG002
        """Calibrate the noise; D and K say how many variates the rounding is charged for."""
        loss = self.loss(task)
        return build_gaussian(
            epsilon=self.epsilon,
            delta=self.delta,
            n_iter=self.plan(task, n_features).ends[-1],
            n_coordinates=(n_features + 1) * task.n_outputs,
            n_outputs=task.n_outputs,
            neighbors=self.neighbors,
            residual_bound=loss.residual_bound,
            rows_per_person=self.rows_per_person,
            from_prior=self.from_prior,
            many_labels=task.many_labels,
            # A prior has intercepts of its own, and a record may have many labels.
            by_class=self.targets.is_balanced
            or (
                (self.fit_intercept and self.n_records is None)
                and not (self.from_prior or task.many_labels)
            ),
        )

    def told_of_noise(self, task: Task, mechanism: Any, n_records: float, n_features: int) -> str:  # noqa: ARG002
        """Say where the noise outweighs what so many records can tell."""
        return noise.told_of_gradients(mechanism, self.epsilon, n_records, task.n_outputs)

    def solver(
        self, task: Task, mechanism: Any, records: Any, drawing: Drawing
    ) -> GradientRun | CompletedRun:
        """Return the run, ready for its first gradient."""
        if isinstance(drawing.prefix, NoisyWeights):
            return CompletedRun(len(drawing.prefix), drawing.prefix)
        plan = self.plan(task, records.shape[1])
        rows = records.gradients(self.loss(task), drawing.threads, prior=self.starting_model)
        balanced = self.targets.is_balanced
        if records.weighted and not (self.is_private or balanced):
            # As if rows were repeated. A private fit takes the number of rows, of which none counts
            # for more than 1: where one row replaces another that number is public, the sum of the
            # weights is not.
            plan = replace(plan, n_records=rows.total_weight)
        classes = None
        if mechanism.by_class or balanced:
            vertex_loss = task.vertex_loss(task.residual_bound(private=True))
            classes = Classes(lambda: records.counts(vertex_loss), vertex_loss.starting_offset)
        if classes is not None and balanced:

            def weighed(weights: Any) -> Any:
                return self.loss(Labels(weight=weights.tolist()).of_classes(task.classes))

            classes = replace(classes, loss=weighed)
        given = {"threads": drawing.threads, "prefix": drawing.prefix, "classes": classes}
        return GradientRun(plan, mechanism, rows, drawing.stream, **given)

    def released_numbers(self, mechanism: Any, n_features: int, n_outputs: int) -> tuple[int, int]:  # noqa: ARG002
        """Return how many vertices and how many numbers a fit releases at most."""
        kept = self.max_weights
        return 0, (n_outputs + 1) * (min(kept, n_features) if isinstance(kept, int) else n_features)
