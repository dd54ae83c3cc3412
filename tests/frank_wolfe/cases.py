"""Small problems for the solvers, and a way to watch Algorithm 2 step by step."""

from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from evidence.audit.replay import replay_state

from dplasso.frank_wolfe import large_step
from dplasso.frank_wolfe.gradient import margin_scale
from dplasso.frank_wolfe.problem import build_problem
from dplasso.frank_wolfe.solve import FrankWolfe
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.losses.logistic import Logistic
from dplasso.losses.loss import residual_vector
from dplasso.losses.targets import NO_OFFSETS, NO_WEIGHTS, Targets
from dplasso.matrix.compressed import compress
from dplasso.matrix.orientations import Design, transpose
from dplasso.privacy.randomness import random_stream
from dplasso.runtime.threads import thread_pool
from dplasso.selection.noisy_max import ArgmaxState
from dplasso.selection.selector import new_counters


def dense_rows(n_rows, n_columns, seed, *, density=0.3, spread=1.5):
    """Return entries that are float32 numbers too, some beyond 1 in magnitude, the rest zero."""
    rng = np.random.default_rng(seed)
    entries = rng.normal(0.0, spread, (n_rows, n_columns))
    entries = np.where(rng.random(entries.shape) < density, entries, 0.0)
    return entries.astype(np.float32).astype(np.float64)


def some_labels(n_rows, seed):
    return np.random.default_rng([seed, 1]).integers(0, 2, n_rows).astype(np.float64)


def build(
    X,
    labels,
    n_steps,
    *,
    bound=1.0,
    radius=5.0,
    intercept=True,
    residual_bound=1.0,
    loss=None,
    weights=NO_WEIGHTS,
    offsets=NO_OFFSETS,
    **options,
):
    """Lay out a dense or CSR matrix as the estimator does, always with columns."""
    rows, by_rows = compress(X if sp.issparse(X) else sp.csr_array(X))
    assert by_rows
    design = Design(
        rows=rows,
        columns=transpose(rows, X.shape[1]),
        n_rows=X.shape[0],
        n_columns=X.shape[1],
        intercept=intercept,
        bound=bound,
    )
    labels = np.asarray(labels, dtype=np.float64)
    return build_problem(
        design,
        Targets(labels, weights, labels.size, offsets),
        radius=radius,
        n_steps=n_steps,
        loss=loss or Logistic(residual_bound),
        **options,
    )


def small_problem(seed, n_steps=12, *, n_rows=15, n_columns=8, bound=1.0, radius=5.0, **options):
    """Return (X, labels, problem) of random entries and labels."""
    X, labels = dense_rows(n_rows, n_columns, seed), some_labels(n_rows, seed)
    return X, labels, build(X, labels, n_steps, bound=bound, radius=radius, **options)


def argmax():
    return ArgmaxState(new_counters())


def random_transcript(problem, seed):
    """Return vertices that have nothing to do with the data, as an adversary might release."""
    rng = np.random.default_rng(seed)
    return Transcript(
        rng.integers(0, problem.n_coordinates, problem.n_steps),
        rng.choice(np.array([-1, 1], dtype=np.int8), problem.n_steps),
    )


def forced(transcript):
    return replay_state(transcript.vertex, transcript.sign)


# How a step is taken: as the sizes suggest, or all of them in one way.
WAYS = {
    "as it comes": {},
    "small": {"LARGE_STEP_ENTRIES": np.inf},
    "large": {"LARGE_STEP_ENTRIES": 0, "SHARED_PART": -1.0, "RECOMPUTED_PART": np.inf},
    "recomputed": {"LARGE_STEP_ENTRIES": 0, "RECOMPUTED_PART": -1.0},
}


@contextmanager
def taking(way):
    """Have steps taken in one of `WAYS`."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WAYS[way].items():
            patch.setattr(large_step, name, value)
        yield


def watch(problem, selector, drift_tol, *, seed=0, n_threads=1, runs=None, **options):
    """Take one step after the other, yielding the step and the state (the same arrays).

    `runs`: gets the run, for its transcript and history.
    """
    with thread_pool(n_threads) as threads:
        options |= {"drift_tol": drift_tol, "threads": threads}
        run = FrankWolfe(problem, selector, random_stream(seed), **options)
        if runs is not None:
            runs.append(run)
        for step in range(1, problem.n_steps + 1):
            run.advance(step, step)
            yield step, run.state


def true_residuals(problem, margin, step):
    """Return the residuals at integer margins, shape (N, K), from the loss row by row."""
    n_outputs = problem.loss.n_outputs
    margins = margin.reshape(-1, n_outputs) * margin_scale(problem, step)
    if problem.targets.offsets.size:
        margins = margins + problem.targets.offsets
    residuals = np.empty(margins.shape)
    for row, label, found in zip(margins, problem.targets.labels, residuals, strict=True):
        residual_vector(problem.loss, row, label, found)
    return residuals


def add_changes(alpha, changes):
    """Add changes; return whether they are of all coordinates."""
    dense = changes.coordinates is None
    if changes.whole:
        alpha[:] = 0
    np.add.at(alpha, slice(None) if dense else changes.coordinates, changes.amounts)
    return dense
