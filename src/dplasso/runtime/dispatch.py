"""Contracts of kernels: one name, and an implementation for each class of state.

A state is a NamedTuple defined at the top of an importable module. numba picks the implementation
by the type of the state when it compiles a caller, so that the compiled loop is found in its disk
cache again; plain Python picks it by the class, so that kernels also run interpreted.
"""

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import overload

_IMPLEMENTATIONS: dict[tuple[str, type], Callable[..., Any]] = {}


def remember(name: str, state_class: type, kernel: Callable[..., Any]) -> None:
    """Note which kernel does `name` for states of a class, for callers in plain Python."""
    _IMPLEMENTATIONS[name, state_class] = kernel


def implement(function: Callable[..., Any], state_class: type, kernel: Callable[..., Any]) -> None:
    """Have a kernel do what `function` is called for, for states of a class as first argument."""
    remember(function.__name__, state_class, kernel)

    @overload(function, strict=False)
    def _implementation(state: Any, *_: Any) -> Any:
        if not is_state(state, state_class):
            return None
        return lambda state, *arguments: kernel(state, *arguments)


def implementation(name: str, state: Any) -> Callable[..., Any]:
    """Return the kernel that does `name` for a state.

    Raises TypeError if none was registered for its class.
    """
    try:
        return _IMPLEMENTATIONS[name, type(state)]
    except KeyError:
        raise TypeError(f"no kernel {name!r} is registered for {type(state).__name__}") from None


def is_state(numba_type: Any, state_class: type) -> bool:
    """Return whether a numba type is that of a NamedTuple class."""
    return isinstance(numba_type, types.BaseNamedTuple) and (
        getattr(numba_type, "instance_class", None) is state_class
    )
