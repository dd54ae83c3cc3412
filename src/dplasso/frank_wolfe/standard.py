"""Algorithm 1 of the paper (arXiv 2310.19978), corrected: everything recomputed at every step.

The slow, obvious method, sparse-aware but O(nnz + D) a step: the reference for correctness and the
denominator of every speed-up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import gradients_of
from dplasso.frank_wolfe.gradient import (
    add_margins,
    margin_scale,
    renew_residuals,
    share_units,
)
from dplasso.frank_wolfe.problem import Problem, weight_scale
from dplasso.frank_wolfe.vertex_run import (
    OPERATIONS_PER_COORDINATE,
    OPERATIONS_PER_GRADIENT,
    record_work,
)
from dplasso.losses.contract import value
from dplasso.losses.targets import offset_of, weight_of
from dplasso.runtime.compilation import kernel
from dplasso.runtime.threads import ONE_THREAD
from dplasso.selection.contract import rebuild, select


@dataclass(frozen=True)
class StandardState:
    """What Algorithm 1 carries from step to step, for P coordinates of each of K outputs.

    `alpha`, shape (K P,): column gradients in fixed point.
    `weights`, shape (K P,): the integer weights K.
    `margins`, `residuals`, shape (N, K): integer margins and record gradients q_i.
    `operation_counts`, shape (2,): entries touched and operations spent since the last record of
    work.
    """

    alpha: NDArray[np.int64]
    weights: NDArray[np.int64]
    margins: NDArray[np.int64]
    residuals: NDArray[np.float64]
    operation_counts: NDArray[np.int64]

    @property
    def margin(self) -> NDArray[np.int64]:
        """Integer margins, shape (N,) or (N, K)."""
        return self.margins[:, 0] if self.margins.shape[1] == 1 else self.margins

    @property
    def gradient(self) -> NDArray[np.float64]:
        """Record gradients, shape (N,) or (N, K)."""
        return self.residuals[:, 0] if self.residuals.shape[1] == 1 else self.residuals


def start_standard(problem: Problem) -> StandardState:
    """Return the state before the first step, all weights zero."""
    shape = problem.labels.size, problem.loss.n_outputs
    alpha, weights = np.zeros((2, problem.n_coordinates), dtype=np.int64)
    margins, residuals = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    state = StandardState(alpha, weights, margins, residuals, np.zeros(2, dtype=np.int64))
    refresh_all(problem, state, 0)
    return state


def refresh_all(problem: Problem, state: StandardState, step: int) -> None:
    """Recompute margins, record gradients and column gradients after `step` steps."""
    size, n_rows = problem.design.n_coordinates, problem.labels.size
    margin, rows = np.empty(n_rows, dtype=np.int64), np.arange(n_rows, dtype=np.int32)
    for k in range(problem.loss.n_outputs):
        add_margins(problem, state.weights[k * size : (k + 1) * size], margin)
        state.margins[:, k] = margin
    old, new = np.empty((2, *state.residuals.shape))
    targets = problem.labels, problem.weights, problem.offsets
    given = problem.loss, targets, rows, margin_scale(problem, step)
    renew_residuals(*given, state.margins, state.residuals, old, new)
    columns = np.ascontiguousarray(new.T)
    state.alpha[:] = gradients_of(problem.design, share_units(problem), columns, ONE_THREAD)


@kernel
def mean_loss(problem, margin, step):
    """Return the mean loss after `step` steps."""
    total = 0.0
    scale = margin_scale(problem, step)
    for i in range(margin.size):
        whole = np.float64(margin[i]) * scale + offset_of(problem.offsets, i, 0)
        loss = value(problem.loss, whole, problem.labels[i])
        total += weight_of(problem.weights, i) * loss
    return total / margin.size


@kernel
def inner_product(weights, alpha):
    """Return ``<alpha, K>``, summed in the order of the columns: its last bits depend on it."""
    total = 0.0
    for k in range(alpha.size):
        total += np.float64(weights[k]) * np.float64(alpha[k])
    return total


def take_standard_steps(
    problem: Problem,
    state: StandardState,
    selector: Any,
    stream: Any,
    first: int,
    last: int,
    take: Callable[[int, int, int], tuple[int, int]],
    recorded: tuple[Any, Any],
) -> None:
    """Take steps `first` to `last` (inclusive, from 1) of Algorithm 1.

    `take`: notes the vertex drawn at a step, and returns the one to take.
    `recorded`: history and work, as of `dplasso.frank_wolfe.sparse.run_sparse`.
    """
    (objective, gap), work = recorded
    n_rows = problem.labels.size
    nnz = problem.design.rows.indices.size
    for step in range(first, last + 1):
        refresh_all(problem, state, step - 1)
        rebuild(selector, state.alpha)
        j, sign = take(step, *select(selector, state.alpha, stream))
        if objective.size:
            inner = inner_product(state.weights, state.alpha) * weight_scale(step - 1)
            scale = problem.radius / problem.unit / n_rows
            objective[step - 1] = mean_loss(problem, state.margin, step - 1)
            gap[step - 1] = scale * (inner - sign * float(state.alpha[j]))
        state.weights[j] += sign * (step + 1)
        if work.shape[0]:
            state.operation_counts[0] = nnz
            state.operation_counts[1] = (
                4 * nnz
                + OPERATIONS_PER_GRADIENT * n_rows
                + OPERATIONS_PER_COORDINATE * state.alpha.size
            )
            record_work(work[step - 1], selector.counters, state.operation_counts)
