"""The paper's algorithms as a method: T vertices of an L1 ball of a given radius."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from dplasso.errors import ParameterError, shown
from dplasso.fit.method import Method, checked_count, common_parameters, word_or_number
from dplasso.fit.task import Task
from dplasso.frank_wolfe.drift import PLAIN_TOLERANCE, PRIVATE_TOLERANCE, tolerance_within_noise
from dplasso.frank_wolfe.problem import Problem, build_problem
from dplasso.frank_wolfe.solve import SOLVERS, FrankWolfe
from dplasso.phases.count import COUNT_SHARE, count
from dplasso.phases.phase import Fit, Phase, Plan, Snapshot, Steps
from dplasso.phases.released import Released
from dplasso.phases.releases import Counted
from dplasso.phases.select import Vertices, prefix_of, vertex_numbers, vertex_selector
from dplasso.privacy.budget import Budget, Draws
from dplasso.privacy.exponential_mechanism import (
    MECHANISMS,
    TRUE_SIGN,
    SelectionRule,
    paper_mechanism,
    vertex_mechanism,
)
from dplasso.privacy.parameters import (
    LARGEST_N_ITER,
    check_choice,
    check_feature_bound,
    check_positive,
    check_whole,
    share_bits,
)
from dplasso.selection.registry import check_selector

# Margins are sums of radius times entry: beyond this product they would not be finite.
_LARGEST_MARGIN = 1e100


@dataclass(frozen=True, kw_only=True)
class FrankWolfeLoop(Method):
    """Parameters of a fit by the paper's algorithms.

    `step`, `algorithm`: `mechanism` and `solver` of the estimator. `given_bound`: `residual_bound`,
    None for the task's own.
    """

    l1_radius: float
    n_iter: int
    feature_bound: float
    given_bound: float | None
    step: str
    algorithm: str
    selector: str
    drift_tol: float | None

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        common = common_parameters(params)
        targets = common["targets"]
        if targets.is_balanced:
            raise ParameterError("`class_weight='balanced'` is for DPLogisticRegression")
        private = not math.isinf(common["epsilon"])
        step = check_choice("mechanism", params["mechanism"], MECHANISMS)
        check_selector(params["selector"], step if private else "none")
        if params["solver"] not in SOLVERS:
            raise ParameterError(
                f"`solver` must be one of {', '.join(SOLVERS)}, got {shown(params['solver'])}"
            )
        if step == "paper" and params.get("class_weight") is not None:
            raise ParameterError("`mechanism='paper'` has no `class_weight`; leave it out")
        right = f"between 1 and {LARGEST_N_ITER}"
        radius = check_positive("l1_radius", params["l1_radius"])
        bound = check_feature_bound(params["feature_bound"])
        if radius * bound > _LARGEST_MARGIN:
            raise ParameterError(
                f"`l1_radius` times `feature_bound` must be at most {_LARGEST_MARGIN:g}, got "
                f"{radius:g} times {bound:g}"
            )
        return cls(
            **common,
            l1_radius=radius,
            n_iter=check_whole("n_iter", params["n_iter"], right, LARGEST_N_ITER),
            feature_bound=bound,
            given_bound=word_or_number(
                params,
                "residual_bound",
                {"auto": None},
                lambda value: 0.5 <= value <= 1.0,
                "'auto' or a number from 0.5 to 1",
            ),
            n_records=checked_count(params, "n_records"),
            step=step,
            algorithm=params["solver"],
            selector=params["selector"],
            drift_tol=word_or_number(
                params,
                "drift_tol",
                {"auto": PRIVATE_TOLERANCE if private else PLAIN_TOLERANCE, None: None},
                lambda tolerance: 0 <= tolerance < math.inf,
                "'auto', `None` or a finite number >= 0",
            ),
        )

    @property
    def one_process(self) -> str:
        return "DPFrankWolfeClassifier"

    @property
    def as_printed(self) -> bool:
        """Whether nothing is counted and the constant is a column, as in the paper."""
        return self.step == "paper" or not self.is_private

    @property
    def counts(self) -> bool:
        """Whether the records are counted first."""
        return not self.as_printed and (self.fit_intercept or self.n_records is None)

    def starting(self, task: Task, records: Any) -> Self:
        """Return the method once the classes are known; the paper's step refuses more than two."""
        if task.n_outputs > 1 and self.step == "paper":
            raise ParameterError(
                f"`mechanism='paper'` is for two classes; there are {task.n_outputs}"
            )
        return super().starting(task, records)

    def residual_bound(self, task: Task) -> float:
        """Return C, as given or the task's own."""
        return self.given_bound or task.bound

    def mechanism(self, eps0: float, task: Task, budget: Budget, n_rows: int) -> SelectionRule:
        """Return how a vertex is drawn; only the published step depends on the number of rows."""
        moved = budget.moved(self.feature_bound * self.residual_bound(task))
        if self.step == "paper" and self.is_private:
            public = self.epsilon, self.delta, self.n_iter, self.l1_radius
            return paper_mechanism(*public, n_rows, moved)
        return vertex_mechanism(eps0, moved)

    def budget(self, task: Task, n_features: int) -> Budget:
        """Return what the fit spends; nothing bounds what the published step reveals."""
        if self.step == "paper" and self.is_private:
            return Budget(
                epsilon=self.epsilon,
                delta=self.delta,
                neighbors=self.neighbors,
                rows_per_person=self.rows_per_person,
                n_iter=self.n_iter,
                leak=TRUE_SIGN,
            )
        return super().budget(task, n_features)

    @property
    def vertex_share(self) -> float:
        """The share of the budget that the vertices spend."""
        return 1.0 - COUNT_SHARE if self.counts else 1.0

    def problem(
        self, records: Any, task: Task, released: Released, budget: Budget
    ) -> tuple[Problem, float | None]:
        """Return the problem of records that are laid out, and its drift tolerance."""
        bound, counted = self.residual_bound(task), released.last(Counted)
        loss = task.vertex_loss(bound)
        n_records: float | None = self.n_records
        if counted is not None:
            n_records = counted.total if n_records is None else n_records
            if self.fit_intercept:
                offset = loss.starting_offset(counted.counts, counted.deviation)
                loss = task.vertex_loss(bound, offset)
        tolerance = self.drift_tol
        if self.params.get("drift_tol") == "auto" and n_records and not self.as_printed:
            eps0 = budget.eps0_of(self.vertex_share, self.n_iter)
            tolerance = tolerance_within_noise(
                self.mechanism(eps0, task, budget, 1).exponent,
                max(1.0, n_records) * self.feature_bound,
                2 * max(1, records.shape[1]),
            )
        problem = build_problem(
            records.design,
            records.targets,
            radius=self.l1_radius,
            n_steps=self.n_iter,
            loss=loss,
            share_bits=share_bits(n_records),
        )
        return problem, tolerance

    def plan(self, task: Task, n_features: int) -> Plan:
        """Count the classes, where margins start at their balance; then draw T vertices."""
        bound = self.residual_bound(task)
        counting = count(task, task.vertex_loss(bound), self.n_records)

        def begin(fit: Fit, released: Released, mu: float, snapshot: Snapshot) -> Steps:
            eps0 = 2.0 * mu / math.sqrt(self.n_iter)
            rule = self.mechanism(eps0, task, fit.budget, int(fit.records.shape[0]))
            problem, tolerance = self.problem(fit.layouts["vertices"], task, released, fit.budget)
            walk = FrankWolfe(
                problem,
                vertex_selector(self.selector, rule, problem),
                fit.stream,
                solver=self.algorithm,
                drift_tol=tolerance,
                threads=fit.threads,
                prefix=prefix_of(snapshot),
                record_history=rule.mechanism == "none",
                record_work=rule.mechanism != "exponential",
            )
            constant = problem.design.bound if problem.design.intercept else 0.0
            public = problem.loss, n_features, self.l1_radius
            return Vertices(walk, *public, constant=constant)

        stated = vertex_numbers(self.feature_bound, bound)
        draw = Phase(
            "vertices",
            Draws(vertices=self.n_iter),
            lambda *_: self.vertex_share,
            begin,
            "{n_steps} steps, each a random choice by the exponential mechanism",
            lambda budget: (
                stated(budget) | {"eps0": budget.eps0_of(self.vertex_share, self.n_iter)}
            ),
            self.n_iter,
        )

        def lay_out(fit: Fit) -> None:
            # As in the paper, the constant column is drawn too; otherwise margins start offset.
            drawn = self.fit_intercept and self.as_printed
            fit.layouts["vertices"] = fit.records.laid_out(self.feature_bound, drawn, fit.threads)

        return Plan(((counting, draw) if self.counts else (draw,)), lay_out)
