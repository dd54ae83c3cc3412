"""Places on disk that one process at a time may work on; a lock ends with its process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dplasso.errors import CheckpointError
from dplasso.files.atomic import check_writable

# Whoever only asks `is_held` holds the lock for a moment.
_PATIENCE_S = 0.2


def sidecar_path(path: str | os.PathLike[str], ending: str) -> Path:
    """Return the name of the helper file ``.NAME.ending`` beside a file.

    `path`: the file; a symbolic link is followed.
    `ending`: without the dot.

    Returns: there or not yet.
    """
    target = Path(os.path.realpath(path))
    return target.with_name(f".{target.name}.{ending}")


@contextmanager
def hold(path: str | os.PathLike[str], refusal: Exception) -> Iterator[None]:
    """Hold a file or directory for this process alone while the block runs.

    `path`: what is held, there or not yet; the file ``.NAME.lock`` beside it is locked.
    `refusal`: raised if another process holds it.

    Raises OSError if there can be no file beside it.
    """
    from filelock import FileLock, Timeout

    file = sidecar_path(path, "lock")
    lock = FileLock(file)
    try:
        lock.acquire(timeout=_PATIENCE_S)
    except Timeout:
        raise refusal from None
    except OSError as error:
        raise OSError(
            error.errno,
            f"Cannot write {os.fspath(path)}: the folder {file.parent} cannot take a new file "
            f"({error.strerror}).",
        ) from error
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        lock.release()


def is_held(path: str | os.PathLike[str]) -> bool:
    """Return whether a process holds `path` now, another user's process included."""
    from filelock import FileLock, Timeout

    file = sidecar_path(path, "lock")
    if not file.exists():
        return False
    try:
        with FileLock(file, timeout=0):
            return False
    except (Timeout, PermissionError):
        return True


@contextmanager
def claim(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a checkpoint for this process alone while the block runs.

    `path`: the checkpoint, there or not yet.

    Raises CheckpointError if another process holds it; OSError if nothing can be written there.
    """
    check_writable(path)
    refusal = CheckpointError(
        f"{os.fspath(path)} is in use by another process: wait for it, or give each fit its own "
        "checkpoint."
    )
    with hold(path, refusal):
        yield
