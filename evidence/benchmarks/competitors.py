"""Who runs against whom. Optional packages that are missing end in a sentence, not in an error."""

import contextlib
import io
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
from scipy.sparse import csc_array
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.utils.fixes import parse_version

from dplasso.errors import NoiseWarning, PrivacyLeakWarning
from dplasso.matrix.compressed import compress
from dplasso.matrix.orientations import transpose
from dplasso.privacy.budget import Draws, build_budget
from dplasso.privacy.exponential_mechanism import vertex_mechanism
from evidence.datasets import UnavailableError
from evidence.items import Settings
from evidence.machine import installed
from evidence.timing import Clock, LoopTime, seconds, time_fit, time_steps


@dataclass(frozen=True)
class Training:
    """Public parameters of a training run."""

    # radius, n_iter, epsilon, delta: as in `DPFrankWolfeClassifier`.
    radius: float
    n_iter: int
    epsilon: float
    delta: float
    limit: float  # Seconds of steps after which a run is stopped and scaled
    n_jobs: int  # Threads of the set-up passes
    clock: Clock = time.perf_counter

    @classmethod
    def of(cls, config: Any, settings: Settings, epsilon: float) -> "Training":
        """Take the parameters from a comparison's configuration."""
        limit = getattr(config, "limit", np.inf)
        given = config.radius, config.n_iter, epsilon, config.delta
        return cls(*given, limit, settings.n_jobs)


# What of `DPFrankWolfeClassifier` runs under which name. No intercept: the paper has none.
OWN: dict[str, dict[str, Any]] = {
    "dplasso": {},
    "dplasso-given": {},
    "dplasso-public": {"neighbors": "replace-one"},
    "dplasso-paper": {"mechanism": "paper"},
    "algorithm-1": {"solver": "standard", "selector": "noisy-max"},
    "algorithm-2": {"drift_tol": None, "selector": "noisy-max"},
    "paper-system": {"drift_tol": None, "selector": "big-little"},
}
MEANING = {
    "dplasso": "DPFrankWolfeClassifier's defaults: sparse solver, drift control, bucket selector, "
    "N counted privately",
    "dplasso-given": "the same with N given as public (`n_records`)",
    "dplasso-public": "the same where neighbours have equally many records, so that N is public "
    "(`neighbors='replace-one'`)",
    "dplasso-paper": "the same with the noise as published, which is not private "
    "(`mechanism='paper'`)",
    "algorithm-1": "`solver='standard'` with noisy-max: everything recomputed at every step",
    "algorithm-2": "the paper's ablation: stale Algorithm 2 (`drift_tol=None`) with noisy-max",
    "paper-system": "the paper's system: stale Algorithm 2 with big-little",
    "scipy": "Algorithm 1 by scipy products in float32 (the faster of CSR scatter and CSC gather) "
    "and numpy's Gumbel noise over all columns",
    "copt": "copt's minimize_frank_wolfe, without privacy or noise, float64",
}


def own_parameters(name: str, training: Training) -> dict[str, Any]:
    """Give the estimator's parameters for one of `OWN`."""
    return {
        "epsilon": training.epsilon,
        "delta": training.delta,
        "l1_radius": training.radius,
        "n_iter": training.n_iter,
        "n_jobs": training.n_jobs,
        "fit_intercept": False,
        "classes": (0, 1),
        **OWN[name],
    }


def frank_wolfe(
    product: Any, X: Any, y: Any, training: Training, clock: Callable[[int, int], None]
) -> Any:
    """Run Frank-Wolfe as copt writes it, with the exponential mechanism; return the weights.

    A step is ``X @ w``, the record gradients, ``product @ q`` (`product` is X.T, in whichever
    format) and an argmax over D noisy scores.
    """
    n_columns = X.shape[1]
    budget = build_budget(
        Draws(vertices=training.n_iter),
        epsilon=training.epsilon,
        delta=training.delta,
        n_iter=training.n_iter,
    )
    scale = vertex_mechanism(budget.eps0, sensitivity=1.0).exponent
    rng = np.random.default_rng(0)
    kind = X.dtype.type
    labels = np.asarray(y).astype(kind)
    weights = np.zeros(n_columns, dtype=kind)
    for step in range(1, training.n_iter + 1):
        gradient = X @ weights
        expit(gradient, out=gradient)
        gradient -= labels
        alpha = product @ gradient
        score = np.abs(alpha)
        score *= kind(scale)
        # log cosh, then Gumbel noise as minus the logarithm of exponential noise: in float64, for
        # float32 noise is 0 once in some million draws, and would win.
        score += np.log1p(np.exp(kind(-2) * score))
        noise = rng.standard_exponential(n_columns)
        np.log(noise, out=noise)
        np.subtract(score, noise, out=noise)
        j = int(noise.argmax())
        size = 2.0 / (step + 2.0)
        weights *= kind(1.0 - size)
        downwards = rng.random() < expit(2.0 * scale * float(alpha[j]))
        weights[j] += size * training.radius * (-1.0 if downwards else 1.0)
        clock(step, training.n_iter)
    return weights


def scipy_loop(X: Any, y: Any, training: Training) -> LoopTime:
    """Time `frank_wolfe` with the faster of scipy's products: CSR scatter or CSC gather."""
    gathering = None

    def turn() -> None:
        # Ours is faster than scipy's: the competitor may have it.
        nonlocal gathering
        by_column = transpose(compress(X)[0], X.shape[1], training.n_jobs)
        values = by_column.values
        if not values.size:
            values = np.full(by_column.indices.size, by_column.constant, dtype=X.dtype)
        gathering = csc_array((values, by_column.indices, by_column.indptr), shape=X.shape).T

    setup = seconds(turn, training.clock)
    probe = np.asarray(y).astype(X.dtype)

    def cost(product: Any) -> float:
        return min(seconds(lambda: product @ probe, training.clock) for _ in range(2))

    product = gathering
    if cost(X.T) <= cost(gathering):
        product, gathering, setup = X.T, None, 0.0
    measured, _ = time_steps(
        training.n_iter,
        training.limit,
        lambda steps: frank_wolfe(product, X, y, training, steps),
        training.clock,
    )
    return replace(measured, setup=setup)


def copt_loop(X: Any, y: Any, training: Training) -> LoopTime:
    """Run copt's Frank-Wolfe: no privacy, no noise; float64, which is what it works in."""
    if installed("copt") is None:
        raise UnavailableError("copt is not installed (pip install '.[bench]')")
    import copt
    from copt.constraint import L1Ball
    from copt.loss import LogLoss

    loss = LogLoss(X.astype(np.float64), np.asarray(y).astype(np.float64))

    def run(clock: Callable[[int, int], None]) -> None:
        done = 0

        def count(_: object) -> None:
            nonlocal done
            done += 1
            if done <= training.n_iter:
                clock(done, training.n_iter)

        # It prints; a Lipschitz constant spares it an estimate that this step size ignores.
        with contextlib.redirect_stdout(io.StringIO()):
            copt.minimize_frank_wolfe(
                loss.f_grad,
                np.zeros(X.shape[1]),
                L1Ball(training.radius).lmo,
                step="sublinear",
                lipschitz=1.0,
                max_iter=training.n_iter,
                tol=0.0,
                callback=count,
                jac=True,
            )

    return time_steps(training.n_iter, training.limit, run, training.clock)[0]


def training_loop(name: str, X: Any, y: Any, training: Training) -> LoopTime:
    """Time one training run of a competitor of the training loop.

    Raises
    ------
    UnavailableError
        If its package is not installed.
    """
    if name == "scipy":
        return scipy_loop(X, y, training)
    if name == "copt":
        return copt_loop(X, y, training)
    if name not in OWN:
        raise UnavailableError(f"there is no competitor {name!r}")
    parameters = own_parameters(name, training)
    if name == "dplasso-given":
        parameters["n_records"] = X.shape[0]
    with warnings.catch_warnings():
        # The paper's mechanism warns; and loops are timed whose models are worth nothing.
        for warning in (PrivacyLeakWarning, NoiseWarning):
            warnings.simplefilter("ignore", warning)
        return time_fit(X, y, training.limit, training.clock, **parameters)[0]


def product_seconds(X: Any, kind: Any = np.float64, n_products: int = 9) -> float:
    """Time one ``X.T @ r`` by scipy, r of a type of float; where X has another, scipy casts X."""
    r = np.random.default_rng(0).uniform(-1, 1, X.shape[0]).astype(kind)
    return median(seconds(lambda: X.T @ r) for _ in range(n_products))


def l1_logistic(solver: str, inverse_penalty: float, passes: int) -> Any:
    """Build scikit-learn's L1 logistic regression, for its old and its new way to say L1."""
    said = {"l1_ratio": 1.0}
    if parse_version(installed("scikit-learn") or "0") < parse_version("1.8"):
        said = {"penalty": "l1"}  # type: ignore[dict-item]
    return LogisticRegression(
        solver=solver,
        C=inverse_penalty,
        max_iter=passes,
        fit_intercept=False,
        random_state=0,
        **said,
    )


def fit_seconds(name: str, X: Any, y: Any, inverse_penalty: float, passes: int) -> float:
    """Time a fit of another library's L1 logistic regression.

    Raises
    ------
    UnavailableError
        If its package is not installed.
    """
    if name == "liblinear":
        model = l1_logistic("liblinear", inverse_penalty, 100)
    elif name == "saga":
        model = l1_logistic("saga", inverse_penalty, passes)
    elif name == "skglm":
        if installed("skglm") is None:
            raise UnavailableError("skglm is not installed (pip install '.[bench]')")
        from skglm.estimators import SparseLogisticRegression

        # Its loss is a mean, liblinear's a sum.
        model = SparseLogisticRegression(
            alpha=1.0 / (inverse_penalty * X.shape[0]), fit_intercept=False
        )
    else:
        raise UnavailableError(f"there is no competitor {name!r}")
    with warnings.catch_warnings():
        # A few passes do not converge, and say so.
        warnings.simplefilter("ignore")
        return seconds(lambda: model.fit(X, y))
