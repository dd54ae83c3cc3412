"""The compiler: kernels for each class of state, notices, and kernels that are out of date.

numba picks an implementation by the type of the state, a NamedTuple, when it compiles a caller.
Plain Python picks it by the class.

numba checks only the file a kernel is written in, not the files of the kernels it calls. So the
package stamps its sources, and drops its compiled kernels when the stamp no longer fits. Where the
package cannot be written to, or if `NUMBA_CACHE_DIR` names a folder, numba is pointed to a folder
that is named after the stamp.
"""

import contextlib
import gc
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from dplasso.runtime.progress import say, say_or_log

_IMPLEMENTATIONS: dict[tuple[str, type], Callable[..., Any]] = {}
COMPILING = (
    "compiling what this needs, once on this machine: on an idle one 5 to 10 s for a fit with "
    "defaults, 40 s with --method frank-wolfe"
)
# Rooms without kernels that no kernel may import: the direction of imports is checked.
ROOMS_WITHOUT_KERNELS = (
    *("cli", "audit", "checkpoint", "tuning", "estimators", "fit", "cluster", "ledger", "model"),
    *("encoding", "phases", "report"),
)
_VARIABLE, _FOLDER = "NUMBA_CACHE_DIR", "dplasso-kernels"


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, and keep the result."""
    from numba import njit

    # No kernel is called from C, and the entry for that takes a twentieth of the time.
    options: dict[str, Any] = {"no_cfunc_wrapper": True}
    made = njit(cache=True, nogil=True, **options)(function)
    file = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if file is not None:
        # numba counts the types that a kernel is compiled for. Two processes that compile it for
        # two types at a time give both one number, and one type would run the code of the other.
        pattern = file._data_name_pattern
        file._data_name = lambda _: pattern.format(number=secrets.randbits(62))
        file.save = partial(_saved, file.save)
    return made


def _saved(save: Callable[..., None], *compiled: Any) -> None:
    """Keep what was compiled, unless the disk is full: that must not end a paid fit."""
    with contextlib.suppress(OSError):
        save(*compiled)


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
    """Call `announce` once, when compiling has taken `after` seconds."""
    from numba.core import event

    spent, begun, left = CompileTime(), list[float](), [announce]

    class Listener(event.Listener):
        """A kernel is compiled inside the compilation of the kernel that calls it."""

        def on_start(self, _event: Any) -> None:
            begun.append(time.perf_counter())
            if left and spent.seconds + begun[-1] - begun[0] >= after:
                left.pop()(COMPILING)

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
    stamp, chosen = source_stamp(package), os.environ.get(_VARIABLE)
    caches = [path.parent / "__pycache__" for path in sorted(package.rglob("__init__.py"))]
    if not chosen and all(map(_is_writable, caches)):
        return _forget(caches, stamp)
    own = f"{sha256(str(package.resolve()).encode()).hexdigest()[:16]}-"
    try:
        home = Path(chosen) if chosen else _user_cache()
        # A parent process of this package may have chosen it, for its own sources.
        home = home.parent if home.parent.name == _FOLDER else home / _FOLDER
        folder = home / f"{own}{stamp}"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            stale = [other for other in home.glob(f"{own}*") if other != folder]
    except (OSError, RuntimeError):  # a user without a home
        _compile_always(chosen or "the user's cache")
        return False
    for other in stale:
        shutil.rmtree(other, ignore_errors=True)
    os.environ[_VARIABLE] = str(folder)
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = str(folder)
    return bool(stale)


def _user_cache() -> Path:
    """Return the folder in which the system keeps what a program can make again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME", "").strip() or Path.home() / ".cache")


def _is_writable(cache: Path) -> bool:
    """Return whether numba would keep kernels in a folder beside the sources."""
    with contextlib.suppress(OSError):
        cache.mkdir(exist_ok=True)
    return os.access(cache, os.W_OK | os.X_OK)


def _forget(caches: list[Path], stamp: str) -> bool:
    """Drop kernels of other sources; return whether there may have been any."""
    record = caches[0] / "kernels.stamp"
    with contextlib.suppress(OSError):
        if record.read_text() == stamp:
            return False
    for kernel in chain.from_iterable(folder.glob("*.nb[ic]") for folder in caches):
        with contextlib.suppress(OSError):
            kernel.unlink()
    with contextlib.suppress(OSError):
        record.write_text(stamp)
    return True


def _compile_always(place: str) -> None:
    from numba.core.dispatcher import Dispatcher

    # numba refuses to define a kernel that it finds no folder for.
    setattr(Dispatcher, "enable_caching", lambda _: None)  # noqa: B010
    say(
        f"dplasso: neither its own folder nor {place} can be written to, so every process compiles "
        f"anew; set {_VARIABLE} to a folder that can"
    )
