"""From settings and data to a run of noisy gradient descent."""

import math
from dataclasses import replace
from typing import Any

from dplasso.cluster.gradients import PartitionedRecords
from dplasso.cluster.partitions import Partitions
from dplasso.fit.settings import LogisticSettings, default_residual_bound
from dplasso.gradient_descent.plan import RunPlan, plan_stages
from dplasso.gradient_descent.records import records_of
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.gradient_descent.run import CompletedRun, GradientRun
from dplasso.gradient_descent.schedule import KAPPA
from dplasso.losses.logistic import Logistic
from dplasso.losses.multinomial import Multinomial, residual_norm_at_zero
from dplasso.losses.squared import Squared
from dplasso.losses.targets import Targets
from dplasso.matrix.design import check_row_count
from dplasso.privacy.mechanisms.gaussian import CALIBRATION_SHARE, GaussianSteps, build_gaussian
from dplasso.privacy.randomness import RandomStream
from dplasso.runtime.threads import Threads

# How far noise may move the prediction of a regression, in halves of the interval of the targets:
# its score pays for every error, that of a classification only for exchanged ranks.
REGRESSION_KAPPA = 0.1


def logistic_loss(settings: LogisticSettings, n_classes: int = 2) -> Any:
    """Return the loss of a fit, with its bound: at zero weights no residual is clipped by it.

    `settings`: valid settings.
    `n_classes`: K, of a classification.
    """
    private, given = not math.isinf(settings.epsilon), settings.residual_bound
    regression = settings.target_bounds is not None
    if regression or n_classes == 2:
        bound = given or default_residual_bound(private=private, regression=regression)
        loss: Any = Squared(bound) if regression else Logistic(bound)
    else:
        bound = residual_norm_at_zero(n_classes) if private else math.sqrt(2.0)
        loss = Multinomial(n_classes, given or bound)
    return loss


def logistic_mechanism(
    settings: LogisticSettings, n_features: int = 2**24, n_classes: int = 2
) -> GaussianSteps:
    """Calibrate the noise; D and K say how many variates the rounding of draws is charged for."""
    loss = logistic_loss(settings, n_classes)
    return build_gaussian(
        epsilon=settings.epsilon,
        delta=settings.delta,
        n_iter=logistic_plan(settings, n_features).ends[-1],
        n_coordinates=(n_features + 1) * loss.n_outputs,
        n_outputs=loss.n_outputs,
        neighbors=settings.neighbors,
        residual_bound=loss.residual_bound,
        rows_per_person=settings.rows_per_person,
    )


def logistic_plan(settings: LogisticSettings, n_features: int) -> RunPlan:
    """Return the public parameters of the run."""
    kept, bounds = settings.max_weights, settings.target_bounds
    return RunPlan(
        stages=plan_stages(
            settings.n_iter,
            kept if isinstance(kept, int) else None,
            n_features,
            KAPPA if bounds is None else REGRESSION_KAPPA,
        ),
        significant=kept == "significant",
        fit_intercept=settings.fit_intercept,
        norm_bound=settings.norm_bound,
        n_records=settings.n_records,
        calibration=0.0 if bounds is not None else CALIBRATION_SHARE,
    )


def logistic_solver(
    settings: LogisticSettings,
    mechanism: GaussianSteps,
    X: Any,
    targets: Targets,
    n_classes: int,
    stream: RandomStream,
    *,
    threads: Threads,
    prefix: Any = None,
) -> GradientRun | CompletedRun:
    """Make the solver, ready for its first gradient.

    `settings`, `mechanism`: as made above.
    `X`, `targets`: the records; those in partitions have their own targets.
    `n_classes`: K, of a classification.
    `stream`: keys the noise.
    `threads`: of the run.
    `prefix`: what was released already.
    """
    if isinstance(prefix, NoisyWeights):
        return CompletedRun(len(prefix), prefix)
    loss = logistic_loss(settings, n_classes)
    if isinstance(X, Partitions):
        records: Any = PartitionedRecords(X, loss)
    else:
        check_row_count(X.shape[0])
        records = records_of(X, loss, targets, threads)
    plan = logistic_plan(settings, X.shape[1])
    if settings.weighted and mechanism.name == "none":
        # As rows repeated so often. With privacy the number of rows does, of which none counts for
        # more than 1: where one row replaces another that number is public, and the sum is not.
        plan = replace(plan, n_records=records.total_weight)
    return GradientRun(
        plan,
        mechanism,
        records,
        stream,
        threads=threads,
        prefix=prefix,
    )
