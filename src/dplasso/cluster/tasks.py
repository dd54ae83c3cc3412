"""Work in pieces that know nothing of each other: files to convert, stores to predict.

Unlike a step of a fit, a piece draws nothing: an engine may repeat it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from dplasso.cluster.ray_engine import connect
from dplasso.cluster.room import Room
from dplasso.errors import ClusterError
from dplasso.runtime.progress import say

# Pieces one after the other, in this process.
THREADS = "threads"
# Seconds without a piece done after which it is said what is waited for.
_SAY = 60.0


def run_tasks(
    address: str,
    work: Callable[..., Any],
    pieces: Sequence[tuple[Any, ...]],
    progress: Callable[[int, int], None] | None = None,
    *,
    threads: int = 1,
    open_cluster: bool = False,
) -> list[Any]:
    """Return what comes of each piece: of `work`, from an importable module, called with it.

    `address`: of a cluster, as of `RayEngine`; "threads" for this process.
    `threads`: cores that a piece uses on a cluster, at most those of its largest machine.
    """
    tell = progress or (lambda *_: None)
    found = []
    if address == THREADS:
        for piece in pieces:
            found.append(work(*piece))
            tell(len(found), len(pieces))
        return found
    ray = connect(address, open_cluster=open_cluster)
    room = Room(ray, len(pieces), threads)
    task = ray.remote(work).options(num_cpus=room.largest, max_retries=3)
    references = [task.remote(*piece) for piece in pieces]
    waiting = list(references)
    try:
        while waiting:
            done, waiting = ray.wait(waiting, timeout=_SAY)
            tell(len(pieces) - len(waiting), len(pieces))
            if not done:
                say(f"waiting for {len(waiting)} of {len(pieces)} pieces: {room.told()}")
        return list(ray.get(references))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"a piece of the work could not be done: {str(error).splitlines()[0]}"
        ) from None
