"""The LASSO as a method: vertices of the L1 ball drawn one by one, perhaps a refit of them."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

from dplasso.cluster.worker import VertexSteps
from dplasso.errors import PrivacyLeakWarning
from dplasso.fit.column_plan import REFIT_STEPS, most_vertices
from dplasso.fit.method import Method, common_parameters, is_word
from dplasso.fit.stages import StagedLasso
from dplasso.fit.task import Task
from dplasso.fit.vertices import vertex_steps
from dplasso.frank_wolfe.drift import tolerance_of
from dplasso.frank_wolfe.solve import SOLVERS
from dplasso.privacy.mechanisms import (
    Mechanism,
    StagedSteps,
    build_mechanism,
    build_staged,
    check_mechanism,
)
from dplasso.privacy.parameters import check_feature_bound, check_n_iter, check_positive
from dplasso.privacy.randomness import RandomStream
from dplasso.runtime.threads import Threads
from dplasso.selection.registry import check_selector

# Margins are sums of radius times entry: beyond this product they would not be finite.
_LARGEST_MARGIN = 1e100
# Reproduction takes what version 0.1.0 took by default.
_PAPER_STEPS, _PAPER_RADIUS = 100, 10.0


@dataclass(frozen=True, kw_only=True)
class Lasso(Method):
    """Parameters of a fit by Frank-Wolfe.

    Attributes
    ----------
    l1_radius, n_iter, refit : optional
        None leaves it to the plan.
    drift_tol : float or None
        What the parameter stands for.
    step, algorithm : str
        `mechanism` and `solver` of the estimator.
    feature_bound, selector
        As in `DPLassoClassifier`.
    """

    l1_radius: float | None
    n_iter: int | None
    refit: float | None
    feature_bound: float
    step: str
    algorithm: str
    selector: str
    drift_tol: float | None

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """Check the parameters of an estimator, whatever data they meet.

        Raises TypeError, ValueError one sentence that names the parameter, what was given and what
        would be right.
        """
        common = common_parameters(params)
        private = not math.isinf(common["epsilon"])
        step = check_mechanism(params["mechanism"])
        check_selector(params["selector"], step if private else "none")
        if params["solver"] not in SOLVERS:
            raise ValueError(
                f"solver must be one of {', '.join(SOLVERS)}, got {params['solver']!r}"
            )
        n_iter, l1_radius = _given(params, "n_iter"), _given(params, "l1_radius")
        refit = _checked_refit(params["refit"])
        if step == "paper":
            n_iter, l1_radius = n_iter or _PAPER_STEPS, l1_radius or _PAPER_RADIUS
            if refit or params.get("class_weight") is not None:
                raise ValueError(
                    "mechanism='paper' has no refit and no class_weight; leave them out"
                )
        if n_iter is not None and l1_radius is not None and refit is None:
            refit = 0.0
        radius = None if l1_radius is None else check_positive("l1_radius", l1_radius)
        bound = check_feature_bound(params["feature_bound"])
        if radius is not None and radius * bound > _LARGEST_MARGIN:
            raise ValueError(
                f"l1_radius times feature_bound must be at most {_LARGEST_MARGIN:g}, got "
                f"{radius:g} times {bound:g}"
            )
        return cls(
            **common,
            l1_radius=radius,
            n_iter=None if n_iter is None else check_n_iter(n_iter),
            refit=refit,
            feature_bound=bound,
            step=step,
            algorithm=params["solver"],
            selector=params["selector"],
            drift_tol=tolerance_of(_checked_drift_tol(params["drift_tol"]), private=private),
        )

    @property
    def is_staged(self) -> bool:
        """Whether the fit counts, draws and refits; otherwise it draws T vertices and no more."""
        return self.n_iter is None or self.l1_radius is None or bool(self.refit)

    def knowing(self, task: Task) -> Self:
        """Return the method once the classes are known.

        Raises ValueError for the paper's step with more than two.
        """
        if task.n_outputs > 1 and self.step == "paper":
            raise ValueError(f"mechanism='paper' is for two classes; there are {task.n_outputs}")
        return super().knowing(task)

    def warn(self) -> None:
        """Warn of the paper's step.

        Warns PrivacyLeakWarning with ``mechanism="paper"``.
        """
        if self.step == "paper" and self.is_private:
            warnings.warn(
                "mechanism='paper' releases the true sign of a gradient entry at every step: this "
                "fit is not differentially private at any epsilon",
                PrivacyLeakWarning,
                stacklevel=5,
            )

    def residual_bound(self, task: Task) -> float:
        """Return the bound C on a residual, as given or the task's own."""
        clipped = self.is_private and self.step != "paper"
        return self.given_bound or task.residual_bound(private=clipped)

    def mechanism(self, task: Task, n_rows: int, n_features: int) -> Mechanism | StagedSteps:
        """Calibrate the private step."""
        common: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbors": self.neighbors,
            "feature_bound": self.feature_bound,
            "residual_bound": self.residual_bound(task),
            "rows_per_person": self.rows_per_person,
        }
        if not self.is_staged:
            assert self.n_iter is not None
            return build_mechanism(
                **common,
                n_iter=self.n_iter,
                mechanism=self.step,
                l1_radius=self.l1_radius,
                n_samples=n_rows,
                # A ledger adds up zCDP.
                plain_sum=self.ledger is None,
            )
        n_vertices = most_vertices(self.n_iter, self.l1_radius, n_features)
        balance = self.fit_intercept and self.l1_radius is None
        return build_staged(
            **common,
            n_vertices=n_vertices,
            n_gradients=0 if n_vertices and self.refit == 0.0 else REFIT_STEPS,
            counted=balance or self.n_records is None,
            n_columns=n_vertices or n_features,
            n_outputs=task.n_outputs,
            norm_bound=task.norm_bound(common["residual_bound"]),
        )

    def steps(self, task: Task, mechanism: Mechanism, n_features: int) -> VertexSteps:
        """Return the public numbers of a fit with both `n_iter` and `l1_radius`."""
        assert self.n_iter is not None and self.l1_radius is not None  # noqa: PT018
        return vertex_steps(
            self,
            mechanism,
            task.vertex_loss(self.residual_bound(task)),
            radius=self.l1_radius,
            n_steps=self.n_iter,
            intercept=self.fit_intercept,
            n_records=self.n_records,
            n_features=n_features,
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
    ) -> Any:
        """Return the run, ready for its first vertex; see `Method.solver`."""
        if self.is_staged:
            if replay is not None:
                raise ValueError("a replay needs both n_iter and l1_radius")
            return StagedLasso(self, task, mechanism, records, stream, threads, prefix=prefix)
        return records.vertices(
            self,
            self.steps(task, mechanism, records.shape[1]),
            mechanism,
            stream,
            threads,
            prefix=None if prefix is None else prefix.transcript,
            replay=replay,
            recorded=True,
        )

    def released_numbers(self, mechanism: Any, n_features: int, n_outputs: int) -> tuple[int, int]:  # noqa: ARG002
        """Return how many vertices and how many numbers a fit releases at most."""
        if self.is_staged:
            return mechanism.n_vertices, n_outputs * mechanism.n_columns
        return mechanism.n_iter, 0


def _given(params: Mapping[str, Any], name: str) -> Any:
    """Return a parameter, None for "auto"."""
    if params[name] is None:
        raise TypeError(f"{name} must be 'auto' or a number, got None")
    return None if is_word(params[name], "auto") else params[name]


def _checked_refit(refit: Any) -> float | None:
    if is_word(refit, "auto"):
        return None
    if refit is None:
        return 0.0
    if isinstance(refit, Real) and 0.0 <= float(refit) < 1.0:
        return float(refit)
    raise ValueError(f"refit must be 'auto', None or a share of the budget below 1, got {refit!r}")


def _checked_drift_tol(drift_tol: Any) -> float | str | None:
    if drift_tol is None:
        return None
    if is_word(drift_tol, "auto"):
        return "auto"
    if isinstance(drift_tol, Real) and 0 <= float(drift_tol) < math.inf:
        return float(drift_tol)
    raise ValueError(f"drift_tol must be 'auto', None or a finite number >= 0, got {drift_tol!r}")
