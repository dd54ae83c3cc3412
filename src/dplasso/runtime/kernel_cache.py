"""Forget compiled kernels when any source file of the package has changed.

numba checks only the file a kernel is written in, not the files of the kernels it calls. A repaired
selection structure would go unnoticed by a training loop compiled before the repair, and that could
be a privacy repair. So the package stamps its sources, and drops its compiled kernels when the
stamp no longer fits. A cache moved elsewhere by ``NUMBA_CACHE_DIR`` is the user's to clear.
"""

import contextlib
from hashlib import sha256
from pathlib import Path

_STAMP = "kernels.stamp"


def source_stamp(package: Path) -> str:
    """Return a digest of the names, sizes and times of all source files below `package`."""
    digest = sha256()
    for path in sorted(package.rglob("*.py")):
        status = path.stat()
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def drop_stale_kernels(package: Path) -> bool:
    """Delete numba's index files below `package` if its sources are not the stamped ones.

    Parameters
    ----------
    package : Path
        Folder of the package.

    Returns
    -------
    bool
        Whether there was anything to forget.
    """
    stamp = source_stamp(package)
    record = package / "__pycache__" / _STAMP
    # An installation that cannot be written to keeps no kernels here either.
    with contextlib.suppress(OSError):
        if record.exists() and record.read_text() == stamp:
            return False
        for index in package.rglob("__pycache__/*.nbi"):
            index.unlink(missing_ok=True)
        record.parent.mkdir(exist_ok=True)
        record.write_text(stamp)
        return True
    return False
