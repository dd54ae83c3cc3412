"""The compiler: kernels for each class of state, notices, and kernels that are out of date.

numba picks an implementation by the type of the state, a NamedTuple, when it compiles a caller.
Plain Python picks it by the class.

numba checks only the file a kernel is written in, not the files of the kernels it calls. So the
package stamps its sources, and drops its compiled kernels when the stamp no longer fits. Where the
package cannot be written to, numba is pointed to a folder of the user's that is named after the
stamp, or else to a private temporary folder.
"""

import atexit
import contextlib
import gc
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

from dplasso.runtime.progress import say, say_or_log

_IMPLEMENTATIONS: dict[tuple[str, type], Callable[..., Any]] = {}
COMPILING = (
    "compiling what this needs, once on this machine: on an idle one 5 to 10 s for a fit with "
    "defaults, 40 s with --method frank-wolfe"
)
# Seconds between two words about a compilation that lasts.
STILL = 20.0
# Rooms without kernels that no kernel may import: the direction of imports is checked.
ROOMS_WITHOUT_KERNELS = (
    *("cli", "audit", "checkpoint", "tuning", "estimators", "fit", "cluster", "ledger", "model"),
    *("encoding", "phases", "report"),
)
_VARIABLE = "NUMBA_CACHE_DIR"
# Places for a temporary folder: the system's, or memory if that is read-only too.
_TEMPORARY = (None, "/dev/shm")


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, and keep the result."""
    from numba import njit

    # No kernel is called from C, and the entry for that takes a twentieth of the time.
    options: dict[str, Any] = {"no_cfunc_wrapper": True}
    return njit(cache=True, nogil=True, **options)(function)


def implement(function: Callable[..., Any], state_class: type, kernel: Callable[..., Any]) -> None:
    """Have a kernel do what `function` is called for, for states of a class as first argument."""
    from numba import types
    from numba.extending import overload

    put_off_collecting()
    # For callers in plain Python.
    _IMPLEMENTATIONS[function.__name__, state_class] = kernel

    @overload(function, strict=False)
    def _implementation(state: Any, *_: Any) -> Any:
        is_named = isinstance(state, types.BaseNamedTuple)
        if is_named and getattr(state, "instance_class", None) is state_class:
            return lambda state, *arguments: kernel(state, *arguments)
        return None


def implementation(name: str, state: Any) -> Callable[..., Any]:
    """Return the kernel that does `name` for a state; raise TypeError if its class has none."""
    try:
        return _IMPLEMENTATIONS[name, type(state)]
    except KeyError:
        raise TypeError(f"no kernel {name!r} is registered for {type(state).__name__}") from None


@dataclass
class CompileTime:
    """Time spent so far on kernels that were compiled, not loaded from numba's cache on disk."""

    seconds: float = 0.0


@cache
def say_once() -> None:
    """Say once in a process why a fit takes long: on standard error, or else in the log."""
    line = (
        "dplasso: " + COMPILING.partition(",")[0] + ", once on this machine; verbose=0 hides this"
    )
    say_or_log(line)


@contextmanager
def announce_compilation(
    announce: Callable[[str], None], after: float = 0.0
) -> Iterator[CompileTime]:
    """Call `announce` when compiling has taken `after` seconds, and every `STILL` seconds."""
    from numba.core import event

    spent, begun, due = CompileTime(), list[float](), [after]

    class Listener(event.Listener):
        """A kernel is compiled inside the compilation of the kernel that calls it."""

        def on_start(self, _event: Any) -> None:
            begun.append(time.perf_counter())
            so_far = spent.seconds + begun[-1] - begun[0]
            if so_far >= due[0]:
                first = due[0] == after
                due[0] = so_far + STILL
                announce(COMPILING if first else f"still compiling, {so_far:.0f} s so far")

        def on_end(self, _event: Any) -> None:
            # Another thread may have begun before the listener was installed.
            began = begun.pop() if begun else time.perf_counter()
            if not begun:
                spent.seconds += time.perf_counter() - began

    with event.install_listener("numba:compile", Listener()):
        yield spent


@cache
def put_off_collecting() -> None:
    """From now on, collect no garbage while a kernel is compiled: a sixth of the time."""
    from numba.core import event

    begun: list[bool] = []

    class Listener(event.Listener):
        """The compiler holds a lock: one thread compiles at a time, a kernel inside another."""

        def on_start(self, _event: Any) -> None:
            begun.append(gc.isenabled())
            gc.disable()

        def on_end(self, _event: Any) -> None:
            if begun and begun.pop():
                gc.enable()

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]


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
    """Keep numba from loading kernels of other sources; return whether there were any.

    None of the package's kernels may have been imported yet.
    """
    try:
        root: Path | None = user_cache() / "kernels"
    except RuntimeError:  # a user without a home
        root = None
    if root in Path(os.environ.get(_VARIABLE, "")).parents:
        # A parent process of this package chose it for its own sources.
        _set_cache("")
    stamp, folders = source_stamp(package), [path.parent for path in package.rglob("__init__.py")]
    chosen = os.environ.get(_VARIABLE)
    if chosen and _takes_files(Path(chosen)):
        return _forget([_folder_in(Path(chosen), folder) for folder in sorted(folders)], stamp)
    caches = [folder / "__pycache__" for folder in sorted(folders)]
    if all(_is_writable(folder) for folder in folders):
        return _forget(caches, stamp)
    _drop(caches)
    if chosen:
        _keep_for_now(f"nor {chosen}")
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


def _forget(caches: list[Path], stamp: str) -> bool:
    """Drop kernels of other sources; return whether there may have been any."""
    record = caches[0] / "kernels.stamp"
    with contextlib.suppress(OSError):
        if record.read_text() == stamp:
            return False
    _drop(caches)
    with contextlib.suppress(OSError):
        record.parent.mkdir(exist_ok=True)
        record.write_text(stamp)
    return True


def _drop(caches: list[Path]) -> None:
    for folder in caches:
        for kernel in folder.glob("*.nb[ic]"):
            with contextlib.suppress(OSError):
                kernel.unlink()


def _folder_in(cache: Path, folder: Path) -> Path:
    """Return where numba keeps the kernels of a folder's sources in a folder of the user's."""
    place = folder.absolute()
    return cache / f"{place.name}_{sha1(str(place).encode()).hexdigest()}"


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
