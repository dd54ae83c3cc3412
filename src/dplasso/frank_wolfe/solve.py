"""Drive a solver's kernel in chunks: progress between them, and a clean place for Ctrl-C."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dplasso.frank_wolfe.column_gradients import starting_alpha
from dplasso.frank_wolfe.large_step import index, take_large_step
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.sparse import run_sparse
from dplasso.frank_wolfe.standard import StandardState, run_standard, start_standard
from dplasso.frank_wolfe.state import SparseState, start_sparse
from dplasso.frank_wolfe.threads import Crew, crew, large_rows, refuse_damage
from dplasso.frank_wolfe.transcript import History, Transcript
from dplasso.frank_wolfe.work import Work, record_work, work_table
from dplasso.privacy.randomness import RandomStream

SOLVERS = ("sparse", "standard")
_CHUNK_SECONDS = 0.1

Progress = Callable[[int, int], None]
Checkpoint = Callable[[int, Transcript], None]


@dataclass(frozen=True)
class Solution:
    """What a run leaves behind.

    Attributes
    ----------
    transcript : Transcript
        The vertices chosen.
    history : History or None
        Objective and gap, where they were asked for.
    work : Work or None
        Work per step, where it was asked for.
    state : SparseState or StandardState
        The final state: private data, for tests and checkpoints, never part of a model.
    """

    transcript: Transcript
    history: History | None
    work: Work | None
    state: SparseState | StandardState


def solve(
    problem: Problem,
    selector: Any,
    stream: RandomStream,
    *,
    solver: str = "sparse",
    drift_tol: float | None = 0.0,
    record_history: bool = False,
    record_work: bool = False,
    n_threads: int = 1,
    given: Transcript | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
    **forced: Any,
) -> Solution:
    """Run T steps of Frank-Wolfe.

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
        Keep objective and gap; count the work. Both are functions of the private data.
    n_threads : int
        Threads for the set-up and for steps that touch many rows; the bits do not depend on it.
    given : Transcript, optional
        The first k <= T steps, taken rather than drawn: the run goes on from where the one that
        drew them was. The selector, told of all changes, draws as many times as in that run.
    checkpoint : callable, optional
        Called after each chunk, before `progress`, with the steps done and their transcript, a
        view that later steps leave alone.
    progress : callable, optional
        Called between chunks with the steps done and T.
    **forced
        `entries_large` and `part_recomputed` of `dplasso.frank_wolfe.threads.crew`, for tests.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        If more than T steps are given.
    """
    n_steps = problem.n_steps
    vertex = np.zeros(n_steps, dtype=np.int64)
    sign = np.zeros(n_steps, dtype=np.int8)
    n_given = 0 if given is None else len(given)
    if n_given > n_steps:
        raise ValueError(f"{n_given} steps are given to a run of {n_steps}")
    if given is not None:
        vertex[:n_given], sign[:n_given] = given.vertex, given.sign
    recorded = n_steps if record_history else 0
    history = (np.zeros(recorded), np.zeros(recorded))
    work = work_table(n_steps if record_work else 0)
    outputs = (vertex, sign, history, work, n_given)
    with crew(n_threads, **forced) as workers:
        alpha = starting_alpha(problem, workers)
        state: SparseState | StandardState
        if solver == "sparse":
            state = start_sparse(problem, alpha, drift_tol)
            index(selector, alpha)
        else:
            state = start_standard(alpha, problem.labels)
        tolerance = 0.0 if drift_tol is None else float(drift_tol)
        done, chunk = 0, 1
        while done < n_steps:
            last = min(done + chunk, n_steps)
            began = time.perf_counter()
            if isinstance(state, StandardState):
                run_standard(problem, state, selector, stream, done + 1, last, *outputs)
            else:
                take_sparse_steps(
                    problem, state, selector, stream, tolerance, done + 1, last, outputs, workers
                )
            if time.perf_counter() - began < _CHUNK_SECONDS:
                chunk *= 2
            elif chunk > 1:
                chunk //= 2
            done = last
            if checkpoint is not None:
                checkpoint(done, Transcript(vertex[:done], sign[:done]))
            if progress is not None:
                progress(done, n_steps)
    return Solution(
        Transcript(vertex, sign),
        History(*history) if record_history else None,
        Work(*work.T) if record_work else None,
        state,
    )


def take_sparse_steps(
    problem: Problem,
    state: SparseState,
    selector: Any,
    stream: RandomStream,
    tolerance: float,
    first: int,
    last: int,
    outputs: tuple[Any, ...],
    workers: Crew,
) -> None:
    """Take steps `first` to `last` of Algorithm 2, the large ones with all threads."""
    vertex, sign, history, work, n_given = outputs
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
            n_given,
            large_rows(problem, workers),
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
            workers,
            int(vertex[step - 1]),
            int(sign[step - 1]) * (step + 1),
            step,
            tolerance,
            record=history[0].size > 0,
        )
        if work.shape[0]:
            record_work(work[step - 1], selector.counters, state.operation_counts)
        first = step + 1
