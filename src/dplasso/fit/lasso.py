"""The LASSO as a method: vertices of the L1 ball drawn one by one, perhaps a refit of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from dplasso.cluster.worker import VertexSteps
from dplasso.fit import noise
from dplasso.fit.column_plan import (
    REFIT_STEPS,
    SCREENING_STEPS,
    LassoPlan,
    most_kept,
    most_vertices,
    plan_lasso,
)
from dplasso.fit.drawing import Drawing
from dplasso.fit.method import Method, common_parameters, word_or_number
from dplasso.fit.public_data import scaled_rows
from dplasso.fit.stages import StagedLasso
from dplasso.fit.task import Task
from dplasso.frank_wolfe.drift import tolerance_of, tolerance_within_noise
from dplasso.frank_wolfe.solve import SOLVERS
from dplasso.matrix.starting import StartingModel
from dplasso.privacy.mechanisms import (
    Mechanism,
    StagedSteps,
    build_mechanism,
    build_staged,
    check_mechanism,
)
from dplasso.privacy.parameters import (
    check_feature_bound,
    check_n_iter,
    check_positive,
    share_bits,
)
from dplasso.selection.registry import check_selector

# Margins are sums of radius times entry: beyond this product they would not be finite.
_LARGEST_MARGIN = 1e100
# The paper's step takes what version 0.1.0 took by default.
_PAPER_STEPS, _PAPER_RADIUS = 100, 10.0


@dataclass(frozen=True, kw_only=True)
class Lasso(Method):
    """Parameters of a fit by Frank-Wolfe.

    `l1_radius`, `n_iter`, `refit`: None leaves it to the plan.
    `step`, `algorithm`: `mechanism` and `solver` of the estimator.
    `drift_tol`: what the parameter stands for where the number of records is not known.
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
        """Check the parameters of an estimator; TypeError, ValueError as `common_parameters`."""
        common = common_parameters(params)
        if common["targets"].is_balanced:
            raise ValueError(
                "class_weight='balanced' is for DPLogisticRegression, which weighs the classes by "
                "noisy counts before its first step; a LASSO takes a weight for each class"
            )
        private = not math.isinf(common["epsilon"])
        step = check_mechanism(params["mechanism"])
        check_selector(params["selector"], step if private else "none")
        if params["solver"] not in SOLVERS:
            raise ValueError(
                f"solver must be one of {', '.join(SOLVERS)}, got {params['solver']!r}"
            )
        n_iter, l1_radius = _given(params, "n_iter"), _given(params, "l1_radius")
        right = "'auto', None or a share of the budget below 1"
        words = {"auto": None, None: 0.0}
        refit = word_or_number(params, "refit", words, lambda share: 0 <= share < 1, right)
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
        drift_tol = word_or_number(
            params,
            "drift_tol",
            {"auto": "auto", None: None},
            lambda tolerance: 0 <= tolerance < math.inf,
            "'auto', None or a finite number >= 0",
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
            drift_tol=tolerance_of(drift_tol, private=private),
        )

    @property
    def draws_alone(self) -> bool:
        """Whether the plan is given: T vertices of a radius, with no refit and no public start."""
        given = self.n_iter is not None and self.l1_radius is not None
        return given and not self.refit and not self.from_prior

    @property
    def is_staged(self) -> bool:
        """Whether the fit counts before it draws, or refits; otherwise it draws T vertices."""
        if self._as_printed:
            return self.n_iter is None or self.l1_radius is None or bool(self.refit)
        return self.fit_intercept or self.n_records is None or not self.draws_alone

    @property
    def draws_constant(self) -> bool:
        """Whether the constant column is drawn like the others; otherwise margins start offset."""
        # The refit of a public start finds constants of its own.
        drawn = self.fit_intercept and self.l1_radius is not None and self._as_printed
        return drawn and not (self.from_prior and self.takes_unit_rows)

    @property
    def takes_unit_rows(self) -> bool:
        """Whether a public start is of unit rows, as what is refitted; else of clipped ones."""
        return self.refit != 0.0

    @property
    def _as_printed(self) -> bool:
        """Whether nothing is counted where a radius is given: the constant is a column then."""
        return self.step == "paper" or not self.is_private or self.from_prior

    def knowing(self, task: Task) -> Self:
        """Return the method once the classes are known; the paper's step refuses more than two."""
        if task.n_outputs > 1 and self.step == "paper":
            raise ValueError(f"mechanism='paper' is for two classes; there are {task.n_outputs}")
        if self.from_prior and self.step == "paper":
            raise ValueError("mechanism='paper' starts from nothing; leave prior out")
        return super().knowing(task)

    def plan(
        self, task: Task, mechanism: StagedSteps, n_records: float, n_features: int
    ) -> LassoPlan:
        """Choose what the parameters leave open; N is public or was counted privately."""
        return plan_lasso(
            task,
            mechanism,
            n_records,
            n_features,
            n_iter=self.n_iter,
            l1_radius=self.l1_radius,
            refit=self.refit,
        )

    def told_of_noise(self, task: Task, mechanism: Any, n_records: float, n_features: int) -> str:
        """Say where hardly a column can be told from noise."""
        if math.isinf(mechanism.rho) or self.step == "paper":
            return ""
        known, fewest = (n_records, n_features), self.n_iter
        if self.draws_alone:
            # The one column that stands out is drawn again and again.
            drawn, fewest = (self.n_iter or 1, n_records, task.n_outputs, n_features), 1
            findable = noise.findable_columns(mechanism.rho, *drawn)
        else:
            plan = self.plan(task, mechanism, *known)
            if plan.n_kept:
                return ""
            if not plan.n_vertices:
                return noise.told_of_gradients(
                    mechanism.gradients(plan.refit_share), self.epsilon, n_records, task.n_outputs
                )
            findable = noise.findable_by_plan(mechanism, plan, *known)
        return noise.told_of_columns(findable, fewest, *known, self.epsilon)

    def as_read(self, rows: csr_array) -> csr_array:
        """Return rows of unit length, which a refit takes, or with their entries clipped."""
        if self.takes_unit_rows:
            return scaled_rows(rows, None, self.fit_intercept, self.n_threads)
        clipped = np.clip(rows.data, -self.feature_bound, self.feature_bound)
        return csr_array((clipped, rows.indices, rows.indptr), rows.shape)

    def loss(self, task: Task, offset: Any = None) -> Any:
        """Return the loss that columns are drawn by, its bound C as given or the task's own."""
        clipped = self.is_private and self.step != "paper"
        bound = self.given_bound or task.residual_bound(private=clipped)
        return task.vertex_loss(bound, offset)

    def mechanism(self, task: Task, n_rows: int, n_features: int) -> Mechanism | StagedSteps:
        """Calibrate the private step."""
        common: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbors": self.neighbors,
            "feature_bound": self.feature_bound,
            "residual_bound": self.loss(task).residual_bound,
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
        n_outputs = task.n_outputs
        kept = most_kept(self.n_iter, self.l1_radius, self.refit, n_outputs, n_features)
        return build_staged(
            **common,
            n_vertices=n_vertices,
            n_gradients=0 if n_vertices and self.refit == 0.0 else REFIT_STEPS,
            counted=self.fit_intercept or self.n_records is None,
            n_columns=max(n_vertices, kept) or n_features,
            n_outputs=n_outputs,
            n_screening=SCREENING_STEPS if kept else 0,
            n_features=n_features,
            most_kept=kept,
            norm_bound=task.norm_bound(common["residual_bound"]),
            from_prior=self.from_prior,
            vertices_alone=self.draws_alone,
        )

    def tolerance(
        self, mechanism: Mechanism, n_records: float | None, n_features: int
    ) -> float | None:
        """Return what `drift_tol` stands for; "auto" follows N where it is public or counted."""
        automatic = self.params.get("drift_tol") == "auto"
        if not automatic or n_records is None or mechanism.name != "exponential":
            return self.drift_tol
        largest = max(1.0, n_records) * self.feature_bound
        return tolerance_within_noise(mechanism.rule(1.0).exponent, largest, 2 * max(1, n_features))

    def steps(
        self,
        mechanism: Mechanism,
        loss: Any,
        n_features: int,
        n_steps: int | None = None,
        n_records: float | None = None,
        start: StartingModel | None = None,
    ) -> VertexSteps:
        """Return the public numbers of a run with a given radius; by default T and N as given."""
        n_steps = self.n_iter if n_steps is None else n_steps
        n_records = self.n_records if n_records is None else n_records
        assert n_steps is not None and self.l1_radius is not None  # noqa: PT018
        return VertexSteps(
            loss=loss,
            bound=self.feature_bound,
            intercept=self.draws_constant,
            radius=self.l1_radius,
            n_steps=n_steps,
            drift_tol=self.tolerance(mechanism, n_records, n_features),
            share_bits=share_bits(n_records),
            start=start,
        )

    def solver(self, task: Task, mechanism: Any, records: Any, drawing: Drawing) -> Any:
        """Return the run, ready for its first vertex."""
        if self.is_staged:
            return StagedLasso(self, task, mechanism, records, drawing)
        if drawing.prefix is not None:
            drawing = replace(drawing, prefix=drawing.prefix.transcript)
        start = self.starting_model
        steps = self.steps(mechanism, self.loss(task), records.shape[1], start=start)
        laid_out = records.laid_out(self, steps.n_steps)
        return laid_out.vertices(self, steps, mechanism, drawing, recorded=True)

    def released_numbers(self, mechanism: Any, n_features: int, n_outputs: int) -> tuple[int, int]:  # noqa: ARG002
        """Return how many vertices and how many numbers a fit releases at most."""
        if self.draws_alone or not self.is_staged:
            return mechanism.n_iter, 0
        # Beside its weights a column may have an energy, half a number, and one kept its place.
        columns = mechanism.n_columns
        places = columns if mechanism.most_kept else 0
        return mechanism.n_vertices, n_outputs * columns + columns // 2 + 1 + places


def _given(params: Mapping[str, Any], name: str) -> Any:
    """Return a parameter, None for "auto"."""
    if params[name] is None:
        raise TypeError(f"{name} must be 'auto' or a number, got None")
    value = params[name]
    return None if isinstance(value, str) and value == "auto" else value
