"""Files and folders that hold records, or what the curator alone may see: their owner's alone.

The system's umask may take rights away, but gives none. A public model and a page keep the umask.
"""

import os
from pathlib import Path
from typing import Any

_FILE, _FOLDER = 0o600, 0o700


def descriptor(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file as `os.open` does; one that is made is closed to others."""
    return os.open(path, flags, _FILE)


def open_private(path: Path, mode: str) -> Any:
    """Open a file as `open` does; one that is made is closed to others."""
    return open(path, mode, opener=descriptor)


def make_folder(path: Path) -> None:
    """Make a folder that is closed to others, unless there is one."""
    path.mkdir(mode=_FOLDER, exist_ok=True)
