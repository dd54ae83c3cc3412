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
_STAMP = "kernels.stamp"
_VARIABLE = "NUMBA_CACHE_DIR"


def source_stamp(package: Path) -> str:
    """Return a digest of the names, sizes and times of the sources that kernels may depend on."""
    digest = sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] in ROOMS_WITHOUT_KERNELS:
            continue
        status = path.stat()
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def drop_stale_kernels(package: Path) -> bool:
    """Keep numba from loading kernels below `package` that other sources were compiled to.

    None of the package's kernels may have been imported yet. Return whether there was anything to
    forget.
    """
    _forget_inherited_cache()
    stamp = source_stamp(package)
    record = package / "__pycache__" / _STAMP
    with contextlib.suppress(OSError):
        if record.read_text() == stamp and _are_writable(package):
            return False
    for kind in ("nbi", "nbc"):
        for kernel in package.rglob(f"__pycache__/*.{kind}"):
            with contextlib.suppress(OSError):
                kernel.unlink()
    if not _are_writable(package):
        return _use_cache_of_user(package, stamp)
    record.write_text(stamp)
    return True


def _are_writable(package: Path) -> bool:
    return all(_is_writable(path.parent) for path in package.rglob("__init__.py"))


def _is_writable(folder: Path) -> bool:
    """Return whether numba would keep the kernels of a folder's sources beside them."""
    cache = folder / "__pycache__"
    try:
        cache.mkdir(exist_ok=True)
    except OSError:
        return False
    return os.access(cache, os.W_OK | os.X_OK)


def _use_cache_of_user(package: Path, stamp: str) -> bool:
    """Point numba, in this process, to kernels of these sources alone; drop those of others."""
    if os.environ.get(_VARIABLE):
        return False
    home = _cache_root() / sha256(str(package.resolve()).encode()).hexdigest()[:16]
    stale = [folder for folder in home.glob("*") if folder.name != stamp]
    for folder in stale:
        shutil.rmtree(folder, ignore_errors=True)
    _set_cache(str(home / stamp))
    return bool(stale)


def _forget_inherited_cache() -> None:
    """Undo what a parent process of this package has chosen for its own sources."""
    chosen = os.environ.get(_VARIABLE)
    if chosen and _cache_root() in Path(chosen).parents:
        _set_cache("")


def _set_cache(place: str) -> None:
    os.environ[_VARIABLE] = place
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = place


def _cache_root() -> Path:
    return user_cache() / "kernels"
