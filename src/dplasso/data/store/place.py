"""Where a store is put: beside its place while it is written, renamed when it is complete."""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dplasso.data.store.format import ARRAY_DTYPES, HEADER_FILE, LABELS, PARTIAL_SUFFIX, array_file
from dplasso.errors import StoreError

REPLACED_SUFFIX = ".replaced"
OFFSETS_FILE = "offsets.tmp"
_WRITER_FILE = "writer.pid"
_ARRAYS = (*ARRAY_DTYPES, LABELS)
_STORE_FILES = {HEADER_FILE, *(array_file(Path(), name).name for name in _ARRAYS)}
_UNFINISHED_FILES = (
    _STORE_FILES
    | {_WRITER_FILE, OFFSETS_FILE}
    | {array_file(Path(), name).with_suffix(".recast").name for name in _ARRAYS}
)
_LOCK_TRIES, _LOCK_PAUSE = 4, 0.05
_FULL = {errno.ENOSPC, errno.EDQUOT}


def partial_directory(path: Path) -> Path:
    """Return where the store `path` is while it is written."""
    return path.with_name(path.name + PARTIAL_SUFFIX)


def check_place(path: Path, *, force: bool) -> None:
    """Refuse a place where no store can be put, before the work.

    Parameters
    ----------
    path : Path
        Where the store shall be.
    force : bool
        Whether an existing store may be replaced. Nothing but a store ever is.

    Raises
    ------
    StoreError
        If something else is there, or a store and `force` is false.
    OSError
        If the directory around it is missing.
    """
    if path.name.endswith((PARTIAL_SUFFIX, REPLACED_SUFFIX)) or not path.name:
        raise StoreError(
            f"{path} is no name for a store: {PARTIAL_SUFFIX} and {REPLACED_SUFFIX} mark "
            "unfinished ones"
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"Cannot write {path}: there is no directory {path.parent}; create it first."
        )
    if path.exists() and not path.is_dir():
        raise StoreError(f"{path} exists and is not a store; it will not be replaced")
    if not path.exists():
        return
    files = {entry.name for entry in path.iterdir()}
    if files and not (HEADER_FILE in files and files <= _STORE_FILES):
        raise StoreError(f"{path} is a directory with other files; it will not be replaced")
    if files and not force:
        raise StoreError(f"{path} exists already; replace it with --force")


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Make an empty directory beside `path`, for this process alone, and remove it on failure.

    Whatever a killed process left there is removed first.

    Parameters
    ----------
    path : Path
        Where the store shall be in the end; `put_in_place` moves it there.

    Yields
    ------
    Path
        The directory.

    Raises
    ------
    StoreError
        If another process is writing the same store, or foreign files are in the way.
    OSError
        If there can be no directory here.
    """
    partial = partial_directory(path)
    descriptor = _lock(partial, path)
    try:
        strange = sorted({entry.name for entry in partial.iterdir()} - _UNFINISHED_FILES)
        if strange:
            raise StoreError(
                f"{partial} holds {strange[0]}, which no conversion wrote; move it away first"
            )
        try:
            _restore_replaced(path)
            for entry in partial.iterdir():
                entry.unlink()
            (partial / _WRITER_FILE).write_text(f"{os.getpid()}\n")
            yield partial
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    finally:
        os.close(descriptor)


def _lock(partial: Path, path: Path) -> int:
    """Lock the directory, by the system: the lock of a killed process is gone with it."""
    refusals = 0
    while True:
        try:
            with suppress(FileExistsError):
                partial.mkdir()
        except OSError as error:
            raise OSError(
                error.errno,
                f"Cannot write {path}: the directory {path.parent} takes no new directory "
                f"({error.strerror}).",
            ) from error
        try:
            descriptor = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue  # the other process has just moved or removed it
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_same(partial, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            # Whoever only asks `is_being_written` holds the lock for a moment.
            if (refusals := refusals + 1) < _LOCK_TRIES:
                time.sleep(_LOCK_PAUSE)
                continue
            raise StoreError(f"{path} is being written by {writer(partial)}; wait for it") from None
        os.close(descriptor)


def _is_same(directory: Path, descriptor: int) -> bool:
    """Tell whether a directory is still the one that was opened: a finished store has moved."""
    try:
        return os.path.samestat(directory.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def writer(partial: Path) -> str:
    """Name the process that writes an unfinished store."""
    try:
        return f"process {int((partial / _WRITER_FILE).read_text())}"
    except (OSError, ValueError):
        return "another process"


def is_being_written(path: Path) -> bool:
    """Tell whether a process is writing the store `path` now."""
    try:
        descriptor = os.open(partial_directory(path), os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def put_in_place(partial: Path, path: Path) -> None:
    """Move a complete store to its place; the one that is there goes only after that.

    Parameters
    ----------
    partial : Path
        What `unfinished` made, complete and on the disk.
    path : Path
        Its place.
    """
    (partial / _WRITER_FILE).unlink()
    sync_directory(partial)
    if not path.exists():
        partial.rename(path)
        sync_directory(path.parent)
        return
    replaced = path.with_name(path.name + REPLACED_SUFFIX)
    path.rename(replaced)
    try:
        partial.rename(path)
    except BaseException:
        replaced.rename(path)
        raise
    sync_directory(path.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def _restore_replaced(path: Path) -> None:
    """Undo, or finish, a replacement that was cut off between its two renames."""
    replaced = path.with_name(path.name + REPLACED_SUFFIX)
    if not replaced.is_dir():
        return
    if {entry.name for entry in replaced.iterdir()} <= _STORE_FILES:
        if path.exists():
            shutil.rmtree(replaced)
        else:
            replaced.rename(path)


@contextmanager
def report_disk_full(path: Path) -> Iterator[None]:
    """Say of which store a failed write was, and that nothing of it is left."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _FULL and "full" not in reason:
            reason = "the disk is full"
        raise OSError(
            error.errno or errno.EIO,
            f"Cannot write {path}: {reason}. What was written of it has been removed.",
        ) from error


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
