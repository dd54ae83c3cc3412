"""Noisy gradient descent as a method: from parameters to a run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

from dplasso.fit.method import Method, common_parameters, is_word
from dplasso.fit.task import Task
from dplasso.gradient_descent.plan import RunPlan, plan_stages
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.gradient_descent.run import CompletedRun, GradientRun
from dplasso.privacy.mechanisms.gaussian import GaussianSteps, build_gaussian
from dplasso.privacy.parameters import check_n_iter, check_positive
from dplasso.privacy.randomness import RandomStream
from dplasso.runtime.threads import Threads


@dataclass(frozen=True, kw_only=True)
class GradientDescent(Method):
    """Parameters of a fit by noisy gradient descent.

    Attributes
    ----------
    max_weights : int, "significant" or None
        As in `DPLogisticRegression`.
    norm_bound : float or None
        `row_norm`; None where rows are made unit rows.
    n_iter : int or None
        Gradients; None leaves them to the plan.
    """

    max_weights: int | str | None
    norm_bound: float | None
    n_iter: int | None

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """Check the parameters of an estimator, whatever data they meet.

        Raises TypeError, ValueError one sentence that names the parameter, what was given and what
        would be right.
        """
        n_iter = params["n_iter"]
        return cls(
            **common_parameters(params),
            max_weights=_checked_max_weights(params["max_weights"]),
            norm_bound=_checked_row_norm(params["row_norm"]),
            n_iter=None if is_word(n_iter, "auto") else check_n_iter(n_iter),
        )

    def loss(self, task: Task) -> Any:
        """Return the loss, whose bound clips no residual at zero weights unless it was given."""
        return task.gradient_loss(self.given_bound or task.gradient_bound(private=self.is_private))

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
            calibration=task.calibration,
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
        )

    def solver(
        self,
        task: Task,
        mechanism: Any,
        records: Any,
        stream: RandomStream,
        threads: Threads,
        *,
        prefix: Any = None,
        replay: Any = None,
    ) -> GradientRun | CompletedRun:
        """Return the run, ready for its first gradient; see `Method.solver`."""
        if replay is not None:
            raise ValueError("a replay is of vertices, and this method draws none")
        if isinstance(prefix, NoisyWeights):
            return CompletedRun(len(prefix), prefix)
        loss, plan = self.loss(task), self.plan(task, records.shape[1])
        rows = records.gradients(loss, threads)
        if records.weighted and not self.is_private:
            # As rows repeated so often. With privacy the number of rows does, of which none counts
            # for more than 1: where one row replaces another that number is public, and the sum is
            # not.
            plan = replace(plan, n_records=rows.total_weight)
        return GradientRun(plan, mechanism, rows, stream, threads=threads, prefix=prefix)

    def released_numbers(self, mechanism: Any, n_features: int, n_outputs: int) -> tuple[int, int]:  # noqa: ARG002
        """Return how many vertices and how many numbers a fit releases at most."""
        kept = self.max_weights
        return 0, (n_outputs + 1) * (min(kept, n_features) if isinstance(kept, int) else n_features)


def _checked_row_norm(row_norm: Any) -> float | None:
    if is_word(row_norm, "unit"):
        return None
    if isinstance(row_norm, str):
        raise ValueError(f"row_norm must be 'unit' or a number > 0, got {row_norm!r}")
    return check_positive("row_norm", row_norm)


def _checked_max_weights(max_weights: Any) -> int | str | None:
    if max_weights is None:
        return None
    if is_word(max_weights, "significant"):
        return "significant"
    if isinstance(max_weights, Integral) and int(max_weights) > 0:
        return int(max_weights)
    raise ValueError(
        f"max_weights must be None, a whole number >= 1 or 'significant', got {max_weights!r}"
    )
