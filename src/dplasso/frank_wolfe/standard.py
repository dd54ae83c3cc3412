"""Algorithm 1 of the paper (arXiv 2310.19978), corrected: everything recomputed at every step.

The slow, obvious method, sparse-aware but O(nnz + D) a step: the reference for correctness and the
denominator of every speed-up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.frank_wolfe.gradient import add_contributions, add_margins, margin_scale
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.transcript import weight_scale
from dplasso.frank_wolfe.work import (
    OPERATIONS_PER_COORDINATE,
    OPERATIONS_PER_GRADIENT,
    record_work,
)
from dplasso.losses.contract import residual_vector, value
from dplasso.matrix.numbering import look_up
from dplasso.selection.contract import rebuild, select


@dataclass(frozen=True)
class StandardState:
    """What Algorithm 1 carries from step to step, for P coordinates of each of K outputs.

    `alpha`, shape (K P,): column gradients in fixed point.
    `weights`, shape (K P,): the integer weights K.
    `margins`, `residuals`, shape (K, N): integer margins and record gradients q_i.
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
        return self.margins[0] if len(self.margins) == 1 else self.margins.T

    @property
    def gradient(self) -> NDArray[np.float64]:
        """Record gradients, shape (N,) or (N, K)."""
        return self.residuals[0] if len(self.residuals) == 1 else self.residuals.T


def start_standard(problem: Problem) -> StandardState:
    """Return the state before the first step, all weights zero."""
    shape = problem.loss.n_outputs, problem.labels.size
    state = StandardState(
        np.zeros(problem.n_coordinates, dtype=np.int64),
        np.zeros(problem.n_coordinates, dtype=np.int64),
        np.zeros(shape, dtype=np.int64),
        np.zeros(shape),
        np.zeros(2, dtype=np.int64),
    )
    refresh_all(problem, state, 0)
    return state


def refresh_all(problem: Problem, state: StandardState, step: int) -> None:
    """Recompute margins, record gradients and column gradients after `step` steps."""
    size = problem.design.n_coordinates
    for k, margin in enumerate(state.margins):
        add_margins(problem, state.weights[k * size : (k + 1) * size], margin)
    scale = margin_scale(problem, step)
    refresh_residuals(problem.loss, problem.labels, scale, state.margins, state.residuals)
    state.alpha[:] = 0
    for k, residual in enumerate(state.residuals):
        part = state.alpha[k * size : (k + 1) * size]
        add_contributions(problem, 0, residual.size, residual, part)


@njit(cache=True, nogil=True)
def refresh_residuals(loss, labels, scale, margins, residuals):
    """Set all residuals to those of the margins."""
    n_outputs = margins.shape[0]
    some, found = np.empty(n_outputs), np.empty(n_outputs)
    for i in range(labels.size):
        for k in range(n_outputs):
            some[k] = np.float64(margins[k, i]) * scale
        residual_vector(loss, some, labels[i], found)
        for k in range(n_outputs):
            residuals[k, i] = found[k]


@njit(cache=True, nogil=True)
def mean_loss(problem, margin, step):
    """Return the mean loss after `step` steps."""
    total = 0.0
    scale = margin_scale(problem, step)
    for i in range(margin.size):
        label = np.float64(problem.labels[i])
        total += value(problem.loss, np.float64(margin[i]) * scale, label)
    return total / margin.size


@njit(cache=True, nogil=True)
def inner_product(internal, weights, alpha):
    """Return ``<alpha, K>``, summed in the columns' own order: its last bits depend on it."""
    total = 0.0
    for original in range(alpha.size):
        k = look_up(internal, original)
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
    internal, n_rows = problem.design.numbering.internal, problem.labels.size
    nnz = problem.design.rows.indices.size
    for step in range(first, last + 1):
        refresh_all(problem, state, step - 1)
        rebuild(selector, state.alpha)
        j, sign = take(step, *select(selector, state.alpha, stream))
        place = internal[j] if internal.size else j
        if objective.size:
            inner = inner_product(internal, state.weights, state.alpha) * weight_scale(step - 1)
            scale = problem.radius / problem.unit / n_rows
            objective[step - 1] = mean_loss(problem, state.margins[0], step - 1)
            gap[step - 1] = scale * (inner - sign * float(state.alpha[place]))
        state.weights[place] += sign * (step + 1)
        if work.shape[0]:
            state.operation_counts[0] = nnz
            state.operation_counts[1] = (
                4 * nnz
                + OPERATIONS_PER_GRADIENT * n_rows
                + OPERATIONS_PER_COORDINATE * state.alpha.size
            )
            record_work(work[step - 1], selector.counters, state.operation_counts)
