"""Small data for noisy gradient descent, and solvers on them in a line."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from dplasso.gradient_descent.noisy_descent import NoisyGradientDescent, gradient_unit
from dplasso.gradient_descent.steps import GradientPart
from dplasso.losses.logistic import Logistic
from dplasso.losses.targets import Targets, targets_of
from dplasso.matrix.scaling import NO_SCALE_EXPONENTS, constant_entry
from dplasso.matrix.tiles import lay_tiles
from dplasso.matrix.unit_rows import UnitRows, by_rows, row_factors
from dplasso.privacy.randomness import stream_from_key
from dplasso.runtime.threads import ONE_THREAD

# Entries that somebody might choose.
EXTREMES = st.sampled_from([1.7e308, -1e300, 1e-300, 5e-324, 2.3e-290, 1.0, 0.0, -0.0])
HOSTILE = st.floats(allow_nan=False, allow_infinity=False) | EXTREMES


def stream(seed=0):
    key = np.random.default_rng(seed).integers(0, 2**32, 8, dtype=np.uint64)
    return stream_from_key(key.astype(np.uint32))


def records(n_rows=40, n_columns=12, *, density=0.4, seed=0, dtype=np.float64):
    """Return dense rows, one of them empty and one column without entries, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0.0, 1.5, (n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < density)
    X[3], X[:, 5] = 0.0, 0.0
    return X.astype(dtype), rng.integers(0, 2, n_rows).astype(np.float64)


def some_halvings(n_columns=12):
    """Return scale_exponents of columns, none of some."""
    return (np.arange(n_columns) * 5 % 7 % 4).astype(np.int8)


def unit_rows(
    X,
    constant=0.0,
    norm_bound=None,
    threads=ONE_THREAD,
    scale_exponents=NO_SCALE_EXPONENTS,
    *,
    n_outputs=1,
):
    """Return unit rows, in tiles for so many outputs."""
    if not sp.issparse(X):
        X = sp.csr_array(X)
    rows = by_rows(X, threads.count)
    tiles = lay_tiles(rows, X.shape[1], n_outputs, threads)
    factor = row_factors(rows, constant, norm_bound, threads, scale_exponents)
    return UnitRows(rows, tiles, factor, X.shape[1], constant_entry(constant), scale_exponents)


def targets_from(y):
    return y if isinstance(y, Targets) else targets_of(np.asarray(y, dtype=np.float64))


def gradients(
    X, y, weights, loss, unit, constant=0.0, norm_bound=None, scale_exponents=NO_SCALE_EXPONENTS
):
    """Return the exact gradient of one step as a list of integers, the constants last."""
    data = unit_rows(
        X, constant, norm_bound, scale_exponents=scale_exponents, n_outputs=loss.n_outputs
    )
    part = GradientPart(data, loss, targets_from(y), unit)
    return part.sums(np.asarray(weights).ravel()).tolist()


def descent(data, loss, y, schedule, words, *, threads=ONE_THREAD, **options):
    unit = gradient_unit(loss.residual_bound, float(schedule.noise_scales.max()))
    part = GradientPart(data, loss, targets_from(y), unit, threads=threads)
    given = part, data.n_columns, loss.n_outputs, unit, schedule, words
    options = {"intercept": data.constant != 0.0, "scale_exponents": data.scale_exponents} | options
    return NoisyGradientDescent(*given, threads=threads, **options)


def average(run):
    """Return the average that is released, flat."""
    return np.concatenate(run.average()).ravel()


def solver(
    X,
    y,
    schedule,
    *,
    loss=None,
    constant=0.0,
    seed=0,
    norm_bound=None,
    scale_exponents=NO_SCALE_EXPONENTS,
    **options,
):
    """Return a solver that has taken all its steps."""
    loss, threads = loss or Logistic(0.5), options.get("threads", ONE_THREAD)
    data = unit_rows(X, constant, norm_bound, threads, scale_exponents, n_outputs=loss.n_outputs)
    made = descent(data, loss, y, schedule, stream(seed), **options)
    made.advance(1, schedule.n_steps)
    return made
