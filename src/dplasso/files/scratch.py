"""Room for arrays in a file without a name, which the system takes back whatever happens."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.files.room import fill


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
