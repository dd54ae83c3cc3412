"""Tell people when they are waiting for the compiler, and how long it took."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

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


@contextmanager
def announce_compilation(announce: Callable[[str], None]) -> Iterator[CompileTime]:
    """Call `announce` with `COMPILING` when a kernel has to be compiled inside the block.

    It is called again, with the time so far, where that lasts. Kernels that are loaded from numba's
    cache on disk do not count. The time that is yielded grows.
    """
    from numba.core import event

    spent, begun, told = CompileTime(), list[float](), [0.0]

    class Listener(event.Listener):
        """A kernel is compiled inside the compilation of the kernel that calls it."""

        def on_start(self, _event: Any) -> None:
            if not begun and not spent.seconds:
                announce(COMPILING)
            begun.append(time.perf_counter())
            so_far = spent.seconds + begun[-1] - begun[0]
            if so_far > told[0] + STILL:
                told[0] = so_far
                announce(f"still compiling, {so_far:.0f} s so far")

        def on_end(self, _event: Any) -> None:
            # Another thread may have begun before there was anybody to listen.
            began = begun.pop() if begun else time.perf_counter()
            if not begun:
                spent.seconds += time.perf_counter() - began

    with event.install_listener("numba:compile", Listener()):
        yield spent
