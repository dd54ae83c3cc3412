"""A whole run of Frank-Wolfe on a problem, for tests and benchmarks of the solver alone."""

from collections.abc import Callable
from typing import Any

from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.solve import FrankWolfe
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.privacy.randomness import RandomStream
from dplasso.runtime.progress import Progress, run_in_chunks
from dplasso.runtime.threads import thread_pool


def solve(
    problem: Problem,
    selector: Any,
    stream: RandomStream,
    *,
    n_threads: int = 1,
    checkpoint: Callable[[int, Transcript], None] | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> FrankWolfe:
    """Run T steps of Frank-Wolfe; call `checkpoint` and `progress` after each chunk."""
    with thread_pool(n_threads) as threads:
        run = FrankWolfe(problem, selector, stream, threads=threads, **settings)
        keep = None if checkpoint is None else lambda done: checkpoint(done, run.transcript(done))
        run_in_chunks(run, checkpoint=keep, progress=progress)
    return run
