"""Other private classifiers, at fixed published settings; none of them is tuned to data.

Rows come as unit rows with a constant entry of 0.1, as `DPLogisticRegression` sees them, but for
DP-SGD, which clips for itself, and DP-EBM, which takes a table. All may use the same delta;
neighbours differ by one record added or removed, and the number of records is taken as public,
which favours them.
"""

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, hstack
from scipy.special import expit

from evidence.cells import Advance
from evidence.datasets import UnavailableError
from evidence.machine import installed

Array = NDArray[Any]
# Of a row's length.
CONSTANT = 0.1
# L2 strength over N: Chaudhuri et al. leave it open; one value for all data sets.
L2 = 0.01
# Opacus' own first example (examples/mnist.py): plain SGD, clipped to 1.
BATCH, EPOCHS, RATE, CLIP = 64, 10, 0.1, 1.0
# The most bytes of a dense matrix in double precision for those that cannot do without.
DENSE_BYTES = 2**29


def with_constant(X: csr_array, *, unit: bool) -> csr_array:
    """Append a column of constants: unit rows, or 1 beside rows as they are."""
    n_rows = X.shape[0]
    if not unit:
        return csr_array(hstack([X, np.ones((n_rows, 1), X.dtype)], format="csr"))
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = X.copy()
    factor = math.sqrt(1.0 - CONSTANT**2) / np.where(lengths > 0, lengths, 1.0)
    X.data *= np.repeat(factor, np.diff(X.indptr)).astype(X.dtype)
    return csr_array(hstack([X, np.full((n_rows, 1), CONSTANT, X.dtype)], format="csr"))


def minimum(X: csr_array, y: Array, strength: float, linear: Array | float = 0.0) -> Array:
    """Minimise the summed logistic loss + strength/2 |w|^2 + <linear, w>."""
    X, transposed = X.astype(np.float64), X.T.tocsr().astype(np.float64)
    n_rows, n_columns = X.shape

    def value(w: Array) -> tuple[float, Array]:
        margins = X @ w
        loss = np.logaddexp(0.0, margins).sum() - margins @ y
        loss += 0.5 * strength * (w @ w) + np.sum(linear * w)
        gradient = transposed @ (expit(margins) - y) + strength * w + linear
        return loss / n_rows, gradient / n_rows

    options = {"maxiter": 1000, "ftol": 1e-12, "gtol": 1e-9}
    found = minimize(value, np.zeros(n_columns), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x)


def output_perturbation(
    X: csr_array, y: Array, epsilon: float, delta: float, rng: Any, advance: Advance
) -> Array:
    """Add Gaussian noise to the regularised minimiser (Chaudhuri et al., 2011, algorithm 1).

    A record of length 1 moves it by at most 1 over the strength; the noise is calibrated exactly.
    """
    from dplasso.privacy.accounting import calibrate_mu

    rows = with_constant(X, unit=True)
    strength = L2 * rows.shape[0]
    weights = minimum(rows, y, strength)
    noise = rng.standard_normal(weights.size) / (strength * calibrate_mu(epsilon, delta))
    return np.asarray(weights + noise)


def objective_perturbation(
    X: csr_array, y: Array, epsilon: float, delta: float, rng: Any, advance: Advance
) -> Array:
    """Minimise the loss plus a random linear term (Kifer, Smith and Thakurta, 2012, algorithm 1).

    The Gaussian form of Chaudhuri et al., algorithm 2; like theirs it is private only at the exact
    minimum.
    """
    rows = with_constant(X, unit=True)
    curvature = 0.25
    strength = max(L2 * rows.shape[0], 2.0 * curvature / epsilon)
    scale = math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * epsilon) / epsilon
    return minimum(rows, y, strength, scale * rng.standard_normal(rows.shape[1]))


def sgd_noise(epsilon: float, delta: float, rate: float, n_steps: int) -> float:
    """Return the noise multiplier of Poisson-subsampled Gaussian steps, by Renyi accounting."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.mechanism_calibration import calibrate_dp_mechanism
    from dp_accounting.rdp import RdpAccountant

    def event(multiplier: float) -> Any:
        step = PoissonSampledDpEvent(rate, GaussianDpEvent(multiplier))
        return SelfComposedDpEvent(step, n_steps)

    return float(calibrate_dp_mechanism(RdpAccountant, event, epsilon, delta))


def dp_sgd(
    X: csr_array, y: Array, epsilon: float, delta: float, rng: Any, advance: Advance
) -> Array:
    """Run DP-SGD as Opacus does: Poisson batches, every record's gradient clipped, noise on all."""
    rows = with_constant(X, unit=False)
    n_rows, n_columns = rows.shape
    share, n_steps = min(1.0, BATCH / n_rows), max(1, round(EPOCHS * n_rows / BATCH))
    noise = CLIP * sgd_noise(epsilon, delta, share, n_steps)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    weights = np.zeros(n_columns)
    for step in range(n_steps):
        drawn = np.flatnonzero(rng.random(n_rows) < share)
        batch = rows[drawn]
        residual = expit(batch @ weights) - y[drawn]
        residual *= np.minimum(1.0, CLIP / np.maximum(np.abs(residual) * lengths[drawn], 1e-300))
        gradient = batch.T @ residual + noise * rng.standard_normal(n_columns, dtype=np.float32)
        weights -= RATE / BATCH * gradient
        if step % 64 == 0:
            advance(step / n_steps)
    return weights


def diffprivlib(
    X: csr_array, y: Array, epsilon: float, delta: float, rng: Any, advance: Advance
) -> Array:
    """Fit diffprivlib's LogisticRegression, defaults but for the norm: objective perturbation.

    It spends no delta, and needs dense rows.

    Raises
    ------
    UnavailableError
        If it cannot run here.
    """
    n_bytes = 8 * X.shape[0] * (X.shape[1] + 1)
    if n_bytes > DENSE_BYTES:
        raise UnavailableError(f"diffprivlib needs dense rows, here {n_bytes / 2**30:,.1f} GiB")
    if installed("diffprivlib") is None:
        raise UnavailableError("diffprivlib is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from diffprivlib.models import LogisticRegression
        except ImportError as error:
            ours, theirs = installed("scikit-learn"), installed("diffprivlib")
            words = f"diffprivlib {theirs} does not run with scikit-learn {ours}"
            raise UnavailableError(words) from error
        rows = with_constant(X, unit=True)[:, :-1].toarray().astype(np.float64)
        seed = int(rng.integers(2**31))
        model = LogisticRegression(epsilon=epsilon, data_norm=1.0, random_state=seed)
        model.fit(rows, y)
    # Its intercept stands beside rows of length 1; here the constant entry is 0.1.
    return np.append(model.coef_.ravel(), model.intercept_ / CONSTANT)


def dp_ebm(
    X: csr_array, y: Array, epsilon: float, delta: float, rng: Any, advance: Advance
) -> Array:
    """Fit interpret's DP-EBM to Adult's table, defaults: boosted trees of one attribute each.

    A sum of functions of one attribute each is linear in the columns of their values.

    Raises
    ------
    UnavailableError
        If it is not installed, or the columns are not those of Adult's 14 attributes.
    """
    from dplasso.datasets import ATTRIBUTES

    sizes = [len(values) for values in ATTRIBUTES.values()]
    if X.shape[1] != sum(sizes):
        raise UnavailableError("DP-EBM needs a table, and ran on Adult's alone")
    if installed("interpret-core") is None:
        raise UnavailableError("DP-EBM's package, interpret-core, is not installed")
    from interpret.privacy import DPExplainableBoostingClassifier

    def table(rows: csr_array) -> Array:
        # One text an attribute: its column, or "" where a record has none of its values.
        found = np.zeros((rows.shape[0], len(sizes)), dtype="U3")
        entries = rows.tocoo()
        found[entries.row, np.repeat(np.arange(len(sizes)), sizes)[entries.col]] = entries.col
        return found

    options = {"epsilon": epsilon, "delta": delta, "random_state": int(rng.integers(2**31))}
    options |= {"feature_types": ["nominal"] * len(sizes), "n_jobs": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPExplainableBoostingClassifier(**options).fit(table(X), y)
    alone = csr_array(np.eye(X.shape[1] + 1, X.shape[1]))
    margins = model.decision_function(table(alone))
    return np.append(margins[:-1] - margins[-1], margins[-1])


COMPETITORS = {
    "dp-sgd": dp_sgd,
    "output": output_perturbation,
    "objective": objective_perturbation,
    "dp-ebm": dp_ebm,
    "diffprivlib": diffprivlib,
}
# Those whose weights are for unit rows with a constant entry of `CONSTANT`.
UNIT_ROWS = ("output", "objective", "diffprivlib")
