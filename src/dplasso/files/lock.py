"""Places on disk that one process at a time may work on; a lock ends with its process."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from dplasso.errors import CheckpointError
from dplasso.files.atomic import check_writable

# Whoever only asks `is_held` holds the lock for a moment.
_PATIENCE_S = 0.2
_PAUSE_S = 0.002


def lock(file: FileIO, refusal: Exception, *, seconds: float, shared: bool = False) -> None:
    """Lock an open file, which readers may share; `refusal` if others keep it for so long."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    deadline = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise refusal from None
        time.sleep(_PAUSE_S)


def unlock(file: FileIO) -> None:
    """End a lock. Closing is not enough: a process forked meanwhile holds the same open file."""
    fcntl.flock(file, fcntl.LOCK_UN)


def sidecar_path(path: str | os.PathLike[str], ending: str) -> Path:
    """Return the name of the helper file ``.NAME.ending`` beside a file, links followed."""
    target = Path(os.path.realpath(path))
    return target.with_name(f".{target.name}.{ending}")


@contextmanager
def hold(path: str | os.PathLike[str], refusal: Exception) -> Iterator[None]:
    """Hold a file or directory, there or not yet, for this process alone, by ``.NAME.lock``."""
    place = sidecar_path(path, "lock")
    file = None
    while file is None:
        try:
            file = FileIO(place, "a+")
        except OSError as error:
            raise OSError(
                error.errno,
                f"Cannot write {os.fspath(path)}: the folder {place.parent} cannot take a new file "
                f"({error.strerror}).",
            ) from error
        try:
            lock(file, refusal, seconds=_PATIENCE_S)
        except BaseException:
            file.close()
            raise
        if not os.fstat(file.fileno()).st_nlink:
            # The holder before has removed it: the lock on it is nobody's.
            file.close()
            file = None
    try:
        yield
    finally:
        place.unlink(missing_ok=True)
        unlock(file)
        file.close()


def is_held(path: str | os.PathLike[str]) -> bool:
    """Return whether a process holds `path` now, another user's process included."""
    refusal = BlockingIOError()
    try:
        with FileIO(sidecar_path(path, "lock"), "r+") as file:
            lock(file, refusal, seconds=0.0)
            unlock(file)
    except FileNotFoundError:
        return False
    except (BlockingIOError, PermissionError):
        return True
    return False


@contextmanager
def claim(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a checkpoint, there or not yet; CheckpointError if another process does."""
    check_writable(path)
    refusal = CheckpointError(
        f"{os.fspath(path)} is in use by another process: wait for it, or give each fit its own "
        "checkpoint."
    )
    with hold(path, refusal):
        yield
