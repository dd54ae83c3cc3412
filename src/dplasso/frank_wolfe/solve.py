"""Drive a solver's kernel in chunks: progress between them, and a clean place for Ctrl-C."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.frank_wolfe.gradient import add_shares
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.sparse import SparseState, run_sparse, start_sparse
from dplasso.frank_wolfe.standard import StandardState, run_standard, start_standard
from dplasso.frank_wolfe.transcript import History, Transcript
from dplasso.frank_wolfe.work import Work, work_table
from dplasso.privacy.randomness import RandomStream
from dplasso.selection.contract import rebuild

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


@njit(cache=True, nogil=True)
def _index(selector, alpha):
    rebuild(selector, alpha)


def starting_gradient(problem: Problem, n_threads: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute record and column gradients at zero weights.

    Parameters
    ----------
    problem : Problem
        The data.
    n_threads : int
        Threads to share the rows; the bits do not depend on it.

    Returns
    -------
    gradient : ndarray of float64, shape (N,)
        sigma(0) - y.
    alpha : ndarray of int64
        Column gradients in fixed point.
    """
    n_rows = problem.labels.size
    gradient = 0.5 - problem.labels
    n_coordinates = problem.n_columns + int(problem.intercept)
    edges = np.linspace(0, n_rows, n_threads + 1).astype(np.int64)

    def part(t: int) -> NDArray[np.int64]:
        alpha = np.zeros(n_coordinates, dtype=np.int64)
        add_shares(problem, edges[t], edges[t + 1], gradient, alpha)
        return alpha

    if n_threads == 1:
        return gradient, part(0)
    with ThreadPoolExecutor(n_threads) as pool:
        parts = pool.map(part, range(n_threads))
        alpha = next(parts)
        for other in parts:
            alpha += other
    return gradient, alpha


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
    progress: Progress | None = None,
    given: Transcript | None = None,
    checkpoint: Checkpoint | None = None,
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
        Threads for the set-up passes.
    progress : callable, optional
        Called between chunks with the steps done and T.
    given : Transcript, optional
        The first k <= T steps, taken rather than drawn: the run goes on from where the one that
        drew them was. The selector, told of all changes, draws as many times as in that run.
    checkpoint : callable, optional
        Called after each chunk, before `progress`, with the steps done and their transcript, a
        view that later steps leave alone.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        If more than T steps are given.
    """
    n_steps = problem.n_steps
    n_given = 0 if given is None else len(given)
    if n_given > n_steps:
        raise ValueError(f"{n_given} steps are given to a run of {n_steps}")
    gradient, alpha = starting_gradient(problem, n_threads)
    vertex = np.zeros(n_steps, dtype=np.int64)
    sign = np.zeros(n_steps, dtype=np.int8)
    if given is not None:
        vertex[:n_given], sign[:n_given] = given.vertex, given.sign
    recorded = n_steps if record_history else 0
    history = (np.zeros(recorded), np.zeros(recorded))
    work = work_table(n_steps if record_work else 0)
    outputs = (vertex, sign, history, work, n_given)
    state: SparseState | StandardState
    if solver == "sparse":
        state = start_sparse(problem, alpha, gradient, drift_tol is not None)
        tolerance = 0.0 if drift_tol is None else float(drift_tol)
        _index(selector, alpha)
    else:
        state = start_standard(alpha, gradient)
    done, chunk = 0, 1
    while done < n_steps:
        last = min(done + chunk, n_steps)
        began = time.perf_counter()
        if solver == "sparse":
            run_sparse(problem, state, selector, stream, tolerance, done + 1, last, *outputs)
        else:
            run_standard(problem, state, selector, stream, done + 1, last, *outputs)
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
