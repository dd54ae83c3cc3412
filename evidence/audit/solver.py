"""The solver as a target of audits: without the estimator's checks, thousands of fits a second."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dplasso.audit.claims import Data, claim_of
from dplasso.audit.suite import AuditSettings, estimator_of
from dplasso.fit.frank_wolfe import FrankWolfeLoop
from dplasso.fit.records import LocalRecords
from dplasso.fit.task import Binary
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.solve import FrankWolfe
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.phases.phase import Fit
from dplasso.phases.released import Released
from dplasso.phases.select import vertex_selector
from dplasso.privacy.budget import Budget
from dplasso.privacy.exponential_mechanism import SelectionRule
from dplasso.privacy.randomness import RandomStream, random_stream
from dplasso.runtime.threads import ONE_THREAD
from evidence.audit.exact import Prefix, SolverTarget
from evidence.audit.implied import implied_log_probabilities
from evidence.audit.replay import replay_state

_TASK = Binary(np.arange(2))
# What a broken implementation may change, for tests of the audits' power.
NewStream = Callable[[], RandomStream]
# What a fit draws from and by: the mechanism, the problem and the drift tolerance.
Drawn = tuple[SelectionRule, Problem, float | None]


# Both take a millisecond, ten times a small fit.
@lru_cache(maxsize=64)
def method_of(settings: AuditSettings) -> FrankWolfeLoop:
    """Return the method of these settings, checked as the estimator does."""
    return FrankWolfeLoop.from_params(estimator_of(settings).get_params(deep=False))


@lru_cache(maxsize=64)
def budget_of(settings: AuditSettings) -> Budget:
    """Return what the fit spends, as the estimator calibrates it."""
    return method_of(settings).budget(_TASK, 1)


def mechanism_of(settings: AuditSettings, n_samples: int) -> SelectionRule:
    """Return how a vertex is drawn; "paper" alone looks at the number of rows."""
    budget = budget_of(settings)
    return method_of(settings).mechanism(budget.eps0, _TASK, budget, n_samples)


def solver_target(
    settings: AuditSettings,
    *,
    alter: Callable[[SelectionRule, int], SelectionRule] | None = None,
    new_stream: NewStream = random_stream,
) -> SolverTarget:
    """Return a target of the solver.

    To see whether an audit notices, ``alter(mechanism, n_samples)`` breaks the mechanism behind the
    claim's back, and `new_stream` gives each fit its random numbers.
    """
    method, budget = method_of(settings), budget_of(settings)
    kept: list[tuple[Data, Drawn]] = []

    def drawn_by(data: Data) -> Drawn:
        # Laying the data out takes half of a small fit, and the same are fitted thousands of times.
        if not kept or kept[0][0] is not data:
            kept[:] = [(data, laid_out(data))]
        return kept[0][1]

    def laid_out(data: Data) -> Drawn:
        n_samples = data.X.shape[0]
        mechanism = mechanism_of(settings, n_samples)
        mechanism = mechanism if alter is None else alter(mechanism, n_samples)
        plan = method.plan(_TASK, data.X.shape[1])
        fit = Fit(budget, _records(data), new_stream(), ONE_THREAD)
        plan.lay_out(fit)
        return mechanism, *method.problem(fit.layouts["vertices"], _TASK, Released(), budget)

    def fit(data: Data) -> Transcript:
        mechanism, problem, tolerance = drawn_by(data)
        selector = vertex_selector(method.selector, mechanism, problem)
        solver = FrankWolfe(
            problem, selector, new_stream(), solver=method.algorithm, drift_tol=tolerance
        )
        solver.advance(1, solver.n_steps)
        return solver.transcript()

    def step(data: Data, prefix: Prefix) -> NDArray[np.float64]:
        mechanism, problem, tolerance = drawn_by(data)
        selector = vertex_selector(method.selector, mechanism, problem)
        return implied_log_probabilities(selector, _gradients(method, tolerance, problem, prefix))

    # The number of rows plays no part in the claim.
    return SolverTarget(claim_of(budget, settings.feature_bound), fit, step)


def _records(data: Data) -> LocalRecords:
    return LocalRecords(data.X, data.y, None).encoded(_TASK)


def _gradients(
    method: FrankWolfeLoop, tolerance: float | None, problem: Problem, prefix: Prefix
) -> list[NDArray[np.int64]]:
    """Return the column gradients before each step of a run that is made to take these vertices."""
    # One more vertex than asked for: Algorithm 1 brings its gradients up to date when it steps.
    vertices = [*prefix, (0, 1)][: problem.n_steps]
    replay = replay_state(
        np.array([j for j, _ in vertices], dtype=np.int64),
        np.array([s for _, s in vertices], dtype=np.int8),
    )
    solver = FrankWolfe(
        problem, replay, random_stream(), solver=method.algorithm, drift_tol=tolerance
    )

    trajectory = [solver.state.alpha.copy()]
    behind = method.algorithm == "standard"
    for done in range(1, len(prefix) + 1 + behind):
        solver.advance(done, done)
        if done > behind:
            trajectory.append(solver.state.alpha.copy())
    return trajectory
