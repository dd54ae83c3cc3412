"""Runs without privacy that figures 1 to 4 show: gap, operations and pops, step by step."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidence.cells import Advance, Cell
from evidence.datasets import Source
from evidence.items import Settings
from evidence.true_gap import true_gaps

RADIUS = 50.0
ITERATIONS = 1000
MARKS = 25
# Of a long run so many steps are kept, dense early and sparse late.
_POINTS = 400
# No intercept: the paper has none.
METHODS: dict[str, dict[str, Any]] = {
    "algorithm-1": {"solver": "standard", "selector": "argmax"},
    "algorithm-2+3": {"selector": "heap", "drift_tol": None},
    "dplasso": {},
}
MEANING = {
    "algorithm-1": "Algorithm 1, everything recomputed at every step",
    "algorithm-2+3": "Algorithm 2 as printed, with rows that go stale, and the heap of Algorithm 3",
    "dplasso": "dplasso: Algorithm 2 with drift control, bucket selector",
}
# Reading and updating all shares costs Algorithm 1 about this much more than a step of Algorithm 2.
_WEIGHTS = {"algorithm-1": 1.0, "algorithm-2+3": 0.15, "dplasso": 0.5}


@dataclass(frozen=True)
class Trajectory:
    """One method's run on one data set."""

    source: Source  # The data set
    method: str  # One of `METHODS`
    n_columns: int  # D
    steps: NDArray[np.int64]  # The steps kept, counted from 1; `marks` are among them
    # Gap before the step by the gradients in use, as the method itself reports it.
    gap: NDArray[np.float64]
    # Operations up to and with the step: set-up, updates and selection.
    operations: NDArray[np.float64]
    pops: NDArray[np.int64]  # Items popped off the heap in the step
    # marks, marked_gap: steps at which the gap was recomputed from the weights, and that gap.
    marks: NDArray[np.int64]
    marked_gap: NDArray[np.float64]
    # vertex, sign: the whole transcript.
    vertex: NDArray[np.int64]
    sign: NDArray[np.int64]


def trajectory_cells(settings: Settings) -> list[Cell]:
    """List the runs: every method on every data set."""
    n_iter = settings.iterations or ITERATIONS
    return [
        Cell(
            kind="trajectory",
            name=method,
            source=source,
            parameters={"radius": RADIUS, "n_iter": n_iter, "marks": MARKS, **METHODS[method]},
            weight=7.0 * n_iter * source.entries * _WEIGHTS[method],
            measure=partial(_run, method, n_iter, settings.n_jobs),
        )
        for source in settings.sources
        for method in METHODS
    ]


def trajectories(settings: Settings, results: list[dict[str, Any]]) -> list[Trajectory]:
    """Put the results of `trajectory_cells` in shape."""
    found = []
    for cell, result in zip(trajectory_cells(settings), results, strict=True):
        assert cell.source is not None
        arrays = {name: np.array(values) for name, values in result.items() if name != "n_columns"}
        found.append(Trajectory(cell.source, cell.name, int(result["n_columns"]), **arrays))
    return found


def spread_steps(n_steps: int, count: int) -> NDArray[np.int64]:
    """Choose at most `count` of the steps 1 to `n_steps`, evenly on a logarithmic axis."""
    even = np.geomspace(1, n_steps, count).round().astype(np.int64)
    return np.unique(even)


def _run(method: str, n_iter: int, n_jobs: int, X: Any, y: Any, advance: Advance) -> dict[str, Any]:
    from dplasso import DPFrankWolfeClassifier
    from dplasso.estimators.fitting import fit_estimator
    from dplasso.fit.run import Hooks

    model = DPFrankWolfeClassifier(
        math.inf,
        l1_radius=RADIUS,
        n_iter=n_iter,
        fit_intercept=False,
        classes=(0, 1),
        n_jobs=n_jobs,
        **METHODS[method],
    )
    fit_estimator(model, X, y, Hooks(progress=lambda done, total: advance(0.9 * done / total)))
    marks = spread_steps(n_iter, min(n_iter, MARKS))
    kept = np.union1d(spread_steps(n_iter, min(n_iter, _POINTS)), marks)
    transcript = model.transcript_
    operations = np.cumsum(operations_of(model.work_, method, X.shape, X.nnz))
    return {
        "n_columns": X.shape[1],
        "steps": kept.tolist(),
        "gap": model.history_.gap[kept - 1].tolist(),
        "operations": operations[kept - 1].tolist(),
        "pops": model.work_.pops[kept - 1].tolist(),
        "marks": marks.tolist(),
        "marked_gap": true_gaps(X, y, transcript, RADIUS, marks).tolist(),
        "vertex": transcript.vertex.tolist(),
        "sign": transcript.sign.tolist(),
    }


def operations_of(
    work: Any, method: str, shape: tuple[int, int], n_entries: int
) -> NDArray[np.float64]:
    """Return the operations of each step: updates, selection, and set-up in the first.

    A heap's pop counts ``log2(D)`` comparisons, a candidate or move of another structure 1. The
    set-up of Algorithm 2 is one gradient from zero weights and the insertion of all columns. Among
    the updates of Algorithm 1 are its comparisons of all columns.
    """
    n_rows, n_columns = shape
    spent: NDArray[np.float64] = work.operations.astype(np.float64)
    if method == "algorithm-1":
        return spent
    spent = spent + work.pops * math.ceil(math.log2(max(2, n_columns))) + work.tries + work.moves
    spent[0] += 2.0 * n_entries + n_rows + n_columns
    return spent
