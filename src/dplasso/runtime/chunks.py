"""Drive a phase in chunks: progress between them, checkpoints, and a clean place for Ctrl-C."""

import time
from collections.abc import Callable, Collection
from typing import Any

_CHUNK_SECONDS = 0.1

Progress = Callable[[int, int], None]


def run_in_chunks(
    steps: Any,
    *,
    marks: Collection[int] = (),
    checkpoint: Callable[[int], None] | None = None,
    progress: Progress | None = None,
) -> None:
    """Take all steps (`dplasso.phases.contract.Steps`), about a tenth of a second at a time.

    A chunk ends at each of `marks` in any case. After each chunk, `checkpoint` is called with the
    steps done, then `progress` with these and T.
    """
    done, chunk = steps.done, 1
    while done < steps.n_steps:
        last = min([done + chunk, steps.n_steps, *(mark for mark in marks if mark > done)])
        began = time.perf_counter()
        steps.advance(done + 1, last)
        is_short = time.perf_counter() - began < _CHUNK_SECONDS
        done, chunk = last, 2 * chunk if is_short else max(1, chunk // 2)
        if checkpoint is not None:
            checkpoint(done)
        if progress is not None:
            progress(done, steps.n_steps)
