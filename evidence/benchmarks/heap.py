"""How many items the heap pops per iteration of a plain Frank-Wolfe run."""

import numpy as np
from scipy import sparse

from dplasso.frank_wolfe.problem import Problem, gradient_unit, margin_unit
from dplasso.frank_wolfe.solve import solve
from dplasso.matrix.compressed import compress
from dplasso.matrix.transpose import transpose
from dplasso.privacy.randomness import random_stream
from dplasso.selection.counters import POPS
from dplasso.selection.fibonacci_heap import heap_state


def heap_pops(quick):
    """Pops per iteration of the heap in a plain Frank-Wolfe run, against the non-zero weights."""
    rng = np.random.default_rng(2)
    n_rows, n_columns, n_steps = (2000, 10_000, 200) if quick else (20_000, 200_000, 1000)
    per_row = 60
    columns = (n_columns ** rng.random((n_rows, per_row))).astype(np.int64) - 1
    rows = np.repeat(np.arange(n_rows), per_row)
    X = sparse.csr_array(
        (np.ones(rows.size, np.float32), (rows, columns.ravel())), shape=(n_rows, n_columns)
    )
    X.sum_duplicates()
    X.data[:] = 1.0
    # A thousand columns of every popularity matter, none decides alone.
    signal = np.zeros(n_columns)
    signal[(n_columns ** rng.random(1000)).astype(np.int64) - 1] = rng.normal(0, 0.5, 1000)
    labels = (X @ signal + rng.logistic(0, 1, n_rows) > 0).astype(np.int8)
    laid_out, _ = compress(X)
    problem = Problem(
        rows=laid_out,
        columns=transpose(laid_out, n_columns),
        labels=labels,
        n_columns=n_columns,
        intercept=True,
        bound=1.0,
        radius=50.0,
        unit=gradient_unit(1.0),
        margin_unit=margin_unit(1.0, n_steps),
        n_steps=n_steps,
    )
    heap = heap_state(n_columns + 1)
    solution = solve(problem, heap, random_stream(0), drift_tol=0.01)
    nonzero = np.unique(solution.transcript.vertex).size
    pops = int(heap.counters[POPS]) / n_steps
    return {
        "rows": n_rows,
        "columns": n_columns,
        "iterations": n_steps,
        "pops_per_iteration": pops,
        "nonzero_weights": int(nonzero),
        "ratio": pops / nonzero,
    }
