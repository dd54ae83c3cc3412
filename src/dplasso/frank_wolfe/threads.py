"""The threads of a run, and even shares of work for them."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dplasso.errors import DataError
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.state import Scratch, new_scratch

# Rows each thread works through at a time.
SLAB_ROWS = 16384
# Steps whose rows have more entries than this between them are large.
LARGE_STEP_ENTRIES = 2**20
# From this part of all shares on, computing alpha anew is cheaper than replacing them.
RECOMPUTED_PART = 0.3
_DAMAGED = (
    "the store is damaged: an index lies outside the matrix, or a value is no number; look for the "
    "damage with `dplasso data info --verify`, and convert again"
)


@dataclass(frozen=True)
class Crew:
    """The threads of a run and what they work with.

    Attributes
    ----------
    n_threads : int
        Threads.
    run : callable
        ``run(work)`` calls ``work(t)`` for every thread t and returns the results in order.
    scratch : list of Scratch
        One for each thread.
    entries_large, part_recomputed : float
        `LARGE_STEP_ENTRIES` and `RECOMPUTED_PART`, or what a test forces.
    """

    n_threads: int
    run: Callable[[Callable[[int], Any]], list[Any]]
    scratch: list[Scratch]
    entries_large: float
    part_recomputed: float


@contextmanager
def crew(
    n_threads: int,
    *,
    entries_large: float = LARGE_STEP_ENTRIES,
    part_recomputed: float = RECOMPUTED_PART,
) -> Iterator[Crew]:
    """Keep threads for a run."""
    scratch = [new_scratch(SLAB_ROWS, 1) for _ in range(n_threads)]
    if n_threads == 1:
        yield Crew(1, lambda work: [work(0)], scratch, entries_large, part_recomputed)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield Crew(
            n_threads,
            lambda work: list(pool.map(work, range(n_threads))),
            scratch,
            entries_large,
            part_recomputed,
        )


def large_rows(problem: Problem, workers: Crew) -> int:
    """Return how many rows a step may look at before it counts as large."""
    mean = max(1.0, problem.rows.indices.size / max(1, problem.labels.size))
    return int(min(workers.entries_large / mean, 2.0**62))


def cut(first: int, last: int, n_parts: int) -> NDArray[np.int64]:
    """Return the edges of `n_parts` even parts of a range."""
    return np.linspace(first, last, n_parts + 1).astype(np.int64)


def even_parts(indptr: NDArray[np.integer], n_parts: int) -> NDArray[np.int64]:
    """Return the edges of parts of rows (columns) with about equally many entries."""
    edges = np.searchsorted(indptr, cut(0, int(indptr[-1]), n_parts).astype(indptr.dtype))
    edges[0], edges[-1] = 0, indptr.size - 1
    return edges


def refuse_damage() -> NoReturn:
    """Say that something in a store that was opened unread cannot be."""
    raise DataError(_DAMAGED)
