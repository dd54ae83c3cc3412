"""Files that appear complete or not at all, and places on disk that one process holds.

A lock holds a place until its process ends. Files and folders with records are readable only for
their owner.
"""

import errno
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from io import FileIO
from pathlib import Path
from typing import IO, Any, BinaryIO

from dplasso.errors import CheckpointError, LedgerError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_DISK = {*_FULL, errno.EFBIG, errno.EIO}
# Rights of what is private.
_FILE, _FOLDER = 0o600, 0o700
_PAUSE_S = 0.002
_PIECE = bytes(2**20)
# How a database of SQLite begins, such as a ledger.
SQLITE = b"SQLite format 3\x00"
# Errors of file systems that cannot reserve space.
_UNABLE = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}


@cache
def program() -> str:
    """Return what writes files, stores and entries of a ledger, with its version."""
    return f"dplasso {version('dplasso')}"


def descriptor(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file as `os.open` does; a new one is readable for its owner only."""
    return os.open(path, flags, _FILE)


def open_private(path: Path, mode: str) -> Any:
    """Open a file as `open` does; a new one is readable for its owner only."""
    return open(path, mode, opener=descriptor)


def make_folder(path: Path) -> None:
    """Make a folder that only its owner can open, unless there is one."""
    path.mkdir(mode=_FOLDER, exist_ok=True)


@contextmanager
def report_disk_full(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file that the block writes in the error of a failed write."""
    try:
        yield
    except OSError as error:
        if error.errno is None or (error.filename is not None and error.errno not in _DISK):
            raise
        reason = error.strerror or str(error)
        if error.errno in _FULL and "full" not in reason:
            reason = "the disk is full"
        raise OSError(
            error.errno,
            f"Cannot write {os.fspath(path)}: {reason}. What was written of it has been removed.",
        ) from error


@contextmanager
def _new_file_in(folder: Path, path: str | os.PathLike[str]) -> Iterator[None]:
    """Say in an error of the block that a folder cannot take the file `path` or one beside it."""
    try:
        yield
    except OSError as error:
        # The kind of the error (permission, read-only, full) is kept, its wording is not.
        raise OSError(
            error.errno,
            f"Cannot write {os.fspath(path)}: the folder {folder} cannot take a new file "
            f"({error.strerror or error}).",
        ) from error


@contextmanager
def atomic_write(
    path: str | os.PathLike[str],
    *,
    temporary: str | None = None,
    replace: bool = True,
    private: bool = False,
) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` only if the block succeeds.

    The bytes go to a temporary file in the same directory, perhaps one that is named and
    overwritten. A `private` new file is readable for its owner only; a replaced file keeps its
    rights. Without `replace`, a file that appears meanwhile stays: FileExistsError.
    """
    target = _target(path)
    # Beside the target, so that the replacement is a rename within one file system.
    beside = target.with_name(temporary or f".dplasso-{secrets.token_hex(8)}.tmp")
    try:
        there = temporary is not None and beside.exists()
        opened: Callable[..., Any] = open_private if private else Path.open
        with _new_file_in(target.parent, path):
            held = opened(beside, "r+b" if there else "xb")
        with report_disk_full(path), held as file:
            yield file
            file.flush()
            file.truncate()
            os.fsync(file.fileno())
        if replace:
            if target.exists():
                shutil.copymode(target, beside)
            beside.replace(target)
        else:
            # A link, unlike a rename, never takes the place of another file.
            os.link(beside, target)
            beside.unlink()
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError if `atomic_write` could not write a file; leave nothing there."""
    target = _target(path)
    probe = target.with_name(f".dplasso-{secrets.token_hex(8)}.tmp")
    try:
        with _new_file_in(target.parent, path):
            probe.touch(exist_ok=False)
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


def _target(path: str | os.PathLike[str]) -> Path:
    """Resolve `path`, and refuse what no file may replace."""
    target = Path(os.path.realpath(path))
    shown = os.fspath(path)
    if target.is_dir():
        raise IsADirectoryError(f"Cannot write {shown}: it is a folder; name a file in it.")
    if target.exists():
        if not target.is_file():
            raise OSError(f"Cannot write {shown}: it is not a regular file.")
        if not os.access(target, os.W_OK):
            raise PermissionError(f"Cannot write {shown}: the file there is read-only.")
    elif not target.parent.is_dir():
        raise FileNotFoundError(
            f"Cannot write {shown}: there is no folder {target.parent}; create it first."
        )
    ledger = target.with_suffix("") if target.suffix == ".key" else target
    if ledger.is_file():
        with suppress(OSError), ledger.open("rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                raise LedgerError(
                    f"Cannot write {shown}: a ledger or its key has this name; choose another one"
                )
    return target


def sync_directory(directory: Path) -> None:
    """Make a rename survive a power failure, if the system can sync directories."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def lock(file: FileIO, refusal: Exception, *, seconds: float, shared: bool = False) -> None:
    """Lock an open file; raise `refusal` if others hold it for so long."""
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
    """End a lock explicitly, because a forked process may hold the same open file."""
    fcntl.flock(file, fcntl.LOCK_UN)


def sidecar_path(path: str | os.PathLike[str], ending: str) -> Path:
    """Return the name of the helper file ``.NAME.ending`` beside a file."""
    target = Path(os.path.realpath(path))
    return target.with_name(f".{target.name}.{ending}")


@contextmanager
def hold(path: str | os.PathLike[str], refusal: Exception) -> Iterator[None]:
    """Hold a file or directory, even a future one, for this process, by ``.NAME.lock``."""
    place = sidecar_path(path, "lock")
    file = None
    while file is None:
        with _new_file_in(place.parent, path):
            file = FileIO(place, "a+")
        try:
            lock(file, refusal, seconds=0.0)
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


@contextmanager
def claim(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a checkpoint; CheckpointError if another process does."""
    check_writable(path)
    refusal = CheckpointError(
        f"{os.fspath(path)} is in use by another process: wait for it, or give each fit its own "
        "checkpoint."
    )
    with hold(path, refusal):
        yield


def fill(file: IO[bytes], size: int) -> None:
    """Allocate space on the disk for so many bytes of a file."""
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
