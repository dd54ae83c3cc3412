"""How near the training loop comes to the machine's random accesses.

The yardstick replays a run's vertices and does nothing but the unavoidable: for each row that
holds the chosen column, add a constant to the gradient of each of its entries. The loop that
refreshes every touched row (``drift_tol=None``) does that and all the rest: margins, sigma, shares
in fixed point, levels of the selector.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from numba import njit

from dplasso import DPFrankWolfeClassifier
from dplasso.fit.frank_wolfe import FrankWolfeLoop
from dplasso.fit.records import LocalRecords
from dplasso.fit.task import Binary
from dplasso.phases.phase import Fit
from dplasso.phases.select import vertex_selector
from dplasso.privacy.randomness import random_stream
from dplasso.runtime.threads import ONE_THREAD
from evidence.datasets import Spec, describe, load_spec, sizes
from evidence.items import Settings, Table
from evidence.report import seconds_text
from evidence.solving import solve
from evidence.timing import interleave, seconds

TITLE = "Random accesses"


@njit(cache=True, nogil=True)
def touch_only(row_starts, row_indices, column_starts, column_indices, vertex, alpha):
    """Add 1 to the gradients of all entries of all rows of the given columns; count them."""
    touched = np.int64(0)
    for t in range(vertex.size):
        j = vertex[t]
        for p in range(column_starts[j], column_starts[j + 1]):
            i = column_indices[p]
            for q in range(np.uint64(row_starts[i]), np.uint64(row_starts[i + 1])):
                alpha[np.uint64(row_indices[q])] += 1
            touched += row_starts[i + 1] - row_starts[i]
    return touched


def measure(spec: Spec, config: Any, settings: Settings) -> dict[str, Any]:
    """Time the bare accesses and the loops of one run, in turns."""
    data = load_spec(spec, settings.data, settings.n_jobs)
    labels = (np.asarray(data.y) > 0).astype(np.float64)
    model = DPFrankWolfeClassifier(
        epsilon=config.epsilon,
        delta=config.delta,
        n_iter=config.n_iter,
        l1_radius=config.radius,
        fit_intercept=False,
        n_jobs=settings.n_jobs,
        random_state=0,
    ).fit(data.X, data.y)
    transcript = model.transcript_
    chosen, task = FrankWolfeLoop.from_params(model.get_params()), Binary(np.arange(2))
    records = LocalRecords(data.X, labels, None).encoded(task)
    n_features, released = records.shape[1], model.model_.released
    budget, plan = chosen.budget(task, n_features), chosen.plan(task, n_features)
    fit = Fit(budget, records, random_stream(0), ONE_THREAD)
    plan.lay_out(fit)
    share = plan.phases[-1].share(budget, released)
    mechanism = chosen.mechanism(budget.eps0_of(share, config.n_iter), task, budget, len(labels))
    given, tolerance = chosen.problem(fit.layouts["vertices"], task, released, budget)
    rows, columns = given.design.rows, given.design.columns

    def bare() -> float:
        alpha = np.zeros(given.design.n_columns, dtype=np.int64)
        return seconds(
            lambda: touch_only(
                rows.indptr, rows.indices, columns.indptr, columns.indices, transcript.vertex, alpha
            )
        )

    def loop(drift_tol: float | None) -> float:
        selector = vertex_selector(chosen.selector, mechanism, given)
        marks: list[float] = []
        solve(
            given,
            selector,
            random_stream(0),
            drift_tol=drift_tol,
            prefix=transcript,
            progress=lambda *_: marks.append(time.perf_counter()),
        )
        # The first chunk is one cold step.
        return marks[-1] - marks[0]

    touched = touch_only(
        rows.indptr,
        rows.indices,
        columns.indptr,
        columns.indices,
        transcript.vertex,
        np.zeros(given.design.n_columns, dtype=np.int64),
    )
    runs: dict[str, Callable[[], float]] = {
        "bare accesses": bare,
        "drift_tol=None": lambda: loop(None),
        "default drift_tol": lambda: loop(tolerance),
    }
    for run in runs.values():
        run()
    timed = interleave(runs, spec.repeats or config.repeats)
    return {
        "data": describe(data),
        "touched": int(touched),
        "seconds": {name: median(times) for name, times in timed.items()},
        "runs": timed,
    }


def section(results: dict[str, dict[str, Any]]) -> list[str | Table]:
    """Lay out the results."""
    rows = []
    for case, found in results.items():
        bare = found["seconds"]["bare accesses"]
        for name, spent in found["seconds"].items():
            rows.append(
                [
                    case,
                    sizes(found["data"]),
                    name,
                    seconds_text(spent),
                    f"{spent / found['touched'] * 1e9:.2f}",
                    f"{bare / spent:.0%}",
                ]
            )
    head = ["data set", "rows x columns, non-zeros", "what", "time", "ns per entry", "bare / time"]
    return [
        "The same vertices in every row; ns per entry of the rows that hold a chosen column. "
        "One thread.",
        Table(head, rows),
    ]
