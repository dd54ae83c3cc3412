"""From settings and data to a run of noisy gradient descent."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.store import Store
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.gradient_descent.run import CompletedRun, GradientRun, RunPlan, plan_stages
from dplasso.losses.logistic import Logistic
from dplasso.matrix.design import check_row_count
from dplasso.matrix.numbering import AS_GIVEN, Numbering
from dplasso.matrix.unit_rows import both_orientations
from dplasso.privacy.mechanisms.gaussian import GaussianSteps, build_gaussian
from dplasso.privacy.randomness import RandomStream
from dplasso.runtime.threads import Threads
from dplasso.training.settings import LogisticSettings


def logistic_mechanism(settings: LogisticSettings, n_features: int = 2**24) -> GaussianSteps:
    """Calibrate the noise; D says how many variates the rounding of draws is charged for."""
    return build_gaussian(
        epsilon=settings.epsilon,
        delta=settings.delta,
        n_iter=logistic_plan(settings, n_features).ends[-1],
        n_coordinates=n_features + 1,
        neighbors=settings.neighbors,
        residual_bound=settings.residual_bound,
        rows_per_person=settings.rows_per_person,
    )


def logistic_plan(settings: LogisticSettings, n_features: int) -> RunPlan:
    """Return the public parameters of the run."""
    kept = settings.max_weights
    return RunPlan(
        stages=plan_stages(settings.n_iter, kept if isinstance(kept, int) else None, n_features),
        significant=kept == "significant",
        fit_intercept=settings.fit_intercept,
        norm_bound=settings.norm_bound,
        n_records=settings.n_records,
    )


def logistic_solver(
    settings: LogisticSettings,
    mechanism: GaussianSteps,
    X: Any,
    labels: NDArray[np.int8],
    stream: RandomStream,
    *,
    threads: Threads,
    prefix: Any = None,
) -> GradientRun | CompletedRun:
    """Make the solver, ready for its first gradient.

    Parameters
    ----------
    settings, mechanism
        As made above.
    X : csr or csc matrix or array, ndarray, or Store, shape (N, D)
        The records.
    labels : ndarray of int8, shape (N,)
        0 or 1.
    stream : RandomStream
        Keys the noise.
    threads : Threads
        Of the run.
    prefix : GradientState or NoisyWeights, optional
        What was released already.

    Returns
    -------
    GradientRun or CompletedRun
    """
    if isinstance(prefix, NoisyWeights):
        return CompletedRun(len(prefix), prefix)
    check_row_count(X.shape[0])
    numbering = AS_GIVEN
    if isinstance(X, Store):
        rows, columns = X.rows, X.columns
        numbering = Numbering(X.internal_column, X.original_column)
    else:
        rows, columns = both_orientations(X, threads.count)
    return GradientRun(
        logistic_plan(settings, X.shape[1]),
        mechanism,
        rows,
        columns,
        numbering,
        Logistic(settings.residual_bound),
        labels,
        stream,
        threads=threads,
        prefix=prefix,
    )
