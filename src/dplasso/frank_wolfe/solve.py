"""Frank-Wolfe with a fixed radius, by Algorithm 1 or 2, as a solver that takes steps in chunks."""

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.drift import count_due
from dplasso.frank_wolfe.large_step import large_rows, take_step
from dplasso.frank_wolfe.problem import Problem, weight_scale
from dplasso.frank_wolfe.reports import begin_step, report
from dplasso.frank_wolfe.sparse import run_sparse
from dplasso.frank_wolfe.standard import (
    StandardState,
    inner_product,
    mean_loss,
    refresh_all,
    start_standard,
)
from dplasso.frank_wolfe.state import SparseState, start_sparse
from dplasso.frank_wolfe.transcript import History, Transcript
from dplasso.frank_wolfe.vertex_run import (
    OPERATIONS_PER_COORDINATE,
    OPERATIONS_PER_GRADIENT,
    VertexRun,
    Work,
    record_work,
)
from dplasso.matrix.orientations import column_span, refuse_damage
from dplasso.privacy.randomness import RandomStream
from dplasso.runtime.threads import ONE_THREAD, Threads
from dplasso.selection.selector import NOTHING_REPORTED, rebuild, select

SOLVERS = ("sparse", "standard")


class FrankWolfe(VertexRun):
    """T steps of Frank-Wolfe, taken when `advance` is called.

    `solver`: "sparse" for Algorithm 2, "standard" for Algorithm 1; several margins always take it.
    `drift_tol`: the largest error of a residual in Algorithm 2; None never refreshes untouched
    rows.
    `record_history`, `record_work`: functions of private data, for runs with one margin.
    `prefix`: steps that are taken instead of drawn; the selector draws as often as before.
    `state`: private data, for tests and checkpoints.
    """

    def __init__(
        self,
        problem: Problem,
        selector: Any,
        stream: RandomStream,
        *,
        solver: str = "sparse",
        drift_tol: float | None = 0.0,
        record_history: bool = False,
        record_work: bool = False,
        threads: Threads = ONE_THREAD,
        prefix: Transcript | None = None,
    ) -> None:
        super().__init__(problem.n_steps, problem.n_coordinates, prefix)
        self._problem, self._selector, self._stream = problem, selector, stream
        several = problem.loss.n_outputs > 1
        recorded = self.n_steps if record_history and not several else 0
        worked = self.n_steps if record_work and not several else 0
        self._outputs = (
            self._vertex,
            self._sign,
            (np.zeros(recorded), np.zeros(recorded)),
            np.zeros((worked, len(fields(Work))), dtype=np.int64),
            self._n_prefix,
        )
        self._threads = threads
        self._changes: list[NDArray[np.int64]] = []
        self._tolerance = 0.0 if drift_tol is None else float(drift_tol)
        self.state: SparseState | StandardState
        if solver == "standard" or several:
            self.state = start_standard(problem)
            return
        self.state = start_sparse(problem, drift_tol, threads)
        rebuild(selector, self.state.alpha)

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1."""
        if isinstance(self.state, SparseState):
            self._take_sparse_steps(self.state, first, last)
        else:
            self._take_standard_steps(self.state, first, last)

    def _take_standard_steps(self, state: StandardState, first: int, last: int) -> None:
        """Take steps of Algorithm 1."""
        problem, selector = self._problem, self._selector
        _, _, (objective, gap), work, _ = self._outputs
        n_rows, nnz = problem.design.n_rows, problem.design.rows.indices.size
        for step in range(first, last + 1):
            refresh_all(problem, state, step - 1)
            rebuild(selector, state.alpha)
            j, sign = self.take(step, *select(selector, state.alpha, self._stream))
            if objective.size:
                inner = inner_product(state.weights, state.alpha) * weight_scale(step - 1)
                scale = problem.radius / problem.unit / n_rows
                objective[step - 1] = mean_loss(problem, state.margin[:, 0], step - 1)
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

    def _take_sparse_steps(self, state: SparseState, first: int, last: int) -> None:
        """Take steps of Algorithm 2, the large ones with all threads."""
        vertex, sign, history, work, _ = self._outputs
        problem, selector, tolerance = self._problem, self._selector, self._tolerance
        rows_large = large_rows(problem)
        while first <= last:
            span = first, last
            reached = run_sparse(
                problem, state, selector, self._stream, tolerance, span, *self._outputs, rows_large
            )
            if reached == 0:
                refuse_damage()
            if reached > 0:
                return
            step = -reached
            weight = int(sign[step - 1]) * (step + 1)
            column, begin, end = column_span(problem.design, int(vertex[step - 1]))
            n_looked_at = end - begin + int(count_due(state.calendar, step))
            telling = bool(begin_step(problem, state, n_looked_at))
            notes = take_step(
                problem,
                state,
                self._threads,
                self._changes,
                column,
                (begin, end, weight),
                step,
                tolerance,
                history[0].size > 0,
                selector.shift if telling else NOTHING_REPORTED,
                n_looked_at,
            )
            report(problem, state, selector, telling, notes)
            if work.shape[0]:
                record_work(work[step - 1], selector.counters, state.operation_counts)
            first = step + 1

    @property
    def history(self) -> History | None:
        """Objective and gap, if recorded."""
        return History(*self._outputs[2]) if self._outputs[2][0].size else None

    @property
    def work(self) -> Work | None:
        """Work per step, if recorded."""
        return Work(*self._outputs[3].T) if self._outputs[3].size else None
