"""Frank-Wolfe as a solver that takes its steps in chunks: Algorithm 1 or Algorithm 2."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dplasso.frank_wolfe.column_gradients import starting_alpha
from dplasso.frank_wolfe.large_step import (
    LargeSteps,
    large_rows,
    large_steps_of,
    take_large_step,
)
from dplasso.frank_wolfe.outputs import (
    OutputState,
    StandardOutputState,
    start_outputs,
    start_standard_outputs,
    take_output_steps,
)
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.release import VertexRelease
from dplasso.frank_wolfe.reports import index
from dplasso.frank_wolfe.sparse import run_sparse
from dplasso.frank_wolfe.standard import StandardState, run_standard, start_standard
from dplasso.frank_wolfe.state import SparseState, start_sparse
from dplasso.frank_wolfe.transcript import History, Transcript
from dplasso.frank_wolfe.work import Work, record_work, work_table
from dplasso.matrix.design import refuse_damage
from dplasso.privacy.randomness import RandomStream
from dplasso.runtime.chunks import Progress, run_in_chunks
from dplasso.runtime.threads import ONE_THREAD, Threads, thread_pool

SOLVERS = ("sparse", "standard")

Checkpoint = Callable[[int, Transcript], None]


class FrankWolfe:
    """T steps of Frank-Wolfe, taken when `advance` is called.

    Parameters
    ----------
    problem : Problem
        The data and the public parameters.
    selector
        State of a selection structure (`dplasso.selection.registry.make_selector`), changed in
        place.
    stream : RandomStream
        Random words for the draws.
    solver : {"sparse", "standard"}
        Algorithm 2 or Algorithm 1.
    drift_tol : float or None
        Largest allowed error of a record gradient in Algorithm 2; None leaves untouched rows stale
        as the paper does.
    record_history, record_work : bool
        Keep objective and gap; count the work. Both are functions of the private data. Neither is
        kept of several margins.
    threads : Threads
        For the set-up and, of one margin, for steps that touch many rows; the bits do not depend
        on them.
    prefix : Transcript, optional
        The first k <= T steps, taken rather than drawn: the run goes on from where the one that
        drew them was. The selector, told of all changes, draws as many times as in that run.
    **forced
        Numbers of `dplasso.frank_wolfe.large_step.large_steps_of`, for tests.

    Attributes
    ----------
    n_steps : int
        T.
    state : SparseState, StandardState, OutputState or StandardOutputState
        Private data, for tests and checkpoints, never part of a model.

    Raises
    ------
    ValueError
        If the prefix has more than T steps.
    DataError
        If a store that was opened unread is damaged.
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
        **forced: float,
    ) -> None:
        self.n_steps = problem.n_steps
        n_prefix = 0 if prefix is None else len(prefix)
        if n_prefix > self.n_steps:
            raise ValueError(f"a prefix of {n_prefix} steps is given to a run of {self.n_steps}")
        self._problem, self._selector, self._stream = problem, selector, stream
        self._transcript = Transcript(
            np.zeros(self.n_steps, dtype=np.int64), np.zeros(self.n_steps, dtype=np.int8)
        )
        if prefix is not None:
            self._transcript.vertex[:n_prefix] = prefix.vertex
            self._transcript.sign[:n_prefix] = prefix.sign
        several = problem.loss.n_outputs > 1
        record_history, record_work = record_history and not several, record_work and not several
        self._recorded = record_history, record_work
        recorded = self.n_steps if record_history else 0
        self._outputs = (
            self._transcript.vertex,
            self._transcript.sign,
            (np.zeros(recorded), np.zeros(recorded)),
            work_table(self.n_steps if record_work else 0),
            n_prefix,
        )
        self._large_steps = large_steps_of(threads, **forced)
        self._tolerance = 0.0 if drift_tol is None else float(drift_tol)
        self.state: SparseState | StandardState | OutputState | StandardOutputState
        if several and solver == "sparse":
            self.state = start_outputs(problem, drift_tol, threads)
            index(selector, self.state.alpha)
            return
        if several:
            self.state = start_standard_outputs(problem, threads)
            return
        alpha = starting_alpha(problem, threads)
        if solver == "sparse":
            self.state = start_sparse(problem, alpha, drift_tol)
            index(selector, alpha)
        else:
            self.state = start_standard(problem, alpha)

    def begin(self) -> None:
        """Do nothing: nothing is counted before the first vertex."""

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1, both included."""
        if isinstance(self.state, OutputState | StandardOutputState):
            take_output_steps(
                self._problem,
                self.state,
                self._selector,
                self._stream,
                self._tolerance,
                first,
                last,
                self._outputs,
                self._large_steps.threads,
            )
        elif isinstance(self.state, StandardState):
            run_standard(
                self._problem,
                self.state,
                self._selector,
                self._stream,
                first,
                last,
                *self._outputs,
            )
        else:
            take_sparse_steps(
                self._problem,
                self.state,
                self._selector,
                self._stream,
                self._tolerance,
                first,
                last,
                self._outputs,
                self._large_steps,
            )

    def transcript(self, done: int | None = None) -> Transcript:
        """Return the first `done` vertices, by default all; a view that later steps leave alone."""
        whole = self._transcript
        return whole if done is None else Transcript(whole.vertex[:done], whole.sign[:done])

    def release(self, done: int | None = None) -> VertexRelease:
        """Return what the first `done` steps have drawn, by default all of them."""
        return release_of(self._problem, self.transcript(done))

    @property
    def history(self) -> History | None:
        """Objective and gap, where they were asked for."""
        return History(*self._outputs[2]) if self._recorded[0] else None

    @property
    def work(self) -> Work | None:
        """Work per step, where it was asked for."""
        return Work(*self._outputs[3].T) if self._recorded[1] else None


def release_of(problem: Problem, transcript: Transcript) -> VertexRelease:
    """Return the release of vertices drawn for a problem."""
    design = problem.design
    return VertexRelease(
        transcript=transcript,
        n_features=design.n_columns,
        l1_radius=problem.radius,
        feature_bound=design.bound,
        fit_intercept=design.intercept,
        late_start=problem.late_start,
        n_outputs=problem.loss.n_outputs,
    )


def solve(
    problem: Problem,
    selector: Any,
    stream: RandomStream,
    *,
    n_threads: int = 1,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> FrankWolfe:
    """Run T steps of Frank-Wolfe.

    `problem`, `selector`, `stream`, `**settings`: as in `FrankWolfe`.
    `n_threads`: threads of the run.
    `checkpoint`: called before the first step and after each chunk with the steps done and their
    transcript.
    `progress`: called between chunks with the steps done and T.

    Returns: done.
    """
    with thread_pool(n_threads) as threads:
        run = FrankWolfe(problem, selector, stream, threads=threads, **settings)
        keep = None if checkpoint is None else lambda done: checkpoint(done, run.transcript(done))
        run_in_chunks(run, checkpoint=keep, progress=progress)
    return run


def take_sparse_steps(
    problem: Problem,
    state: SparseState,
    selector: Any,
    stream: RandomStream,
    tolerance: float,
    first: int,
    last: int,
    outputs: tuple[Any, ...],
    large_steps: LargeSteps,
) -> None:
    """Take steps `first` to `last` of Algorithm 2, the large ones with all threads."""
    vertex, sign, history, work, n_prefix = outputs
    rows_large = large_rows(problem, large_steps)
    while first <= last:
        reached = run_sparse(
            problem,
            state,
            selector,
            stream,
            tolerance,
            first,
            last,
            vertex,
            sign,
            history,
            work,
            n_prefix,
            rows_large,
        )
        if reached == 0:
            refuse_damage()
        if reached > 0:
            return
        step = -reached
        take_large_step(
            problem,
            state,
            selector,
            vertex,
            large_steps,
            int(vertex[step - 1]),
            int(sign[step - 1]) * (step + problem.late_start + 1),
            step,
            tolerance,
            record=history[0].size > 0,
        )
        if work.shape[0]:
            record_work(work[step - 1], selector.counters, state.operation_counts)
        first = step + 1
