"""Room on the disk: held before the work whose result is to be written there, or lent to arrays."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dplasso.files.lock import hold, sidecar_path

_PIECE = bytes(2**20)
# What a file system says that cannot set room aside unwritten.
_UNABLE = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}


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
