"""Tell people when they are waiting for the compiler, and how long it took."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

COMPILING = "compiling what this needs, once on this machine: 5 to 10 s for a fit with defaults"


@dataclass
class CompileTime:
    """Time spent so far on kernels that were compiled, not loaded from numba's cache on disk."""

    seconds: float = 0.0


@contextmanager
def announce_compilation(announce: Callable[[str], None]) -> Iterator[CompileTime]:
    """Call `announce` once, with `COMPILING`, when a kernel has to be compiled inside the block.

    Kernels that are loaded from numba's cache on disk do not count. The time that is yielded grows.
    """
    from numba.core import event

    spent, begun = CompileTime(), list[float]()

    class Listener(event.Listener):
        """A kernel is compiled inside the compilation of the kernel that calls it."""

        def on_start(self, _event: Any) -> None:
            if not begun and not spent.seconds:
                announce(COMPILING)
            begun.append(time.perf_counter())

        def on_end(self, _event: Any) -> None:
            # Another thread may have begun before there was anybody to listen.
            began = begun.pop() if begun else time.perf_counter()
            if not begun:
                spent.seconds += time.perf_counter() - began

    with event.install_listener("numba:compile", Listener()):
        yield spent
