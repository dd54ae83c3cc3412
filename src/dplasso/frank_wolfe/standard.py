"""Algorithm 1 of the paper (arXiv 2310.19978), corrected: everything recomputed at every step.

The slow, obvious method, sparse-aware but O(nnz + D) a step: the reference for correctness and the
denominator of every speed-up.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import starting_gradient
from dplasso.frank_wolfe.distinct import draw, leave_out
from dplasso.frank_wolfe.gradient import add_contributions, add_margins, margin_scale
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.rounds import round_end
from dplasso.frank_wolfe.transcript import weight_scale
from dplasso.frank_wolfe.work import (
    OPERATIONS_PER_COORDINATE,
    OPERATIONS_PER_GRADIENT,
    record_work,
)
from dplasso.losses.contract import gradient, value
from dplasso.losses.targets import weight_of
from dplasso.matrix.numbering import look_up
from dplasso.selection.contract import rebuild


class StandardState(NamedTuple):
    """What Algorithm 1 carries from step to step.

    `alpha`, shape (D,): column gradients in fixed point.
    `weights`: the integer weights K.
    `margin`, shape (N,): integer margins.
    `gradient`, shape (N,): record gradients q_i.
    `operation_counts`, shape (2,): entries touched and operations spent since the last record of
    work.
    """

    alpha: NDArray[np.int64]
    weights: NDArray[np.int64]
    margin: NDArray[np.int64]
    gradient: NDArray[np.float64]
    operation_counts: NDArray[np.int64]


def start_standard(problem: Problem, alpha: NDArray[np.int64]) -> StandardState:
    """Return the state before the first step, all weights zero.

    `problem`: the data.
    `alpha`: column gradients at zero weights.
    """
    return StandardState(
        alpha,
        np.zeros_like(alpha),
        np.zeros(problem.labels.size, dtype=np.int64),
        starting_gradient(problem),
        np.zeros(2, dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def mean_loss(problem, margin, step):
    """Return the mean loss after `step` steps."""
    total = 0.0
    scale = margin_scale(problem, step)
    for i in range(margin.size):
        loss = value(problem.loss, np.float64(margin[i]) * scale, problem.labels[i])
        total += weight_of(problem.weights, i) * loss
    return total / margin.size


@njit(cache=True, nogil=True)
def refresh_all(problem, state, step):
    """Recompute margins, record gradients and column gradients after `step` steps."""
    add_margins(problem, state.weights, state.margin)
    scale = margin_scale(problem, step)
    for i in range(state.margin.size):
        q = gradient(problem.loss, np.float64(state.margin[i]) * scale, problem.labels[i])
        state.gradient[i] = weight_of(problem.weights, i) * q
    state.alpha[:] = 0
    add_contributions(problem, 0, state.margin.size, state.gradient, state.alpha)


@njit(cache=True, nogil=True)
def run_standard(
    problem, state, selector, stream, first, last, vertex, sign, history, work, n_prefix
):
    """Take steps `first` to `last` (inclusive, from 1) of Algorithm 1.

    Parameters are those of `dplasso.frank_wolfe.sparse.run_sparse`; there is nothing to drift.
    """
    objective, gap = history
    n_rows = state.margin.size
    for step in range(first, last + 1):
        if round_end(problem.distinct, problem.n_steps, step - 1) == step - 1:
            refresh_all(problem, state, step - 1)
        if problem.distinct:
            leave_out(problem, state.alpha, selector, vertex, step - 1, False)
        rebuild(selector, state.alpha)
        j, s = draw(problem, state.alpha, selector, stream, vertex, step - 1)
        if step <= n_prefix:
            j, s = vertex[step - 1], np.int64(sign[step - 1])
        vertex[step - 1] = j
        sign[step - 1] = s
        place = look_up(problem.design.numbering.internal, j)
        if objective.size:
            inner = 0.0
            for original in range(state.alpha.size):
                # In the columns' own order: the sum's last bits depend on it.
                k = look_up(problem.design.numbering.internal, original)
                inner += np.float64(state.weights[k]) * np.float64(state.alpha[k])
            inner *= weight_scale(step - 1 + problem.late_start)
            scale = problem.radius / problem.unit / n_rows
            objective[step - 1] = mean_loss(problem, state.margin, step - 1)
            gap[step - 1] = scale * (inner - s * np.float64(state.alpha[place]))
        state.weights[place] += s * (step + problem.late_start + 1)
        if work.shape[0]:
            state.operation_counts[0] = problem.design.rows.indices.size
            state.operation_counts[1] = (
                4 * problem.design.rows.indices.size
                + OPERATIONS_PER_GRADIENT * n_rows
                + OPERATIONS_PER_COORDINATE * state.alpha.size
            )
            record_work(work[step - 1], selector.counters, state.operation_counts)
