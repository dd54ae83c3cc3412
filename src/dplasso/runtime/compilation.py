"""Tell people when they are waiting for the compiler, and how long it took."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from dplasso.runtime.progress import say_or_log

COMPILING = (
    "compiling what this needs, once on this machine: on an idle one 5 to 10 s for a fit with "
    "defaults, 40 s with --method frank-wolfe"
)
# Seconds between two words about a compilation that lasts.
STILL = 20.0


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
    """Call `announce` when compiling inside the block has taken `after` seconds, and every `STILL`.

    Kernels that are loaded from numba's cache on disk do not count. The time that is yielded grows.
    """
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
            # Another thread may have begun before there was anybody to listen.
            began = begun.pop() if begun else time.perf_counter()
            if not begun:
                spent.seconds += time.perf_counter() - began

    with event.install_listener("numba:compile", Listener()):
        yield spent


def put_off_collecting() -> None:
    """Collect no garbage while a kernel is compiled: that would take a sixth of the time."""
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
