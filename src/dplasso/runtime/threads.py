"""How many cores and threads a run may use, and even parts of its work for them.

This file needs numpy and the standard library alone: evidence/machine.py runs it without the
package.
"""

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Threads:
    """The threads of a run: ``run(work)`` calls ``work(t)`` for each t and returns the results."""

    count: int
    run: Callable[[Callable[[int], Any]], list[Any]]


ONE_THREAD = Threads(1, lambda work: [work(0)])


@contextmanager
def thread_pool(n_threads: int) -> Iterator[Threads]:
    """Keep threads, at least 1, while the block runs."""
    if n_threads == 1:
        yield ONE_THREAD
        return
    with ThreadPoolExecutor(n_threads - 1) as pool:

        def run(work: Callable[[int], Any]) -> list[Any]:
            # The caller takes a part itself: handing one over costs as much as a small step.
            others = [pool.submit(work, t) for t in range(1, n_threads)]
            try:
                first = work(0)
            finally:
                # Waits for each, as `wait` does with more ado, and raises nothing yet.
                for other in others:
                    other.exception()
            return [first, *(other.result() for other in others)]

        yield Threads(n_threads, run)


def count_threads(n_jobs: int | None) -> int:
    """Return how many threads `n_jobs` asks for: -1 is all usable cores, None what joblib says."""
    if n_jobs is None:
        from joblib import effective_n_jobs

        return int(effective_n_jobs(None))
    return n_jobs if n_jobs > 0 else max(1, usable_cores() + 1 + n_jobs)


def cut(first: int, last: int, n_parts: int) -> NDArray[np.int64]:
    """Return the edges of `n_parts` even parts of a range."""
    return np.linspace(first, last, n_parts + 1).astype(np.int64)


def even_parts(indptr: NDArray[np.integer], n_parts: int) -> NDArray[np.int64]:
    """Return the edges of parts of rows (columns) with about equally many entries."""
    edges = np.searchsorted(indptr, cut(0, int(indptr[-1]), n_parts).astype(indptr.dtype))
    edges[0], edges[-1] = 0, indptr.size - 1
    return edges


def usable_cores(root: Path = Path("/")) -> int:
    """Return how many cores this process may use, by its affinity and CPU quota."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, math.ceil(min([cores, *_quotas(root)])))


def _quotas(root: Path) -> Iterator[float]:
    """Yield the quotas, in cores, of the process's control groups and of the groups around them."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        # Version 2 names no controllers. In a container the group may be where they are mounted.
        mount = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        for group in (PurePosixPath(name), *PurePosixPath(name).parents):
            folder = mount / group.relative_to("/")
            files = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
            try:
                quota, period = " ".join((folder / file).read_text() for file in files).split()
                if quota not in ("max", "-1"):
                    yield int(quota) / int(period)
            except (OSError, ValueError, ZeroDivisionError):
                continue
