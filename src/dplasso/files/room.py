"""Room on the disk, held before the work whose result is to be written there."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

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
