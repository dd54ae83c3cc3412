"""Contracts of kernels: one name, and an implementation for each class of state.

A state is a NamedTuple defined at the top of an importable module. numba picks the implementation
by the type of the state when it compiles a caller, so that the compiled loop is found in its disk
cache again; plain Python picks it by the class, so that kernels also run interpreted.
"""

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import overload

from dplasso.runtime.compilation import put_off_collecting

put_off_collecting()
_IMPLEMENTATIONS: dict[tuple[str, type], Callable[..., Any]] = {}


def implement(function: Callable[..., Any], state_class: type, kernel: Callable[..., Any]) -> None:
    """Have a kernel do what `function` is called for, for states of a class as first argument."""
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
