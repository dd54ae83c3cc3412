"""The folder of a cluster that a process makes for itself: it holds the cluster's token."""

import atexit
import os
import shutil
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from dplasso.files.lock import hold
from dplasso.runtime.progress import say

_PREFIX = "dplasso-"
# Held, by a file beside it, as long as the process lives.
_HELD = "ray"


def own_folder() -> Path:
    """Make a folder that is closed to others, and is removed with the process.

    A process that is killed cannot remove its folder: the next one that makes one does, and says
    so.
    """
    _remove_orphans()
    kept = ExitStack()
    # Ray opens its folders to everybody, so the folder around them is closed.
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    kept.enter_context(hold(folder / _HELD, BlockingIOError(f"{folder} is in use")))
    kept.callback(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(kept.close)
    return folder


def _remove_orphans() -> None:
    for mark in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/.{_HELD}.lock"):
        folder = mark.parent
        # A folder that somebody else owns, or that the owner's process still holds, stays.
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with hold(folder / _HELD, BlockingIOError()):
                shutil.rmtree(folder)
                say(f"removed {folder}, with the token of a cluster whose process was killed")
