"""Work in pieces that know nothing of each other: files to convert, stores to predict.

Unlike a step of a fit, a piece draws nothing: an engine may repeat it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from dplasso.cluster.ray_engine import connect
from dplasso.errors import ClusterError

# Pieces one after the other, in this process.
THREADS = "threads"


def run_tasks(
    address: str,
    work: Callable[..., Any],
    pieces: Sequence[tuple[Any, ...]],
    progress: Callable[[int, int], None] | None = None,
    *,
    threads: int = 1,
) -> list[Any]:
    """Return what comes of each piece: of `work` called with its arguments.

    `address`: of a cluster, as of `RayEngine`; "threads" for this process.
    `work`: a function of an importable module.
    `progress`: called with the pieces done and their number.
    `threads`: cores that a piece uses on a cluster.

    Raises ClusterError if there is no such cluster, or a piece could not be done because its
    machine was lost again and again. What a piece raises is raised.
    """
    tell = progress or (lambda *_: None)
    found = []
    if address == THREADS:
        for piece in pieces:
            found.append(work(*piece))
            tell(len(found), len(pieces))
        return found
    ray = connect(address)
    task = ray.remote(work).options(num_cpus=threads, max_retries=3)
    references = [task.remote(*piece) for piece in pieces]
    waiting = list(references)
    try:
        while waiting:
            _, waiting = ray.wait(waiting)
            tell(len(pieces) - len(waiting), len(pieces))
        return list(ray.get(references))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"a piece of the work could not be done: {str(error).splitlines()[0]}"
        ) from None
