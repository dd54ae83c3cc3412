"""From settings and data to a run of Frank-Wolfe: problem, mechanism, selector, solver."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.frank_wolfe import PartitionedFrankWolfe
from dplasso.cluster.partitions import Partitions
from dplasso.fit.lasso_plan import REFIT_STEPS, most_vertices
from dplasso.fit.partitioned import partitioned_solver
from dplasso.fit.settings import LassoSettings
from dplasso.frank_wolfe.drift import tolerance_within_noise
from dplasso.frank_wolfe.problem import Problem, build_problem, design_of
from dplasso.frank_wolfe.solve import FrankWolfe
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.losses.clipped_multinomial import ClippedMultinomial
from dplasso.losses.logistic import Logistic
from dplasso.losses.multinomial import norm_bound
from dplasso.losses.squared import Squared
from dplasso.losses.targets import Targets
from dplasso.matrix.design import Design
from dplasso.model.release import n_outputs_of
from dplasso.privacy.mechanisms import Mechanism, StagedSteps, build_mechanism, build_staged
from dplasso.privacy.parameters import share_bits
from dplasso.privacy.randomness import RandomStream
from dplasso.privacy.release import drawing_from
from dplasso.runtime.threads import ONE_THREAD, Threads
from dplasso.selection.registry import make_selector
from dplasso.selection.replay import replay_state


def lasso_mechanism(settings: LassoSettings, n_samples: int = 1) -> Mechanism:
    """Calibrate the private step; only the paper's asks for the number of rows."""
    assert settings.n_iter is not None and settings.l1_radius is not None  # noqa: PT018
    return build_mechanism(
        epsilon=settings.epsilon,
        delta=settings.delta,
        n_iter=settings.n_iter,
        neighbors=settings.neighbors,
        feature_bound=settings.feature_bound,
        residual_bound=settings.residual_bound,
        rows_per_person=settings.rows_per_person,
        mechanism=settings.mechanism,
        l1_radius=settings.l1_radius,
        n_samples=n_samples,
        # A ledger adds up zCDP.
        plain_sum=settings.ledger is None,
    )


def staged_mechanism(settings: LassoSettings, n_features: int, n_classes: int = 2) -> StagedSteps:
    """Calibrate a fit that chooses its own settings."""
    n_vertices = most_vertices(settings.n_iter, settings.l1_radius, n_features)
    balance = settings.fit_intercept and settings.l1_radius is None
    return build_staged(
        epsilon=settings.epsilon,
        delta=settings.delta,
        n_vertices=n_vertices,
        n_gradients=0 if n_vertices and settings.refit == 0.0 else REFIT_STEPS,
        neighbors=settings.neighbors,
        feature_bound=settings.feature_bound,
        residual_bound=settings.residual_bound,
        rows_per_person=settings.rows_per_person,
        counted=balance or settings.n_records is None,
        n_columns=n_vertices or n_features,
        **several_outputs(n_classes, settings.residual_bound),
    )


def several_outputs(n_classes: int, residual_bound: float) -> dict[str, Any]:
    """Return what `build_staged` has to know of K > 2 classes, from the bound on every residual."""
    if n_outputs_of(n_classes) == 1:
        return {}
    return {"n_outputs": n_classes, "norm_bound": norm_bound(n_classes, residual_bound)}


def lasso_design(settings: LassoSettings, X: Any, n_steps: int, *, intercept: bool) -> Design:
    """Lay out a matrix, or take a store as it is."""
    return design_of(
        X,
        bound=settings.feature_bound,
        intercept=intercept,
        by_columns=settings.solver == "sparse",
        n_steps=n_steps,
        n_threads=settings.n_threads,
    )


def lasso_loss(settings: LassoSettings, offset: float | NDArray[np.float64] = 0.0) -> Any:
    """Return the loss of the vertices of a fit whose margins start at an offset, or K of them."""
    regression = settings.target_bounds is not None
    loss: Any
    if isinstance(offset, np.ndarray):
        loss = ClippedMultinomial(settings.residual_bound, offset, weights_of_classes(settings))
    elif regression:
        loss = Squared(settings.residual_bound, offset)
    else:
        loss = Logistic(settings.residual_bound, offset, *settings.class_weights)
    return loss


def weights_of_classes(settings: LassoSettings) -> NDArray[np.float64]:
    """Return the weights of K > 2 classes as their losses take them."""
    given = settings.params.get("class_weight") is not None
    return np.array(settings.class_weights) if given else np.zeros(0)


def lasso_problem(settings: LassoSettings, X: Any, targets: Targets, n_classes: int = 2) -> Problem:
    """Lay out the data and put the training problem together."""
    n_outputs = n_outputs_of(n_classes)
    assert settings.n_iter is not None and settings.l1_radius is not None  # noqa: PT018
    return build_problem(
        lasso_design(settings, X, settings.n_iter, intercept=settings.fit_intercept),
        targets.labels,
        weights=targets.weights,
        radius=settings.l1_radius,
        n_steps=settings.n_iter,
        loss=lasso_loss(settings, 0.0 if n_outputs == 1 else np.zeros(n_outputs)),
        share_bits=share_bits(settings.n_records),
    )


def lasso_selector(settings: LassoSettings, mechanism: Mechanism, problem: Problem) -> Any:
    """Build the selection structure for this mechanism and problem, empty."""
    rule = mechanism.rule(problem.unit)
    numbering = problem.design.numbering
    selector = make_selector(settings.selector, problem.n_coordinates, rule, numbering)
    return drawing_from(selector, mechanism.sensitivity * problem.unit, numbering)


def drift_tolerance(
    settings: LassoSettings, step: Mechanism, n_records: float | None, n_features: int
) -> float | None:
    """Return what `drift_tol` stands for where a column may be drawn again and again.

    `step`: the mechanism of the draws.
    `n_records`: N, where it is public or was counted.
    """
    automatic = settings.params.get("drift_tol") == "auto"
    if not automatic or n_records is None or step.name != "exponential":
        return settings.drift_tol
    largest = max(1.0, n_records) * settings.feature_bound
    return tolerance_within_noise(step.rule(1.0).exponent, largest, 2 * max(1, n_features))


def lasso_solver(
    settings: LassoSettings,
    mechanism: Mechanism,
    problem: Problem | Partitions,
    stream: RandomStream,
    *,
    threads: Threads = ONE_THREAD,
    prefix: Transcript | None = None,
    replay: Transcript | None = None,
) -> FrankWolfe | PartitionedFrankWolfe:
    """Make the solver, ready for its first step.

    `settings`, `mechanism`, `problem`: as made above; rows in partitions as they are.
    `stream`: random words for the draws.
    `threads`: of the run.
    `prefix`: steps already drawn, to be taken again.
    `replay`: all steps, to be taken instead of drawing any.
    """
    n_features = problem.shape[1] if isinstance(problem, Partitions) else problem.design.n_columns
    drift_tol = drift_tolerance(settings, mechanism, settings.n_records, n_features)
    if isinstance(problem, Partitions):
        assert settings.n_iter is not None and settings.l1_radius is not None  # noqa: PT018
        if replay is not None:
            raise ValueError("a replay runs in one process; leave engine out")
        return partitioned_solver(
            settings,
            problem,
            lasso_loss(settings),
            lambda empty: lasso_selector(settings, mechanism, empty),
            stream,
            radius=settings.l1_radius,
            n_steps=settings.n_iter,
            intercept=settings.fit_intercept,
            drift_tol=drift_tol,
            n_records=settings.n_records,
            prefix=prefix,
        )
    if replay is None:
        selector = lasso_selector(settings, mechanism, problem)
    else:
        selector = replay_state(replay.vertex, replay.sign)
    return FrankWolfe(
        problem,
        selector,
        stream,
        solver=settings.solver,
        drift_tol=drift_tol,
        record_history=mechanism.name == "none",
        record_work=mechanism.name != "exponential",
        threads=threads,
        prefix=prefix,
    )
