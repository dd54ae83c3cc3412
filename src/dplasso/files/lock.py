"""A file that one process at a time may work on."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dplasso.errors import CheckpointError
from dplasso.files.atomic import check_writable


def sidecar_path(path: str | os.PathLike[str], ending: str) -> Path:
    """Name the helper file ``.NAME.ending`` beside a file.

    Parameters
    ----------
    path : path
        The file; a symbolic link is followed.
    ending : str
        Without the dot.

    Returns
    -------
    pathlib.Path
        There or not yet.
    """
    target = Path(os.path.realpath(path))
    return target.with_name(f".{target.name}.{ending}")


@contextmanager
def claim(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a checkpoint for this process alone while the block runs.

    Parameters
    ----------
    path : path
        The checkpoint, there or not yet. A file ``.NAME.lock`` beside it is locked; the lock goes
        with the process, however it ends.

    Raises
    ------
    CheckpointError
        If another process holds it.
    OSError
        If nothing can be written there.
    """
    check_writable(path)
    lock = sidecar_path(path, "lock")
    descriptor = _lock(lock)
    if descriptor is None:
        raise CheckpointError(
            f"{os.fspath(path)} is in use by another process: wait for it, or give each fit its "
            "own checkpoint."
        )
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _lock(lock: Path) -> int | None:
    """Open and lock a file; None where another process has it."""
    import fcntl  # POSIX only

    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                return None
            raise
        # Its last holder may have removed the file between our opening and our locking it.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), lock.stat()):
                return descriptor
        os.close(descriptor)
