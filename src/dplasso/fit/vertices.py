"""Runs of Frank-Wolfe: their public numbers, and the structure that their vertices are drawn by."""

from typing import TYPE_CHECKING, Any

from dplasso.cluster.worker import VertexSteps
from dplasso.fit.column_plan import LassoPlan
from dplasso.frank_wolfe.drift import tolerance_within_noise
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.round_part import RoundSteps
from dplasso.privacy.mechanisms import Mechanism
from dplasso.privacy.parameters import share_bits
from dplasso.privacy.release import drawing_from
from dplasso.selection.registry import make_selector

if TYPE_CHECKING:
    from dplasso.fit.lasso import Lasso


def vertex_steps(
    method: "Lasso",
    mechanism: Mechanism,
    loss: Any,
    *,
    radius: float,
    n_steps: int,
    intercept: bool,
    n_records: float | None,
    n_features: int,
) -> VertexSteps:
    """Return the public numbers of a run.

    `mechanism`: of the draws.
    `intercept`: whether a constant column is drawn like the others.
    `n_records`: N, where it is public or was counted.
    """
    return VertexSteps(
        loss=loss,
        bound=method.feature_bound,
        intercept=intercept,
        radius=radius,
        n_steps=n_steps,
        drift_tol=drift_tolerance(method, mechanism, n_records, n_features),
        share_bits=share_bits(n_records),
    )


def round_steps(
    method: "Lasso", plan: LassoPlan, loss: Any, *, n_records: float, n_features: int
) -> RoundSteps:
    """Return the public numbers of a run in which every column is drawn at most once."""
    return RoundSteps(
        loss=loss,
        bound=method.feature_bound,
        n_columns=n_features,
        n_steps=plan.n_vertices,
        # What each vertex weighs after a late start, but for a part of one in t0 / T.
        vertex_weight=2.0 * plan.l1_radius / (plan.n_vertices + plan.late_start),
        share_bits=share_bits(n_records),
    )


def drift_tolerance(
    method: "Lasso", mechanism: Mechanism, n_records: float | None, n_features: int
) -> float | None:
    """Return what `drift_tol` stands for where a column may be drawn again and again."""
    automatic = method.params.get("drift_tol") == "auto"
    if not automatic or n_records is None or mechanism.name != "exponential":
        return method.drift_tol
    largest = max(1.0, n_records) * method.feature_bound
    return tolerance_within_noise(mechanism.rule(1.0).exponent, largest, 2 * max(1, n_features))


def vertex_selector(kind: str, mechanism: Mechanism, problem: Problem | RoundSteps) -> Any:
    """Build a selection structure for this mechanism and problem, empty."""
    rule = mechanism.rule(problem.unit)
    numbering = problem.numbering
    selector = make_selector(kind, problem.n_coordinates, rule, numbering)
    return drawing_from(selector, mechanism.sensitivity * problem.unit, numbering)
