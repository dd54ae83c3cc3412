"""From settings and data to a run of Frank-Wolfe: problem, mechanism, selector, solver."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.store import Store
from dplasso.frank_wolfe.problem import Problem, build_problem
from dplasso.frank_wolfe.solve import FrankWolfe
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.losses.logistic import Logistic
from dplasso.matrix.design import Design, adopt, lay_out
from dplasso.matrix.numbering import Numbering
from dplasso.privacy.mechanisms import Mechanism, build_mechanism
from dplasso.privacy.randomness import RandomStream
from dplasso.runtime.threads import ONE_THREAD, Threads
from dplasso.selection.registry import make_selector
from dplasso.selection.replay import replay_state
from dplasso.training.settings import LassoSettings


def lasso_mechanism(settings: LassoSettings, n_samples: int = 1) -> Mechanism:
    """Calibrate the private step; only the paper's asks for the number of rows."""
    return build_mechanism(
        epsilon=settings.epsilon,
        delta=settings.delta,
        n_iter=settings.n_iter,
        neighbors=settings.neighbors,
        feature_bound=settings.feature_bound,
        residual_bound=settings.residual_bound,
        mechanism=settings.mechanism,
        l1_radius=settings.l1_radius,
        n_samples=n_samples,
    )


def lasso_design(settings: LassoSettings, X: Any) -> Design:
    """Lay out a matrix, or take a store as it is."""
    if isinstance(X, Store):
        numbering = Numbering(X.internal_column, X.original_column)
        return adopt(
            X.rows,
            X.columns,
            numbering,
            bound=settings.feature_bound,
            intercept=settings.fit_intercept,
        )
    return lay_out(
        X,
        bound=settings.feature_bound,
        intercept=settings.fit_intercept,
        by_columns=settings.solver == "sparse",
        n_steps=settings.n_iter,
        n_threads=settings.n_threads,
    )


def lasso_problem(settings: LassoSettings, X: Any, labels: NDArray[np.int8]) -> Problem:
    """Lay out the data and put the training problem together."""
    return build_problem(
        lasso_design(settings, X),
        labels,
        radius=settings.l1_radius,
        n_steps=settings.n_iter,
        loss=Logistic(settings.residual_bound),
    )


def lasso_selector(settings: LassoSettings, mechanism: Mechanism, problem: Problem) -> Any:
    """Build the selection structure for this mechanism and problem, empty."""
    design = problem.design
    rule = mechanism.rule(problem.unit)
    return make_selector(settings.selector, design.n_coordinates, rule, design.numbering)


def lasso_solver(
    settings: LassoSettings,
    mechanism: Mechanism,
    problem: Problem,
    stream: RandomStream,
    *,
    threads: Threads = ONE_THREAD,
    prefix: Transcript | None = None,
    replay: Transcript | None = None,
) -> FrankWolfe:
    """Make the solver, ready for its first step.

    Parameters
    ----------
    settings, mechanism, problem
        As made above.
    stream : RandomStream
        Random words for the draws.
    threads : Threads
        Of the run.
    prefix : Transcript, optional
        Steps already drawn, to be taken again.
    replay : Transcript, optional
        All steps, to be taken instead of drawing any.

    Returns
    -------
    FrankWolfe
    """
    if replay is None:
        selector = lasso_selector(settings, mechanism, problem)
    else:
        selector = replay_state(replay.vertex, replay.sign)
    return FrankWolfe(
        problem,
        selector,
        stream,
        solver=settings.solver,
        drift_tol=settings.drift_tol,
        record_history=mechanism.name == "none",
        record_work=mechanism.name != "exponential",
        threads=threads,
        prefix=prefix,
    )
