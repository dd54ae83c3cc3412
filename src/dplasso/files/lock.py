"""Places on disk that one process has for itself: by a lock, or as room that is held.

A lock ends with its process.
"""

import errno
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dplasso.errors import CheckpointError
from dplasso.files.atomic import check_writable

# Whoever only asks `is_held` holds the lock for a moment.
_PATIENCE_S = 0.2
_PAUSE_S = 0.002
_PIECE = bytes(2**20)
# Errors of file systems that cannot reserve space.
_UNABLE = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}


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


@contextmanager
def held_room(path: str | os.PathLike[str], size: int) -> Iterator[str]:
    """Hold room for a file until the block ends, in a temporary file whose name is given."""
    place, shown = sidecar_path(path, "tmp"), os.fspath(path)
    with hold(path, OSError(f"Cannot write {shown}: another process is about to write it.")):
        try:
            try:
                with place.open("wb") as file:
                    fill(file, size)
            except OSError as error:
                raise OSError(
                    error.errno,
                    f"Cannot write {shown}: it needs room for {size / 1e6:,.1f} MB at most, and "
                    f"there is none ({error.strerror}).",
                ) from error
            yield place.name
        finally:
            with suppress(OSError):
                place.unlink(missing_ok=True)


def fill(file: IO[bytes], size: int) -> None:
    """Give a file so many bytes of which each has its place on the disk."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in _UNABLE:
                raise
        else:
            return
    for begin in range(0, size, len(_PIECE)):
        file.write(_PIECE[: size - begin])


def scratch(near: Path, size: int, dtype: Any) -> NDArray[Any]:
    """Return an array in a temporary file beside `near`, or else where the system keeps them.

    It takes no memory that the system cannot take back. The file is its owner's alone, and gone
    when the array is, or the process.

    Raises OSError where there is no room for it.
    """
    dtype = np.dtype(dtype)
    if not size:
        return np.empty(0, dtype)
    for place in (os.fspath(near.parent), None):
        try:
            with tempfile.TemporaryFile(dir=place) as file:
                fill(file, size * dtype.itemsize)
                # Not the map itself: kernels are compiled for plain arrays.
                return np.memmap(file, dtype, "r+", shape=size).view(np.ndarray)
        except OSError as error:
            last = error
    raise OSError(
        last.errno,
        f"A fit of {near} needs room for {size * dtype.itemsize / 1e6:,.1f} MB while it lasts, and "
        f"there is none beside it or in the system's temporary folder ({last.strerror}); make "
        "room, or set TMPDIR to a folder that has it.",
    )
