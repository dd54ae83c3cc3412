"""The solver as a target of audits: without the estimator's checks, thousands of fits a second."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dplasso.audit.claims import Data, claim_of
from dplasso.audit.suite import AuditSettings, estimator_of
from dplasso.fit.drawing import Drawing, vertex_selector
from dplasso.fit.lasso import Lasso
from dplasso.fit.records import LocalRecords
from dplasso.fit.task import Binary
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.solve import FrankWolfe
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.privacy.mechanisms import Mechanism
from dplasso.privacy.randomness import RandomStream, random_stream
from evidence.audit.exact import Prefix, SolverTarget
from evidence.audit.implied import implied_log_probabilities
from evidence.audit.replay import replay_state

_TASK = Binary(np.arange(2))
# What a broken implementation may change, for tests of the audits' power.
NewStream = Callable[[], RandomStream]


def lasso_of(settings: AuditSettings) -> Lasso:
    """Return the method of these settings, checked as the estimator does."""
    return Lasso.from_params(estimator_of(settings).get_params(deep=False))


# The accountant takes a millisecond, ten times a small fit.
@lru_cache(maxsize=64)
def mechanism_of(settings: AuditSettings, n_samples: int) -> Mechanism:
    """Calibrate the private step as the estimator does; "paper" alone looks at the rows' number."""
    mechanism: Mechanism = lasso_of(settings).mechanism(_TASK, n_samples, 1)  # type: ignore[assignment]
    return mechanism


def solver_target(
    settings: AuditSettings,
    *,
    alter: Callable[[Mechanism, int], Mechanism] | None = None,
    new_stream: NewStream = random_stream,
) -> SolverTarget:
    """Return a target of the solver.

    To see whether an audit notices, ``alter(mechanism, n_samples)`` breaks the mechanism behind the
    claim's back, and `new_stream` gives each fit its random numbers.
    """

    def mechanism_for(data: Data) -> Mechanism:
        n_samples = data.X.shape[0]
        mechanism = mechanism_of(settings, n_samples)
        return mechanism if alter is None else alter(mechanism, n_samples)

    method = lasso_of(settings)

    def fit(data: Data) -> Transcript:
        records = _records(data)
        solver: FrankWolfe = method.solver(
            _TASK, mechanism_for(data), records, Drawing(new_stream())
        )
        solver.advance(1, solver.n_steps)
        return solver.transcript()

    def step(data: Data, prefix: Prefix) -> NDArray[np.float64]:
        mechanism, records = mechanism_for(data), _records(data)
        steps = method.steps(mechanism, method.loss(_TASK), records.n_features)
        problem = records.laid_out(method, steps.n_steps).problem(steps)
        selector = vertex_selector(method.selector, mechanism, problem)
        return implied_log_probabilities(selector, _gradients(method, problem, prefix))

    # The number of rows plays no part in the claim; any will do.
    return SolverTarget(claim_of(mechanism_of(settings, 1)), fit, step)


def _records(data: Data) -> LocalRecords:
    return LocalRecords(data.X, data.y, data.X.shape[1], None).encoded(_TASK)


def _gradients(method: Lasso, problem: Problem, prefix: Prefix) -> list[NDArray[np.int64]]:
    """Return the column gradients before each step of a run that is made to take these vertices."""
    # One more vertex than asked for: Algorithm 1 brings its gradients up to date when it steps.
    vertices = [*prefix, (0, 1)][: problem.n_steps]
    replay = replay_state(
        np.array([j for j, _ in vertices], dtype=np.int64),
        np.array([s for _, s in vertices], dtype=np.int8),
    )
    solver = FrankWolfe(
        problem, replay, random_stream(), solver=method.algorithm, drift_tol=method.drift_tol
    )

    def in_original_order() -> NDArray[np.int64]:
        alpha, internal = solver.state.alpha, problem.design.numbering.internal
        return alpha[internal] if internal.size else alpha.copy()

    trajectory = [in_original_order()]
    behind = method.algorithm == "standard"
    for done in range(1, len(prefix) + 1 + behind):
        solver.advance(done, done)
        if done > behind:
            trajectory.append(in_original_order())
    return trajectory
