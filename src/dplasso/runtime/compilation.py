"""Tell people when they are waiting for the compiler, which happens once per machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

COMPILING = "compiling for this machine: once, up to 20 s"


@contextmanager
def announce_compilation(announce: Callable[[str], None]) -> Iterator[None]:
    """Call `announce` with one line when a kernel has to be compiled inside the block.

    Kernels that are loaded from numba's cache on disk are not announced.

    Parameters
    ----------
    announce : callable
        Called at most once, with `COMPILING`.
    """
    from numba.core import event

    class Listener(event.Listener):
        said = False

        def on_start(self, _event: Any) -> None:
            if not self.said:
                self.said = True
                announce(COMPILING)

        def on_end(self, _event: Any) -> None:
            """Compilation is over; nothing to say."""

    with event.install_listener("numba:compile", Listener()):
        yield
