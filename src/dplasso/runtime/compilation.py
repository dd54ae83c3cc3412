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
    """Call `announce` with one line when a kernel has to be compiled inside the block.

    It is called at most once, with `COMPILING`, and not for kernels that are loaded from numba's
    cache on disk. The time that is yielded grows whenever a kernel has been compiled.
    """
    from numba.core import event

    spent = CompileTime()

    class Listener(event.Listener):
        depth = 0  # a kernel is compiled inside the compilation of the kernel that calls it
        began = 0.0

        def on_start(self, _event: Any) -> None:
            if self.depth == 0:
                self.began = time.perf_counter()
                if spent.seconds == 0:
                    announce(COMPILING)
            self.depth += 1

        def on_end(self, _event: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                spent.seconds += time.perf_counter() - self.began

    with event.install_listener("numba:compile", Listener()):
        yield spent
