"""Forget compiled kernels when a source file that they may depend on has changed.

numba checks only the file a kernel is written in, not the files of the kernels it calls. A repaired
selection structure would go unnoticed by a training loop compiled before the repair, and that could
be a privacy repair. So the package stamps its sources, and drops its compiled kernels when the
stamp no longer fits.

Where the package cannot be written to, numba keeps kernels in a folder of the user's, which nobody
would clear. There numba is pointed to a folder named after the stamp: other sources find another
one. A cache moved elsewhere by ``NUMBA_CACHE_DIR`` is the user's to clear.

Where that folder takes no file either, as in a hardened container, kernels are kept in a private
temporary folder for as long as the process runs, or not at all.
"""

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

from dplasso.runtime.progress import say

# Rooms without kernels that no kernel may import: the direction of imports is checked.
ROOMS_WITHOUT_KERNELS = (
    *("cli", "audit", "checkpoint", "tuning", "estimators", "fit", "cluster", "ledger", "model"),
    *("encoding", "phases", "report"),
)
_VARIABLE = "NUMBA_CACHE_DIR"
# Places for a temporary folder: the system's, or memory if that is read-only too.
_TEMPORARY = (None, "/dev/shm")


def user_cache() -> Path:
    """Return the folder in which the system keeps what this package can make or get again."""
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "dplasso"
    return Path(os.environ.get("XDG_CACHE_HOME", "").strip() or home / ".cache") / "dplasso"


def source_stamp(package: Path) -> str:
    """Return a digest of the names, sizes and times of the sources that kernels may depend on."""
    digest = sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in ROOMS_WITHOUT_KERNELS:
            status = path.stat()
            digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def drop_stale_kernels(package: Path) -> bool:
    """Keep numba from loading kernels below `package` that other sources were compiled to.

    None of the package's kernels may have been imported yet. Return whether there was anything to
    forget.
    """
    try:
        root: Path | None = user_cache() / "kernels"
    except RuntimeError:  # a user without a home
        root = None
    if root in Path(os.environ.get(_VARIABLE, "")).parents:
        # A parent process of this package chose it for its own sources.
        _set_cache("")
    stamp, record = source_stamp(package), package / "__pycache__" / "kernels.stamp"
    is_writable = all(_is_writable(path.parent) for path in package.rglob("__init__.py"))
    with contextlib.suppress(OSError):
        if record.read_text() == stamp and is_writable:
            return False
    for kernel in package.rglob("__pycache__/*.nb[ic]"):
        with contextlib.suppress(OSError):
            kernel.unlink()
    if is_writable:
        with contextlib.suppress(OSError):
            record.write_text(stamp)
        return True
    if given := os.environ.get(_VARIABLE):
        if not _takes_files(Path(given)):
            _keep_for_now(f"nor {given}")
        return False
    if root is None or not _takes_files(root):
        _keep_for_now("nor the user's cache" if root is None else f"nor {root}")
        return False
    # Kernels of these sources alone are kept in the user's folder.
    home = root / sha256(str(package.resolve()).encode()).hexdigest()[:16]
    stale = [folder for folder in home.glob("*") if folder.name != stamp]
    for folder in stale:
        shutil.rmtree(folder, ignore_errors=True)
    _set_cache(str(home / stamp))
    return bool(stale)


def _is_writable(folder: Path) -> bool:
    """Return whether numba would keep the kernels of a folder's sources beside them."""
    cache = folder / "__pycache__"
    try:
        cache.mkdir(exist_ok=True)
    except OSError:
        return False
    return os.access(cache, os.W_OK | os.X_OK)


def _takes_files(folder: Path) -> bool:
    """Return whether a folder, made if it is not there, takes a file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _keep_for_now(nor: str) -> None:
    """Keep kernels in a private temporary folder, which this process removes, or nowhere."""
    for place in _TEMPORARY:
        with contextlib.suppress(OSError):
            folder = tempfile.mkdtemp(prefix="dplasso-kernels-", dir=place)
            atexit.register(_remove, folder, os.getpid())
            _set_cache(folder)
            break
    else:
        from numba.core.dispatcher import Dispatcher

        # numba refuses to define a kernel that it finds no folder for.
        setattr(Dispatcher, "enable_caching", lambda _: None)  # noqa: B010
    say(
        f"dplasso: neither its own folder {nor} can be written to, so every process compiles "
        f"anew; set {_VARIABLE} to a folder that can"
    )


def _remove(folder: str, process: int) -> None:
    # Processes forked from this one leave it to this one.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _set_cache(place: str) -> None:
    os.environ[_VARIABLE] = place
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = place
