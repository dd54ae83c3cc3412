"""Drive a solver in chunks: progress between them, checkpoints, and a clean place for Ctrl-C."""

import time
from collections.abc import Callable, Collection
from typing import Protocol

_CHUNK_SECONDS = 0.1

Progress = Callable[[int, int], None]


class Solver(Protocol):
    """Anything that takes its steps when told to (docs/architecture.md, "The contracts")."""

    n_steps: int

    def begin(self) -> None:
        """Take step 0: draw the counts, if there are any, that the steps depend on."""

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1, both included."""


def run_in_chunks(
    solver: Solver,
    *,
    marks: Collection[int] = (),
    checkpoint: Callable[[int], None] | None = None,
    progress: Progress | None = None,
) -> None:
    """Take step 0 of a solver, then all others, about a tenth of a second at a time.

    A chunk ends at each of `marks` in any case. After step 0 and after each chunk, `checkpoint` is
    called with the steps done, and after a chunk then `progress` with these and T.
    """
    done, chunk = 0, 1
    solver.begin()
    if checkpoint is not None:
        checkpoint(0)
    while done < solver.n_steps:
        last = min([done + chunk, solver.n_steps, *(mark for mark in marks if mark > done)])
        began = time.perf_counter()
        solver.advance(done + 1, last)
        is_short = time.perf_counter() - began < _CHUNK_SECONDS
        done, chunk = last, 2 * chunk if is_short else max(1, chunk // 2)
        if checkpoint is not None:
            checkpoint(done)
        if progress is not None:
            progress(done, solver.n_steps)
