"""Forget compiled kernels when a source file that they may depend on has changed.

numba checks only the file a kernel is written in, not the files of the kernels it calls. A repaired
selection structure would go unnoticed by a training loop compiled before the repair, and that could
be a privacy repair. So the package stamps its sources, and drops its compiled kernels when the
stamp no longer fits.

Where the package cannot be written to, numba keeps kernels in a folder of the user's, which nobody
would clear. There numba is pointed to a folder named after the stamp: other sources find another
one. A cache moved elsewhere by ``NUMBA_CACHE_DIR`` is the user's to clear.
"""

import contextlib
import os
import shutil
import sys
from hashlib import sha256
from pathlib import Path

from dplasso.runtime.extras import user_cache

# Rooms without kernels that no kernel may import: the direction of imports is checked.
ROOMS_WITHOUT_KERNELS = (
    *("cli", "audit", "checkpoint", "tuning", "estimators", "fit", "cluster", "ledger", "model"),
    "encoding",
)
_VARIABLE = "NUMBA_CACHE_DIR"


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
    root = user_cache() / "kernels"
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
        record.write_text(stamp)
        return True
    if os.environ.get(_VARIABLE):
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


def _set_cache(place: str) -> None:
    os.environ[_VARIABLE] = place
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = place
