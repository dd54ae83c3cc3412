"""Small problems for the solvers, and a way to watch Algorithm 2 step by step."""

from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from evidence.reference.draws import fill

from dplasso.frank_wolfe.column_gradients import starting_alpha
from dplasso.frank_wolfe.gradient import margin_scale
from dplasso.frank_wolfe.large_step import large_steps_of
from dplasso.frank_wolfe.problem import build_problem
from dplasso.frank_wolfe.row_part import RowPart
from dplasso.frank_wolfe.solve import take_sparse_steps
from dplasso.frank_wolfe.standard import run_standard, start_standard
from dplasso.frank_wolfe.state import start_sparse
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.frank_wolfe.work import work_table
from dplasso.losses.logistic import Logistic
from dplasso.matrix.compressed import compress
from dplasso.matrix.design import Design, relabel
from dplasso.matrix.numbering import AS_GIVEN, by_frequency
from dplasso.matrix.transpose import transpose
from dplasso.privacy.randomness import random_stream
from dplasso.runtime.threads import ONE_THREAD, thread_pool
from dplasso.selection.argmax import ArgmaxState
from dplasso.selection.counters import new_counters
from dplasso.selection.replay import replay_state


def dense_rows(n_rows, n_columns, seed, *, density=0.3, spread=1.5):
    """Return float32 entries, some beyond 1 in magnitude, the rest zero."""
    rng = np.random.default_rng(seed)
    entries = rng.normal(0.0, spread, (n_rows, n_columns))
    return np.where(rng.random(entries.shape) < density, entries, 0.0).astype(np.float32)


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
    **options,
):
    """Lay out a dense or CSR matrix as the estimator does, always with columns."""
    rows, by_rows = compress(X if sp.issparse(X) else sp.csr_array(X))
    assert by_rows
    design = Design(
        rows=rows,
        columns=transpose(rows, X.shape[1]),
        has_columns=True,
        columns_internal=False,
        numbering=AS_GIVEN,
        n_rows=X.shape[0],
        n_columns=X.shape[1],
        intercept=intercept,
        bound=bound,
    )
    return build_problem(
        design,
        np.asarray(labels, dtype=np.float64),
        radius=radius,
        n_steps=n_steps,
        loss=loss or Logistic(residual_bound),
        **options,
    )


def with_design(problem, **changes):
    """Return a problem whose design differs in some fields."""
    return problem._replace(design=problem.design._replace(**changes))


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
        rng.integers(0, problem.design.n_coordinates, problem.n_steps),
        rng.choice(np.array([-1, 1], dtype=np.int8), problem.n_steps),
    )


def distinct_transcript(problem, seed):
    """Return different vertices that have nothing to do with the data."""
    rng = np.random.default_rng(seed)
    return Transcript(
        rng.permutation(problem.design.n_coordinates)[: problem.n_steps],
        rng.choice(np.array([-1, 1], dtype=np.int8), problem.n_steps),
    )


def forced(transcript):
    return replay_state(transcript.vertex, transcript.sign)


def empty_outputs(problem, *, record=False):
    n_steps, kept = problem.n_steps, problem.n_steps if record else 0
    history = np.zeros(kept), np.zeros(kept)
    vertex, sign = np.zeros(n_steps, dtype=np.int64), np.zeros(n_steps, dtype=np.int8)
    return vertex, sign, history, work_table(0), 0


def renumbered(problem):
    """Store frequent columns' gradients first; X by columns keeps its order."""
    numbering = by_frequency(np.diff(problem.design.columns.indptr), problem.design.intercept)
    return with_design(problem, rows=relabel(problem.design.rows, numbering), numbering=numbering)


def stored(problem):
    """Lay a problem out as a store does: X by columns in internal order too."""
    columns, n_columns = problem.design.columns, problem.design.n_columns
    numbering = by_frequency(np.diff(columns.indptr), problem.design.intercept)
    values = columns.values
    if not values.size:
        values = np.full(columns.indices.size, columns.constant)
    given = sp.csc_array(
        (values, columns.indices, columns.indptr), shape=(problem.labels.size, n_columns)
    )
    ordered = given[:, numbering.original[:n_columns]]
    internal = columns._replace(
        indptr=ordered.indptr.astype(columns.indptr.dtype),
        indices=ordered.indices.astype(columns.indices.dtype),
        values=ordered.data if columns.values.size else columns.values,
    )
    return with_design(renumbered(problem), columns=internal, columns_internal=True)


def without_columns(problem):
    """Leave only the rows: columns are found by reading all of them."""
    return with_design(problem, columns=problem.design.rows, has_columns=False)


LAYOUTS = {
    "as given": lambda problem: problem,
    "renumbered": renumbered,
    "stored": stored,
    "rows only": without_columns,
}


# How a step is taken: as the sizes suggest, or all of them in one way.
WAYS = {
    "as it comes": {},
    "small": {"entries_large": np.inf},
    "large": {"entries_large": 0, "part_recomputed": np.inf, "part_shared": -1.0},
    "recomputed": {"entries_large": 0, "part_recomputed": -1.0},
}


@contextmanager
def large_steps(n_threads, **way):
    """Keep threads, and what they need for large steps, while the block runs."""
    with thread_pool(n_threads) as threads:
        yield large_steps_of(threads, **way)


def watch(problem, selector, drift_tol, *, outputs=None, seed=0, n_threads=1, n_prefix=0, way=None):
    """Run Algorithm 2 one step at a time, yielding the step and the state (the same arrays)."""
    with large_steps(n_threads, **(way or {})) as means:
        state = start_sparse(problem, starting_alpha(problem, means.threads), drift_tol)
        fill(selector, state.alpha)
        outputs = (*(outputs or empty_outputs(problem))[:4], n_prefix)
        stream, tolerance = random_stream(seed), float(drift_tol or 0.0)
        for step in range(1, problem.n_steps + 1):
            take_sparse_steps(
                problem, state, selector, stream, tolerance, step, step, outputs, means
            )
            yield step, state


def watch_standard(problem, selector, *, outputs=None, seed=0):
    """Run Algorithm 1 one step at a time; its gradients are those before the step."""
    state = start_standard(problem, starting_alpha(problem, ONE_THREAD))
    outputs = outputs or empty_outputs(problem)
    stream = random_stream(seed)
    for step in range(1, problem.n_steps + 1):
        run_standard(problem, state, selector, stream, step, step, *outputs)
        yield step, state


def last(states):
    """Run to the end and return the final state."""
    for _, state in states:
        final = state
    return final


def true_gradient(problem, margin, step):
    """Return the clipped sigma(margin) - label of every row at its integer margin."""
    margins = margin * margin_scale(problem, step)
    loss = problem.loss
    weights = np.where(problem.labels, loss.positive_weight, loss.negative_weight)
    with np.errstate(over="ignore"):
        residuals = 1.0 / (1.0 + np.exp(-margins - loss.offset)) - problem.labels
    return weights * np.clip(residuals, -loss.residual_bound, loss.residual_bound)


def row_parts(problem, n_parts, **options):
    """Cut a problem into parts, each with an order of its columns of its own."""
    rows, parts = problem.design.rows, []
    edges = np.linspace(0, problem.labels.size, n_parts + 1).astype(int)
    for number, (first, last) in enumerate(pairwise(edges)):
        begin, end = rows.indptr[first], rows.indptr[last]
        some = rows._replace(
            indptr=rows.indptr[first : last + 1] - begin,
            indices=rows.indices[begin:end],
            values=rows.values[begin:end] if rows.values.size else rows.values,
        )
        part = with_design(
            problem._replace(
                labels=problem.labels[first:last], weights=problem.weights[first:last]
            ),
            rows=some,
            columns=transpose(some, problem.design.n_columns),
            n_rows=int(last - first),
        )
        layout = list(LAYOUTS.values())[number % len(LAYOUTS)]
        parts.append(RowPart(layout(part), **options))
    return parts


def add_changes(alpha, changes):
    if changes.coordinates is None:
        alpha += changes.amounts
    else:
        alpha[changes.coordinates] += changes.amounts
