"""Algorithm 1 of the paper (arXiv 2310.19978), corrected: each step recomputes everything.

The reference for correctness, and for speed-ups: O(nnz + D) per step.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import gradients_of
from dplasso.frank_wolfe.gradient import (
    add_margins,
    margin_scale,
    renew_residuals,
    share_units,
)
from dplasso.frank_wolfe.problem import Problem
from dplasso.losses.loss import value
from dplasso.losses.targets import offset_of, weight_of
from dplasso.runtime.compilation import kernel
from dplasso.runtime.threads import ONE_THREAD


@dataclass(frozen=True)
class StandardState:
    """The state of Algorithm 1 between steps, for P coordinates of each of K outputs.

    `alpha`, `weights`, shape (K P,): column gradients in fixed point, and the integers K.
    `margin`, `gradient`, shape (N, K): integer margins, and residuals. `operation_counts`, shape
    (2,): see `vertex_run`.
    """

    alpha: NDArray[np.int64]
    weights: NDArray[np.int64]
    margin: NDArray[np.int64]
    gradient: NDArray[np.float64]
    operation_counts: NDArray[np.int64]


def start_standard(problem: Problem) -> StandardState:
    """Return the state before the first step, with all weights zero; each step refreshes it."""
    shape = problem.design.n_rows, problem.loss.n_outputs
    alpha, weights = np.zeros((2, problem.n_coordinates), dtype=np.int64)
    margins, residuals = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    return StandardState(alpha, weights, margins, residuals, np.zeros(2, dtype=np.int64))


def refresh_all(problem: Problem, state: StandardState, step: int) -> None:
    """Recompute margins, residuals and column gradients after `step` steps."""
    size, n_rows = problem.design.n_coordinates, problem.design.n_rows
    margin, rows = np.empty(n_rows, dtype=np.int64), np.arange(n_rows, dtype=np.int32)
    for k in range(problem.loss.n_outputs):
        add_margins(problem, state.weights[k * size : (k + 1) * size], margin)
        state.margin[:, k] = margin
    old, new = np.empty((2, *state.gradient.shape))
    arguments = problem.loss, problem.targets, rows, margin_scale(problem, step)
    renew_residuals(*arguments, state.margin, state.gradient, old, new)
    columns = np.ascontiguousarray(new.T)
    state.alpha[:] = gradients_of(problem.design, share_units(problem), columns, ONE_THREAD)


@kernel
def mean_loss(problem, margin, step):
    """Return the mean loss after `step` steps."""
    total, targets = 0.0, problem.targets
    scale = margin_scale(problem, step)
    for i in range(margin.size):
        whole = np.float64(margin[i]) * scale + offset_of(targets.offsets, i, 0)
        loss = value(problem.loss, whole, targets.labels[i])
        total += weight_of(targets.weights, i) * loss
    return total / margin.size


@kernel
def inner_product(weights, alpha):
    """Return ``<alpha, K>``, summed in column order: its last bits depend on the order."""
    total = 0.0
    for k in range(alpha.size):
        total += np.float64(weights[k]) * np.float64(alpha[k])
    return total
